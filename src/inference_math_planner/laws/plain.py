"""The formulas of `laws` as functions of plain numbers: written by `tools/plain.py`, do not edit."""

# mypy: no-warn-return-any

from __future__ import annotations

from math import ceil, log, pi, sqrt


def gap_deviation(ttft_1: float, cv_in: float, B: float, n_out: float, delta_h: float) -> float:
    return sqrt((B - 1) * (cv_in**2 * ttft_1**2 + (1 - 1 / n_out) * (-delta_h + ttft_1) ** 2)) / sqrt(n_out)


def littles_law(rate: float, latency: float) -> float:
    return latency * rate


def pool_wait(
    p_wait: float, load: float, ttft_1: float, prefill_units: float, cv_in: float, cv_arrivals: float
) -> float:
    return (1 / 2) * p_wait * ttft_1 * (cv_arrivals**2 + cv_in**2) / (prefill_units * (1 - load))


def prefill_utilisation(sla_ttft: float, ttft_1: float, cv_in: float) -> float:
    x0 = max(0, sla_ttft - ttft_1)
    return x0 / (ttft_1 * ((1 / 2) * cv_in**2 + 1 / 2) + x0)


def prefill_wait(load: float, ttft_1: float, cv_in: float) -> float:
    return load * ttft_1 * ((1 / 2) * cv_in**2 + 1 / 2) / (1 - load)


def thinned_cv(cv_arrivals: float, part: float) -> float:
    return sqrt(part * (cv_arrivals**2 - 1) + 1)


def wait_quantile(q: float, p_wait: float, mean_wait: float) -> float:
    return max(0, mean_wait * log(p_wait / (1 - q)) / p_wait)


def engine_load(rate: float, ttft_1: float, n_out: float, delta_h: float) -> float:
    return rate * (delta_h * (n_out - 1) + ttft_1)


def mixing_waves(cv: float) -> float:
    return (1 / 4) / (cv**2 * pi)


def open_step(filled: float, t_w: float) -> float:
    return t_w / (1 - filled)


def prompts_beside_wave(B: float, n_out: float, cv: float, wave: float) -> float:
    return max(0, B - 1) * min(1, max(1, (1 / 2) / (cv * sqrt(wave) * sqrt(pi))) / n_out)


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


def second_class_rate(
    sla_tpot: float, alone_step: float, filled: float, ttft_1: float, n_out: float, delta_h: float
) -> float:
    return max(0, -alone_step / sla_tpot - filled + 1) / (delta_h * (n_out - 1) + ttft_1)


def seen_step(filled: float, alone_step: float) -> float:
    return alone_step / (1 - filled)


def ttft_benchmark(burst: float, steady: float, rounds: float, met: float, ttft_1: float, delta_h: float) -> float:
    return (burst + met * (-delta_h + ttft_1) + steady * (rounds - 1)) / rounds


def ttft_burst(B: float, together: float, t_w: float, ttft_1: float, delta_h: float) -> float:
    x0 = min(B, together)
    x1 = 1 / x0
    return (1 / 6) * delta_h * x1 * (B**2 - x0**2) + (1 / 2) * x1 * (B + x0) * (t_w + ttft_1 * x0)


def ttft_open(filled: float, on_prompts: float, t_w: float, ttft_1: float) -> float:
    return (3 / 2) * t_w / (1 - filled) + ttft_1 * (on_prompts + 2) / (2 - 2 * on_prompts**2)


def users_inside(B: float, latency: float, front: float) -> float:
    return B * latency / (front + latency)


def burst_groups(B: float, every: float, t_w: float, ttft_1: float, clean: float) -> float:
    return max(1, min(B, sqrt(B) * sqrt(clean * (every - 1) + t_w) / sqrt(ttft_1)))


def clean_gaps(B: float, ranks: float, n_out: float, let_in: float) -> float:
    x0 = 1 - let_in
    return 1 - x0 * (1 - x0 ** (B * ranks - 1)) / (let_in * (n_out - 1))


def every_for(q: float, free: float) -> float:
    return max(1, ceil((1 - free) / (1 - q) - 1.0e-9))


def every_most(together: float, rate: float, ttft_1: float, clean: float) -> float:
    return together * (-ttft_1 + 1 / rate) / clean


def gap_admits(let_in: float, n_out: float) -> float:
    return (1 - let_in) / (let_in * (n_out - 1))


def let_in_share(every: float, n_out: float) -> float:
    return 1 - (1 - 1 / n_out) ** every


def no_prompt_waits(B: float, ranks: float, let_in: float) -> float:
    return (1 - let_in) ** (B * ranks)


def prompts_beside_gap(B: float, n_out: float, let_in: float) -> float:
    return (1 - let_in) * (B - 1) / (n_out - 1)


def rate_cadence(
    B: float, every: float, let_in: float, n_out: float, t_w: float, ttft_1: float, delta_h: float
) -> float:
    return B / (B * (delta_h * (n_out - 1) + ttft_1) + every * t_w / let_in)


def ttft_burst_cadence(B: float, together: float, every: float, t_w: float, ttft_1: float, clean: float) -> float:
    x0 = t_w + together * ttft_1
    return x0 + ((1 / 2) * B / together - 1 / 2) * (clean * (every - 1) + x0)


def ttft_cadence(every: float, clean: float, on_prompts: float, ttft_1: float) -> float:
    return (
        clean
        + ttft_1
        + (on_prompts + 1 / 2) * (clean * every / (1 - on_prompts) + on_prompts * ttft_1 / (1 - on_prompts**2))
    )


def routed_step(t_w: float, delta_p: float, delta_h: float, B: float, units: float) -> float:
    return t_w + (1 + (B - 1) / units) * (delta_h + delta_p)
