"""GPUs as the plain numbers that `perf` takes."""

from __future__ import annotations

from inference_math.catalogue.models import WORKSPACE, Gpu
from inference_math.perf.types import Rates

__all__ = ["rates_of"]


def rates_of(gpu: Gpu) -> Rates:
    """Return a GPU's rates and bytes, as plain numbers for `perf.steps`; 0 for a rate that it does not have."""
    return {
        "driver_bytes": gpu.driver_bytes or gpu.hbm_bytes,
        "workspace": WORKSPACE,
        "hbm_bw": gpu.hbm_bw,
        "link_bw": gpu.link_bw,
        "pcie_bw": gpu.pcie_bw,
        "bf16_flops": gpu.bf16_flops,
        "fp8_flops": gpu.fp8_flops or 0.0,
        "fp4_flops": gpu.fp4_flops or 0.0,
    }
