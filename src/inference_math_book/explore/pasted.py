"""What the planner's page reads when a reader pastes it: a model's `config.json`, requests, a calibration.

The page runs this module in an interpreter of Python that is itself JavaScript. There is neither NumPy nor pandas, so
nothing that this module imports may need them.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from math import copysign, floor, sqrt
from typing import Any

from inference_math.catalogue.decoder import Model
from inference_math.catalogue.files import parsed
from inference_math.catalogue.precisions import STATE_BYTES
from inference_math.unit.shapes import kind_of, operators_of, shape_of
from inference_math.unit.stored import stored
from inference_math.workload.lines import BLOCK_TOKENS, parsed_lines

__all__ = ["answer", "record", "root_of"]

_SIZES = (1, 2, 4, 8)  # GPUs that share a matrix, as the page offers them
_TOKENS = 1_000_000_000  # of a request, as `Workload` has it
_MOST = 20_000  # requests: a page reads a thousand in a second
NAME = "your model"


def record(model: Model) -> dict[str, Any]:
    """Return a model by the GPUs that share a matrix; what does not depend on them stands once."""
    by_tp = {str(tp): dict(shape_of(model, tp)) for tp in _SIZES if model.n_heads % tp == 0}
    same = {name: value for name, value in by_tp["1"].items() if all(one[name] == value for one in by_tp.values())}
    own = {tp: {name: value for name, value in one.items() if name not in same} for tp, one in by_tp.items()}
    told = {"kind": kind_of(model), "stored": model.stored, "context": model.context}
    operators = {name: value for name, value in operators_of(model).items() if name != "fine"}  # which its shape has
    return told | {"operators": operators, "shape": same, "tp": own}


def answer(what: str, text: str) -> str:
    """Return what a pasted text states as JSON, with what it `said` in a line; or what is `wrong` with it.

    `what` is "model", for a `config.json`, of which the page keeps a `record`; "requests", for a trace, of which it
    keeps `rows` of prompt and output tokens; or "calibration", for a TOML file, of which it keeps a `record`, too.
    """
    read = {"model": _model, "requests": _requests, "calibration": _calibration}[what]
    try:
        return json.dumps(read(text))
    except KeyError as missing:
        return json.dumps({"wrong": f"{what} must have {missing.args[0]}, which is missing"})
    except (TypeError, ValueError, AttributeError) as error:
        return json.dumps({"wrong": str(error)})


def _model(text: str) -> dict[str, Any]:
    model = Model.from_config(parsed(text, json.loads, "config"), NAME)
    return {"name": NAME, "record": record(model), "said": said(model)}


def _requests(text: str) -> dict[str, Any]:
    lines = text.splitlines()
    objects = text.lstrip().startswith("{")
    requests, problems = parsed_lines(
        lines, objects, "what is pasted", strict=False, block_tokens=BLOCK_TOKENS, most=_MOST
    )
    rows = [(one.n_in, one.n_out) for one in requests]
    most = max(max(row) for row in rows)
    if most > _TOKENS:
        raise ValueError(f"a length must be at most {_TOKENS:,} tokens, not {most:,}")
    n_in, n_out = (sum(row[i] for row in rows) / len(rows) for i in (0, 1))
    means = [f"{floor(mean + 0.5):,}" for mean in (n_in, n_out)]  # not all Pythons round a half alike
    told = f"{len(rows):,} request{'s' * (len(rows) > 1)}, {means[0]} tokens in and {means[1]} out on average"
    if problems:
        told += "; {} left out, the first is line {}: {}".format(len(problems), *problems[0])
    return {"rows": rows, "said": told}


def _calibration(text: str) -> dict[str, Any]:
    read = stored(parsed(text, tomllib.loads, "calibration"))
    found = asdict(read.coefficients)
    kept = {"mode": read.mode, "found": found, "root": root_of(read.covariance), "spread": read.spread}
    kept |= {"scope": read.scope, "anchors": [asdict(anchor) for anchor in read.anchors]}
    names = [", ".join(map(str, read.scope[name])) for name in ("engine", "model", "gpu") if name in read.scope]
    return {"record": kept, "said": f"a {read.mode} calibration of {' on '.join(names) or 'whatever it is used for'}"}


def root_of(matrix: list[list[float]]) -> list[list[float]]:
    """Return the symmetric root of a covariance, by Jacobi's rotations: what NumPy does where it is at hand.

    Raises
    ------
    ValueError
        For a matrix that is not symmetric, or not positive semidefinite.
    """
    size = range(len(matrix))
    scale = [sqrt(max(matrix[i][i], 0.0)) or 1.0 for i in size]
    sound = all(abs(matrix[i][j] - matrix[j][i]) <= 1e-6 * scale[i] * scale[j] for i in size for j in size)
    values, axes = _eigen([[matrix[i][j] / scale[i] / scale[j] for j in size] for i in size])
    if not sound or min(values) < -1e-6:
        raise ValueError("log_covariance must be symmetric and positive semidefinite")
    values, axes = _eigen(matrix)
    roots = [sqrt(max(value, 0.0)) for value in values]
    return [[sum(roots[k] * axes[i][k] * axes[j][k] for k in size) for j in size] for i in size]


def _eigen(matrix: list[list[float]]) -> tuple[list[float], list[list[float]]]:
    """Return the eigenvalues of a symmetric matrix, and its eigenvectors as columns."""
    rows, size = [list(row) for row in matrix], len(matrix)
    axes = [[float(i == j) for j in range(size)] for i in range(size)]
    pairs = [(p, q) for p in range(size) for q in range(p + 1, size)]
    least = 1e-30 * sum(rows[i][i] ** 2 for i in range(size))
    while sum(rows[p][q] ** 2 for p, q in pairs) > least:
        for p, q in pairs:
            if rows[p][q] == 0:
                continue
            turn = (rows[q][q] - rows[p][p]) / (2 * rows[p][q])
            t = copysign(1 / (abs(turn) + sqrt(turn * turn + 1)), turn)
            c = 1 / sqrt(t * t + 1)
            s = t * c
            for table in (rows, axes):  # columns of both, then rows of the first
                for row in table:
                    row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
            rows[p], rows[q] = (
                [c * a - s * b for a, b in zip(rows[p], rows[q], strict=True)],
                [s * a + c * b for a, b in zip(rows[p], rows[q], strict=True)],
            )
    return [rows[i][i] for i in range(size)], axes


def said(model: Model) -> str:
    """Return in a line what was read, for the reader to compare with the model's card."""
    total = f"{(model.n_params_total + model.vocab_params) / 1e9:.3g} B parameters"
    # Of the embedding a token reads one row.
    active = [f"{(model.n_params + model.lm_head_params) / 1e9:.3g} B active"] if model.is_mixture else []
    cache = f"KV {model.kv_token('bf16') / 1e3:.3g} MB per 1,000 tokens in BF16"
    state = [f"states of {STATE_BYTES * model.state_values / 1e6:.3g} MB"] if model.state_values else []
    return ", ".join([f"{model.n_layers} layers", total, *active, cache, *state, f"stored in {model.stored.upper()}"])
