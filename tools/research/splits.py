"""What served prefill-decode splits give per GPU beside aggregated serving at the same speed for a user [C26 to C28].

All points are benchmarks of table `served_splits`. A point's *speed* is 1/TPOT, its *throughput* the output tokens per
second of one GPU of its layout. A gain is predicted twice. `played` runs both benchmarks with the users that they had;
`planned` knows no users: it fills both as far as a limit at the served speed allows, as a plan does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace
from plays import drafting, ran
from recipes import recipe_of, unit_of

from inference_math.catalogue import gpu
from inference_math.evidence import load
from inference_math.optimiser.case import Case, under
from inference_math.optimiser.choice import alone
from inference_math.optimiser.gain_error import gain_error
from inference_math.optimiser.load import pools_each, settings_row
from inference_math.optimiser.settings import most_decodes
from inference_math.optimiser.verdict import verdict
from inference_math.simulate import Disaggregated, Steps
from inference_math.unit import Unit
from inference_math.unit.front import front_of
from inference_math.unit.nearest import known_comparisons
from inference_math.unit.problem import search_constants
from inference_math.workload import SLA, Workload

__all__ = [
    "FACTORS",
    "HOW",
    "KIND",
    "SAME",
    "chances",
    "compared",
    "factors",
    "gain_planned",
    "pairs",
    "places",
    "played",
    "points",
]

SAME = ["gpu", "weights", "n_in", "n_out", "drafts", "engine"]
HOW = ["played", "planned"]
KIND = "MLA"
FACTORS = ["interference", "slower", "decode_layout", "prefill_layout", "idle"]
NEAR = 1.5  # of a speed: still comparable
LINK = 50e9  # bytes/s that a GPU sends: one port of 400 Gbit/s
NO_LIMIT = 1e3  # seconds of TTFT
_LAYOUT = ["tp", "dp", "ep"]


def points() -> pd.DataFrame:
    """Return the rows of `served_splits` with their `gpus`, `speed` (token/s) and `per_gpu` (token/s)."""
    frame = load("served_splits").frame.assign(model="deepseek-v3", version="")
    frame["gpus"] = sum(frame[f"{pool}workers"] * frame[f"{pool}tp"] * frame[f"{pool}dp"] for pool in ("prefill_", ""))
    return frame.assign(speed=1 / frame["tpot_s"], per_gpu=frame["rate"] / frame["gpus"])


def pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each split beside the aggregated point of its set-up that gives most, of those about as fast for a user.

    That is at least as fast, and at most `NEAR` times as fast: much faster points were not served with as many users.
    Columns: those of the split, `rival`, the index of the other one, and `gain`, the ratio of throughputs.
    """
    found: list[tuple[Any, Any]] = []
    for _, rows in frame.groupby(SAME):
        whole = rows[rows["prefill_workers"] == 0]
        for index, split in rows[rows["prefill_workers"] > 0].iterrows():
            near = whole[(whole["speed"] >= split["speed"]) & (whole["speed"] <= NEAR * split["speed"])]
            if not near.empty:
                found.append((index, near["per_gpu"].idxmax()))
    chosen = pd.DataFrame(found, columns=["split", "rival"]).set_index("split")
    both = frame.loc[chosen.index].assign(rival=chosen["rival"])
    return both.assign(gain=both["per_gpu"] / frame.loc[both["rival"], "per_gpu"].to_numpy())


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the `pairs` with both predicted gains, `played` and `planned`, and the `FACTORS` of the first."""
    both = pairs(frame)
    shown = {i: played(frame.loc[i]) for i in sorted({*both.index, *both["rival"]})}
    told = []
    for index, split in both.iterrows():
        rival = frame.loc[split["rival"]]
        own, other = shown[index], shown[split["rival"]]
        ratio = own["rate"] / split["gpus"] / (other["rate"] / rival["gpus"])
        parts = factors(split, rival, own, other)
        told.append({"played": ratio, "planned": gain_planned(split, rival), **parts})
    return both.assign(**pd.DataFrame(told, index=both.index))


def chances(both: pd.DataFrame) -> pd.DataFrame:
    """Return for each of `compared` pairs how likely the split gains, by either prediction: `HOW`, NaN without one."""
    told = {}
    for how in HOW:
        known, found = known_comparisons()[f"pools, {how}"], []
        for _, row in both.iterrows():
            own = gain_error(known, KIND, gpu(str(row["gpu"])).generation, row["n_in"], row["n_out"])
            found.append(verdict([row[how]], [1.0], own).chance if row[how] > 0 else float("nan"))
        told[how] = found
    return pd.DataFrame(told, index=both.index)


def played(row: pd.Series, seed: int = 1) -> dict[str, float]:
    """Return what a point's benchmark is predicted to show: medians of TTFT and TPOT (s), output tokens per second."""
    work, unit = _work(row), _unit(row)
    scheduler: Any = recipe_of(row).scheduler(unit.places(work), unit.dp)
    if row["prefill_workers"]:
        scheduler = _pools(row, unit, work)
    front = front_of(unit.model, unit.gpu, str(row["engine"]), "").seconds
    shown = ran(row, work, Steps(unit.near(work)), scheduler, front, seed).requests
    rate = float(shown["n_out"].sum() / (shown["finished"].max() - shown["arrival"].min()))
    return {"ttft": float(shown["ttft"].median()), "tpot": float(shown["tpot"].median()), "rate": rate}


def gain_planned(split: pd.Series, rival: pd.Series) -> float:
    """Return the gain of pools as large as a split's over the rival, both as full as their own served speeds allow."""
    full = _full_split(split, split["tpot_s"])
    unit = _unit(rival)
    case = Case(unit, _work(rival), SLA(NO_LIMIT, rival["tpot_s"]))
    # SGLang's recipes compute prompts in steps of their own.
    constants = replace(search_constants(case.problem), mixes=rival["engine"] == "trtllm")
    best = max(alone(constants, under(case), name).rate for name in ("aggregated", "chunked"))
    return full / (best * case.work.n_out / unit.gpus) if best > 0 else float("nan")


def places(both: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Return where each of `pairs` is on the map of the three ways to serve, by costs on the rival's layout.

    Columns: fits, the decodes that fit a step in which users of the split have their measured speed, (S − t_w)/ΔH;
    prompt, what a prompt adds to a step, net of the weight read, in decodes; steps of an answer, fewer than its tokens
    where some are drafted.
    """
    found = []
    for _, split in both.iterrows():
        unit = _unit(frame.loc[split["rival"]])
        case = Case(unit, _work(split), SLA(NO_LIMIT, split["tpot_s"]))
        one, constants = under(case), search_constants(case.problem)
        decode = one.cache_read + one.own
        found.append(
            {"fits": (constants.step - one.t_w) / decode, "prompt": one.ttft_1 / decode, "steps": constants.steps}
        )
    return pd.DataFrame(found, index=both.index)


def factors(split: pd.Series, rival: pd.Series, own: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """Return the factors of a played gain, `FACTORS`: each moves one thing from the rival to the split.

    interference: endless units of the rival's layout, in two full pools, over the rival at its speed; slower: the same
    at the split's speed; then each pool's own layout; idle: the split's units and users as they are.
    """
    layout = [int(rival[name]) for name in _LAYOUT]
    decodes = [int(split[name]) for name in _LAYOUT]
    prefills = [int(split[f"prefill_{name}"]) for name in _LAYOUT]
    fast, slow = 1.0001 * other["tpot"], 1.0001 * own["tpot"]
    steps = [
        other["rate"] / rival["gpus"],
        _endless(split, fast, layout, layout),
        _endless(split, slow, layout, layout),
        _endless(split, slow, layout, decodes),
        _endless(split, slow, prefills, decodes),
        own["rate"] / split["gpus"],
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        return dict(zip(FACTORS, np.divide(steps[1:], steps[:-1]).tolist(), strict=True))


def _endless(row: pd.Series, tpot: float, prefills: list[int], decodes: list[int]) -> float:
    """Return the tokens/s of a GPU of pools without end: as many units of each as the other's need."""
    fed, taken, gpus = _each(row, tpot, prefills, decodes)
    return float(row["n_out"] / (gpus[0] / fed + gpus[1] / taken)) if taken > 0 else float("nan")


def _full_split(row: pd.Series, tpot: float) -> float:
    """Return the tokens/s of a GPU of a split's own pools, as full as a limit on TPOT allows."""
    sizes = ([int(row[f"{pool}{name}"]) for name in _LAYOUT] for pool in ("prefill_", ""))
    fed, taken, _ = _each(row, tpot, *sizes)
    slower = min(row["prefill_workers"] * fed, row["workers"] * taken)
    return float(slower * row["n_out"] / row["gpus"])


def _each(row: pd.Series, tpot: float, prefills: list[int], decodes: list[int]) -> tuple[float, float, list[int]]:
    """Return the requests/s of a prefill unit and of a decode unit of some layouts, and the GPUs of both."""
    unit, first = (_unit(_laid(row, layout)) for layout in (decodes, prefills))
    case = Case(unit, _work(row), SLA(NO_LIMIT, tpot), prefill=first)
    constants, one = search_constants(case.problem), under(case)
    batch = most_decodes(one.step_seconds, constants.room, constants.step)
    together = max(1, min(constants.together, recipe_of(_laid(row, prefills)).budget // case.work.n_in))
    if batch < 1:
        return 0.0, 0.0, [first.gpus, unit.gpus]
    fed, taken = pools_each(constants, one, settings_row(batch, together * case.work.n_in, 1, 1))
    return fed, taken, [first.gpus, unit.gpus]


def _pools(row: pd.Series, unit: Unit, work: Workload) -> Disaggregated:
    """Return the pools of a split, whose decode units are `unit`."""
    alike = _laid(row, [int(row[f"prefill_{name}"]) for name in _LAYOUT])
    first, token, told = _unit(alike), unit.model.kv_token("fp8"), recipe_of(alike)
    return Disaggregated(
        int(row["prefill_workers"]), int(row["workers"]),
        transfer=token / LINK / first.tp, incoming=token / LINK / unit.gpus,
        max_batch=max(1, unit.places(work)), groups=first.dp,
        budget=told.budget // first.dp, prefill=Steps(first.near(work)), ahead=told.policy.ahead,
    )  # fmt: skip


def _work(row: pd.Series) -> Workload:
    return Workload(float(row["n_in"]), float(row["n_out"]))


def _laid(row: pd.Series, layout: list[int]) -> pd.Series:
    """Return the row with another layout."""
    other = row.copy()
    other[_LAYOUT] = layout
    return other


def _unit(row: pd.Series) -> Unit:
    """Return the unit of an aggregated or a decode worker, with what its recipe tells it."""
    recipe = recipe_of(row)
    return drafting(row, recipe.sized(unit_of(row, kv=recipe.kv)))
