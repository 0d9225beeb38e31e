"""Settings of the planner's form, and what the package makes of them."""

import random
from dataclasses import fields
from functools import cache

from msgspec import convert, to_builtins

from inference_math import SLA, Unit, Workload, catalogue
from inference_math.catalogue.links import link, links
from inference_math.catalogue.tiers import Tier, tier, tiers
from inference_math.optimiser.case import Case
from inference_math.unit.kernels import kernels
from inference_math_book.explore.browser import data
from inference_math_book.explore.form import Known
from inference_math_book.explore.packing import unpack
from inference_math_planner import plan
from inference_math_planner.fleets.mixes import MIXES, mix

__all__ = ["DEFAULT", "as_fields", "case_of", "known", "planned", "settings", "unit_of"]

DEFAULT = {
    "model": "llama-3-70b", "gpu": "h100-sxm", "tp": "2", "weights": "fp8", "kv": "bf16", "engine": "vllm",
    "prompt": "2200", "output": "170", "stored": "0", "ttft": "400", "tpot": "40", "traffic": "40", "tier": "hbm",
    "promise": "usual", "lengths": "fixed", "units": "8", "price": "2.5", "dp": "1", "pp": "1", "experts": "split",
    "store": "12.8", "goal": "serve", "have": "16", "arrivals": "1",
    "drafts": "0", "accepted": "80", "link": "rdma", "sessions": "0", "front": "", "prices": "",
    "imbalance": "", "prefill": "",
}  # fmt: skip


def as_fields(given):
    """Return the settings as the form's script has them."""
    return {"pooled": [], **given}


@cache
def known():
    """Return what the page is sent, as its questions take it."""
    sent = data()
    unpack(sent)
    sent["kernels"] = to_builtins(kernels())  # without fields that only some of them have
    return convert({name: sent[name] for name in Known.__struct_fields__}, Known, strict=False)


def unit_of(given):
    tp, dp, pp = (int(given[name]) for name in ("tp", "dp", "pp"))
    return Unit.of(
        given["model"], given["gpu"], tp, given["weights"], given["kv"], given["engine"], dp=dp, pp=pp,
        ep=tp * dp if given["experts"] == "whole" else 1, drafts=int(given["drafts"]),
        accepted=float(given["accepted"]) / 100,
        expert_imbalance=float(given["imbalance"]) if given["imbalance"] else None,
    )  # fmt: skip


def prefill_of(given):
    """Return a prefill unit of its own layout, "TP 1, DP 8, EP 8" for example; None where none is named."""
    if not given["prefill"]:
        return None
    sizes = dict(part.lower().split() for part in given["prefill"].split(", "))
    return unit_of(given | {"tp": sizes["tp"], "dp": sizes.get("dp", "1"), "pp": "1",
                            "experts": "whole" if "ep" in sizes else "split"})  # fmt: skip


def stored_in(given):
    if given["tier"] == "own":
        return Tier.of_bandwidth(1e9 * float(given["store"]))
    return None if given["tier"] == "hbm" else tier(given["tier"])


def case_of(given):
    """Return what the settings of the form ask."""
    stored = float(given["stored"]) / 100
    if given["lengths"] in MIXES:
        work = Workload.from_trace(mix(given["lengths"], stored))
    else:
        work = Workload(float(given["prompt"]), float(given["output"]), stored, given["lengths"])
    quantile = float(given["promise"]) if given["goal"] == "unit" and given["promise"][0] == "0" else None
    sla = SLA(float(given["ttft"]) / 1000, float(given["tpot"]) / 1000, quantile)
    return Case(
        unit_of(given), work, sla, units=int(given["units"]), tier=stored_in(given),
        price=float(given["price"]) or None, link=link(given["link"]),
        front=float(given["front"]) / 1000 if given["front"] else None, prefill=prefill_of(given),
    )  # fmt: skip


def planned(given):
    """Return the package's plan for the settings of the form."""
    return plan(**{field.name: getattr(case_of(given), field.name) for field in fields(Case)})


def settings(count):
    """Yield settings that are units."""
    rng, found = random.Random(7), 0
    pick = {
        "model": list(catalogue.MODELS), "gpu": list(catalogue.GPUS), "tp": ["1", "2", "4", "8"],
        "weights": ["bf16", "fp8", "fp8", "nvfp4", "mxfp4", "int4"], "kv": ["bf16", "fp8"],
        "engine": ["vllm", "trtllm", "sglang"],
        "tier": ["hbm", "own", *(name for name in tiers() if name != "hbm")],
        "store": ["0.5", "12.8", "300"], "goal": ["serve", "unit"], "promise": ["usual", "0.9", "0.99"],
        "lengths": ["fixed", "geometric"], "units": ["2", "8", "13"], "price": ["2.5", "9"],
        "dp": ["1", "1", "1", "2", "4"], "pp": ["1", "1", "1", "2"], "experts": ["split", "split", "whole"],
        "drafts": ["0", "0", "0", "1", "3"], "accepted": ["0", "80", "100"], "link": list(links()),
        "prefill": ["", "", "", "TP 1", "TP 4", "TP 1, DP 4, EP 4", "TP 8, EP 8"],
        "front": ["", "", "0", "25"], "imbalance": ["", "0", "1.5"],
    }  # fmt: skip
    while found < count:
        given = DEFAULT | {name: rng.choice(values) for name, values in pick.items()}
        given |= {
            "prompt": f"{10 ** rng.uniform(0, 4.6):.0f}", "output": f"{10 ** rng.uniform(0.4, 3.5):.0f}",
            "stored": rng.choice(["0", "50", "87.5", "100"]), "ttft": f"{10 ** rng.uniform(1.5, 4):.0f}",
            "tpot": f"{10 ** rng.uniform(0.8, 2.3):.1f}",
        }  # fmt: skip
        model = catalogue.model(given["model"])
        if not model.is_mixture:
            given["imbalance"] = ""
        if model.context and float(given["prompt"]) + float(given["output"]) > model.context:
            continue  # which the page and the command line refuse
        try:
            case_of(given).checked()
        except ValueError:
            continue
        found += 1
        yield given
