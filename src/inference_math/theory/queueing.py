"""Queues: how many requests are in a system, how long prompts wait for a prefill, how gaps scatter (C12, C34, C36).

The law of a pool's wait, its quantiles, and the load that meets a limit are in `waiting`; quantiles of the gaps are in
`latency`.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory._talks import E
from inference_math.theory.formula import formula
from inference_math.theory.notation import B


@formula(r"\overline{B}", claim="C36", source=E)
def littles_law(rate, latency):
    """Mean number of requests in a system: arrivals times the time that each stays."""
    return rate * latency


@formula(r"\mathrm{E}[\mathrm{wait}]", unit="s", claim="C34")
def prefill_wait(load, ttft_alone, cv_in):
    """Mean wait of prompts that arrive at random for one prefill unit (Pollaczek and Khinchine)."""
    rest = (1 + cv_in**2) / 2  # mean rest of a prefill that an arrival finds under way, over the mean prefill
    return load * ttft_alone * rest / (1 - load)


@formula(r"\ell_{\max}", claim="C34")
def prefill_utilisation(sla_ttft, ttft_alone, cv_in):
    """Share of its time that a prefill unit may work when the mean TTFT must meet a limit; 0 if none may."""
    wait = sp.Max(0, sla_ttft - ttft_alone)
    return wait / (wait + ttft_alone * ((1 + cv_in**2) / 2))


_SCALED = "Cited: an approximation of Allen and Cunneen, exact in two cases"


@formula(r"\mathrm{E}[\mathrm{wait}_{n_p}]", unit="s", claim="C34", given=_SCALED)
def pool_wait(p_wait, load, ttft_alone, prefill_units, cv_in, cv_arrivals):
    """Mean wait for a pool of prefill units with one queue (Allen and Cunneen); with arrivals at random exact for one
    unit, and for exponential prefill times.
    """
    return p_wait * ttft_alone / (prefill_units * (1 - load)) * (cv_arrivals**2 + cv_in**2) / 2


@formula(r"c_{\mathrm{a},p}", claim="C34")
def thinned_cv(cv_arrivals, part):
    """Coefficient of variation of the times between arrivals at a replica that gets a share of them by chance."""
    return sp.sqrt(1 + part * (cv_arrivals**2 - 1))


@formula(r"\mathrm{wait}_{q}", unit="s", claim="C34")
def wait_quantile(q, p_wait, mean_wait):
    """Wait that the share q of the prompts does not exceed, if who waits has an exponential wait."""
    return sp.Max(0, mean_wait / p_wait * sp.log(p_wait / (1 - q)))


@formula(r"\mathrm{sd}(\mathrm{gap})", unit="s", claim="C12", domain=B >= 1)
def gap_deviation(ttft_1, cv_in, B, n_out, delta_h):
    """Standard deviation of the time between two tokens beside prompts of random length."""
    return sp.sqrt((B - 1) / n_out * ((1 - 1 / n_out) * (ttft_1 - delta_h) ** 2 + cv_in**2 * ttft_1**2))
