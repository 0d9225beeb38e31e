"""The time to first token as it is measured: one request, a burst, a benchmark, arrivals at random (C13, C36).

In a benchmark B users begin together and send n_r requests each. The prompts of the first moment wait for each other;
later ones meet as many others as the phases of the users still lie together, which answers of different lengths spread.
All parts of a step add, as in C12 to C14. The front, what a first token takes beside the steps, comes on top of each.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory.formula import formula
from inference_math.theory.notation import cv, filled, latency, on_prompts, rounds

_waves = sp.Symbol("J", nonnegative=True)  # answers of each user until their phases are spread, or the run ends


@formula(r"\mathrm{TTFT}_{\mathrm{burst}}", unit="s", claim="C13")
def ttft_burst(B, together, t_w, ttft_1, delta_h):
    """Mean TTFT of B prompts sent at once, k of which fit a step: exact where k divides B and no answer ends then."""
    k = sp.Min(together, B)
    return (B + k) / (2 * k) * (t_w + k * ttft_1) + delta_h * (B**2 - k**2) / (6 * k)


@formula(r"j^{*}", claim="C13", domain=cv > 0)
def mixing_waves(cv):
    """Answers of each user after which users who began together meet no more often than in a closed loop.

    Of answers whose lengths spread smoothly: of a few lengths on a lattice, users who began together never part.
    """
    return 1 / (4 * sp.pi * cv**2)


@formula(r"\mathrm{beside}(j)", claim="C13", domain=cv > 0)
def prompts_beside_wave(B, n_out, cv, wave):
    """Others whose prompts share the step of one's own, j answers after all began together, if all fit a step; lengths
    that spread smoothly, on no lattice.
    """
    return sp.Max(0, B - 1) * sp.Min(1, sp.Max(1, 1 / (2 * cv * sp.sqrt(sp.pi * wave))) / n_out)


@formula(r"M_{+}", claim="C13", where={_waves: sp.Min(rounds - 1, mixing_waves.expr)})
def prompts_met(B, rounds, together, n_out, cv):
    """Prompts that a user of a benchmark meets beside the own ones after the opening burst, all waves together, beyond
    those of a closed loop; for answers that are equal, or whose lengths spread smoothly, by a ninth and more.
    """
    held = sp.Min(together, B) - 1 - (B - 1) / n_out  # more than in a closed loop while groups of k hold together
    # The sum of 1/√j over J waves by Euler and Maclaurin, ζ(½) its constant: 4 % off for one wave, 0.2 % for four.
    roots = 2 * sp.sqrt(_waves) - sp.Float("1.4604", 5) + 1 / (2 * sp.sqrt(_waves))
    apart = (B - 1) / n_out * (roots / (2 * cv * sp.sqrt(sp.pi)) - _waves)
    spread = sp.Min(apart, sp.Max(0, held * _waves))
    return sp.Piecewise((held * (rounds - 1), cv <= 0), (0, _waves < 1), (spread, True))


@formula(r"\mathrm{TTFT}(n_r)", unit="s", claim="C13")
def ttft_benchmark(burst, steady, rounds, met, ttft_1, delta_h):
    """Mean TTFT of a benchmark whose users begin together and send n_r requests each."""
    return (burst + (rounds - 1) * steady + met * (ttft_1 - delta_h)) / rounds


@formula(r"n_r^{*}", claim="C13")
def rounds_needed(burst, steady, met, ttft_1, delta_h, share_off):
    """Requests of each user with which the opening burst, and what phases keep, lift the mean TTFT by no more than a
    share.
    """
    return sp.Max(1, (burst - steady + met * (ttft_1 - delta_h)) / (share_off * steady))


@formula(r"B_{\mathrm{in}}", claim="C36", domain=latency > 0)
def users_inside(B, latency, front):
    """Of B users in a closed loop those whose request the engine has, which takes it a time of τ."""
    return B * latency / (latency + front)


@formula(r"\ell_{e}", claim="C14")
def engine_load(rate, ttft_1, n_out, delta_h):
    """Rate of requests over what one engine serves at most, where a request costs steps n_out times ΔP and ΔH."""
    return rate * (ttft_1 + (n_out - 1) * delta_h)


@formula(r"\mathrm{E}[\mathrm{step}]", unit="s", claim="C14", domain=filled < 1)
def open_step(filled, t_w):
    """Mean step of one engine at which requests arrive at random; what requests see is a little longer (E11)."""
    return t_w / (1 - filled)


@formula(r"\lambda_{2}", unit="1/s", claim="E11")
def second_class_rate(sla_tpot, alone_step, filled, ttft_1, n_out, delta_h):
    """Requests per second of a second class, of its own prompts and answers, beside which the mean gap of a first class
    that fills the engine to a share still keeps its limit; for classes that add much alike to a step, as `seen_step`,
    and steps whose tokens are not limited.
    """
    return sp.Max(0, 1 - alone_step / sla_tpot - filled) / (ttft_1 + (n_out - 1) * delta_h)


@formula(r"\mathrm{E}[\mathrm{gap}]", unit="s", claim="E11", domain=filled < 1)
def seen_step(filled, alone_step):
    """Mean gap between tokens of one engine at which requests arrive at random: exact for one class whose prompts are
    spread over their answers. Each gap counts once; the mean over requests of their own TPOT is longer, and beside a
    second class of much larger ΔP + ΔH the gaps are, too.
    """
    return alone_step / (1 - filled)


@formula(r"\mathrm{TTFT}(\ell_e, \ell_p)", unit="s", claim="C13", domain=sp.Max(filled, on_prompts) < 1)
def ttft_open(filled, on_prompts, t_w, ttft_1):
    """Mean TTFT of one engine that is never idle, at which requests arrive at random, each step taking all prompts that
    wait.
    """
    return sp.Rational(3, 2) * t_w / (1 - filled) + ttft_1 * (2 + on_prompts) / (2 * (1 - on_prompts**2))
