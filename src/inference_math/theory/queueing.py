"""Queues: how many requests are in a system, and how long prompts wait for a prefill (claims C34, C36)."""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK, E
from inference_math.theory.formula import Formula
from inference_math.theory.notation import cv_in, latency, load, rate, sla_ttft, ttft_1

__all__ = ["littles_law", "prefill_utilisation", "prefill_wait"]

_spread = (1 + cv_in**2) / 2  # mean rest of a prefill that an arrival finds under way, over the mean prefill

littles_law = Formula(
    name="littles_law",
    arguments=(rate, latency),
    expr=rate * latency,
    latex_name=r"\overline{B}",
    unit="1",
    claim="C36",
    source=E,
    meaning="mean number of requests in a system: arrivals times the time that each stays",
)
prefill_wait = Formula(
    name="prefill_wait",
    arguments=(load, ttft_1, cv_in),
    expr=load * ttft_1 * _spread / (1 - load),
    latex_name=r"\mathrm{E}[\mathrm{wait}]",
    unit="s",
    claim="C34",
    source=BOOK,
    meaning="mean wait of prompts that arrive at random for one prefill unit (Pollaczek and Khinchine)",
)
prefill_utilisation = Formula(
    name="prefill_utilisation",
    arguments=(sla_ttft, ttft_1, cv_in),
    expr=sp.Max(0, sla_ttft - ttft_1) / (sp.Max(0, sla_ttft - ttft_1) + ttft_1 * _spread),
    latex_name=r"\ell_{\max}",
    unit="1",
    claim="C34",
    source=BOOK,
    meaning="share of its time that a prefill unit may work when the mean TTFT must meet a limit; 0 if none may",
)
