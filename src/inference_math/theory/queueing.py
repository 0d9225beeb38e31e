"""Queues: how many requests are in a system, how long prompts wait for a prefill, how gaps scatter (C12, C34, C36).

The law of a pool's wait, its quantiles, and the load that meets a limit are in `waiting`; quantiles of the gaps are in
`latency`.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK, E
from inference_math.theory.formula import Formula
from inference_math.theory.notation import (
    B,
    cv_arrivals,
    cv_in,
    delta_h,
    latency,
    load,
    mean_wait,
    n_out,
    p_wait,
    part,
    prefill_units,
    q,
    rate,
    sla_ttft,
    ttft_1,
)

__all__ = [
    "gap_deviation",
    "littles_law",
    "pool_wait",
    "prefill_utilisation",
    "prefill_wait",
    "thinned_cv",
    "wait_quantile",
]

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
pool_wait = Formula(
    name="pool_wait",
    arguments=(p_wait, load, ttft_1, prefill_units, cv_in, cv_arrivals),
    expr=p_wait * ttft_1 / (prefill_units * (1 - load)) * (cv_arrivals**2 + cv_in**2) / 2,
    latex_name=r"\mathrm{E}[\mathrm{wait}_{n_p}]",
    unit="s",
    claim="C34",
    source=BOOK,
    meaning="mean wait for a pool of prefill units with one queue (Allen and Cunneen); with arrivals at random exact "
    "for one unit, and for exponential prefill times",
)
thinned_cv = Formula(
    name="thinned_cv",
    arguments=(cv_arrivals, part),
    expr=sp.sqrt(1 + part * (cv_arrivals**2 - 1)),
    latex_name=r"c_{\mathrm{a},p}",
    unit="1",
    claim="C34",
    source=BOOK,
    meaning="coefficient of variation of the times between arrivals at a replica that gets a share of them by chance",
)
wait_quantile = Formula(
    name="wait_quantile",
    arguments=(q, p_wait, mean_wait),
    expr=sp.Max(0, mean_wait / p_wait * sp.log(p_wait / (1 - q))),
    latex_name=r"\mathrm{wait}_{q}",
    unit="s",
    claim="C34",
    source=BOOK,
    meaning="wait that the share q of the prompts does not exceed, if who waits has an exponential wait",
)
gap_deviation = Formula(
    name="gap_deviation",
    arguments=(ttft_1, cv_in, B, n_out, delta_h),
    expr=sp.sqrt((B - 1) / n_out * ((1 - 1 / n_out) * (ttft_1 - delta_h) ** 2 + cv_in**2 * ttft_1**2)),
    latex_name=r"\sigma(\mathrm{gap})",
    unit="s",
    claim="C12",
    source=BOOK,
    meaning="standard deviation of the time between two tokens beside prompts of random length",
    domain=B >= 1,
)
