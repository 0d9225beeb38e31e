"""The formulas of `theory` as functions of plain numbers: written by `tools/plain.py`, do not edit."""

# mypy: no-warn-return-any

from __future__ import annotations

from math import exp, floor, log, sqrt


def attention_share_causal(n_params: float, n_layers: float, d_att: float, n_in: float) -> float:
    x0 = 2 * d_att * n_in * n_layers
    return x0 / (2 * n_params + x0)


def attention_threshold(n_params: float, n_layers: float, d_att: float) -> float:
    return (1 / 2) * n_params / (d_att * n_layers)


def attention_threshold_causal(n_params: float, n_layers: float, d_att: float) -> float:
    return n_params / (d_att * n_layers)


def kv_load_time(kv_token: float, io_bw: float) -> float:
    return kv_token / io_bw


def token_acceleration(T: float, R: float) -> float:
    return T / R


def token_time(n_params: float, n_layers: float, d_att: float, n_in: float, flops: float) -> float:
    return (4 * d_att * n_in * n_layers + 2 * n_params) / flops


def token_time_causal(n_params: float, n_layers: float, d_att: float, n_in: float, flops: float) -> float:
    return (2 * d_att * n_in * n_layers + 2 * n_params) / flops


def write_bandwidth(kv_token: float, T: float) -> float:
    return kv_token / T


def acceleration_needed(alpha: float) -> float:
    return alpha / (1 - alpha)


def acceleration_needed_root(alpha: float, beside: float) -> float:
    return alpha / sqrt(beside**2 + (1 - alpha) ** 2)


def crossover(e: float) -> float:
    return e / (e + 1)


def crossover_causal(e: float, phi: float) -> float:
    x0 = -phi + 1 + 1 / e
    return 2 / (x0 + sqrt(4 * phi + x0**2))


def crossover_root(e: float, beside: float) -> float:
    x0 = beside**2 + 1
    return min(1, x0 / (sqrt(max(0, -x0 * (1 - 1 / e**2) + 1)) + 1))


def crossover_shared_link(e: float, T: float, W: float) -> float:
    x0 = max(0, 1 - W / T)
    return x0 / (x0 + 1 / e)


def crossover_step(e: float, beside: float) -> float:
    return min(1, e * (beside + 1) / (e + 1))


def pipelining_gain(alpha: float, e: float) -> float:
    x0 = alpha / e
    x1 = 1 - alpha
    return 1 + min(x0, x1) / max(x0, x1)


def pipelining_gain_layers(n_layers: float) -> float:
    return 2 * n_layers / (n_layers + 1)


def reuse_conversation(turns: float) -> float:
    return (turns - 1) / (turns + 1)


def reuse_local(turns: float, units: float) -> float:
    return 1 - 2 * units * (turns - (1 - (1 - 1 / units) ** turns) * (units - 1)) / (turns * (turns + 1))


def speedup_layerwise(alpha: float, e: float) -> float:
    return 1 / max(alpha / e, 1 - alpha)


def speedup_layerwise_causal(alpha: float, e: float, phi: float) -> float:
    return 1 / max(alpha / e, (1 - alpha) * (alpha * phi + 1))


def speedup_mixed(alpha: float, e: float) -> float:
    return 1 / max(1 - alpha, 1 / (e + 1))


def speedup_pipelined(alpha: float, e: float, n_layers: float) -> float:
    x0 = alpha / e
    return n_layers / (-alpha + x0 + (n_layers - 1) * max(x0, 1 - alpha) + 1)


def speedup_root(alpha: float, e: float, beside: float) -> float:
    x0 = beside**2
    return sqrt(x0 + 1) / max(alpha / e, sqrt(x0 + (1 - alpha) ** 2))


def speedup_step(alpha: float, e: float, beside: float) -> float:
    x0 = beside + 1
    return x0 / max(alpha / e, -alpha + x0)


def speedup_whole(alpha: float, e: float) -> float:
    return 1 / (-alpha + alpha / e + 1)


def ttft_kv(n_in: float, T: float, alpha: float, e: float, W: float) -> float:
    x0 = 1 - alpha
    return n_in * max(T * x0, W * x0, T * alpha / e)


def ttft_vanilla(n_in: float, T: float) -> float:
    return T * n_in


def concurrent_prefills(B: float, n_out: float) -> float:
    return (B - 1) / n_out


def delta_h(n_in: float, kv_token: float, hbm_bw: float) -> float:
    return kv_token * n_in / hbm_bw


def delta_p(ttft_1: float, n_out: float) -> float:
    return ttft_1 / n_out


def delta_p_net(ttft_alone: float, t_w: float, n_out: float) -> float:
    return max(0, -t_w + ttft_alone) / n_out


def expected_tpot(B: float, tpot_1: float, delta_p: float, delta_h: float) -> float:
    return tpot_1 + (B - 1) * (delta_h + delta_p)


def expected_tpot_full(
    B: float, n_out: float, tpot_1: float, delta_p: float, delta_h: float, T: float, z: float
) -> float:
    return tpot_1 + (B - 1) * (delta_p + (1 - 1 / n_out) * (T * z + delta_h))


def expected_ttft(B: float, n_out: float, ttft_1: float) -> float:
    return ttft_1 * (1 + (B - 1) / n_out)


def expected_ttft_full(B: float, n_out: float, ttft_1: float, delta_h: float, t_w: float) -> float:
    x0 = 1 / n_out
    x1 = B - 1
    return delta_h * x1 * (1 - x0) + t_w + ttft_1 * (x0 * x1 + 1)


def exposed_compute(B: float, t_w: float, T: float) -> float:
    return B * T / sqrt(B**2 * T**2 + t_w**2)


def mean_context(n_in: float, n_out: float, cv: float) -> float:
    return cv**2 * n_out**2 / (2 * n_out - 2) + n_in + (1 / 2) * n_out


def mean_step(B: float, n_out: float, t_w: float, delta_p: float, delta_h: float) -> float:
    return B * (delta_h * (1 - 1 / n_out) + delta_p) + t_w


def prefill_share(B: float, n_out: float, t_w: float, delta_p: float, delta_h: float) -> float:
    return B * delta_p / (B * (delta_h * (1 - 1 / n_out) + delta_p) + t_w)


def request_rate(B: float, n_out: float, t_w: float, delta_p: float, delta_h: float) -> float:
    x0 = 1 / n_out
    return B * x0 / (B * (delta_h * (1 - x0) + delta_p) + t_w)


def undisturbed_share(B: float, n_out: float) -> float:
    return (1 - 1 / n_out) ** (B - 1)


def batch_gain(delta_p: float, delta_h: float, x: float) -> float:
    return (delta_h + delta_p) / (delta_h + delta_p / x)


def batch_gain_async(delta_p: float, delta_h: float, alpha: float, e: float) -> float:
    return (delta_h + delta_p) / max(alpha * delta_p / e, delta_h + delta_p * (1 - alpha))


def gain_bound(delta_p: float, delta_h: float) -> float:
    return 1 + delta_p / delta_h


def kv_capacity(hbm_share: float, hbm_bytes: float, workspace: float, weight_bytes: float, kv_token: float) -> float:
    return max(0, hbm_bytes * hbm_share - weight_bytes - workspace) / kv_token


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


def max_batch_memory(kv_capacity: float, n_in: float, n_out: float) -> float:
    return floor(kv_capacity / (n_in + n_out))


def max_batch_printed(sla_tpot: float, tpot_1: float, delta_p: float, delta_h: float) -> float:
    return floor((sla_tpot - tpot_1) / (delta_h + delta_p))


def max_batch_reserved(kv_capacity: float, n_in: float, n_out: float, cv: float) -> float:
    return floor(kv_capacity / (n_in + n_out * (cv**2 + 1)))


def max_batch_ttft(sla_ttft: float, ttft_1: float, n_out: float) -> float:
    return max(0, floor(n_out * (sla_ttft / ttft_1 - 1)) + 1)


def max_batch_ttft_full(sla_ttft: float, n_out: float, ttft_1: float, delta_h: float, t_w: float) -> float:
    x0 = 1 / n_out
    return max(0, floor((sla_ttft - t_w - ttft_1) / (delta_h * (1 - x0) + ttft_1 * x0)) + 1)


def max_batch_undisturbed(q: float, n_out: float) -> float:
    return floor(log(q) / log(1 - 1 / n_out)) + 1


def sla_ttft_matching(sla_tpot: float, ttft_1: float, delta_h: float) -> float:
    return -delta_h + sla_tpot + ttft_1


def break_even_output(n_params: float, kv_token: float, hbm_bw: float, flops: float) -> float:
    return 2 * hbm_bw * n_params / (flops * kv_token)


def break_even_output_growing(n_in: float, n_params: float, kv_token: float, hbm_bw: float, flops: float) -> float:
    return -n_in + sqrt(n_in**2 + 4 * hbm_bw * n_in * n_params / (flops * kv_token))


def cost_ratio(
    n_params: float,
    n_layers: float,
    d_att: float,
    kv_token: float,
    hbm_bw: float,
    flops: float,
    n_in: float,
    n_out: float,
) -> float:
    return hbm_bw * (2 * d_att * n_in * n_layers + 2 * n_params) / (flops * kv_token * n_out)


def cost_ratio_long(
    n_layers: float, d_att: float, kv_token: float, hbm_bw: float, flops: float, n_in: float, n_out: float
) -> float:
    return 4 * d_att * hbm_bw * n_in * n_layers / (flops * kv_token * n_out)


def cost_ratio_long_printed(
    n_params: float, kv_token: float, hbm_bw: float, flops: float, n_in: float, n_out: float
) -> float:
    return hbm_bw * n_in * sqrt(n_params) / (flops * sqrt(kv_token) * n_out)


def cost_ratio_short(n_params: float, kv_token: float, hbm_bw: float, flops: float, n_out: float) -> float:
    return 2 * hbm_bw * n_params / (flops * kv_token * n_out)


def chunk_budget(b: float, T: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    x0 = b * delta_h
    return ((sla_tpot - x0) / T) if (sla_tpot >= t_w + x0) else (0)


def chunk_size(b: float, n_in: float, n_out: float) -> float:
    return b * n_in / n_out


def chunk_size_full(b: float, n_in: float, n_out: float) -> float:
    return b * n_in / (n_out - 1)


def chunked_gain(delta_p: float, delta_h: float) -> float:
    return (delta_h + delta_p) / max(delta_h, delta_p)


def chunked_gain_mixed(b: float, n_out: float, t_w: float, delta_p: float, delta_h: float) -> float:
    x0 = b * delta_h
    x1 = b / n_out
    return (t_w * (1 - x1) + x0 + x1 * max(t_w, delta_p * n_out)) / (x0 + max(t_w, b * delta_p))


def chunked_gain_offbalance(b: float, chunk: float, pd_ratio: float, T: float, t_w: float, delta_h: float) -> float:
    x0 = min(b, chunk / pd_ratio)
    return (T * pd_ratio + delta_h + t_w / b) / (
        delta_h + t_w / x0 + pd_ratio * max(0, T * chunk - delta_h * x0 - t_w) / chunk
    )


def chunked_gain_offbalance_serial(
    b: float, chunk: float, pd_ratio: float, T: float, t_w: float, delta_h: float
) -> float:
    return (T * pd_ratio + delta_h + t_w / b) / (
        delta_h + t_w / min(b, chunk / pd_ratio) + pd_ratio * max(0, T * chunk - t_w) / chunk
    )


def chunked_gain_serial(b: float, t_w: float, delta_p: float, delta_h: float) -> float:
    return (b * (delta_h + delta_p) + t_w) / (b * delta_h + max(t_w, b * delta_p))


def chunked_gain_sla(delta_p: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    x0 = delta_h + delta_p
    return min(x0 / delta_h, x0 / (delta_p * (1 - t_w / sla_tpot)))


def chunked_gain_sla_serial(delta_p: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    return min((delta_h + delta_p) / delta_h, 1 / (1 - t_w / sla_tpot))


def chunked_gain_weights(b: float, t_w: float, delta_p: float, delta_h: float) -> float:
    return (b * (delta_h + delta_p) + t_w) / max(b * delta_p, b * delta_h + t_w)


def ttft_chunked(b: float, t_w: float, delta_p: float, delta_h: float) -> float:
    return max(b * delta_p, b * delta_h + t_w) / (b * delta_p)


def ttft_chunked_serial(b: float, t_w: float, delta_p: float, delta_h: float) -> float:
    return (b * delta_h + max(t_w, b * delta_p)) / (b * delta_p)


def hbm_read_time(hbm_bytes: float, hbm_bw: float) -> float:
    return hbm_bytes / hbm_bw


def pdd_balance(
    delta_p_gross: float, delta_h: float, t_w: float, n_out: float, prefill_units: float, decode_units: float
) -> float:
    return t_w / (1 - delta_h * prefill_units * (1 - 1 / n_out) / (decode_units * delta_p_gross))


def pdd_best_limit(delta_p: float, delta_h: float, t_w: float, n_out: float) -> float:
    x0 = 1 / n_out
    x1 = delta_p + t_w * x0
    x2 = 1 - x0
    x3 = -delta_h * x0 + delta_p
    x4 = delta_h * x2 * x3
    return t_w + (sqrt(delta_h) * sqrt(x2) * sqrt(x3) * sqrt(t_w * x1 + x1 * x3 + x4) + x4) / x1


def pdd_concurrency(sla_ttft: float, n_out: float, sla_tpot: float) -> float:
    return sla_ttft / (sla_tpot * (n_out - 1))


def pdd_concurrency_printed(sla_ttft: float, n_out: float, sla_tpot: float) -> float:
    return sla_ttft / (n_out * sla_tpot)


def pdd_gain(delta_p: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    x0 = sla_tpot - t_w
    return x0 * (delta_h + delta_p) * (delta_p + sla_tpot) / ((delta_p + x0) * (delta_h * sla_tpot + delta_p * x0))


def pdd_gain_integer(
    delta_p: float, delta_h: float, t_w: float, sla_tpot: float, prefill_units: float, decode_units: float
) -> float:
    return (
        (delta_h + delta_p)
        * min(decode_units / delta_h, prefill_units / (delta_p * (1 - t_w / sla_tpot)))
        / (decode_units + prefill_units)
    )


def pdd_gain_mixed(delta_p_gross: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    x0 = delta_h / (1 - t_w / sla_tpot)
    return max(x0, delta_h + delta_p_gross) / (delta_p_gross + x0)


def pdd_gain_per_cost(
    delta_p: float,
    delta_h: float,
    t_w: float,
    sla_tpot: float,
    flop_ratio: float,
    mbw_ratio: float,
    prefill_cost: float,
    decode_cost: float,
) -> float:
    x0 = t_w / sla_tpot
    x1 = 1 / mbw_ratio
    return (delta_h + delta_p) / (
        (1 - x0) * (decode_cost * delta_h * x1 / (-x0 * x1 + 1) + delta_p * prefill_cost / flop_ratio)
    )


def pdd_gain_pools(gpu_time: float, gpu_time_prefill: float, gpu_time_decode: float, prefill_gpus: float) -> float:
    return gpu_time * min(prefill_gpus / gpu_time_prefill, (1 - prefill_gpus) / gpu_time_decode)


def pdd_gain_same(delta_p: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float) -> float:
    x0 = 1 / n_out
    x1 = delta_h * x0
    x2 = delta_p - x1
    return (
        (delta_h + x2)
        * (sla_tpot + x2)
        / ((delta_h * (1 - x0) / (1 - t_w / sla_tpot) + delta_p + t_w * x0) * (delta_p + sla_tpot - t_w - x1))
    )


def pdd_gain_specialised(delta_p: float, delta_h: float, flop_ratio: float, mbw_ratio: float) -> float:
    return (delta_h + delta_p) / (delta_h / mbw_ratio + delta_p / flop_ratio)


def pdd_gain_specialised_printed(mbw_ratio: float) -> float:
    return mbw_ratio


def pdd_gain_talk(delta_p: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    return (delta_h + delta_p) / (delta_h + delta_p * (1 - t_w / sla_tpot))


def pdd_least_users(delta_p: float, delta_h: float, n_out: float, prefill_units: float, decode_units: float) -> float:
    return (decode_units + prefill_units) / (
        1 - delta_h * prefill_units / (decode_units * (-delta_h / n_out + delta_p))
    )


def pdd_split(delta_p_gross: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float) -> float:
    return delta_p_gross * (1 - t_w / sla_tpot) / (delta_h * (1 - 1 / n_out))


def pdd_split_printed(delta_p: float, delta_h: float) -> float:
    return delta_p / delta_h


def transfer_bandwidth(rate: float, n_in: float, kv_token: float) -> float:
    return kv_token * n_in * rate


def masking_speedup(delta_p: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float) -> float:
    return delta_p / (delta_h / (1 - t_w / sla_tpot) - t_w / n_out)


def offload_gain_chunked(delta_p: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float, x: float) -> float:
    x0 = delta_h + delta_p
    return min(x0 / delta_h, x0 / ((1 - t_w / sla_tpot) * (delta_p / x + t_w / n_out)))


def offload_gain_chunked_serial(
    delta_p: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float, x: float
) -> float:
    x0 = delta_h + delta_p
    return min(x0 / delta_h, x0 / ((1 - t_w / sla_tpot) * (delta_h + delta_p / x + t_w / n_out)))


def offload_gain_pdd(delta_p: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float, x: float) -> float:
    x0 = 1 / n_out
    x1 = delta_h * x0
    x2 = delta_p - x1
    return (
        (delta_h + x2)
        * (sla_tpot + x2)
        / ((delta_h * (1 - x0) / (1 - t_w / sla_tpot) + delta_p / x + t_w * x0) * (delta_p + sla_tpot - t_w - x1))
    )


def unit_time_aggregated(delta_p: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    return (delta_h + delta_p) / (1 - t_w / sla_tpot)


def unit_time_aggregated_full(delta_p: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float) -> float:
    x0 = delta_h / n_out
    x1 = delta_p - x0
    return (delta_h + x1) * (sla_tpot + x1) / (delta_p + sla_tpot - t_w - x0)


def unit_time_chunked(delta_p: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    return max(delta_p, delta_h / (1 - t_w / sla_tpot))


def unit_time_chunked_serial(delta_p: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    return max(delta_h + delta_p, delta_h / (1 - t_w / sla_tpot))


def unit_time_disaggregated(delta_p: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    return delta_h / (1 - t_w / sla_tpot) + delta_p


def unit_time_disaggregated_same(delta_p: float, delta_h: float, t_w: float, sla_tpot: float, n_out: float) -> float:
    x0 = 1 / n_out
    return delta_h * (1 - x0) / (1 - t_w / sla_tpot) + delta_p + t_w * x0


def rate_bound(delta_p: float, n_out: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    return 1 / (delta_h * (n_out - 1) / (1 - t_w / sla_tpot) + delta_p * n_out)


def rate_bound_serial(delta_p_gross: float, n_out: float, delta_h: float, t_w: float, sla_tpot: float) -> float:
    x0 = delta_h * (n_out - 1)
    return 1 / max(delta_p_gross * n_out + x0, x0 / (1 - t_w / sla_tpot))


def kept_share(turn_gap: float, kept: float) -> float:
    return 1 - exp(-kept / turn_gap)


def users_border(kv_capacity: float, brought: float, again: float) -> float:
    return kv_capacity / (again + brought)


def working_set(users: float, brought: float, again: float, turn_gap: float, kept: float) -> float:
    x0 = kept / turn_gap
    return users * (again * (1 - exp(-x0)) + brought * x0)


def break_even_reads(write: float, e: float) -> float:
    return write / (1 - 1 / e)


def held_share(kv_capacity: float, users: float, again: float, brought: float, served: float, think: float) -> float:
    x0 = kv_capacity / (users * (again + brought))
    return max(0, min(1, -served * (1 - x0) / think + x0))


def link_rate(again: float, R: float) -> float:
    return 1 / (R * again)


def prefill_left(missed: float, missed_without: float, loaded: float, e: float, write: float) -> float:
    return (missed * (write + 1) + loaded / e) / missed_without


def store_gain(prompt_share: float, left: float) -> float:
    return 1 / (-prompt_share * (1 - left) + 1)


def turn_rate(users: float, turn_away: float, turn_busy: float, n_out: float, t_w: float) -> float:
    x0 = turn_busy * users
    x1 = n_out * t_w + turn_away + x0
    return 2 * users / (x1 + sqrt(-4 * turn_away * x0 + x1**2))


def users_collapse(kv_capacity: float, again: float, brought: float, think: float, rate: float) -> float:
    return kv_capacity / (again + brought) + rate * think


def allreduce_time(sum_bytes: float, tp: float, link_bw: float) -> float:
    return sum_bytes * (2 - 2 / tp) / link_bw


def attention_time(
    n_layers: float, d_att: float, n_in: float, cached: float, flops: float, eff_compute: float
) -> float:
    return 4 * d_att * n_in * n_layers * (cached + (1 / 2) * n_in) / (eff_compute * flops)


def decode_share(t_w: float, t_c: float) -> float:
    return t_c / sqrt(t_c**2 + t_w**2)


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
