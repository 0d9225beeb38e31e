"""What a request takes before the engine has it, and what its first token takes to its user, in seconds.

HTTP, tokenizer, scheduling, the launch of a prompt's kernels one by one, detokenizer, the first packet: a time per
request, whatever waits beside it. It is fitted to the measured TTFT of served points (`profiles.from_first_tokens`) as
a product: a base, times what a kind of model, a model, an engine, a model under an engine, and that on a GPU change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp

from inference_math.catalogue import Gpu, Model
from inference_math.evidence import load
from inference_math.unit.nearest import generation
from inference_math.unit.shapes import kind_of

__all__ = ["FACTORS", "Front", "front_of", "levels_of_front"]

FACTORS = ("base", "kind", "model", "engine", "engine, model", "engine, model, gpu")
"""What moves the front, from what all share to what one set-up has of its own."""


@dataclass(frozen=True)
class Front:
    """Seconds before and after the engine, and how far a mean TTFT played with them errs.

    `spread` is the standard deviation of the logarithm of measured over played TTFT on rows that chose nothing but it,
    `drafting` that of rows with drafts.
    """

    seconds: float
    spread: float
    drafting: float


def levels_of_front(model: Model, gpu: Gpu, engine: str, version: str = "") -> dict[str, str]:
    """Return the level of each of `FACTORS` that a set-up stands at."""
    under = generation(engine, version)
    return {
        "base": "all", "kind": kind_of(model), "model": model.name, "engine": under, "engine, model":
        f"{under}/{model.name}", "engine, model, gpu": f"{under}/{model.name}/{gpu.name}",
    }  # fmt: skip


def front_of(model: Model, gpu: Gpu, engine: str, version: str = "") -> Front:
    """Return the front of a set-up; what was never measured moves nothing.

    Examples
    --------
    >>> from inference_math import catalogue
    >>> llama, h200 = catalogue.model("llama-3-70b"), catalogue.gpu("h200-sxm")
    >>> f"{front_of(llama, h200, 'vllm', '0.11').seconds:.2f} s"
    '0.02 s'
    """
    moves = _moves()
    told = levels_of_front(model, gpu, engine, version)
    logarithm = sum(moves.get((factor, level), 0.0) for factor, level in told.items())
    spread = moves["spread", told["kind"]]
    return Front(exp(logarithm), spread, max(spread, moves["spread", "drafting"]))


@lru_cache(maxsize=1)
def _moves() -> dict[tuple[str, str], float]:
    frame = load("served_front").frame
    return {(row["factor"], row["level"]): float(row["moved"]) for row in frame.to_dict("records")}
