"""When prompts are let in: only at every N-th step, on ranks that step together, in a burst (E01 to E04).

Prompts that come while N steps go by are gathered in one. Answers are geometric, as if each token could be the last: so
the number that a step lets in is binomial, and independent from one such step to the next. N = 1 is the law of C12. All
parts of a step add, as there.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory.formula import formula
from inference_math.theory.notation import let_in, n_out, on_prompts, q, rate, ttft_1

_tiny = sp.Symbol("epsilon", positive=True)


@formula(r"\pi_{N}", claim="E01")
def let_in_share(every, n_out):
    """Chance that a place gets a new prompt when prompts are let in: its answer has ended within N steps."""
    return 1 - (1 - 1 / n_out) ** every


@formula(r"p_{0}", claim="E01")
def no_prompt_waits(B, ranks, let_in):
    """Chance that a step which lets prompts in has none, on any of D ranks with B places each."""
    return (1 - let_in) ** (B * ranks)


@formula(r"w_{0}", claim="E01", domain=(n_out - 1) * let_in > 0)
def gap_admits(let_in, n_out):
    """Share of the gaps between tokens that are steps which let prompts in; at most 1/N."""
    return (1 - let_in) / ((n_out - 1) * let_in)


@formula(r"\mathrm{P}(\mathrm{clean})", claim="E01", domain=(n_out - 1) * let_in > 0)
def clean_gaps(B, ranks, n_out, let_in):
    """Share of the gaps between tokens in which no prompt is computed, on any rank."""
    return 1 - gap_admits.expr * (1 - (1 - let_in) ** (B * ranks - 1))


@formula(r"\mathrm{E}[k]", claim="E01", domain=n_out > 1)
def prompts_beside_gap(B, n_out, let_in):
    """Prompts of others that a gap between tokens holds in the mean, on one rank."""
    return (B - 1) * (1 - let_in) / (n_out - 1)


@formula(r"N_{q}", claim="E01", domain=q < 1, where={_tiny: sp.Float("1e-9")})
def every_for(q, free):
    """N that is enough for the quantile q of the gaps to be a step of decodes alone, with p0 of that N."""
    return sp.Max(1, sp.ceiling((1 - free) / (1 - q) - _tiny))


@formula(r"\lambda_{N}", unit="1/s", claim="E01", domain=let_in > 0)
def rate_cadence(B, every, let_in, n_out, t_w, ttft_1, delta_h):
    """Requests per second of one engine that has a prompt waiting for each place, which is empty until then."""
    return B / (every / let_in * t_w + B * ((n_out - 1) * delta_h + ttft_1))


@formula(r"\mathrm{TTFT}(N)", unit="s", claim="E02", domain=on_prompts < 1)
def ttft_cadence(every, clean, on_prompts, ttft_1):
    """Mean TTFT of one engine that is never idle and lets prompts in every N steps, arrivals at random."""
    # An arrival at random falls into a long round rather than a short one: the mean of such a round.
    met = every * clean / (1 - on_prompts) + ttft_1 * on_prompts / (1 - on_prompts**2)
    return met * (sp.Rational(1, 2) + on_prompts) + clean + ttft_1


@formula(r"N_{\max}", claim="E02", domain=rate > 0)
def every_most(together, rate, ttft_1, clean):
    """N below which k prompts every N steps keep up with the requests, where none follow in the next step."""
    return together * (1 / rate - ttft_1) / clean


@formula(r"\mathrm{TTFT}_{\mathrm{burst}}(N)", unit="s", claim="E04")
def ttft_burst_cadence(B, together, every, t_w, ttft_1, clean):
    """Mean TTFT of B prompts sent at once, k of which are let in at every N-th step: exact where k divides B.

    And where no answer ends before the last of them begins.
    """
    apart = t_w + (every - 1) * clean  # what one more group costs besides its prompts
    return (B / together - 1) / 2 * (apart + together * ttft_1) + t_w + together * ttft_1


@formula(r"k^{*}", claim="E04", domain=ttft_1 > 0)
def burst_groups(B, every, t_w, ttft_1, clean):
    """Prompts that a step of a burst should let in for the least mean TTFT, all groups alike."""
    return sp.Max(1, sp.Min(B, sp.sqrt(B * (t_w + (every - 1) * clean) / ttft_1)))
