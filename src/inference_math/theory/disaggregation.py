"""Prefill and decode on different units (claims C26–C29, C33).

All at an equal limit S on TPOT. The weights are read in every decode step, so a decode unit holds
(S − t_w)/ΔH requests and spends the share u = 1 − t_w/S of its time on their KV caches.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK, A, D
from inference_math.theory.formula import Formula
from inference_math.theory.notation import (
    decode_cost,
    decode_units,
    delta_h,
    delta_p,
    flop_ratio,
    hbm_bw,
    hbm_bytes,
    kv_token,
    mbw_ratio,
    n_in,
    n_out,
    prefill_cost,
    prefill_units,
    rate,
    sla_tpot,
    sla_ttft,
    t_w,
)

__all__ = [
    "hbm_read_time",
    "pdd_concurrency",
    "pdd_gain",
    "pdd_gain_integer",
    "pdd_gain_per_cost",
    "pdd_gain_same",
    "pdd_gain_specialised",
    "pdd_gain_specialised_printed",
    "pdd_gain_talk",
    "pdd_split",
    "pdd_split_printed",
    "transfer_bandwidth",
]

_both = delta_p + delta_h
_u = 1 - t_w / sla_tpot
_room = sla_tpot - t_w  # what a step has for KV reads
_u_decode = 1 - t_w / (mbw_ratio * sla_tpot)  # the decode GPU reads the weights faster, too
_above_weights = sla_tpot > t_w

pdd_split = Formula(
    name="pdd_split",
    arguments=(delta_p, delta_h, t_w, sla_tpot),
    expr=_u * delta_p / delta_h,
    latex_name=r"n_{p}/n_{d}",
    unit="1",
    claim="C26",
    source=BOOK,
    meaning="prefill units for each decode unit that keep both pools busy",
    domain=_above_weights,
)
pdd_split_printed = Formula(
    name="pdd_split_printed",
    arguments=(delta_p, delta_h),
    expr=delta_p / delta_h,
    latex_name=r"(n_{p}/n_{d})_{\mathrm{printed}}",
    unit="1",
    claim="C26",
    source=A,
    meaning="the same as printed: right where reading the weights takes no time",
)
pdd_gain = Formula(
    name="pdd_gain",
    arguments=(delta_p, delta_h, t_w, sla_tpot),
    expr=_both * (sla_tpot + delta_p) * _room / ((_room + delta_p) * (delta_p * _room + delta_h * sla_tpot)),
    latex_name=r"G_{\mathrm{PDD}}",
    unit="1",
    claim="C27",
    source=BOOK,
    meaning="gain of disaggregation over aggregated serving at an equal limit on mean TPOT, where a prefill unit hides "
    "the weight read under its prompts and the aggregated unit hides nothing",
    domain=_above_weights,
)
pdd_gain_same = Formula(
    name="pdd_gain_same",
    arguments=(delta_p, delta_h, t_w, sla_tpot, n_out),
    expr=_both / (_u * (delta_p + t_w / n_out) + delta_h),
    latex_name=r"G_{\mathrm{PDD}}^{\mathrm{same}}",
    unit="1",
    claim="C27",
    source=BOOK,
    meaning="the same on the same hardware, one prompt at a time: a prefill unit reads the weights for each, too",
    domain=_above_weights,
)
pdd_gain_talk = Formula(
    name="pdd_gain_talk",
    arguments=(delta_p, delta_h, t_w, sla_tpot),
    expr=_both / (_u * delta_p + delta_h),
    latex_name=r"\overline{G}_{\mathrm{PDD}}",
    unit="1",
    claim="C27",
    source=BOOK,
    meaning="the same with the talk's aggregated batch, (S − t_w)/(ΔP + ΔH): nearly equal for larger batches",
    domain=_above_weights,
)
pdd_gain_integer = Formula(
    name="pdd_gain_integer",
    arguments=(delta_p, delta_h, t_w, sla_tpot, prefill_units, decode_units),
    expr=_both * sp.Min(prefill_units / (_u * delta_p), decode_units / delta_h) / (prefill_units + decode_units),
    latex_name=r"\overline{G}_{\mathrm{PDD}}(n_{p}, n_{d})",
    unit="1",
    claim="C27",
    source=BOOK,
    meaning="the same for pools of given sizes, of which the slower one counts",
    domain=_above_weights,
)
pdd_gain_specialised = Formula(
    name="pdd_gain_specialised",
    arguments=(delta_p, delta_h, flop_ratio, mbw_ratio),
    expr=_both / (delta_p / flop_ratio + delta_h / mbw_ratio),
    latex_name=r"G_{f,m}",
    unit="1",
    claim="C28",
    source=BOOK,
    meaning="gain of special GPUs for each pool, weight read neglected: a weighted harmonic mean of both ratios",
)
pdd_gain_specialised_printed = Formula(
    name="pdd_gain_specialised_printed",
    arguments=(mbw_ratio,),
    expr=mbw_ratio,
    latex_name=r"G_{f,m}^{\mathrm{printed}}",
    unit="1",
    claim="C28",
    source=A,
    meaning="the same as printed: FLOP/s stands on both sides and cancels",
)
pdd_gain_per_cost = Formula(
    name="pdd_gain_per_cost",
    arguments=(delta_p, delta_h, t_w, sla_tpot, flop_ratio, mbw_ratio, prefill_cost, decode_cost),
    expr=_both / (_u * (prefill_cost * delta_p / flop_ratio + decode_cost * delta_h / (mbw_ratio * _u_decode))),
    latex_name=r"G_{f,m}/\mathrm{cost}",
    unit="1",
    claim="C28",
    source=BOOK,
    meaning="gain of special GPUs per price or per watt, with the weight read",
    domain=sp.And(_above_weights, mbw_ratio * sla_tpot > t_w),
)
hbm_read_time = Formula(
    name="hbm_read_time",
    arguments=(hbm_bytes, hbm_bw),
    expr=hbm_bytes / hbm_bw,
    latex_name=r"t_{\mathrm{HBM}}",
    unit="s",
    claim="C27",
    source=BOOK,
    meaning="time to read all of HBM once: the longest decode step that reads each byte once and is bound by bandwidth",
)
pdd_concurrency = Formula(
    name="pdd_concurrency",
    arguments=(sla_ttft, n_out, sla_tpot),
    expr=sla_ttft / (n_out * sla_tpot),
    latex_name=r"B_{p}/B_{d}",
    unit="1",
    claim="C29",
    source=A,
    meaning="requests in prefill for each request in decode, when both phases take all of their limit",
)
transfer_bandwidth = Formula(
    name="transfer_bandwidth",
    arguments=(rate, n_in, kv_token),
    expr=rate * n_in * kv_token,
    latex_name=r"\mathrm{BW}_{\mathrm{transfer}}",
    unit="byte/s",
    claim="C33",
    source=D,
    meaning="bandwidth that carries the KV caches of all prompts from prefill to decode",
)
