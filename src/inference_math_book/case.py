"""The case, composed of two slides: every page that speaks of it takes its set-up from here.

Llama-3-70B with weights in FP8 and a KV cache in BF16 on two H100, 2,200 tokens in, 170 out, 400 ms to the first token
and 40 ms a token, eight units; nothing stored, or 95 % of the prompts on local SSDs. What it costs as served, by
measurements, is in `served`.
"""

from __future__ import annotations

from functools import lru_cache

from inference_math.catalogue.tiers import tier
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload
from inference_math_book.served import CASE, kernels
from inference_math_planner.answers.deployment import Plan, plan

__all__ = ["KERNELS", "LENGTHS", "LIMITS", "STORED", "UNIT", "WAIT", "WORK", "planned"]

UNIT = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "bf16")
KERNELS = kernels(UNIT.tp, UNIT.kv)
WORK, LIMITS, STORED = Workload(CASE.n_in, CASE.n_out), SLA(ttft=0.4, tpot=0.040), 0.95
WAIT = LIMITS.ttft - UNIT.front.seconds  # what the limit of a client leaves to the engine
LENGTHS = (WORK.n_in, WORK.n_out)  # tokens in and out, of which every chapter's worked numbers are


@lru_cache
def planned(stored: bool = False) -> Plan:
    """Return the planner's answer to the case.

    `stored`: 95 % of the prompts lie on local SSDs.
    """
    work = Workload(WORK.n_in, WORK.n_out, STORED if stored else 0.0)
    return plan(UNIT, work, LIMITS, tier=tier("local_ssd") if stored else None)
