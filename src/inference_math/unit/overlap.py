"""What of a step runs at the same time: four answers, each a formula of `theory.step` [C23, C24]."""

from __future__ import annotations

from inference_math.theory.plain import step_additive, step_full, step_serial, step_time

OVERLAPS = ["none", "quadrature", "serial-kv", "full"]


def overlapped_time(overlap: str, t_w: float, matrices: float, prompts: float, reads: float) -> float:
    """Return the seconds of a step of the weight read, the matrices, what else prompts take, and the KV reads.

    "none": everything adds. "quadrature": weight read and matrices as the root of their squares. "serial-kv": the
    longer of these two. "full": all reads beside all compute, the longer of both.
    """
    if overlap == "none":
        seconds: float = step_additive(t_w, matrices, prompts + reads)
    elif overlap == "quadrature":
        seconds = step_time(t_w, matrices, prompts + reads)
    elif overlap == "serial-kv":
        seconds = step_serial(t_w, matrices, prompts + reads)
    else:
        seconds = step_full(t_w, reads, matrices, prompts)
    return seconds
