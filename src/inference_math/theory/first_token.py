"""The time to first token as it is measured: one request, a burst, a benchmark, arrivals at random (C13, C36).

In a benchmark B users begin together and send n_r requests each. The prompts of the first moment wait for each other;
later ones meet as many others as the phases of the users still lie together, which answers of different lengths spread.
All parts of a step add, as in C12 to C14. The front, what a first token takes beside the steps, comes on top of each.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK
from inference_math.theory.formula import Formula
from inference_math.theory.notation import (
    B,
    alone_step,
    burst,
    cv,
    delta_h,
    filled,
    front,
    latency,
    met,
    n_out,
    on_prompts,
    rate,
    rounds,
    share_off,
    sla_tpot,
    steady,
    t_w,
    together,
    ttft_1,
    wave,
)

__all__ = [
    "engine_load",
    "mixing_waves",
    "open_step",
    "prompts_beside_wave",
    "prompts_met",
    "rounds_needed",
    "second_class_rate",
    "seen_step",
    "ttft_benchmark",
    "ttft_burst",
    "ttft_open",
    "users_inside",
]

_k = sp.Min(together, B)
_waves = 1 / (4 * sp.pi * cv**2)

ttft_burst = Formula(
    name="ttft_burst",
    arguments=(B, together, t_w, ttft_1, delta_h),
    expr=(B + _k) / (2 * _k) * (t_w + _k * ttft_1) + delta_h * (B**2 - _k**2) / (6 * _k),
    latex_name=r"\mathrm{TTFT}_{\mathrm{burst}}",
    unit="s",
    claim="C13",
    source=BOOK,
    meaning="mean TTFT of B prompts sent at once, of which k fit a step: exact where k divides B",
)
mixing_waves = Formula(
    name="mixing_waves",
    arguments=(cv,),
    expr=_waves,
    latex_name=r"j^{*}",
    unit="1",
    claim="C13",
    source=BOOK,
    meaning="answers of each user after which users who began together meet no more often than in a closed loop",
    domain=cv > 0,
)
prompts_beside_wave = Formula(
    name="prompts_beside_wave",
    arguments=(B, n_out, cv, wave),
    expr=sp.Max(0, B - 1) * sp.Min(1, sp.Max(1, 1 / (2 * cv * sp.sqrt(sp.pi * wave))) / n_out),
    latex_name=r"\mathrm{beside}(j)",
    unit="1",
    claim="C13",
    source=BOOK,
    meaning="others whose prompts share the step of one's own, j answers after all began together, if all fit a step",
    domain=cv > 0,
)
_beside = (B - 1) / n_out  # of a closed loop
_held = _k - 1 - _beside  # more of them while groups of k hold together
_spread = sp.Min(rounds - 1, _waves)  # waves until the phases are spread
_apart = (B - 1) * (sp.sqrt(_spread) / (cv * n_out * sp.sqrt(sp.pi)) - _spread / n_out)
prompts_met = Formula(
    name="prompts_met",
    arguments=(B, rounds, together, n_out, cv),
    expr=sp.Piecewise((_held * (rounds - 1), cv <= 0), (sp.Min(_apart, sp.Max(0, _held * _spread)), True)),
    latex_name=r"M_{+}",
    unit="1",
    claim="C13",
    source=BOOK,
    meaning="prompts that a user of a benchmark meets beside the own ones after the opening burst, all waves together, "
    "beyond those of a closed loop; for answers that are equal, or differ by a ninth and more",
)
ttft_benchmark = Formula(
    name="ttft_benchmark",
    arguments=(burst, steady, rounds, met, ttft_1, delta_h),
    expr=(burst + (rounds - 1) * steady + met * (ttft_1 - delta_h)) / rounds,
    latex_name=r"\mathrm{TTFT}(n_r)",
    unit="s",
    claim="C13",
    source=BOOK,
    meaning="mean TTFT of a benchmark whose users begin together and send n_r requests each",
)
rounds_needed = Formula(
    name="rounds_needed",
    arguments=(burst, steady, met, ttft_1, delta_h, share_off),
    expr=sp.Max(1, (burst - steady + met * (ttft_1 - delta_h)) / (share_off * steady)),
    latex_name=r"n_r^{*}",
    unit="1",
    claim="C13",
    source=BOOK,
    meaning="requests of each user with which the opening burst, and what phases keep, lift the mean TTFT by no more "
    "than a share",
)
users_inside = Formula(
    name="users_inside",
    arguments=(B, latency, front),
    expr=B * latency / (latency + front),
    latex_name=r"B_{\mathrm{in}}",
    unit="1",
    claim="C36",
    source=BOOK,
    meaning="of B users in a closed loop those whose request the engine has, which takes it a time of τ",
    domain=latency > 0,
)
engine_load = Formula(
    name="engine_load",
    arguments=(rate, ttft_1, n_out, delta_h),
    expr=rate * (ttft_1 + (n_out - 1) * delta_h),
    latex_name=r"\ell_{e}",
    unit="1",
    claim="C14",
    source=BOOK,
    meaning="rate of requests over what one engine serves at most, where a request costs steps n_out times ΔP and ΔH",
)
open_step = Formula(
    name="open_step",
    arguments=(filled, t_w),
    expr=t_w / (1 - filled),
    latex_name=r"\mathrm{E}[\mathrm{step}]",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="mean step of one engine at which requests arrive at random; what requests see is a little longer (E11)",
    domain=filled < 1,
)
second_class_rate = Formula(
    name="second_class_rate",
    arguments=(sla_tpot, alone_step, filled, ttft_1, n_out, delta_h),
    expr=sp.Max(0, 1 - alone_step / sla_tpot - filled) / (ttft_1 + (n_out - 1) * delta_h),
    latex_name=r"\lambda_{2}",
    unit="1/s",
    claim="E11",
    source=BOOK,
    meaning="requests per second of a second class, of its own prompts and answers, beside which the mean gap of a "
    "first class that fills the engine to a share still keeps its limit",
)
seen_step = Formula(
    name="seen_step",
    arguments=(filled, alone_step),
    expr=alone_step / (1 - filled),
    latex_name=r"\mathrm{E}[\mathrm{gap}]",
    unit="s",
    claim="E11",
    source=BOOK,
    meaning="mean gap between tokens that requests see of one engine at which they arrive at random: exact for one "
    "class whose prompts are spread over their answers",
    domain=filled < 1,
)
ttft_open = Formula(
    name="ttft_open",
    arguments=(filled, on_prompts, t_w, ttft_1),
    expr=sp.Rational(3, 2) * t_w / (1 - filled) + ttft_1 * (2 + on_prompts) / (2 * (1 - on_prompts**2)),
    latex_name=r"\mathrm{TTFT}(\ell_e, \ell_p)",
    unit="s",
    claim="C13",
    source=BOOK,
    meaning="mean TTFT of one engine that is never idle, at which requests arrive at random, each step taking all "
    "prompts that wait",
    domain=sp.Max(filled, on_prompts) < 1,
)
