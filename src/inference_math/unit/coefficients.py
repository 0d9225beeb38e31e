"""What a unit reaches of its datasheet: a handful of coefficients, how sure they are, and where they were found."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import tomlkit
from numpy.typing import NDArray

from inference_math.checks import AT_LEAST_ONE, AT_LEAST_ZERO, EFFICIENCY, Interval, as_number, as_one_of
from inference_math.evidence import load

__all__ = ["COEFFICIENTS", "DATASHEET", "ENGINES", "Anchor", "Calibration", "Coefficients", "Draw", "Prediction"]

ENGINES = ("vllm", "trtllm", "sglang")
SHARES = ("memory", "bf16", "fp8", "kv")  # of a rate; the others are seconds
_LEAST = 0.01  # of a share that is drawn


@dataclass(frozen=True)
class Coefficients:
    """What a step reaches of the datasheet: shares in (0, 1] of bandwidth and compute, and seconds besides.

    `memory` of the HBM bandwidth, for weights and activations; `bf16` and `fp8` of the compute rates; `kv` of the
    HBM bandwidth, for KV caches; `layer` seconds of each layer in a step, `request` seconds of each decode in a step.

    Raises
    ------
    ValueError
        For a share outside (0, 1], negative seconds.
    """

    memory: float = 1.0
    bf16: float = 1.0
    fp8: float = 1.0
    kv: float = 1.0
    layer: float = 0.0
    request: float = 0.0

    def __post_init__(self) -> None:
        for name in COEFFICIENTS:
            accepted = EFFICIENCY if name in SHARES else AT_LEAST_ZERO
            object.__setattr__(self, name, as_number(name, getattr(self, name), accepted))


COEFFICIENTS = tuple(f.name for f in fields(Coefficients))


@dataclass(frozen=True)
class Anchor:
    """What a run of one user at a time took longer than predicted: seconds of each output token, may be negative."""

    n_in: float
    n_out: float
    seconds: float

    def __post_init__(self) -> None:
        as_number("n_in", self.n_in, AT_LEAST_ONE)
        as_number("n_out", self.n_out, AT_LEAST_ONE)
        as_number("seconds", self.seconds, Interval(-np.inf))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Coefficients with their uncertainty and their scope.

    Attributes
    ----------
    mode
        "datasheet", "zero-shot" (operators of the H100), "measured" (kernels of one's own GPU) or "profile" (runs of an
        engine).
    coefficients
        The coefficients.
    covariance
        Of the coefficients in the order of `COEFFICIENTS`, 6 by 6; normal, cut off where a coefficient ends.
    spread
        Standard deviation of log(measured / predicted) that no coefficient explains.
    scope
        Names and ranges of what it was found on: "model", "gpu", "weights" name lists; "n_in", "n_out",
        "concurrency", "tp" ranges. What is not listed is not restricted.
    anchors
        Measured minus predicted for one user at a time, per output token.
    """

    mode: str
    coefficients: Coefficients
    covariance: NDArray[np.float64]
    spread: float
    scope: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    anchors: tuple[Anchor, ...] = ()

    def __post_init__(self) -> None:
        as_number("spread", self.spread, Interval(0, 2))
        size = len(COEFFICIENTS)
        matrix = np.asarray(self.covariance, dtype=np.float64)
        if matrix.shape != (size, size) or not np.isfinite(matrix).all() or not _is_covariance(matrix):
            raise ValueError(f"covariance must be {size} x {size} finite numbers, symmetric and positive semidefinite")
        object.__setattr__(self, "covariance", matrix)
        object.__setattr__(self, "scope", MappingProxyType({name: _scope(name, v) for name, v in self.scope.items()}))

    @classmethod
    def zero_shot(cls, engine: str) -> Calibration:
        """Return what was fitted to the operators of `engine` on the H100; for sglang, of the other two together."""
        frame = load("coefficients").frame
        rows = frame[frame["engine"] == as_one_of("engine", engine, ENGINES)].set_index("name")
        value, sd = rows["value"], rows["sd"].reindex(COEFFICIENTS).to_numpy()
        together = np.eye(len(COEFFICIENTS))
        # KV caches are read at the share of all reads: one coefficient under two names.
        memory, kv = COEFFICIENTS.index("memory"), COEFFICIENTS.index("kv")
        together[memory, kv] = together[kv, memory] = 1.0
        values = Coefficients(**{name: float(value[name]) for name in COEFFICIENTS})
        return cls("zero-shot", values, together * np.outer(sd, sd), float(value["spread"]), ZERO_SHOT_SCOPE)

    def sd(self, name: str) -> float:
        """Return the standard deviation of the coefficient `name`."""
        i = COEFFICIENTS.index(as_one_of("name", name, COEFFICIENTS))
        return float(np.sqrt(self.covariance[i, i]))

    def draws(self, count: int) -> list[Draw]:
        """Return `count` draws from the distribution: Sobol points, the same ones every time."""
        from scipy.stats import norm, qmc  # here, since it takes half a second and the fast path needs none of it

        centre = np.array([getattr(self.coefficients, name) for name in COEFFICIENTS])
        bits = int(np.ceil(np.log2(max(count, 2))))
        cells = qmc.Sobol(centre.size + 2, scramble=False).random_base2(bits)[:count]
        normal = norm.ppf(cells + 0.5 / 2**bits)  # from a cell's corner to its middle
        scale, axes = np.linalg.eigh(self.covariance)
        # The symmetric root: unlike the axes themselves it is the same on every machine.
        root = axes @ np.diag(np.sqrt(np.maximum(scale, 0))) @ axes.T
        drawn = centre + normal[:, : centre.size] @ root
        for i, name in enumerate(COEFFICIENTS):
            drawn[:, i] = np.clip(drawn[:, i], *((min(_LEAST, centre[i]), 1) if name in SHARES else (0, np.inf)))
        factors = np.exp(self.spread * normal[:, centre.size :])
        return [
            Draw(replace(self, coefficients=Coefficients(*row)), float(step), float(prompt))
            for row, (step, prompt) in zip(drawn.tolist(), factors, strict=True)
        ]

    def anchor(self, n_in: float, n_out: float) -> float:
        """Return the seconds per output token of the anchor with the nearest lengths; 0 where there is none."""
        if not self.anchors:
            return 0.0
        nearest = min(self.anchors, key=lambda a: abs(np.log(a.n_in / n_in)) + abs(np.log(a.n_out / n_out)))
        return nearest.seconds

    def outside(self, **inputs: Any) -> tuple[str, ...]:
        """Return a sentence for each of `inputs` that lies outside `scope`."""
        found = []
        for name, value in inputs.items():
            known = self.scope.get(name)
            if known is None:
                continue
            if isinstance(known[0], str):
                if value not in known:
                    found.append(f"{name} {value} is not among the calibrated: {', '.join(known)}")
            elif np.min(value) < known[0] or np.max(value) > known[1]:
                found.append(f"{name} {_range(value)} is outside the calibrated range, {_range(known)}")
        return tuple(found)

    def save(self, path: str | Path) -> None:
        """Write a TOML file that `load` reads."""
        content = {
            "mode": self.mode, "spread": float(self.spread), "coefficients": asdict(self.coefficients),
            "scope": {name: list(values) for name, values in self.scope.items()},
            "covariance": dict(zip(COEFFICIENTS, self.covariance.tolist(), strict=True)),
            "anchors": [asdict(anchor) for anchor in self.anchors],
        }  # fmt: skip
        Path(path).write_text(tomlkit.dumps(content), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            For a file that is no TOML, lacks something, or has numbers out of range; it names the file.
        """
        try:
            found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            return cls(
                mode=as_one_of("mode", found["mode"], ("datasheet", "zero-shot", "profile", "measured")),
                coefficients=Coefficients(**found["coefficients"]),
                covariance=np.array([found["covariance"][name] for name in COEFFICIENTS]),
                spread=found["spread"],
                scope=found["scope"],
                anchors=tuple(Anchor(**anchor) for anchor in found["anchors"]),
            )
        except KeyError as missing:
            raise ValueError(f"{path} must be a calibration: {missing} is missing") from None
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} must be a calibration: {error}") from None

    def anchored(self, anchors: tuple[Anchor, ...]) -> Calibration:
        """Return the same with these anchors."""
        return replace(self, anchors=anchors)


class Draw(NamedTuple):
    """One draw of a calibration, and two of the error that it leaves: factors of a step, and of its prompts' part.

    The fit errs on prompts and on decodes by themselves; where only a sum is asked for, the first will do.
    """

    calibration: Calibration
    step: float
    prompt: float


ZERO_SHOT_SCOPE: Mapping[str, tuple[Any, ...]] = {
    "engine": ("vllm", "trtllm"),
    "gpu": ("h100-sxm",),
    "kind": ("dense",),
    "tp": (1, 8),
    "n_in": (1, 16_384),
    "concurrency": (1, 512),
}


@dataclass(frozen=True)
class Prediction:
    """A number with the interval that holds it with probability `level`, and what of its inputs was never calibrated.

    Floats, or arrays where the question was asked of one; times in seconds.
    """

    value: Any
    low: Any
    high: Any
    level: float
    mode: str
    outside: tuple[str, ...]

    def __str__(self) -> str:
        numbers = (
            f"{_digits(self.value)} s ({_digits(self.low)} to {_digits(self.high)}, {self.level:.0%}, {self.mode})"
        )
        return "; ".join((numbers, *self.outside))


def _is_covariance(matrix: NDArray[np.float64]) -> bool:
    scale = np.sqrt(np.maximum(np.outer(np.diag(matrix), np.diag(matrix)), 1e-300))
    symmetric = np.allclose(matrix / scale, matrix.T / scale, rtol=1e-6, atol=1e-9)
    return bool(symmetric and (np.diag(matrix) >= 0).all() and np.min(np.linalg.eigvalsh(matrix / scale)) > -1e-6)


def _scope(name: str, values: Any) -> tuple[Any, ...]:
    """Return names, or the two ends of a range."""
    found = tuple(values) if isinstance(values, list | tuple) else ()
    if found and all(isinstance(value, str) for value in found):
        return found
    if len(found) == 2 and all(isinstance(value, int | float) for value in found) and found[0] <= found[1]:
        return found
    raise ValueError(f"scope.{name} must be names or the two ends of a range, not {values!r:.80}")


def _digits(value: Any) -> str:
    return f"{value:.4g}" if np.ndim(value) == 0 else str(np.asarray(value).round(6).tolist())


def _range(values: Any) -> str:
    low, high = np.min(values), np.max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


DATASHEET = Calibration("datasheet", Coefficients(), np.zeros((len(COEFFICIENTS), len(COEFFICIENTS))), 0.0)
