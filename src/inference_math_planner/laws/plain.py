"""Formulas of `laws`, written by `tools/plain.py`: do not edit."""

# mypy: no-warn-return-any

from __future__ import annotations

from math import pi, sqrt


def thinned_cv(cv_arrivals: float, part: float) -> float:
    return sqrt(part * (cv_arrivals**2 - 1) + 1)


def prompts_met(B: float, rounds: float, together: float, n_out: float, cv: float) -> float:
    x0 = rounds - 1
    x1 = (B - 1) / n_out
    x2 = -x1 + min(B, together) - 1
    x3 = min(x0, (1 / 4) / (cv**2 * pi))
    x4 = sqrt(x3)
    return (
        (x0 * x2)
        if (cv <= 0)
        else (0)
        if (x3 < 1)
        else (min(max(0, x2 * x3), x1 * (-x3 + (1 / 2) * (2 * x4 - 1.4604 + (1 / 2) / x4) / (cv * sqrt(pi)))))
    )


def rounds_needed(burst: float, steady: float, met: float, ttft_1: float, delta_h: float, share_off: float) -> float:
    return max(1, (burst + met * (-delta_h + ttft_1) - steady) / (share_off * steady))
