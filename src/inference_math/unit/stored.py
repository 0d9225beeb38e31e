"""What a calibration's file states, checked number by number; without NumPy, so that the planner's page reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import inf
from typing import Any, NamedTuple

from inference_math.checks.plain import AT_LEAST_ONE, AT_LEAST_ZERO, EFFICIENCY, Interval, as_one_of, as_real
from inference_math.perf.calibrate import SHARE_NAMES

__all__ = ["COEFFICIENTS", "MODES", "SHARES", "Anchor", "Coefficients", "Stored", "scope_of", "stored"]

SHARES = tuple(SHARE_NAMES)  # of a rate; the others are seconds, or a ratio
MODES = ("datasheet", "zero-shot", "served", "profile", "measured")
_NAMES = ("engine", "model", "kind", "gpu", "weights", "kv")
_RANGES = ("tp", "n_in", "n_out", "concurrency")
_ANCHOR = Interval(-0.1, 1)  # seconds a token: an engine's overhead, or what it hides
_LEAST_SHARE, _LONGEST = 1e-3, 10.0  # that a file may have: share, seconds
_WIDEST = 10.0  # variance of a logarithm: nobody knows so little
_COVARIANCE = Interval(-_WIDEST, _WIDEST)


@dataclass(frozen=True)
class Coefficients:
    """What a step reaches of the datasheet: shares in (0, 1] of bandwidth and compute, and seconds besides.

    `memory` of the HBM bandwidth, for weights and activations; `bf16`, `fp8` and `fp4` of the compute rates;
    `attention` of that of BF16, for attention of prompts, `decode_attention` for that of decodes; of what these allow
    for routed experts `experts` of the bandwidth and `grouped` of the compute; `kv` of the HBM bandwidth, for KV
    caches; `interconnect_efficiency` of the bandwidth between GPUs; `layer` seconds of each layer in a step,
    `collective_latency` seconds of each layer besides where GPUs work together, `per_sequence_overhead` seconds of
    each decode in each layer; `expert_imbalance` the coefficient of variation of how often a layer's experts are
    chosen: 0 where all are chosen alike.

    Raises
    ------
    ValueError
        For a share outside (0, 1], negative seconds.
    """

    memory: float = 1.0
    bf16: float = 1.0
    fp8: float = 1.0
    fp4: float = 1.0
    attention: float = 1.0
    decode_attention: float = 1.0
    experts: float = 1.0
    grouped: float = 1.0
    kv: float = 1.0
    interconnect_efficiency: float = 1.0
    layer: float = 0.0
    collective_latency: float = 0.0
    per_sequence_overhead: float = 0.0
    expert_imbalance: float = 0.0

    def __post_init__(self) -> None:
        for name in COEFFICIENTS:
            accepted = EFFICIENCY if name in SHARES else AT_LEAST_ZERO
            object.__setattr__(self, name, as_real(name, getattr(self, name), accepted))


COEFFICIENTS = tuple(f.name for f in fields(Coefficients))


@dataclass(frozen=True)
class Anchor:
    """What a run of one user at a time took longer than predicted: seconds of each output token, may be negative."""

    n_in: float
    n_out: float
    seconds: float

    def __post_init__(self) -> None:
        as_real("n_in", self.n_in, AT_LEAST_ONE)
        as_real("n_out", self.n_out, AT_LEAST_ONE)
        as_real("seconds", self.seconds, Interval(-inf))


class Stored(NamedTuple):
    """What a calibration's file states; see `Calibration`, whose fields it has."""

    mode: str
    coefficients: Coefficients
    covariance: list[list[float]]
    spread: float
    scope: dict[str, tuple[object, ...]]
    anchors: tuple[Anchor, ...]


def stored(found: dict[str, Any]) -> Stored:
    """Return what the fields of a calibration's file state.

    That the covariance is one, `Calibration` looks at.

    Raises
    ------
    KeyError
        For a field that is missing.
    TypeError, ValueError
        For one that is none, or out of range.
    """
    tables = _tables("coefficients", found["coefficients"])
    read = Stored(
        as_one_of("mode", found["mode"], MODES),
        Coefficients(**{name: tables[name] for name in COEFFICIENTS}),
        _square(found["log_covariance"]),
        as_real("spread", found["spread"], Interval(0, 2)),
        {name: scope_of(name, values) for name, values in _tables("scope", found["scope"]).items()},
        tuple(_anchor(anchor) for anchor in found["anchors"]),
    )
    for name, value in asdict(read.coefficients).items():
        as_real(name, value, Interval(_LEAST_SHARE, 1) if name in SHARES else Interval(0, _LONGEST))
    for anchor in read.anchors:
        as_real("seconds of an anchor", anchor.seconds, _ANCHOR)
    return read


def _tables(name: str, value: object) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a table of names, not {value!r:.80}")
    return value


def _square(rows: Any) -> list[list[float]]:
    found = [_tables("log_covariance", rows)[name] for name in COEFFICIENTS]
    if not all(isinstance(row, list) and len(row) == len(found) for row in found):
        raise ValueError(f"log_covariance must have {len(found)} numbers for each coefficient")
    return [[as_real("log_covariance", value, _COVARIANCE) for value in row] for row in found]


def _anchor(value: object) -> Anchor:
    names = [field.name for field in fields(Anchor)]
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise ValueError(f"an anchor must have {', '.join(names)} and nothing else, not {value!r:.80}")
    return Anchor(**value)


def scope_of(name: str, values: object) -> tuple[object, ...]:
    """Return names, or the two ends of a range."""
    as_one_of("scope", name, (*_NAMES, *_RANGES))
    found = tuple(values) if isinstance(values, list | tuple) else ()
    if name in _NAMES and found and all(isinstance(value, str) for value in found):
        return found
    numbers = name in _RANGES and len(found) == 2 and all(isinstance(value, int | float) for value in found)
    if numbers and -inf < found[0] <= found[1] < inf:
        return found
    accepted = "names" if name in _NAMES else "the two ends of a range"
    raise ValueError(f"scope.{name} must be {accepted}, not {values!r:.80}")
