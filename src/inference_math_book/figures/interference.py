"""Timelines of steps, counts of prompts, and what a batch adds to a step (P06, P08), drawn on given axes.

Every function that draws returns the numbers it drew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from inference_math import evidence, theory
from inference_math.simulate import Cost, Run
from inference_math.unit.operators import Operators
from inference_math_book.colours import COLOURS, ROLES
from inference_math_planner.laws import latency

__all__ = ["KINDS", "batch_parts", "concurrency_counts", "ml_energy", "segments", "timeline", "weights_and_compute"]

# What a request does, and the colour it is drawn in.
KINDS = {"waits": ROLES["wait"]} | {kind: ROLES[kind] for kind in ("prefill", "decode", "bubble")}
_SHORT = 1e-9  # seconds: nothing shorter is a segment


def segments(run: Run, cost: Cost) -> pd.DataFrame:
    """Return what every request of a logged run did when (P08): request, step, start, end, kind.

    A decode step that another prompt lengthens is cut in two: what the step would have cost without, and the
    bubble. Requests are numbered in the order in which they were sent, steps by their start.
    """
    log = _log(run).sort_values(["start", "engine"]).reset_index(drop=True)
    alone = [cost(int(d), int(c), 0.0, 0, 0.0) for d, c in zip(log.decodes, log.context, strict=True)]
    log["end"] = log.start + log.seconds
    log["decoded"] = np.where(log.decodes > 0, log.start + np.minimum(alone, log.seconds), log.start)
    pools = bool((log.engine != 0).any())
    rows: list[tuple[Any, ...]] = []
    requests = run.requests.sort_values(["arrival", "admitted"]).to_dict("records")
    for number, request in enumerate(requests, start=1):
        rows.append((number, -1, request["arrival"], request["admitted"], "waits"))
        prompt = log[(log.tokens > 0) & (log.start >= request["admitted"] - _SHORT)]
        prompt = prompt[prompt.end <= request["first_token"] + _SHORT]
        if pools:  # there a prompt is one step of its own engine, of those that begin at once the last to end
            prompt = prompt[(prompt.start - request["admitted"]).abs() < _SHORT].nlargest(1, "end")
        rows += [(number, i, log.start[i], log.end[i], "prefill") for i in prompt.index]
        # A request decodes in the last steps before its end, one for each token after the first.
        decodes = log[(log.decodes > 0) & (log.end <= request["finished"] + _SHORT)]
        if len(decodes):
            decodes = decodes[decodes.engine == decodes.engine[(decodes.end - request["finished"]).abs().idxmin()]]
        decodes = decodes.tail(request["n_out"] - 1) if request["n_out"] > 1 else decodes.head(0)
        if len(decodes):
            rows.append((number, -1, request["first_token"], decodes.start.min(), "waits"))
        rows += [(number, i, log.start[i], log.decoded[i], "decode") for i in decodes.index]
        rows += [(number, i, log.decoded[i], log.end[i], "bubble") for i in decodes.index]
    frame = pd.DataFrame(rows, columns=["request", "step", "start", "end", "kind"])
    return frame[frame.end - frame.start > _SHORT].sort_values(["start", "request"]).reset_index(drop=True)


def _log(run: Run) -> pd.DataFrame:
    if run.log is None:
        raise ValueError("run must have a log: simulate with log=True")
    return run.log


def timeline(ax: Axes, frame: pd.DataFrame) -> None:
    """Draw the rows of `segments`, one lane for each request."""
    for kind in [kind for kind in KINDS if (frame.kind == kind).any()]:
        part, colour = frame[frame.kind == kind], KINDS[kind]
        ax.barh(
            part.request,
            1e3 * (part.end - part.start),
            left=1e3 * part.start,
            height=0.35 if kind == "waits" else 0.8,
            color=colour,
            edgecolor="white",
            linewidth=0.6,
            label=kind,
        )
    ax.set(xlabel="time (ms)", ylabel="request")
    ax.set_yticks(range(1, int(frame.request.max()) + 1))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def concurrency_counts(run: Run, B: int, n_out: float) -> pd.DataFrame:
    """Return how often k of B requests prefill in one step of a logged run, and Binom(B, 1/n_out)."""
    counts = _log(run).prefills.round().astype(int).value_counts(normalize=True)
    k = np.arange(int(counts.index.max()) + 1)
    return pd.DataFrame(
        {
            "k": k,
            "simulated": counts.reindex(k, fill_value=0.0).to_numpy(),
            "binomial": latency.prefills_beside(B + 1, n_out).pmf(k),
        }
    )


def weights_and_compute(ax: Axes, operators: Operators, most: int = 1024) -> pd.DataFrame:
    """Draw the matrix products of a step against its tokens: measured, and three ways to add t_w and B·T.

    t_w is the time of one token; T the time per token of 2,048 tokens, where compute is all.
    """
    products = operators.products().set_index("tokens").gemm
    t_w = products[1]
    T = products[2048] / 2048
    drawn = products[products.index <= most].reset_index().rename(columns={"gemm": "measured"})
    compute = drawn.tokens * T
    forms = {
        "sum": theory.step_additive(t_w=t_w, t_c=compute, t_rest=0),
        "quadrature": theory.step_time(t_w=t_w, t_c=compute, t_rest=0),
        "maximum": theory.step_serial(t_w=t_w, t_c=compute, t_rest=0),
    }
    ax.loglog(drawn.tokens, 1e3 * drawn.measured, "o", base=2, color=COLOURS[0], markersize=4, label="measured")
    for (name, values), dash in zip(forms.items(), (":", "-", "--"), strict=True):
        ax.loglog(drawn.tokens, 1e3 * values, dash, base=2, color=COLOURS[1], label=name, linewidth=1.6)
    ax.set(xlabel="tokens in the step (token)", ylabel="matrix products (ms)")
    ax.legend()
    return drawn.assign(**forms, t_w=t_w, T=T)


def ml_energy(served_model: str) -> pd.DataFrame:
    """Return ML.ENERGY's batch curve of one model by batch: ITL medians, P90s and means, in seconds.

    `mean` is batch over token rate, in the steady part of the run; P50 and P90 are of the whole run.
    """
    rows = evidence.load("mlenergy").frame.query("served_model == @served_model").sort_values("max_num_seqs")
    return pd.DataFrame(
        {
            "B": rows.batch.to_numpy(),
            "p50": 1e-3 * rows.itl_p50_ms.to_numpy(),
            "p90": 1e-3 * rows.itl_p90_ms.to_numpy(),
            "mean": (rows.batch / rows.output_tokens_per_s).to_numpy(),
            "n_out": rows.output_tokens.to_numpy(),
            "max_num_seqs": rows.max_num_seqs.to_numpy(),
            "tokens_per_s": rows.output_tokens_per_s.to_numpy(),
        }
    )


def batch_parts(operators: Operators, context: int, batches: NDArray[np.float64]) -> pd.DataFrame:
    """Return what grows in a step from the first of `batches` on, in seconds: KV reads, all-reduce, matrices."""
    steps = operators.steps().query("context == @context").sort_values("batch")
    parts = {"B": batches}
    for name, column in (("KV reads", "attention"), ("all-reduce", "allreduce"), ("matrices", "gemm")):
        at = np.interp(batches, steps.batch, steps[column])
        parts[name] = at - at[0]
    return pd.DataFrame(parts)
