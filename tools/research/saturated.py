"""Engines with all requests handed over at once: the throughput that is left when nothing waits for users.

Table `saturated` has what NVIDIA's TensorRT-LLM reaches so. No row sets a coefficient, and none chose a term: it is
validation. Each is played whole, with as many requests at once as memory holds, filling and draining included.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from recipes import Recipe, unit_of

from inference_math import simulate
from inference_math.evidence import load
from inference_math.simulate import SchedulerPolicy
from inference_math.workload import Workload

__all__ = ["BUDGET", "CROWDS", "LAYOUTS", "MOST", "SHARE", "by_layout", "played"]

SHARE = 0.95  # of what the weights leave, for KV caches: the page's own, "in many cases"
BUDGET = 8192  # tokens of a step and group: the engine's default, which the page does not state
MOST = 2048  # requests at once and group: the same
LAYOUTS = {"pp": "stages", "dp": "attention by requests, whole experts", "tp": "each matrix shared", "one": "one GPU"}
CROWDS = {"few": 0, "many": 256, "most": 1024}  # above so many requests at once


def played(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the rows of `saturated`, or those given, with what the simulator finds for each.

    Columns `said` (token/s), `places` (requests at once), `kind` of model, and `most`: what no engine can give on the
    hardware with as many requests at once.

    Examples
    --------
    >>> from inference_math import evidence
    >>> import saturated
    >>> row = saturated.played(evidence.load("saturated").frame.query("model == 'llama-3-8b'").head(1)).iloc[0]
    >>> bool(0 < row.said < row.most)
    True
    """
    frame = load("saturated").frame if rows is None else rows
    found = [_play(row) for _, row in frame.iterrows()]
    return frame.assign(**pd.DataFrame(found, index=frame.index))


def by_layout(found: pd.DataFrame) -> pd.DataFrame:
    """Return how far rows of `played` are off, by memory, kind of model, layout and crowd: table `saturated_error`.

    `error` and `bias` are means, of the size and with the sign; `nearest` is the largest share that a measurement
    reaches of `most`.
    """
    off = found["said"] / found["tokens_per_s"] - 1
    layout = pd.Series("one", index=found.index)
    for name in ("tp", "dp", "pp"):
        layout = layout.mask(found[name] > 1, name)
    memory = (found["gpu"] == "rtx-pro-6000").map({True: "GDDR", False: "HBM"})
    crowd = pd.Series("few", index=found.index)
    for name, above in CROWDS.items():
        crowd = crowd.mask(found["places"] > above, name)
    reached = found["tokens_per_s"] / found["most"]
    told = {"layout": layout.map(LAYOUTS), "memory": memory, "crowd": crowd}
    table = found.assign(**told, error=off.abs(), bias=off, reached=reached)
    groups = table.groupby(["memory", "kind", "layout", "crowd"])
    means = groups.agg(error=("error", "mean"), bias=("bias", "mean"), nearest=("reached", "max"))
    return means.assign(points=groups.size()).reset_index()


def _play(row: Any) -> dict[str, Any]:
    own = unit_of(row, engine="trtllm", kv=row["kv"], pp=int(row["pp"]))
    work, groups, requests = Workload(float(row["n_in"]), float(row["n_out"])), int(row["dp"]), int(row["requests"])
    recipe = Recipe(BUDGET * groups, SchedulerPolicy(whole=True), row["kv"], memory=SHARE, free=True)
    unit = recipe.sized(own)
    places = int(min(unit.places(work), MOST * groups, requests))
    run = simulate.benchmark(
        work, simulate.Steps(unit.near(work)), concurrency=places, requests=requests, scheduler=recipe.scheduler(places)
    )
    seconds = float((run.requests["arrival"] + run.requests["latency"]).max())
    most = places * work.n_out / float(unit.floor.e2e(work, places))
    return {"said": requests * work.n_out / seconds, "places": places, "kind": unit.kind, "most": most}
