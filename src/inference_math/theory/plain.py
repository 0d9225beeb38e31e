"""Formulas of `theory`, written by `tools/plain.py`: do not edit."""

# mypy: no-warn-return-any

from __future__ import annotations

from math import floor, pi, sqrt


def kv_load_time(kv_token: float, io_bw: float) -> float:
    return kv_token / io_bw


def crossover_shared_link(e: float, T: float, W: float) -> float:
    x0 = max(0, 1 - W / T)
    return x0 / (x0 + 1 / e)


def concurrent_prefills(B: float, n_out: float) -> float:
    return (B - 1) / n_out


def delta_p(ttft_1: float, n_out: float) -> float:
    return ttft_1 / n_out


def expected_tpot_full(
    B: float, n_out: float, tpot_1: float, delta_p: float, delta_h: float, T: float, z: float
) -> float:
    return tpot_1 + (B - 1) * (delta_p + (1 - 1 / n_out) * (T * z + delta_h))


def expected_ttft_full(B: float, n_out: float, ttft_1: float, delta_h: float, t_w: float) -> float:
    x0 = 1 / n_out
    x1 = B - 1
    return delta_h * x1 * (1 - x0) + t_w + ttft_1 * (x0 * x1 + 1)


def mean_context(n_in: float, n_out: float, cv: float) -> float:
    return cv**2 * n_out**2 / (2 * n_out - 2) + n_in + (1 / 2) * n_out


def request_rate(B: float, n_out: float, t_w: float, delta_p: float, delta_h: float) -> float:
    x0 = 1 / n_out
    return B * x0 / (B * (delta_h * (1 - x0) + delta_p) + t_w)


def gain_bound(delta_p: float, delta_h: float) -> float:
    return 1 + delta_p / delta_h


def max_batch(sla_tpot: float, tpot_1: float, delta_p: float, delta_h: float) -> float:
    return max(0, floor((sla_tpot - tpot_1) / (delta_h + delta_p)) + 1)


def max_batch_growing(kv_capacity: float, n_in: float, n_out: float, cv: float) -> float:
    x0 = cv**2
    x1 = x0 + 1
    x2 = n_in + (1 / 2) * n_out * x1
    x3 = 5 * x0 + 1
    return (
        (
            max(
                1,
                floor(
                    (1 / 4)
                    * (
                        -233 / 600 * sqrt(3) * n_out * sqrt(x1) * sqrt(x3)
                        + sqrt(4 * kv_capacity * x2 + (54289 / 120000) * n_out**2 * x1 * x3)
                    )
                    ** 2
                    / x2**2
                ),
            )
        )
        if (kv_capacity >= n_in + n_out)
        else (0)
    )


def max_batch_reserved(kv_capacity: float, n_in: float, n_out: float, cv: float) -> float:
    return floor(kv_capacity / (n_in + n_out * (cv**2 + 1)))


def max_batch_ttft_full(sla_ttft: float, n_out: float, ttft_1: float, delta_h: float, t_w: float) -> float:
    x0 = 1 / n_out
    return max(0, floor((sla_ttft - t_w - ttft_1) / (delta_h * (1 - x0) + ttft_1 * x0)) + 1)


def chunk_size_full(b: float, n_in: float, n_out: float) -> float:
    return b * n_in / (n_out - 1)


def chunked_gain_sla_serial(delta_p_gross: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    return min((delta_h + delta_p_gross) / delta_h, 1 / (1 - t_w / sla_tpot))


def pdd_concurrency(sla_ttft: float, n_out: float, sla_tpot: float) -> float:
    return sla_ttft / (sla_tpot * (n_out - 1))


def pdd_gain_same(delta_p: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float) -> float:
    x0 = 1 / n_out
    x1 = delta_h * x0
    x2 = delta_p - x1
    return (
        (delta_h + x2)
        * (sla_tpot + x2)
        / ((delta_h * (1 - x0) / (1 - t_w / sla_tpot) + delta_p + t_w * x0) * (delta_p + sla_tpot - t_w - x1))
    )


def pdd_split(delta_p_gross: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float) -> float:
    return delta_p_gross * (1 - t_w / sla_tpot) / (delta_h * (1 - 1 / n_out))


def allreduce_time(sum_bytes: float, tp: float, link_bw: float) -> float:
    return sum_bytes * (2 - 2 / tp) / link_bw


def matrix_time(n_params: float, tokens: float, flops: float, eff_compute: float) -> float:
    return 2 * n_params * tokens / (eff_compute * flops)


def read_time(step_bytes: float, hbm_bw: float, eff_memory: float) -> float:
    return step_bytes / (eff_memory * hbm_bw)


def step_additive(t_w: float, t_c: float, t_rest: float) -> float:
    return t_c + t_rest + t_w


def step_full(t_w: float, t_read: float, t_c: float, t_att: float) -> float:
    return max(t_att + t_c, t_read + t_w)


def step_serial(t_w: float, t_c: float, t_rest: float) -> float:
    return t_rest + max(t_c, t_w)


def step_time(t_w: float, t_c: float, t_rest: float) -> float:
    return t_rest + sqrt(t_c**2 + t_w**2)


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
