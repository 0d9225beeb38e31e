"""Engines with all requests handed over at once: the throughput that is left when nothing waits for users.

Table `saturated` has what NVIDIA's TensorRT-LLM reaches so. No row sets a coefficient, and none chose a term: it is
validation. Each is played whole, with as many requests at once as memory holds, filling and draining included.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from inference_math import simulate
from inference_math.calibrate.recipes import Recipe
from inference_math.evidence import load
from inference_math.simulate import Chunked, Habits
from inference_math.unit import Unit
from inference_math.workload import Workload

__all__ = ["BUDGET", "SHARE", "played"]

SHARE = 0.95  # of what the weights leave, for KV caches: the page's own, "in many cases"
BUDGET = 8192  # tokens of a step and group: the engine's default, which the page does not state
MOST = 2048  # requests at once and group: the engine's default


def played(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the rows of `saturated` with what the simulator finds: `said` in tokens/s, `places`, `kind`, and `most`.

    `most` is what no engine can give on the hardware, with as many requests at once.
    """
    frame = load("saturated").frame if rows is None else rows
    return frame.assign(**pd.DataFrame([_play(row) for row in frame.to_dict("records")], index=frame.index))


def _play(row: dict[str, Any]) -> dict[str, Any]:
    layout = {name: int(row[name]) for name in ("tp", "ep", "dp", "pp")}
    own = Unit.of(
        row["model"], row["gpu"], weights=row["weights"], kv=row["kv"], engine="trtllm", version=row["version"], **layout
    )
    work, groups = Workload(float(row["n_in"]), float(row["n_out"])), layout["dp"]
    recipe = Recipe(BUDGET * groups, Habits(whole=True), row["kv"], memory=SHARE, free=True)
    unit = recipe.sized(own)
    places = float(min(unit.places(work), MOST * groups, row["requests"]))
    if places < 1:
        return {"said": float("nan"), "places": places, "kind": unit.kind, "most": float("nan")}
    scheduler = Chunked(recipe.budget, max_batch=places, habits=recipe.habits)
    run = simulate.benchmark(
        work, unit.near(work).step_cost, concurrency=int(places), requests=int(row["requests"]), scheduler=scheduler
    )
    seconds = float((run.requests["arrival"] + run.requests["latency"]).max())
    least = float(unit.floor.e2e(work, places))
    return {
        "said": row["requests"] * row["n_out"] / seconds, "places": places, "kind": unit.kind,
        "most": places * row["n_out"] / least,
    }  # fmt: skip
