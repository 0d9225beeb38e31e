"""The lines of Python that make the same plan as fields of the planner's page."""

from __future__ import annotations

from inference_math_book.explore.form import Candidate, Fields, layout_told, pooled_of


def as_python(one: Candidate, usual_link: str) -> str:
    """Return lines of Python that make the same plan, and the same fleet if there is one."""
    given = one.given
    mixed = given["lengths"] not in ["fixed", "geometric"]
    lines = ["import inference_math_planner as planner", "from inference_math import SLA, Unit, Workload"]
    if mixed:
        lines.append("from inference_math_planner.fleets.mixes import mix")
    lines.append("from inference_math.catalogue.links import link")
    lines.append("from inference_math.catalogue.tiers import Tier, tier")
    stored = float(given["stored"]) / 100
    alpha = [f"alpha={stored}"] if stored > 0 else []
    lines.extend(["", "unit = Unit.of(" + unit_args(given) + ")"])
    if mixed:
        named = [f'"{given["lengths"]}"']
        named.extend(alpha)
        lines.append("requests = mix(" + ", ".join(named) + ")")
    sent = [given["prompt"], given["output"]]
    sent.extend(alpha)
    sent.extend(['lengths="geometric"'] if given["lengths"] == "geometric" else [])
    limits = [str(one.problem.ttft), str(one.problem.tpot)]
    limits.extend([f"quantile={one.problem.quantile}"] if one.problem.quantile > 0 else [])
    planned = ["unit", "Workload.from_trace(requests)" if mixed else "Workload(" + ", ".join(sent) + ")"]
    planned.append("SLA(" + ", ".join(limits) + ")")
    planned.extend(plan_args(one, usual_link))
    lines.extend(["found = planner.plan(" + ", ".join(planned) + ")", "print(found)"])
    if given["goal"] != "unit":
        lines.append("print(planner." + fleet_call(given, mixed) + ")  # with queues, simulated")
    return "\n".join(lines) + "\n"


def unit_args(given: Fields) -> str:
    """Return the arguments of `Unit.of`."""
    args = [f'"{given["model"]}", "{given["gpu"]}", {given["tp"]}, "{given["weights"]}", "{given["kv"]}"']
    args.append(f'"{given["engine"]}"')
    layout = layout_told(given, int(given["tp"]))
    sizes = {"ep": layout.ep, "dp": layout.dp, "pp": layout.pp}
    for name in sizes:
        if sizes[name] > 1:
            args.append(f"{name}={sizes[name]}")
    if given["imbalance"] != "":
        args.append(f"expert_imbalance={given['imbalance']}")
    if int(given["drafts"]) > 0:
        accepted = float(given["accepted"]) / 100
        args.append(f"drafts={given['drafts']}, accepted={accepted}")
    return ", ".join(args)


def plan_args(one: Candidate, usual_link: str) -> list[str]:
    """Return what `plan` is told beside unit, workload and limits."""
    given, args = one.given, [f"units={one.problem.units}"]
    if given["tier"] != "hbm":
        own = f"tier=Tier.of_bandwidth({given['store']}e9)"
        args.append(own if given["tier"] == "own" else f'tier=tier("{given["tier"]}")')
    if given["front"] != "":
        args.append(f"front={one.problem.front}")
    if given["link"] != usual_link:
        args.append(f'link=link("{given["link"]}")')
    for name in ["sessions", "price"]:
        if float(given[name]) > 0:
            args.append(f"{name}={given[name]}")
    pools = pooled_of(given)
    for i in range(len(pools)):
        layout = layout_told(pools[i], int(pools[i]["tp"]))
        name = "decode" if i > 0 else "prefill"
        args.append(f"{name}=unit.resized(tp={layout.tp}, dp={layout.dp}, ep={layout.ep}, pp={layout.pp})")
    for pool in one.problem.pools:
        args.append(f"pool_units={pool.units}")
    return args


def fleet_call(given: Fields, mixed: bool) -> str:
    """Return the call that sizes a fleet of a plan, or says what its GPUs serve."""
    args = ["found", given["have"] if given["goal"] == "have" else given["traffic"]]
    if given["promise"] != "usual":
        args.append("quantile=None" if given["promise"] == "means" else f"quantile={given['promise']}")
    come = [f"cv_arrivals={given['arrivals']}"] if given["arrivals"] != "1" else []
    come.extend(["mix=requests"] if mixed else [])
    if len(come) > 0:
        args.append("arrivals=planner.Arrivals(" + ", ".join(come) + ")")
    return ("capacity(" if given["goal"] == "have" else "fleet(") + ", ".join(args) + ")"
