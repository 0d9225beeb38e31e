"""Precisions by name: the bytes of a weight, of a cached value, and at which rate products run."""

from __future__ import annotations

from inference_math.evidence.checks import as_one_of

__all__ = [
    "FOUR_BITS",
    "KV_PRECISIONS",
    "PRECISIONS",
    "STATE_BYTES",
    "as_kv_precision",
    "as_precision",
    "bytes_per_value",
]

PRECISIONS = ("bf16", "fp8", "nvfp4", "mxfp4", "int4")
KV_PRECISIONS = ("bf16", "fp8")
FOUR_BITS = ("nvfp4", "mxfp4", "int4")
# Four bits have a scale: of 8 bits for 16 values (NVFP4) or 32 (MXFP4), of 16 bits for 32 (INT4).
_BYTES = {"bf16": 2, "fp16": 2, "fp8": 1, "nvfp4": 0.5 + 1 / 16, "mxfp4": 0.5 + 1 / 32, "int4": 0.5 + 2 / 32}
STATE_BYTES = 4  # of a value of a state, which engines keep in FP32


def as_precision(argument: str, value: object) -> str:
    """Return one of `PRECISIONS`; "fp16" is "bf16", which it equals in bytes and in tensor-core rate."""
    precision = as_one_of(argument, value, _BYTES)
    return "bf16" if precision == "fp16" else precision


def as_kv_precision(argument: str, value: object) -> str:
    """Return one of `KV_PRECISIONS`."""
    precision = as_one_of(argument, value, (*KV_PRECISIONS, "fp16"))
    return "bf16" if precision == "fp16" else precision


def bytes_per_value(precision: str) -> float:
    """Return the bytes of one weight or cached value, scales included: 2 for bf16 (fp16), 1 for fp8.

    >>> bytes_per_value("bf16"), bytes_per_value("nvfp4")
    (2, 0.5625)
    """
    return _BYTES[as_precision("precision", precision)]
