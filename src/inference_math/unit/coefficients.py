"""What a unit reaches of its datasheet: a handful of coefficients, how sure they are, and where they were found."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import tomli_w
from numpy.typing import ArrayLike, NDArray

from inference_math.catalogue.engines import engine as engine_record
from inference_math.catalogue.files import write
from inference_math.evidence import load
from inference_math.evidence.checks import (
    AT_LEAST_ONE,
    AT_LEAST_ZERO,
    EFFICIENCY,
    Interval,
    Numbers,
    as_number,
    as_numbers,
    as_one_of,
    as_real,
)
from inference_math.evidence.sentences import render
from inference_math.unit.mean import as_scalar
from inference_math.unit.mixing import SHARE_NAMES, anchored, away, drawn
from inference_math.unit.scope import foreign, missing, outside, set_up_of, wider
from inference_math.unit.sobol import sobol
from inference_math.unit.types import DrawnCoefficients

__all__ = [
    "COEFFICIENTS",
    "DATASHEET",
    "ENGINES",
    "SHARES",
    "Anchor",
    "Calibration",
    "Coefficients",
    "Host",
    "Prediction",
    "imbalance",
    "scored_too",
]

ENGINES: tuple[str, ...] = ("vllm", "trtllm", "sglang")
SHIPPED = ("zero-shot", "served")  # modes that need no measurement of the user's
HELD = ("profile",)  # modes whose 90 % intervals were seen to hold some 90 % of points that they were not fitted to
_LARGEST = 1_000_000  # bytes of a file
_WIDEST = 10.0  # variance of a logarithm: nobody knows so little
SHARES = tuple(SHARE_NAMES)  # of a rate; the others are seconds, or a ratio
MODES = ("datasheet", "zero-shot", "served", "profile", "measured")
_NAMES = ("engine", "model", "kind", "gpu", "weights", "kv", "nodes", "set_up")
_RANGES = ("tp", "dp", "n_in", "n_out", "concurrency")
_ANCHOR = Interval(-0.1, 1)  # seconds a token: an engine's overhead, or what it hides
_LEAST_SHARE, _LONGEST = 1e-3, 10.0  # that a file may have: share, seconds
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


class Host(NamedTuple):
    """Seconds that an engine's host takes of each step, and of it for each request that decodes.

    `covariance` is that of their logarithms, 2 x 2.
    """

    step: float
    request: float
    covariance: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Coefficients with their uncertainty and their scope.

    Attributes
    ----------
    mode
        "datasheet", "zero-shot" (operators of the H100), "served" (served points of an engine), "measured" (kernels of
        one's own GPU) or "profile" (runs of an engine).
    coefficients
        The coefficients.
    covariance
        Of the logarithms of the coefficients, in the order of `COEFFICIENTS`.
    spread
        Standard deviation of log(measured / predicted) that no coefficient explains.
    scope
        Names and ranges of what it was found on: names of "engine", "model", "kind", "gpu", "weights", "kv", "nodes"
        and "set_up", of which points were fitted or scored; ranges of "n_in", "n_out", "concurrency", "tp" and "dp".
        What is not listed is not restricted.
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
        sound = matrix.shape == (size, size) and np.isfinite(matrix).all()
        if sound and (widest := np.abs(matrix).max()) > _WIDEST:
            raise ValueError(f"covariance must be of logarithms, at most {_WIDEST:g}, not {widest:.3g}")
        if not sound or not _is_covariance(matrix):
            raise ValueError(f"covariance must be {size} x {size} finite numbers, symmetric and positive semidefinite")
        object.__setattr__(self, "covariance", matrix)
        object.__setattr__(
            self, "scope", MappingProxyType({name: _scope_of(name, v) for name, v in self.scope.items()})
        )

    @classmethod
    def zero_shot(cls, engine: str) -> Calibration:
        """Return what was fitted to the operators of `engine` on the H100; for sglang, of the other two together.

        The covariance is that of a model which was not among the fitted, on an engine of another generation.
        """
        frame = load("coefficients").frame
        rows = frame[frame["engine"] == (engine_record(engine).like or engine)].set_index("name")
        values, names = rows["value"], list(COEFFICIENTS)
        width = (rows["sd"] / values)[names].fillna(0.0).to_numpy()
        covariance = rows.loc[names, names].to_numpy() * np.outer(width, width)
        coefficients = Coefficients(**{name: float(values[name]) for name in names})
        return cls("zero-shot", coefficients, covariance, float(values["spread"]), scored_too(ZERO_SHOT_SCOPE))

    @property
    def kernels(self) -> Calibration:
        """The same without what an engine adds to a step for each request, and without anchors: kernels alone."""
        return replace(self, coefficients=replace(self.coefficients, per_sequence_overhead=0.0), anchors=())

    def counted(self, expert_imbalance: float) -> Calibration:
        """Return the same with experts as unevenly chosen as somebody counted, which is sure then; see `imbalance`."""
        uneven = as_number("expert_imbalance", expert_imbalance, AT_LEAST_ZERO)
        place, covariance = COEFFICIENTS.index("expert_imbalance"), self.covariance.copy()
        covariance[place] = covariance[:, place] = 0.0
        return replace(self, coefficients=replace(self.coefficients, expert_imbalance=uneven), covariance=covariance)

    def hosted(self, host: Host, layers: int) -> Calibration:
        """Return the same with a host's seconds of a step, spread over so many layers.

        They are added to `layer`. Those for a request take the place of `per_sequence_overhead`, for they were fitted
        to all that a request takes beyond operators. The covariance is that of the logarithms of the sums, to first
        order.
        """
        layer = self.coefficients.layer + host.step / layers
        moved = replace(self.coefficients, layer=layer, per_sequence_overhead=host.request / layers)
        places = [COEFFICIENTS.index("layer"), COEFFICIENTS.index("per_sequence_overhead")]
        kept, added = np.ones(len(COEFFICIENTS)), np.zeros((len(COEFFICIENTS), 2))
        kept[places] = self.coefficients.layer / layer, 0.0
        added[places] = np.diag([host.step / layers / layer, 1.0])
        covariance = self.covariance * np.outer(kept, kept) + added @ host.covariance @ added.T
        return replace(self, coefficients=moved, covariance=covariance)

    def sd(self, name: str) -> float:
        """Return the standard deviation of the coefficient `name`, in its own unit."""
        i = COEFFICIENTS.index(as_one_of("name", name, COEFFICIENTS))
        return float(getattr(self.coefficients, name) * np.sqrt(self.covariance[i, i]))

    def ends(self, name: str, sds: float) -> tuple[float, float]:
        """Return the coefficient `name` so many standard deviations of its logarithm below and above, as drawn."""
        i = COEFFICIENTS.index(as_one_of("name", name, COEFFICIENTS))
        wide = as_number("sds", sds, AT_LEAST_ZERO) * np.sqrt(self.covariance[i, i])
        value = getattr(self.coefficients, name)
        return away(name, value, -wide), away(name, value, wide)

    def draws(self, count: int, anchor: float = 0.0, spread: float | None = None) -> list[DrawnCoefficients]:
        """Return `count` draws from the distribution: Sobol points, the same ones every time.

        A draw is a pair: coefficients by name, with the seconds of an `anchor`, which is not drawn; and what the fit
        leaves, of `spread` (None: its own), two factors, of a step and of its prompts' part, and by how many standard
        deviations of its logarithm a request's front (`unit.front`) is off. The fit errs on prompts and on decodes by
        themselves; where only a sum is asked for, the first factor will do. Coefficients are normal in the logarithms,
        but that a share above its centre nears 1 and does not reach it: no draw is cut off, and the centre of each
        coefficient is the median of its draws.
        """
        values = asdict(self.coefficients) | {"anchor": anchor}
        wide = self.spread if spread is None else spread
        return drawn(list(COEFFICIENTS), values, self.root.tolist(), normals(count), wide)

    @cached_property
    def root(self) -> NDArray[np.float64]:
        """The symmetric root of the covariance: unlike its axes the same on every machine."""
        scale, axes = np.linalg.eigh(self.covariance)
        return np.asarray(axes @ np.diag(np.sqrt(np.maximum(scale, 0))) @ axes.T)

    def spread_for(self, **inputs: ArrayLike) -> Numbers:
        """Return `spread`, widened for each of `inputs` that lies outside `scope`: of a float, or of arrays, arrays.

        By how much is in the table `widths`: what predictions were off where they were tried on another model, GPU,
        number of GPUs, or on longer prompts and larger batches than they were fitted to; for a foreign engine, what
        set-ups were off by that nobody had fitted (`unit.scope` has the rule).
        """
        scope, widths = dict(self.scope), dict(load("widths").frame[["name", "width"]].to_numpy().tolist())
        rule = np.vectorize(lambda *row: wider(self.spread, widths, scope, _ends(dict(zip(inputs, row, strict=True)))))
        return as_scalar(rule(*inputs.values())) if inputs else self.spread

    def foreign(self, **inputs: ArrayLike) -> bool:
        """Return whether the plan of these inputs is that of an engine which is none of ours; see `unit.scope`."""
        names: Any = {name: inputs[name] for name in ("engine", "model", "gpu", "weights") if name in inputs}
        return foreign(dict(self.scope), names)

    def widest(self, **inputs: ArrayLike) -> float:
        """Return the spread that the widest of `inputs` needs."""
        return float(np.max(self.spread_for(**inputs)))

    def anchor(self, n_in: float, n_out: float) -> float:
        """Return the seconds per output token of the anchor with the nearest lengths; 0 where there is none."""
        return anchored([asdict(anchor) for anchor in self.anchors], n_in, n_out)

    def unseen(self, **inputs: ArrayLike) -> list[str]:
        """Return the names of `inputs` that lie outside `scope`."""
        return missing(dict(self.scope), _ends(inputs))

    def outside(self, **inputs: ArrayLike) -> tuple[str, ...]:
        """Return a sentence for each of `inputs` that lies outside `scope`."""
        return tuple(map(render, outside(dict(self.scope), _ends(inputs))))

    def save(self, path: str | Path) -> None:
        """Write a TOML file that `load` reads; what was at `path` stays whole until the new file is."""
        content = {
            "mode": self.mode,
            "spread": float(self.spread),
            "coefficients": asdict(self.coefficients),
            "scope": {name: list(values) for name, values in self.scope.items()},
            "log_covariance": dict(zip(COEFFICIENTS, self.covariance.tolist(), strict=True)),
            "anchors": [asdict(anchor) for anchor in self.anchors],
        }
        write(path, tomli_w.dumps(content))

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            For a file that is no TOML, lacks something, or has numbers out of range; it names the file.
        """
        if Path(path).exists() and not (Path(path).is_file() and Path(path).stat().st_size <= _LARGEST):
            raise ValueError(f"{path} must be a calibration: it is no file of at most {_LARGEST:,} bytes")
        try:
            return _stated(tomllib.loads(Path(path).read_text(encoding="utf-8-sig")))
        except KeyError as missing:
            raise ValueError(f"{path} must be a calibration: {missing} is missing") from None
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path} must be a calibration: {error!s:.300}") from None
        except RecursionError:
            raise ValueError(f"{path} must be a calibration: it is nested too deeply") from None


def _stated(fields: dict[str, Any]) -> Calibration:
    """Return what the fields of a calibration's file state; one that is missing is a KeyError."""
    tables = _tables("coefficients", fields["coefficients"])
    read = Calibration(
        as_one_of("mode", fields["mode"], MODES),
        Coefficients(**{name: tables[name] for name in COEFFICIENTS}),
        np.array(_square(fields["log_covariance"])),
        as_real("spread", fields["spread"], Interval(0, 2)),
        _tables("scope", fields["scope"]),
        tuple(_anchor(anchor) for anchor in fields["anchors"]),
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
    table = [_tables("log_covariance", rows)[name] for name in COEFFICIENTS]
    if not all(isinstance(row, list) and len(row) == len(table) for row in table):
        raise ValueError(f"log_covariance must have {len(table)} numbers for each coefficient")
    return [[as_real("log_covariance", value, _COVARIANCE) for value in row] for row in table]


def _anchor(value: object) -> Anchor:
    names = [field.name for field in fields(Anchor)]
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise ValueError(f"an anchor must have {', '.join(names)} and nothing else, not {value!r:.80}")
    return Anchor(**value)


def _scope_of(name: str, values: object) -> tuple[object, ...]:
    """Return names, or the two ends of a range."""
    as_one_of("scope", name, (*_NAMES, *_RANGES))
    ends = tuple(values) if isinstance(values, list | tuple) else ()
    if name in _NAMES and ends and all(isinstance(value, str) for value in ends):
        return ends
    numbers = name in _RANGES and len(ends) == 2 and all(isinstance(value, int | float) for value in ends)
    if numbers and -inf < ends[0] <= ends[1] < inf:
        return ends
    accepted = "names" if name in _NAMES else "the two ends of a range"
    raise ValueError(f"scope.{name} must be {accepted}, not {values!r:.80}")


ZERO_SHOT_SCOPE: Mapping[str, tuple[object, ...]] = {
    "engine": ("vllm", "trtllm"),
    "gpu": ("h100-sxm",),
    "kind": ("dense",),
    "nodes": ("one",),
    "tp": (1, 8),
    "n_in": (1, 16_384),
    "concurrency": (1, 512),
}


@lru_cache(maxsize=1)
def _set_ups() -> tuple[str, ...]:
    rows = load("served_error").frame[["model", "gpu", "engine", "weights"]].drop_duplicates()
    return tuple(sorted(set_up_of(*row) for row in rows.itertuples(index=False)))


def scored_too(scope: Mapping[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """Return a scope with the set-ups of which points were fitted or scored, table `served_error`."""
    return dict(scope) | {"set_up": _set_ups()}


@dataclass(frozen=True)
class Prediction:
    """A number, how low and how high it may be, and what of its inputs was never calibrated.

    `foreign`: whether the interval is that of an engine which is none of ours, by `unit.scope`; else of one like ours.

    Floats, or arrays where the question was asked of one; times in seconds. From `low` to `high` lies the share `level`
    of what the calibration's uncertainty makes of it.
    """

    value: Numbers
    low: Any
    high: Any
    level: float
    mode: str
    outside: tuple[str, ...]
    foreign: bool = False

    @property
    def word(self) -> str:
        """The level, where measured points were seen to lie in such intervals about as often; else "range".

        But for profiles of one's own it says of which engines: one like ours, whose set-up somebody fitted or scored,
        or another one.
        """
        if self.outside:
            return "range"
        of = "" if self.mode in HELD else " for another engine" if self.foreign else " for an engine like ours"
        return f"{self.level:.0%}{of}"

    def __str__(self) -> str:
        numbers = f"{_digits(self.value)} s ({_digits(self.low)} to {_digits(self.high)}, {self.word}, {self.mode})"
        return "; ".join((numbers, *self.outside))


def imbalance(chosen: ArrayLike) -> float:
    """Return the coefficient of variation of how often each expert of a layer was chosen: 0 for all alike.

    Raises
    ------
    ValueError
        For fewer than two experts, a negative count, or none above 0.

    Examples
    --------
    >>> from inference_math.unit.coefficients import imbalance
    >>> f"{imbalance([30, 10, 20, 20]):.2f}"
    '0.35'
    >>> f"{imbalance([1 / rank for rank in range(1, 129)]):.1f}"  # a power law
    '2.5'
    """
    counts = as_numbers("chosen", chosen, AT_LEAST_ZERO)
    if np.size(counts) < 2 or not np.sum(counts) > 0:
        raise ValueError("chosen must have a count for each of two experts or more, not all 0")
    return float(np.std(counts) / np.mean(counts))


@lru_cache(maxsize=8)
def normals(count: int) -> list[list[float]]:
    """Return rows of normal numbers for `count` draws, one for each coefficient and three errors: Sobol points."""
    from scipy.special import ndtri  # here, since it takes half a second and the fast path needs none of it

    bits = int(np.ceil(np.log2(max(count, 2))))
    cells = sobol(len(COEFFICIENTS) + 3, bits)[:count]
    rows: list[list[float]] = ndtri(cells + 0.5 / 2**bits).tolist()  # from a cell's corner to its middle
    return rows


def _ends(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs as `unit.scope` takes them: names, and the ends of numbers."""
    return {name: v if isinstance(v, str) else [np.min(v), np.max(v)] for name, v in inputs.items()}


def _is_covariance(matrix: NDArray[np.float64]) -> bool:
    scale = np.sqrt(np.maximum(np.outer(np.diag(matrix), np.diag(matrix)), 1e-300))
    symmetric = np.allclose(matrix / scale, matrix.T / scale, rtol=1e-6, atol=1e-9)
    return bool(symmetric and (np.diag(matrix) >= 0).all() and np.min(np.linalg.eigvalsh(matrix / scale)) > -1e-6)


def _digits(value: Numbers) -> str:
    if np.ndim(value) == 0:
        return f"{value:.3g}"
    return f"[{', '.join(_digits(one) for one in np.asarray(value).tolist())}]"


DATASHEET = Calibration("datasheet", Coefficients(), np.zeros((len(COEFFICIENTS), len(COEFFICIENTS))), 0.0)
