"""What a GPU's own measurement says of it: coefficients, lines, rates.

The tables are those of `inference_math_bench.measure`, of a file or the `steps_*` of the data. Functions take the
`times` of a table, one row for each point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from inference_math import catalogue
from inference_math.catalogue import Gpu
from inference_math.evidence import Table
from inference_math.evidence.fits import rounded
from inference_math.theory.arrays import step_time
from inference_math.unit import Unit
from inference_math.unit.coefficients import COEFFICIENTS, Calibration
from inference_math.unit.costs import GROWTH_BATCH
from inference_math.unit.floor import RooflineBound
from inference_math.workload.points import SIZES
from inference_math_planner.calibrate import Profile
from inference_math_planner.calibrate.fitting import jackknife, moved_to

__all__ = ["SIZES", "fit", "lines", "predicted", "rates", "times", "unit"]

# Of logarithms: how far another GPU may be from the H100's operators, beyond what the calibration says.
_WIDTH = {"memory": 0.05, "bf16": 0.2, "fp8": 0.2, "kv": 0.35, "layer": 1.0}
_FEWEST = 12  # points for five coefficients
_HOPELESS = 0.3  # mean error of a fit that fits nothing
_LONG = 512  # tokens from which a prompt is on its line


def unit(table: Table, gpu: str | Gpu | None = None) -> Unit:
    """Return the unit that a table of `inference_math_bench.measure` is of, with its own number of layers, zero-shot.

    Raises
    ------
    ValueError
        For a table that is not of such a measurement, for a toy, and where the table names no GPU of the catalogue and
        `gpu` gives none.
    """
    setup = table.setup
    if missing := [name for name in ("layers", "toy", "gpu", "model", "weights", "kv", "machine") if name not in setup]:
        raise ValueError(f"{table.name} must be a table of `inference-math measure`: it names no {', '.join(missing)}")
    if setup["toy"]:
        raise ValueError(f"{table.name} is of a toy on a CPU: it is no measurement")
    name = gpu or setup["gpu"]
    if not name:
        device = setup["machine"].get("device", "its device")
        raise ValueError(f"gpu must be given: {device} is none of {', '.join(catalogue.GPUS)}")
    model = replace(catalogue.model(setup["model"]), n_layers=setup["layers"])
    return Unit.of(model, name, 1, setup["weights"], setup["kv"])


def times(table: Table) -> pd.DataFrame:
    """Return the time of each point in seconds over the rounds of a table, and its spread.

    Columns: what, decodes, context, prompts, tokens, cached, bytes, flop; seconds, the median over the rounds of each
    round's median; rounds; between, the standard deviation of the rounds' medians over `seconds`, NaN for one round;
    within, the median distance of the quartiles within a round over `seconds`.
    """
    needed = ["what", *SIZES, "bytes", "flop", "time_us", "low_us", "high_us", "round"]
    if missing := [name for name in needed if name not in table.frame]:
        raise ValueError(f"{table.name} must have the columns {', '.join(needed)}; missing: {', '.join(missing)}")
    frame = table.frame.assign(quartiles=table.frame["high_us"] - table.frame["low_us"])
    rounds = (
        frame.groupby(["what", *SIZES, "bytes", "flop"])
        .agg(
            seconds=("time_us", "median"),
            rounds=("round", "nunique"),
            between=("time_us", "std"),
            within=("quartiles", "median"),
        )
        .reset_index()
    )
    rounds[["between", "within"]] = rounds[["between", "within"]].div(rounds["seconds"], axis=0)
    return rounds.assign(seconds=1e-6 * rounds["seconds"])


def rates(found: pd.DataFrame) -> pd.DataFrame:
    """Return the device's own rates: what, rate (byte/s of copies and loads, FLOP/s of products), seconds."""
    moving = found["what"].isin(["copy", "load"]) & (found["bytes"] > 0)
    rows = found[moving | (found["flop"] > 0)]
    rate = (rows["bytes"] + rows["flop"]) / rows["seconds"]
    return rows.assign(rate=rate)[["what", "cached", "rate", "seconds"]].reset_index(drop=True)


def fit(found: pd.DataFrame, of: Unit) -> Profile:
    """Fit a unit's coefficients to its decode steps, prefills and products; mixed steps and loads are kept back.

    Least squares of log(predicted / measured) from the zero-shot coefficients. What the points do not tell keeps its
    value and its uncertainty: the FP8 rate where the weights are BF16, and always what an engine adds for a request.
    Uncertainties are the wider of what the residuals leave open and of a jackknife over batches and lengths.

    Raises
    ------
    ValueError
        For fewer than 12 usable points, and for points that no coefficients describe.
    """
    rows = found[found["what"].isin(["decode", "prefill"]) | ((found["what"] == "matrices") & (found["prompts"] == 0))]
    rows = rows.reset_index(drop=True)
    seconds = rows["seconds"].to_numpy(dtype=float)
    quick = _seconds(rows, of.floor) > seconds
    reason = "faster than the hardware allows: is it this GPU, this model?"
    unusable = pd.DataFrame({"source": rows[quick].apply(_named, axis=1), "reason": reason}).astype(object)
    rows, seconds = rows[~quick].reset_index(drop=True), seconds[~quick]
    if len(rows) < _FEWEST:
        raise ValueError(f"the table must have at least {_FEWEST} usable decode steps and prefills, not {len(rows)}")
    calibration, kept = _fitted(rows, of)
    # Errors come in families: a kernel is slow at a batch, or at a length. So a family at a time is left out.
    families = rows.groupby(["what", "decodes", "tokens"]).ngroup().to_numpy()
    others = [_fitted(rows[families != one].reset_index(drop=True), of)[0] for one in np.unique(families)]
    calibration = _widened(calibration, others)
    value = predicted(rows, of.calibrated(calibration))
    rows = rows.assign(predicted=value, error=value / seconds - 1)
    if (off := rows["error"].abs()).mean() > _HOPELESS:
        worst = _named(rows.iloc[int(np.argmax(off.to_numpy(dtype=float)))])
        raise ValueError(f"the table must be of {of.name}: the best fit is {off.mean():.0%} off, most at {worst}")
    return Profile(replace(calibration, scope=_scope(of, rows)), rows, unusable, tuple(_WIDTH), kept)


def _fitted(rows: pd.DataFrame, of: Unit) -> tuple[Calibration, tuple[str, ...]]:
    seconds = rows["seconds"].to_numpy(dtype=float)
    return moved_to(seconds, lambda at: predicted(rows, of.calibrated(at)), of.calibration, _WIDTH, "measured")


def _widened(calibration: Calibration, others: Sequence[Calibration]) -> Calibration:
    """Return a calibration whose coefficients are at least as unsure as the jackknife over `others` says."""
    values = np.array([[getattr(one.coefficients, name) for name in COEFFICIENTS] for one in others])
    left = jackknife(np.log(np.where(values > 0, values, 1.0)))
    sd = np.sqrt(np.diag(calibration.covariance))
    wider = np.maximum(1, np.divide(left, sd, out=np.ones_like(sd), where=sd > 0))
    return replace(calibration, covariance=calibration.covariance * np.outer(wider, wider))


def predicted(rows: pd.DataFrame, of: Unit) -> NDArray[np.float64]:
    """Return the seconds of steps and prefills as a unit predicts them, without what an engine adds for a request."""
    return _seconds(rows, of.calibrated(of.calibration.kernels))


def _seconds(rows: pd.DataFrame, of: Unit | RooflineBound) -> NDArray[np.float64]:
    decodes, context, prompts, tokens, cached = rows[list(SIZES)].to_numpy(dtype=float).T
    alone = prompts == 0
    steps = of.step_time(decodes, context, np.where(alone, 0, tokens), np.where(alone, 0, cached))
    prompt = of.prefill_time(np.maximum(cached + tokens, 1), np.maximum(prompts, 1), cached)
    return np.asarray(np.where(decodes > 0, steps, prompt), dtype=np.float64)


def lines(found: pd.DataFrame, of: Unit) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the lines through decode steps and prompts, and each point's distance from them.

    A decode step is a height for each batch and r for each of the B·context tokens that it reads. A prompt of 512
    tokens and more, alone, is the root of t_w² + (n·T)² and p for each of its n²/2 pairs, with p from the attention of
    such prompts alone. Least squares of relative errors.

    Returns
    -------
    pandas.DataFrame
        name, value (s), sd (s, the jackknife's over the points), floor (s at datasheet rates; NaN where there is none),
        share (floor over value). t_w is the height of one decode; growth, by how much the height grows for each
        further one, up to 64.
    pandas.DataFrame
        The points with `line` (s) and `error` (line over measured, less one; NaN for a batch of one point).

    Raises
    ------
    ValueError
        For decode steps that leave t_w, growth or r open, and for fewer than three prompts, or three attentions.
    """
    decode = found[found["what"] == "decode"]
    alone = found[(found["decodes"] == 0) & (found["prompts"] == 1) & (found["cached"] == 0)]
    alone = alone[alone["tokens"] >= _LONG]
    prompt, attention = alone[alone["what"] == "prefill"], alone[alone["what"] == "attention"]
    batches = decode["decodes"].unique()
    if (batches <= GROWTH_BATCH).sum() < 2 or len(decode) <= len(batches):
        raise ValueError("decode steps must be of two batches up to 64 at least, and of two contexts in one of them")
    for name, rows in (("prompts", prompt), ("attentions of prompts", attention)):
        if len(rows) < 3:
            raise ValueError(f"{name} of {_LONG} tokens and more must be three at least, not {len(rows)}")
    values, line = _lined(decode, prompt, attention)
    without = [_lined(decode.drop(i), prompt, attention)[0] for i in decode.index]
    without += [_lined(decode, prompt.drop(i), attention)[0] for i in prompt.index]
    without += [_lined(decode, prompt, attention.drop(i))[0] for i in attention.index]
    model, gpu, numbers = of.model, of.gpu, of.numbers
    floors = {
        "t_w": numbers.step_bytes / numbers.hbm_bw,
        "growth": np.nan,
        "r": model.kv_token(of.kv) / gpu.hbm_bw,
        "T": 2 * model.n_params / gpu.flops(of.weights),
        "p": 4 * model.n_layers * model.d_att / gpu.bf16_flops,
    }
    table = pd.DataFrame({"name": list(floors), "value": values, "floor": list(floors.values())})
    table.insert(2, "sd", jackknife(without))
    points = pd.concat([decode, prompt]).assign(line=line)
    points["error"] = points["line"] / points["seconds"] - 1
    # A batch of one context has a height of its own for it: no distance to speak of.
    single = (points["what"] == "decode") & ~points.duplicated(["what", "decodes"], keep=False)
    points.loc[single, "error"] = np.nan
    return table.assign(share=table["floor"] / table["value"]), points.reset_index(drop=True)


def _lined(
    decode: pd.DataFrame, prompt: pd.DataFrame, attention: pd.DataFrame
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return t_w, growth, r, T and p, and the seconds of decodes and prompts by them."""
    b, c, n = decode["decodes"].to_numpy(), decode["context"].to_numpy(), prompt["tokens"].to_numpy(dtype=float)
    batches = np.unique(b)
    heights = (b[:, None] == batches).astype(float)
    terms = np.column_stack([heights, b * c])
    line = _relative(terms, decode)
    t_w, r = line[0], line[-1]
    last = int((batches <= GROWTH_BATCH).sum()) - 1
    growth = (line[last] - t_w) / max(batches[last] - batches[0], 1)
    # Its start is the kernels' own, and in t_w already.
    _, p = _relative(np.column_stack([np.ones(len(attention)), attention["tokens"] ** 2 / 2]), attention)
    seconds, pairs = prompt["seconds"].to_numpy(dtype=float), p * n**2 / 2
    found_T = least_squares(lambda T: step_time(t_w, T * n, pairs) / seconds - 1, seconds[-1:] / n[-1:], x_scale=1e-6)
    T = float(rounded(found_T.x[0]))
    bend = np.asarray(step_time(t_w, T * n, pairs))
    return np.array([t_w, growth, r, T, p]), np.concatenate([terms @ line, bend])


def _relative(terms: NDArray[np.float64], rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return the coefficients of terms by least squares of relative errors."""
    seconds = rows["seconds"].to_numpy(dtype=float)
    solution, *_ = np.linalg.lstsq(terms / seconds[:, None], np.ones(len(rows)), rcond=None)
    return rounded(solution)


def _named(row: pd.Series[Any]) -> str:
    return f"{row['what']} " + ", ".join(f"{name} {row[name]}" for name in SIZES if row[name])


def _scope(of: Unit, rows: pd.DataFrame) -> dict[str, tuple[object, ...]]:
    prompts = rows[rows["prompts"] > 0]
    length = prompts["tokens"] + prompts["cached"]
    scope: dict[str, tuple[object, ...]] = {
        "engine": ("PyTorch's kernels",),
        "model": (of.model.name,),
        "gpu": (of.gpu.name,),
        "weights": (of.weights,),
        "kv": (of.kv,),
        "tp": (1, 1),
        "concurrency": (1.0, float(max(rows["decodes"].max(), 1))),
    }
    return scope | ({"n_in": (float(length.min()), float(length.max()))} if len(prompts) else {})
