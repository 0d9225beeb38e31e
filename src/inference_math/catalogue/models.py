"""Models and GPUs by name, and the user's own: what a cost formula needs to know about each.

Everything is in SI units: bytes (1 GB = 1e9), bytes per second, dense FLOP/s without sparsity. A model is that of
`decoder`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from inference_math.catalogue.decoder import Model
from inference_math.catalogue.files import parsed_file
from inference_math.catalogue.naming import cards, meant, near, plain_name
from inference_math.catalogue.precisions import FOUR_BITS, PRECISIONS, as_precision, bytes_per_value
from inference_math.evidence import data_dir, load
from inference_math.evidence.checks import Interval, as_numbers, as_one_of
from inference_math.evidence.datapackage import rows

__all__ = [
    "GPUS", "MODELS", "PRECISIONS", "Gpu", "Model", "as_precision", "bytes_per_value", "gpu", "model", "names",
]  # fmt: skip

_SIZES = Interval(1e6, 1e36)  # bytes, bytes/s, FLOP/s of a GPU
_WATTS = Interval(1, 1e5)
WORKSPACE = 3e9  # bytes of a GPU for activations and graphs: SGLang on four H100 left 2.8 GB [sglang, Qwen3-235B]


@dataclass(frozen=True)
class Gpu:
    """The datasheet rates of one GPU: upper bounds, which measured efficiencies scale down.

    `bf16_flops`, `fp8_flops` and `fp4_flops` (None where there is none) in FLOP/s, dense; `hbm_bw` in byte/s;
    `hbm_bytes` the marketed capacity at 1e9 bytes per GB, `driver_bytes` what the driver reports, of which engines take
    a share (where it is not stated, the marketed one); `generation` names its architecture; `link_bw` (GPU to GPU) and
    `pcie_bw` in byte/s per GPU and per direction; `tdp` the rated power in W, where it is stated.
    """

    name: str
    bf16_flops: float
    hbm_bw: float
    hbm_bytes: float
    link_bw: float
    pcie_bw: float
    fp8_flops: float | None = None
    fp4_flops: float | None = None
    driver_bytes: float | None = None
    tdp: float | None = None
    generation: str = ""
    title: str = ""
    source: str = "the user"
    url: str = ""
    convention: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if "float" in str(field.type) and value is not None:
                accepted = _WATTS if field.name == "tdp" else _SIZES
                object.__setattr__(self, field.name, float(as_numbers(field.name, value, accepted)))
            elif field.type == "str" and not isinstance(value, str):
                raise TypeError(f"{field.name} must be text, not {value!r:.80}")

    @classmethod
    def from_toml(cls, path: str | Path) -> Gpu:
        """Read one GPU from a TOML file whose keys are the names above; `source` defaults to the path.

        Raises
        ------
        ValueError
            Naming file and key: one that is unknown, missing, no number, not finite or not positive.
        """
        table = {"source": str(path)} | parsed_file(Path(path), tomllib.loads)
        try:
            for key in table:
                as_one_of("key", key, [field.name for field in fields(cls)])
            missing = [name for name in cls.required() if name not in table]
            if missing:
                raise ValueError(f"missing: {', '.join(missing)}")
            return cls(**table)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def required(cls) -> list[str]:
        """Return the names of the fields that a file of a GPU must have."""
        return [field.name for field in fields(cls) if field.default is MISSING]

    @property
    def maker(self) -> str:
        """The maker by the generation, "AMD" or "NVIDIA"; a GPU without one is taken for the latter's."""
        return "AMD" if self.generation.casefold().startswith(("cdna", "rdna", "gfx", "mi")) else "NVIDIA"

    def room(self, share: float) -> float:
        """Return the bytes for weights and KV caches of an engine that takes this share of the memory.

        Less what it needs itself: activations, CUDA graphs.
        """
        return max(0.0, share * (self.driver_bytes or self.hbm_bytes) - WORKSPACE)

    def flops(self, precision: str) -> float:
        """Return the dense tensor-core rate F in FLOP/s; FP8 on a GPU without it is refused.

        Four bits run at the rate of FP4 where the GPU has one, else they are expanded and run at that of BF16; INT4 is
        for weights alone, and always is.
        """
        rate = self.rate_of(precision)
        if rate == "bf16":
            return self.bf16_flops
        if rate == "fp4":
            return float(self.fp4_flops or 0.0)
        if self.fp8_flops is None:
            raise ValueError(f"precision must be bf16 on {self.name}, not {precision!r} (not modelled: no FP8 unit)")
        return self.fp8_flops

    def rate_of(self, precision: str) -> str:
        """Return at which rate products with such weights run: "bf16", "fp8" or "fp4"."""
        asked = as_precision("precision", precision)
        if asked in FOUR_BITS:
            return "fp4" if self.fp4_flops and asked != "int4" else "bf16"
        return asked

    def ridge(self, precision: str) -> float:
        """Return F/BW in FLOP/byte: the arithmetic intensity below which HBM is the bottleneck [C18]."""
        return self.flops(precision) / self.hbm_bw


T = TypeVar("T", Model, Gpu)


class _Catalogue(Mapping[str, T]):
    """Entries of data/ by name, read at the first use; not to be changed."""

    def __init__(self, table: str, read: Callable[[], dict[str, T]]) -> None:
        self._table = table
        self._read: Callable[[], dict[str, T]] = read

    @cached_property
    def _entries(self) -> dict[str, T]:
        entries: dict[str, T] = self._read()
        return entries

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise KeyError(f"{name!r} is none of the {self._table}: {', '.join(self)}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _models() -> dict[str, Model]:
    """Return the models of `models.csv`, whose layers are alike, and those of `configs.toml`."""
    stated = tomllib.loads((data_dir() / "configs.toml").read_text(encoding="utf-8"))
    read = {
        name: replace(Model.from_config(one["config"], name), source=one["source"], url=one["url"])
        for name, one in stated.items()
    }
    return rows(load("models").frame, Model) | read


MODELS: Mapping[str, Model] = _Catalogue("models", _models)
GPUS: Mapping[str, Gpu] = _Catalogue("gpus", lambda: rows(load("gpus").frame, Gpu))


@cache
def _named() -> dict[str, dict[str, Any]]:
    """Return the rows of `names.csv`: more models by name, each with its configuration or the name of one like it."""
    rows: Any = load("names").frame.fillna("").to_dict("records")
    return {row["name"]: row for row in rows}


def names() -> list[str]:
    """Return the names of all models that `model` knows, the book's own first.

    >>> len(names()) > 140
    True
    """
    return [*MODELS, *_named()]


def model(name: str) -> Model:
    """Return a model by its name, or that of its repository: owner, tuning, date and precision may stand in it.

    A model that is made as another one is that one, with the longest sequence of its own. An unknown name raises
    ValueError with those that are written most alike.

    >>> model("deepseek-ai/DeepSeek-R1").name
    'deepseek-v3'
    >>> model("Qwen/Qwen2.5-72B-Instruct").n_layers
    80
    """
    if not isinstance(name, str):
        raise TypeError(f"model must be a name, not {name!r:.80}")
    if name in MODELS:
        return MODELS[name]
    meant_name = meant(name, names())
    if not meant_name:
        asked = _did_you_mean(near(name, names(), 3))
        raise ValueError(f"model must be one of {len(names())} names, such as llama-3-70b, not {name!r:.80}{asked}")
    return MODELS[meant_name] if meant_name in MODELS else _made(meant_name)


@cache
def _made(name: str) -> Model:
    """Return a model of `names.csv`."""
    row = _named()[name]
    own = {"source": row["source"], "url": f"https://huggingface.co/{row['source']}/blob/main/config.json"}
    if row["like"]:
        return replace(model(row["like"]), context=int(row["context"]), **own)
    return replace(Model.from_config(json.loads(row["config"]), name), context=int(row["context"]), **own)


def gpu(name: str) -> Gpu:
    """Return a GPU of `data/gpus.csv` by its name, or by that of its chip where only one card here has it.

    Any other name raises ValueError with all that would do, and asks whether one of the same letters and number is
    meant: h20 is no H200.

    >>> gpu("H200").name
    'h200-sxm'
    """
    if not isinstance(name, str):
        raise TypeError(f"gpu must be a name, not {name!r:.80}")
    candidates = cards(name, list(GPUS))
    if len(candidates) != 1:
        asked = _did_you_mean([one for one in GPUS if _chip(one) == _chip(plain_name(name))])
        raise ValueError(f"gpu must be one of {', '.join(GPUS)}, not {name!r:.80}{asked}")
    return GPUS[candidates[0]]


def _chip(name: str) -> str:
    """Return a GPU's name up to the end of its first number: h100 of h100-sxm, l40 of l40s."""
    match = re.match(r"\D*\d+", name)
    return match[0] if match else name


def _did_you_mean(close: list[str]) -> str:
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
