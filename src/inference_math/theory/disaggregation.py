"""Prefill and decode on different units (claims C26–C29, C33).

All at an equal limit S on TPOT, which a request alone keeps: S ≥ t_w + ΔH. The weights are read in every decode step,
so a decode unit holds (S − t_w)/ΔH requests and spends the share u = 1 − t_w/S of its time on their KV caches. An
answer takes N_out − 1 decodes, for its first token is the prompt's.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory._talks import A, D
from inference_math.theory.formula import formula
from inference_math.theory.notation import (
    decode_units,
    delta_h,
    delta_p,
    delta_p_gross,
    mbw_ratio,
    n_out,
    prefill_units,
    sla_tpot,
    t_w,
)
from inference_math.theory.unit_time import (
    OWN,
    aggregated,
    own,
    unit_time_chunked_serial,
    unit_time_disaggregated,
    unit_time_disaggregated_same,
)

_u = 1 - t_w / sla_tpot
_fits = sla_tpot >= t_w + delta_h  # a decode, under the limit
_decodes = sp.And(_fits, n_out > 1)
_reads = (1 - 1 / n_out) * delta_h  # of a token, N_out − 1 of which are decoded
_much_prefill = decode_units * delta_p_gross > prefill_units * _reads  # else prefill idles at every limit
_much_net = decode_units * OWN[own] > prefill_units * delta_h
_d, _h = sp.symbols("delta H", positive=True)
_BEST = {_d: OWN[own], delta_p_gross: delta_p + t_w / n_out, _h: _reads}


@formula(r"n_{p}/n_{d}", claim="C26", domain=_decodes)
def pdd_split(delta_p_gross, delta_h, t_w, sla_tpot, n_out):
    """Prefill units for each decode unit that keep both pools busy."""
    return _u * delta_p_gross / _reads


@formula(r"(n_{p}/n_{d})_{\mathrm{printed}}", claim="C26", source=A)
def pdd_split_printed(delta_p, delta_h):
    """The same as printed: right where reading the weights takes no time."""
    return delta_p / delta_h


@formula(r"G_{\mathrm{PDD}}", claim="C27", domain=_fits)
def pdd_gain(delta_p, delta_h, t_w, sla_tpot):
    """Gain of disaggregated over aggregated serving at an equal limit on mean TPOT, where a prefill unit hides the
    weight read under its prompts and the aggregated unit hides nothing.
    """
    room = sla_tpot - t_w  # what a step has for KV reads
    both = (delta_p + delta_h) * (sla_tpot + delta_p) * room
    return both / ((room + delta_p) * (delta_p * room + delta_h * sla_tpot))


@formula(r"G_{\mathrm{PDD}}^{\mathrm{same}}", claim="C27", domain=_decodes, where=OWN)
def pdd_gain_same(delta_p, delta_h, t_w, sla_tpot, n_out):
    """The same on the same hardware, one prompt at a time: a prefill unit reads the weights for each, too. Above 1
    exactly where the limit less the weight read is above ΔH and below (1 − 1/N_out)(N_out ΔP − ΔH).
    """
    return aggregated / unit_time_disaggregated_same.expr


@formula(r"S^{*}", unit="s", claim="C27", domain=sp.And(n_out > 1, (n_out - 1) * OWN[own] > delta_h), where=_BEST)
def pdd_best_limit(delta_p, delta_h, t_w, n_out):
    """Limit on TPOT at which pools of the same hardware gain most, where they gain at any."""
    return t_w + (_d * _h + sp.sqrt(_d * _h * (_d * _h + (_d + t_w) * delta_p_gross))) / delta_p_gross


@formula(r"\overline{G}_{\mathrm{PDD}}", claim="C27", domain=_fits)
def pdd_gain_talk(delta_p, delta_h, t_w, sla_tpot):
    """The same with the talk's aggregated batch, (S − t_w)/(ΔP + ΔH): nearly equal for larger batches."""
    return (delta_p + delta_h) / (_u * delta_p + delta_h)


@formula(r"\overline{G}_{\mathrm{PDD}}(n_{p}, n_{d})", claim="C27", domain=_fits)
def pdd_gain_integer(delta_p, delta_h, t_w, sla_tpot, prefill_units, decode_units):
    """The same for pools of given sizes, of which the slower one counts."""
    slower = sp.Min(prefill_units / (_u * delta_p), decode_units / delta_h)
    return (delta_p + delta_h) * slower / (prefill_units + decode_units)


@formula(r"G_{\mathrm{PDD}}^{\mathrm{mixed}}", claim="C27", domain=_fits)
def pdd_gain_mixed(delta_p_gross, delta_h, t_w, sla_tpot):
    """The same over mixed steps whose chunks hide the weight read, all prompts by their gross time: never above 1."""
    return (unit_time_chunked_serial.expr / unit_time_disaggregated.expr).subs(delta_p, delta_p_gross)


@formula(r"S(n_{p}, n_{d})", unit="s", claim="C26", domain=_much_prefill)
def pdd_balance(delta_p_gross, delta_h, t_w, n_out, prefill_units, decode_units):
    """TPOT at which pools of given sizes are both busy; where users are faster, the prefill pool idles."""
    return t_w / (1 - prefill_units * _reads / (decode_units * delta_p_gross))


@formula(r"B_{\min}", claim="C27", domain=_much_net, where=OWN)
def pdd_least_users(delta_p, delta_h, n_out, prefill_units, decode_units):
    """Users from which pools serve more than as many units with whole prompts that are as fast for a user, if prefill
    keeps up and decodes spread evenly; with fewer users than units they serve less.
    """
    return (prefill_units + decode_units) / (1 - prefill_units * delta_h / (decode_units * own))


@formula(r"G_{\mathrm{pools}}", claim="C28")
def pdd_gain_pools(gpu_time, gpu_time_prefill, gpu_time_decode, prefill_gpus):
    """Gain of pools that each have a layout of their own and a given share of the GPUs: the slower pool counts."""
    return gpu_time * sp.Min(prefill_gpus / gpu_time_prefill, (1 - prefill_gpus) / gpu_time_decode)


@formula(r"G_{f,m}", claim="C28")
def pdd_gain_specialised(delta_p, delta_h, flop_ratio, mbw_ratio):
    """Gain of special GPUs for each pool, weight read neglected: a weighted harmonic mean of both ratios."""
    return (delta_p + delta_h) / (delta_p / flop_ratio + delta_h / mbw_ratio)


@formula(r"G_{f,m}^{\mathrm{printed}}", claim="C28", source=A)
def pdd_gain_specialised_printed(mbw_ratio):
    """The same as printed: FLOP/s stands on both sides and cancels."""
    return mbw_ratio


@formula(r"G_{f,m}/\mathrm{cost}", claim="C28", domain=sp.And(_fits, mbw_ratio * sla_tpot >= t_w + delta_h))
def pdd_gain_per_cost(delta_p, delta_h, t_w, sla_tpot, flop_ratio, mbw_ratio, prefill_cost, decode_cost):
    """Gain of special GPUs per price or per watt, with the weight read."""
    u_decode = 1 - t_w / (mbw_ratio * sla_tpot)  # the decode GPU reads the weights faster, too
    cost = prefill_cost * delta_p / flop_ratio + decode_cost * delta_h / (mbw_ratio * u_decode)
    return (delta_p + delta_h) / (_u * cost)


@formula(r"t_{\mathrm{HBM}}", unit="s", claim="C27", given="Definition: a bandwidth is bytes over their time")
def hbm_read_time(hbm_bytes, hbm_bw):
    """Time to read all of HBM once: the longest decode step that reads each byte once and is bound by bandwidth."""
    return hbm_bytes / hbm_bw


@formula(r"B_{p}/B_{d}", claim="C29", domain=n_out > 1)
def pdd_concurrency(sla_ttft, n_out, sla_tpot):
    """Requests in prefill for each request in decode, when both phases take all of their limit."""
    return sla_ttft / ((n_out - 1) * sla_tpot)


@formula(r"(B_{p}/B_{d})_{\mathrm{printed}}", claim="C29", source=A)
def pdd_concurrency_printed(sla_ttft, n_out, sla_tpot):
    """The same as printed: every token of an answer takes a decode."""
    return sla_ttft / (n_out * sla_tpot)


@formula(r"\mathrm{BW}_{\mathrm{transfer}}", unit="byte/s", claim="C33", source=D)
def transfer_bandwidth(rate, n_in, kv_token):
    """Bandwidth that carries the KV caches of all prompts from prefill to decode."""
    return rate * n_in * kv_token
