"""When prompts are let in: only at every N-th step, on ranks that step together, in a burst (E01 to E04).

Prompts that come while N steps go by are gathered in one. Answers are geometric, as if each token could be the last: so
the number that a step lets in is binomial, and independent from one such step to the next. N = 1 is the law of C12. All
parts of a step add, as there.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK
from inference_math.theory.formula import Formula
from inference_math.theory.notation import (
    B,
    clean,
    delta_h,
    every,
    free,
    let_in,
    n_out,
    on_prompts,
    q,
    ranks,
    rate,
    t_w,
    together,
    ttft_1,
)

__all__ = [
    "burst_groups",
    "clean_gaps",
    "every_for",
    "every_most",
    "gap_admits",
    "let_in_share",
    "no_prompt_waits",
    "prompts_beside_gap",
    "rate_cadence",
    "ttft_burst_cadence",
    "ttft_cadence",
]

_tiny = sp.Symbol("epsilon", positive=True)

let_in_share = Formula(
    name="let_in_share",
    arguments=(every, n_out),
    expr=1 - (1 - 1 / n_out) ** every,
    latex_name=r"\pi_{N}",
    unit="1",
    claim="E01",
    source=BOOK,
    meaning="chance that a place gets a new prompt when prompts are let in: its answer has ended within N steps",
)
no_prompt_waits = Formula(
    name="no_prompt_waits",
    arguments=(B, ranks, let_in),
    expr=(1 - let_in) ** (B * ranks),
    latex_name=r"p_{0}",
    unit="1",
    claim="E01",
    source=BOOK,
    meaning="chance that a step which lets prompts in has none, on any of D ranks with B places each",
)
gap_admits = Formula(
    name="gap_admits",
    arguments=(let_in, n_out),
    expr=(1 - let_in) / ((n_out - 1) * let_in),
    latex_name=r"w_{0}",
    unit="1",
    claim="E01",
    source=BOOK,
    meaning="share of the gaps between tokens that are steps which let prompts in; at most 1/N",
    domain=(n_out - 1) * let_in > 0,
)
clean_gaps = Formula(
    name="clean_gaps",
    arguments=(B, ranks, n_out, let_in),
    expr=1 - gap_admits.expr * (1 - (1 - let_in) ** (B * ranks - 1)),
    latex_name=r"\mathrm{P}(\mathrm{clean})",
    unit="1",
    claim="E01",
    source=BOOK,
    meaning="share of the gaps between tokens in which no prompt is computed, on any rank",
    domain=(n_out - 1) * let_in > 0,
)
prompts_beside_gap = Formula(
    name="prompts_beside_gap",
    arguments=(B, n_out, let_in),
    expr=(B - 1) * (1 - let_in) / (n_out - 1),
    latex_name=r"\mathrm{E}[K]",
    unit="1",
    claim="E01",
    source=BOOK,
    meaning="prompts of others that a gap between tokens holds in the mean, on one rank",
    domain=n_out > 1,
)
every_for = Formula(
    name="every_for",
    arguments=(q, free),
    expr=sp.Max(1, sp.ceiling((1 - free) / (1 - q) - _tiny)),
    latex_name=r"N_{q}",
    unit="1",
    claim="E01",
    source=BOOK,
    meaning="N that is enough for the quantile q of the gaps to be a step of decodes alone, with p0 of that N",
    domain=q < 1,
    where={_tiny: sp.Float("1e-9")},  # 1 − 0.9 is a little less than a tenth
)
rate_cadence = Formula(
    name="rate_cadence",
    arguments=(B, every, let_in, n_out, t_w, ttft_1, delta_h),
    expr=B / (every / let_in * t_w + B * ((n_out - 1) * delta_h + ttft_1)),
    latex_name=r"\lambda_{N}",
    unit="1/s",
    claim="E01",
    source=BOOK,
    meaning="requests per second of one engine that has a prompt waiting for each place, which is empty until then",
    domain=let_in > 0,
)
# An arrival at random falls into a long round rather than a short one: the mean of such a round.
_round = every * clean / (1 - on_prompts) + ttft_1 * on_prompts / (1 - on_prompts**2)
ttft_cadence = Formula(
    name="ttft_cadence",
    arguments=(every, clean, on_prompts, ttft_1),
    expr=_round * (sp.Rational(1, 2) + on_prompts) + clean + ttft_1,
    latex_name=r"\mathrm{TTFT}(N)",
    unit="s",
    claim="E02",
    source=BOOK,
    meaning="mean TTFT of one engine that is never idle and lets prompts in every N steps, arrivals at random",
    domain=on_prompts < 1,
)
every_most = Formula(
    name="every_most",
    arguments=(together, rate, ttft_1, clean),
    expr=together * (1 / rate - ttft_1) / clean,
    latex_name=r"N_{\max}",
    unit="1",
    claim="E02",
    source=BOOK,
    meaning="N below which k prompts every N steps keep up with the requests, where none follow in the next step",
    domain=rate > 0,
)
_apart = t_w + (every - 1) * clean  # what one more group of a burst costs besides its prompts
ttft_burst_cadence = Formula(
    name="ttft_burst_cadence",
    arguments=(B, together, every, t_w, ttft_1, clean),
    expr=(B / together - 1) / 2 * (_apart + together * ttft_1) + t_w + together * ttft_1,
    latex_name=r"\mathrm{TTFT}_{\mathrm{burst}}(N)",
    unit="s",
    claim="E04",
    source=BOOK,
    meaning="mean TTFT of B prompts sent at once, k of which are let in at every N-th step: exact where k divides B",
)
burst_groups = Formula(
    name="burst_groups",
    arguments=(B, every, t_w, ttft_1, clean),
    expr=sp.Max(1, sp.Min(B, sp.sqrt(B * _apart / ttft_1))),
    latex_name=r"k^{*}",
    unit="1",
    claim="E04",
    source=BOOK,
    meaning="prompts that a step of a burst should let in for the least mean TTFT, all groups alike",
    domain=ttft_1 > 0,
)
