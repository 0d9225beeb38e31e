"""Fit the zero-shot coefficients to the committed operator tables: data/coefficients.csv, and data/widths.csv.

    python tools/research/fit_zero_shot.py

One fit for each engine whose operators are measured, and one to both, which serves sglang. Uncertainties are those of a
new model on a new generation of the engine: the jackknife's covariance over the five models, of a model more and as
Student's t has it; `low` and `high` are 95 % of the draws. `kv` is `memory`, with what generations of engines differ
by. `bf16` is that of whole steps (`from_steps`), which operators one by one do not tell, and `attention` is `bf16`.
`collective_latency` and what mixtures and four bits need are those of served points (`served_levels`, made first).
`per_sequence_overhead`, 0 in operators, is what the leanest engine of the calibration adds, with the scatter between
generations: it is a property of a release, has fallen with each, and the next release is the one that is asked for.
`spread` is no share of a rate: the standard deviation of log(measured / predicted) on models that were left out. The
columns from `memory` on are correlations.

The second table has the widths of what lies outside of the calibration; it predicts with the first.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import from_operators
import from_steps
import numpy as np
import pandas as pd
import transfer
from tables import write

from inference_math import catalogue
from inference_math.unit.coefficients import COEFFICIENTS, ZERO_SHOT_SCOPE, Calibration
from inference_math.unit.kernels import kernels
from inference_math.unit.mixing import composed
from inference_math.unit.nearest import coefficient_key, levels
from inference_math.unit.operators import H100

# What operators of dense models on one GPU do not tell.
SERVED = ["fp4", "decode_attention", "experts", "grouped"]
SERVED += ["interconnect_efficiency", "collective_latency", "expert_imbalance"]
KERNELS = {"vllm": ("vllm",), "trtllm": ("trtllm",), "sglang": ("vllm", "trtllm")}


def main() -> None:
    """Write the tables; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    steps = from_operators.composed_steps()
    coefficients = derive(steps)
    write(coefficients, options.out / "coefficients.csv", "value", "sd", "low", "high")
    write(transfer.widths(steps), options.out / "widths.csv", "width")


def derive(steps: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each engine and coefficient: value, standard deviation, 95 % interval, correlations."""
    seen = transfer.requests(from_operators.fit(steps[steps["engine"] == "vllm"]).coefficients)
    return pd.concat([table(fitted(steps, engine, seen), engine) for engine in KERNELS], ignore_index=True)


def fitted(steps: pd.DataFrame, engine: str, seen: pd.DataFrame) -> Calibration:
    """Return the calibration of an engine, with the requests of all generations `seen`."""
    chosen = steps[steps["engine"].isin(KERNELS[engine])]
    others = from_operators.left_out(chosen, "model")
    found = from_operators.fit(chosen).coefficients
    model, gpu = catalogue.model("llama-3-70b"), catalogue.gpu(H100)
    untold = composed(levels(), kernels(), coefficient_key(model, gpu, "fp8", engine, together=8))
    served = {name: untold["values"][name] for name in SERVED}
    bf16, between = from_steps.new_unit(from_steps.rates(found))
    values = replace(found, bf16=bf16, attention=bf16, per_sequence_overhead=float(seen["seconds"].min()), **served)
    names = list(COEFFICIENTS)
    models = from_operators.new_model(others).reindex(index=names, columns=names).fillna(0.0)
    covariance = models.to_numpy(dtype=float, copy=True)
    steps_tell = [names.index("bf16"), names.index("attention")]
    covariance[steps_tell], covariance[:, steps_tell] = 0.0, 0.0
    covariance[np.ix_(steps_tell, steps_tell)] = between**2
    kv, memory, request = (names.index(name) for name in ("kv", "memory", "per_sequence_overhead"))
    covariance[kv], covariance[:, kv] = covariance[memory], covariance[:, memory]
    covariance[kv, kv] = covariance[memory, memory]
    covariance[kv, kv] += transfer.between_generations(transfer.KV) ** 2
    covariance[request, request] = transfer.between_generations(seen["seconds"]) ** 2
    for name in SERVED:
        covariance[names.index(name), names.index(name)] = untold["widths"][name] ** 2
    spread = float((others["spread"] ** 2).mean() ** 0.5)
    return Calibration("zero-shot", values, covariance, spread, ZERO_SHOT_SCOPE)


def table(found: Calibration, engine: str) -> pd.DataFrame:
    """Return the rows of one engine."""
    width = np.sqrt(np.diag(found.covariance))
    # Some go together almost wholly: with four digits that would be no correlation any more.
    together = pd.DataFrame(found.covariance / np.outer(width, width), columns=COEFFICIENTS).round(9)
    rows = []
    for name in COEFFICIENTS:
        low, high = found.ends(name, 1.96)
        value = getattr(found.coefficients, name)
        rows.append({"engine": engine, "name": name, "value": value, "sd": found.sd(name), "low": low, "high": high})
    rows.append({"engine": engine, "name": "spread", "value": found.spread, "sd": 0})
    rows[-1] |= {"low": found.spread, "high": found.spread}
    return pd.concat([pd.DataFrame(rows), together], axis=1).fillna(0.0)


if __name__ == "__main__":
    main()
