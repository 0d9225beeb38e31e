"""What a request takes before the engine has it, and what its first token takes to its user, in seconds.

HTTP, tokenizer, scheduling, the launch of a prompt's kernels one by one, detokenizer, the first packet: a time per
request, whatever waits beside it. It is fitted to the measured TTFT of served points (`from_first_tokens`) as
a product: a base, times what a kind of model, a model, an engine, a model under an engine, and that on a GPU change.
A prefill-decode split adds its `handover`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp
from statistics import NormalDist
from typing import NamedTuple

from inference_math.catalogue import Gpu, Model
from inference_math.evidence import load
from inference_math.evidence.checks import SHARE, as_number
from inference_math.unit.mixing import FRONTS, front_levels, fronted
from inference_math.unit.nearest import engine_generation
from inference_math.unit.shapes import kind_of
from inference_math.unit.types import CoefficientValues

__all__ = ["Front", "Handover", "front_of", "handover", "levels_of_front", "moves"]


@dataclass(frozen=True)
class Front:
    """Seconds before and after the engine, how unsure they are, and how far a mean TTFT played with them errs.

    Attributes
    ----------
    seconds
        The front as it was fitted, or as somebody measured it.
    sd
        Standard deviation of its logarithm on machines and set-ups that the fit did not see: by how much fitted fronts
        move where their own set-up is left out. 0 for one that was measured.
    spread, drafting
        Standard deviation of the logarithm of measured over played TTFT on rows that chose nothing but it, and on rows
        with drafts.
    """

    seconds: float
    sd: float
    spread: float
    drafting: float

    def ends(self, level: float = 0.9) -> tuple[float, float]:
        """Return the seconds between which the front lies with the probability `level`."""
        wide = exp(self.sd * NormalDist().inv_cdf((1 + as_number("level", level, SHARE)) / 2))
        return self.seconds / wide, self.seconds * wide


class Handover(NamedTuple):
    """Seconds that a prefill-decode split adds to a first token, and the standard deviation of their logarithm."""

    seconds: float
    sd: float


def levels_of_front(model: Model, gpu: Gpu, engine: str, version: str = "") -> dict[str, str]:
    """Return the level of each of `unit.mixing.FRONTS` that a set-up stands at."""
    return front_levels(engine_generation(engine, version), kind_of(model), model.name, gpu.name)


def front_of(model: Model, gpu: Gpu, engine: str, version: str = "") -> Front:
    """Return the front of a set-up; what was never measured moves nothing.

    Examples
    --------
    >>> from inference_math import catalogue
    >>> llama, h200 = catalogue.model("llama-3-70b"), catalogue.gpu("h200-sxm")
    >>> f"{front_of(llama, h200, 'vllm', '0.11').seconds:.2f} s"
    '0.03 s'
    """
    known, levels = moves(), levels_of_front(model, gpu, engine, version)
    spread = known["spread"][levels["kind"]]
    drafting = max(spread, known["spread"]["drafting"])
    return Front(fronted(known, levels), known["sd"]["all"], spread, drafting)


@lru_cache(maxsize=1)
def handover() -> Handover:
    """Return what a split adds to a request's first token, beyond its steps, its link and the front of any engine.

    A router, a second scheduler, and what a transfer takes before and after its bytes: a time per request, which does
    not grow with prompts of 900 to 7,400 tokens. It is fitted to served splits of DeepSeek-R1 with at most four users,
    nearly all under SGLang, each beside aggregated serving of its set-up (table `handover`, which has engines, GPUs
    and prompts apart, too). The one under TensorRT-LLM adds thirty times as much: the tail is heavier than `sd` says.

    Examples
    --------
    >>> f"{handover().seconds:.2f} s"
    '0.07 s'
    """
    frame = load("handover").frame
    row = frame[frame["factor"] == "all"].iloc[0]
    return Handover(float(row["seconds"]), float(row["sd"]))


@lru_cache(maxsize=1)
def moves() -> dict[str, CoefficientValues]:
    """Return the table `served_front`: by factor and level the move of the logarithm; `sd` and `spread` beside them."""
    table: dict[str, CoefficientValues] = {factor: {} for factor in (*FRONTS, "sd", "spread")}
    for row in load("served_front").frame.to_dict("records"):
        table[str(row["factor"])][str(row["level"])] = float(row["moved"])
    return table
