"""GPUs as the plain numbers of `types`, and what they load from a tier beside what they compute."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from inference_math.catalogue.models import WORKSPACE, Gpu
from inference_math.catalogue.precisions import PRECISIONS
from inference_math.catalogue.tiers import Tier
from inference_math.evidence.checks import ANY_POSITIVE, as_numbers
from inference_math.theory.arrays import kv_load_time, token_acceleration
from inference_math.unit.mean import as_scalar
from inference_math.unit.types import Rates

__all__ = ["acceleration", "rates_of"]


def rates_of(gpu: Gpu) -> Rates:
    """Return a GPU's rates and bytes, as plain numbers for `unit.steps`; 0 for a rate that it does not have."""
    return Rates(
        driver_bytes=gpu.driver_bytes or gpu.hbm_bytes,
        workspace=WORKSPACE,
        hbm_bw=gpu.hbm_bw,
        link_bw=gpu.link_bw,
        pcie_bw=gpu.pcie_bw,
        names={precision: gpu.rate_of(precision) for precision in PRECISIONS},
        flops={"bf16": gpu.bf16_flops, "fp8": gpu.fp8_flops or 0.0, "fp4": gpu.fp4_flops or 0.0},
    )


def acceleration(store: Tier, T: ArrayLike, kv_token: ArrayLike, gpus: int = 1) -> Any:
    """Return e [C04]: how much faster `gpus` GPUs load a token of `kv_token` bytes than compute it in `T` s.

    Examples
    --------
    >>> from inference_math.catalogue.tiers import tier
    >>> round(acceleration(tier("dram"), T=7e-5, kv_token=163_840, gpus=2), 1)
    54.7
    """
    R = kv_load_time(as_numbers("kv_token", kv_token, ANY_POSITIVE), gpus * store.read_bw)
    return as_scalar(token_acceleration(as_numbers("T", T, ANY_POSITIVE), R))
