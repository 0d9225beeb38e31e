"""What the fields of the planner's page ask, as the package's own question; or what is wrong with them.

Fields are texts by their names, `tp` "auto" or a number; `pooled` has those of both pools, where a search laid them out
apart. What is wrong is a part with the `field` that it is about, `fixes`, changes of fields that may mend it, where
`whole` says so a sentence of its own, and `short`, what a table says.
"""

from __future__ import annotations

from typing import Any

from inference_math.catalogue.engines import EngineRecord
from inference_math.catalogue.naming import near
from inference_math.evidence.records import Record
from inference_math.optimiser.answers import halves, numbers_of, pools_served, under, undrafted
from inference_math.optimiser.question import Service, laid_apart, problem_of
from inference_math.optimiser.types import Solution
from inference_math.unit.deployed import (
    Deployment,
    ServedModel,
    ServingGpu,
    deployment_numbers,
    ranges_of,
    score_key_of,
    unfit,
    units_within,
)
from inference_math.unit.mixing import by_operators, coefficient_key_of, drawn, fitted, front_levels, fronted, own_root
from inference_math.unit.problem import scattered_over, sessions_overflow
from inference_math.unit.scope import crowding, extra_log_sd, missing, outside, too_long, wider
from inference_math.unit.steps import longest_request
from inference_math.unit.types import (
    CoefficientValues,
    ComparisonError,
    DrawnCoefficients,
    ErrorRow,
    Kernels,
    Layout,
    Message,
    MixedEffects,
    Operators,
    Pools,
    Problem,
    Scope,
    Shape,
)
from inference_math.workload.lengths import geometric_cv, trace_means
from inference_math.workload.requests import Workload
from inference_math_planner.answers.cautions import CENTRE, Decided
from inference_math_planner.answers.notes import excess, provenance_of
from inference_math_planner.answers.ways import with_changes
from inference_math_planner.fleets.goodput import stored_of
from inference_math_planner.fleets.tries import best_pairs, layouts_fitting

Fields = dict[str, Any]


class KnownModel(Record):
    """A model of the catalogue: its shape by the number of GPUs that share a matrix, and how it is stored."""

    name: str
    kind: str
    stored: str
    stored_kv: str
    context: int
    operators: Operators
    shapes: dict[str, Shape]


class Known(Record):
    """What the page is sent that its questions need; see `browser.data`."""

    models: dict[str, KnownModel]
    gpus: dict[str, ServingGpu]
    engines: dict[str, EngineRecord]
    usual: dict[str, dict[str, list[int]]]
    habits: dict[str, Any]
    links: dict[str, dict[str, Any]]
    tiers: dict[str, dict[str, Any]]
    mixes: dict[str, dict[str, Any]]
    fronts: dict[str, CoefficientValues]
    handover: float
    comparisons: dict[str, ComparisonError]
    levels: MixedEffects
    kernels: Kernels
    operators: dict[str, dict[str, Any]]
    scopes: dict[str, Scope]
    coefficients: list[str]
    widths: dict[str, float]
    errors: list[ErrorRow]
    normals: list[list[float]]
    looked: int


class Centred(Record):
    """A calibration: coefficients with an anchor, the root of their covariance, what they leave, where they hold."""

    mode: str
    found: CoefficientValues
    root: list[list[float]]
    spread: float
    scope: Scope


class Candidate(Record):
    """What is asked by some fields, and what its numbers rest on."""

    given: Fields
    of: Deployment
    centred: Centred
    problem: Problem


class Sought(Record):
    """Fields of the layouts to try; where there are none, what is `wrong`, of too few GPUs before all else."""

    tried: list[Fields]
    wrong: list[Message]


def layout_told(given: Fields, tp: int) -> Layout:
    """Return the layout that fields tell, of so many GPUs for each group of attention."""
    dp = int(given["dp"])
    return Layout(tp=tp, ep=tp * dp if given["experts"] == "whole" else 1, dp=dp, pp=int(given["pp"]))


def deployed(given: Fields, known: Known) -> Deployment:
    """Return what serves: of a layout that is to be searched as on one GPU."""
    model, engine = known.models[given["model"]], known.engines[given["engine"]]
    own = engine.like if engine.like != "" else given["engine"]
    tp = given["tp"] if given["tp"] in model.shapes else "1"
    return Deployment(
        model=ServedModel(
            name=model.name, kind=model.kind, stored_kv=model.stored_kv, context=model.context,
            operators=model.operators, shape=model.shapes[tp],
        ),
        gpu=known.gpus[given["gpu"]], engine=engine, called=given["engine"], kernels=own, age=own,
        layout=layout_told(given, int(tp)),
        weights=given["weights"], kv=given["kv"], memory=0.0, tokens=known.usual[given["engine"]][given["gpu"]][0],
        drafts=int(given["drafts"]), accepted=float(given["accepted"]) / 100,
        imbalance=float(given["imbalance"]) if given["imbalance"] != "" else -1.0,
    )  # fmt: skip


def centred(of: Deployment, known: Known) -> Centred:
    """Return the calibration that stands nearest, as `nearest.select_calibration` chooses it."""
    stands = {"gpu": of.gpu.like, "generation": of.gpu.generation, "weights": of.weights, "kv": of.kv}
    at = coefficient_key_of(of.age, of.kernels, stands, of.layout.tp * of.layout.dp, of.model.operators)
    if by_operators(of.engine.kernels, at.levels):
        own = known.operators[of.kernels]
        values = own["found"].copy()
        values["anchor"] = 0.0
        return Centred(
            mode="zero-shot", found=values, root=own["root"], spread=own["spread"], scope=known.scopes["operators"]
        )
    fit = fitted(known.levels, known.kernels, known.scopes, at)
    if of.imbalance >= 0:
        fit.found["expert_imbalance"] = of.imbalance
        fit.widths["expert_imbalance"] = 0.0
    fit.found["anchor"] = 0.0
    root = own_root(known.coefficients, fit.widths)
    return Centred(mode="served", found=fit.found, root=root, spread=fit.spread, scope=fit.scope)


def sent(given: Fields, known: Known) -> Workload:
    """Return what is sent: recorded requests by their own means, or means."""
    alpha, n_out = float(given["stored"]) / 100, float(given["output"])
    if given["lengths"] not in known.mixes:
        cv = 0.0 if given["lengths"] == "fixed" else geometric_cv(n_out)
        return Workload(n_in=float(given["prompt"]), n_out=n_out, alpha=alpha, lengths=given["lengths"], cv=cv)
    means = trace_means(recorded(given, known))
    return Workload(
        n_in=means["n_in"], n_out=means["n_out"], alpha=means["alpha"], lengths="geometric",
        longest=means["longest"], pairing=means["pairing"], cv=geometric_cv(means["n_out"]),
    )  # fmt: skip


def recorded(given: Fields, known: Known) -> list[list[float]]:
    """Return the requests of a mix as [prompt, answer, stored]; none of lengths that are no mix's."""
    alpha = float(given["stored"]) / 100
    rows = known.mixes[given["lengths"]]["rows"] if given["lengths"] in known.mixes else []
    return [[row[0], row[1], stored_of(row[0], alpha)] for row in rows]


def serving(given: Fields, of: Deployment, gpus: int, known: Known) -> Service:
    """Return under what units of so many GPUs serve."""
    alone = given["goal"] == "unit" and given["promise"] not in ["usual", "means"]
    front, sd = float(given["front"]) / 1000 if given["front"] != "" else 0.0, 0.0
    if given["front"] == "":
        levels = front_levels(of.age, of.model.kind, of.model.name, of.gpu.name)
        front, sd = fronted(known.fronts, levels), known.fronts["sd"]["all"]
    tier = 0.0 if given["tier"] == "hbm" else 1e9 * float(given["store"])
    if tier > 0 and given["tier"] != "own":
        tier = known.tiers[given["tier"]]["read_bw"]
    have = float(given["have"]) if given["goal"] == "have" else 0.0
    return Service(
        units=units_within(int(given["units"]), have, gpus), ttft=float(given["ttft"]) / 1000,
        tpot=float(given["tpot"]) / 1000, quantile=float(given["promise"]) if alone else 0.0,
        front=front, front_sd=sd, handover=known.handover, tier_bw=tier, link_bw=known.links[given["link"]]["bw"],
        price=float(given["price"]), sessions=float(given["sessions"]), ahead=known.habits[given["engine"]]["ahead"],
        planning="",
    )  # fmt: skip


def candidate(given: Fields, known: Known) -> Candidate:
    """Return what is asked of one layout; see `refused` for what cannot be."""
    of = deployed(given, known)
    own, unit = centred(of, known), deployment_numbers(of, known.kernels)
    apart = pooled_of(given)
    pools: list[Pools] = []
    if len(apart) > 0:
        first, then = [deployed(one, known) for one in apart]
        decode, have = deployment_numbers(then, known.kernels), float(given["have"]) if given["goal"] == "have" else 0.0
        pools = [laid_apart(
            deployment_numbers(first, known.kernels), decode, units_within(int(given["units"]), have, decode.gpus),
            own.found, [centred(first, known).found, centred(then, known).found],
        )]  # fmt: skip
    under = serving(given, of, unit.gpus, known)
    problem = problem_of(of, unit, pools, sent(given, known), under, known.comparisons)
    return Candidate(given=given, of=of, centred=own, problem=problem)


def pooled_of(given: Fields) -> list[Fields]:
    """Return the fields of a prefill and of a decode unit, where these are laid out apart."""
    if given["prefill"] == "" and len(given["pooled"]) == 0:
        return []
    fields_of_both: list[Fields] = []
    for one in given["pooled"] if len(given["pooled"]) > 0 else [laid_as(given["prefill"]), given]:
        own = with_changes(given, {"prefill": "", "pooled": []})
        for name in ["tp", "dp", "pp", "experts"]:
            own[name] = one[name]
        fields_of_both.append(own)
    return fields_of_both


def laid_as(words: str) -> Fields:
    """Return the fields of a layout by its words, "TP 1, DP 8, EP 8"."""
    found = {"tp": "1", "dp": "1", "pp": "1", "experts": "split"}
    for part in words.split(", "):
        name, size = part.split(" ")
        if name == "EP":
            found["experts"] = "whole"
        else:
            found[name.lower()] = size
    return found


def refused(given: Fields, planning: bool, known: Known) -> list[Message]:
    """Say what is wrong with fields whose numbers are in range; nothing where they can be asked.

    `planning`: on the page that plans a prompt and its answer must be no longer than the model was made for.
    """
    if given["model"] not in known.models:
        names = list(known.models)
        alike = near(given["model"], names, 3)
        called: Message = {"key": "form.model", "model": given["model"] if given["model"] != "" else "without a name"}
        called["known"] = len(names)
        called["near"] = [{"key": "form.near", "names": alike}] if len(alike) > 0 else []
        return [about(called, "model", [{"model": name} for name in alike])]
    n_out = float(given["output"])
    long = too_long(given["model"], known.models[given["model"]].context, float(given["prompt"]) + n_out)
    if planning and given["lengths"] not in known.mixes and len(long) > 0:
        room = str(int(known.models[given["model"]].context - n_out))
        return [about({"key": "form.long", "long": long}, "prompt", [{"prompt": room}])]
    units = pooled_of(given)
    units.insert(0, given)
    for one in units:
        wrong = refused_unit(one, known)
        if len(wrong) > 0:
            return wrong
    problem = candidate(given, known).problem
    if given["goal"] == "have" and float(given["have"]) < problem.unit.gpus:
        return [about({"key": "form.have", "gpus": problem.unit.gpus}, "have", [{"have": str(problem.unit.gpus)}])]
    return [about(why, "sessions", [{"sessions": "0"}]) for why in sessions_overflow(problem)]


def about(part: Message, field: str, fixes: list[Fields]) -> Message:
    """Return a part that is about a field."""
    part["field"], part["fixes"] = field, fixes
    return part


# By the key of `deployed.unfit`: the field that a form has of it, and a change that mends it.
MENDED: dict[str, list[Any]] = {
    "unfit.whole": ["experts", {"experts": "split"}],
    "unfit.experts": ["experts", {}],
    "unfit.counted": ["imbalance", {"imbalance": ""}],
    "unfit.uneven": ["imbalance", {"imbalance": ""}],
    "unfit.precision": ["weights", {}],
}


def refused_unit(given: Fields, known: Known) -> list[Message]:
    """Say what is wrong with a unit as a set-up lays it out."""
    model, rates = known.models[given["model"]], known.gpus[given["gpu"]]
    if given["tp"] not in model.shapes:
        return [about({"key": "form.heads", "model": given["model"], "tp": given["tp"]}, "tp", [])]
    of = deployed(given, known)
    scattered = scattered_over(of.layout, rates.joined)
    if rates.maker not in of.engine.makers:
        able = [name for name in known.engines if rates.maker in known.engines[name].makers]
        short: Message = {"key": "form.maker", "engine": of.engine.title, "maker": rates.maker}
        part = about({"key": "form.engine", "why": short}, "engine", [{"engine": name} for name in able])
        part["short"] = short
        return [part]
    if len(scattered) > 0:
        part = about(scattered[0], "tp", [])
        part["short"] = {"key": "form.nodes"}
        return [part]
    for wrong in unfit(of):
        field, fix = MENDED[wrong["key"]] if wrong["key"] in MENDED else [wrong["field"], {}]
        wrong["key"] = wrong["key"].replace("unfit.", "form.")
        return [about(wrong, field, [fix] if field in fix else [])]
    if deployment_numbers(of, known.kernels).kv_room > 0:
        return []
    small: Message = {"key": "form.small", "model": given["model"], "weights": given["weights"], "gpu": given["gpu"]}
    small["gpus"], small["whole"] = of.layout.tp * of.layout.dp * of.layout.pp, True
    fixes = fewer_groups(given, known)
    small["more"] = [{
        "key": "form.groups", "dp": given["dp"], "engine": of.engine.title,
        "share": deployment_numbers(of, known.kernels).memory,
    }] if len(fixes) > 0 else []  # fmt: skip
    return [about(small, "dp" if len(fixes) > 0 else "gpu", fixes)]


def fewer_groups(given: Fields, known: Known) -> list[Fields]:
    """Return as many GPUs in fewer groups that do: these hold copies of attention, and engines keep memory for each."""
    dp, tp = int(given["dp"]), int(given["tp"])
    for times in [2, 4, 8]:
        fewer = {"tp": str(tp * times), "dp": str(dp // times)}
        if dp >= times and len(refused_unit(with_changes(given, fewer), known)) == 0:
            return [fewer]
    return []


def uncalibrated(one: Candidate, work: Workload, users: float, places: float, known: Known) -> list[Message]:
    """Say what of a candidate was never calibrated, of so many users, for whom the KV cache has `places`."""
    said = outside(one.centred.scope, ranges_of(one.of, work.n_in, work.n_out, users))
    named = one.given["model"]
    said.extend(too_long(named, known.models[named].context, longest_request(work)))
    said.extend(crowding(users, places))
    return said


def left_of(one: Candidate, users: float, known: Known) -> float:
    """Return how far off a step may be, as the standard deviation of a logarithm, with so many users."""
    own, at = one.centred, ranges_of(one.of, one.problem.work.n_in, one.problem.work.n_out, users)
    beside = extra_log_sd(score_key_of(one.of), known.errors)
    root: float = (wider(own.spread, known.widths, own.scope, at) ** 2 + beside**2) ** 0.5
    return root


def decided_of(one: Candidate, draws: list[DrawnCoefficients], solved: Solution, known: Known) -> Decided:
    """Return what was decided for a candidate under draws as its notes take it."""
    link = known.links[one.given["link"]]
    wide = [with_changes(one.given, {"kv": "bf16", "sessions": "0"})] if one.of.kv == "fp8" else []
    plain = [candidate(given, known) for given in wide]
    return Decided(
        of=one.of, problem=one.problem, found=one.centred.found, mode=one.centred.mode, solved=solved,
        numbers=numbers_of(one.problem, solved), link=link["title"], measured=link["measured"],
        undrafted=[undrafted(one.problem, draws)] if one.problem.unit.drafts > 0 else [],
        plain=[under(each.problem, each.centred.found, CENTRE) for each in plain],
    )  # fmt: skip


def provenance_by(one: Candidate, known: Known) -> str:
    """Return what a candidate's numbers stand on, as `notes.provenance_of`."""
    of, scope = one.of, one.centred.scope
    unseen = missing(scope, ranges_of(of, one.problem.work.n_in, one.problem.work.n_out, 1.0))
    gpu = of.gpu
    return provenance_of(
        one.centred.mode, unseen, gpu.name, gpu.like, of.model.kind, of.kernels, of.weights, gpu.maker, known.errors
    )


def draws_of(one: Candidate, known: Known) -> list[DrawnCoefficients]:
    """Return the draws of a candidate's calibration."""
    return drawn(known.coefficients, one.centred.found, one.centred.root, known.normals, left_of(one, 1.0, known))


def few_draws(one: Candidate, known: Known) -> list[DrawnCoefficients]:
    """Return every so many-th of them."""
    rows = draws_of(one, known)
    return [rows[i] for i in range(len(rows)) if i % known.looked == 0]


def sought(given: Fields, planning: bool, known: Known) -> Sought:
    """Return the layouts to try: that which is named, or those that `tries.layouts_fitting` finds."""
    wrong: list[Message] = []

    def fits(layout: Layout) -> bool:
        why = refused(laid_out_as(given, layout), planning, known)
        wrong.extend(why)
        return len(why) == 0

    if given["tp"] != "auto" or given["model"] not in known.models:
        wrong = refused(given, planning, known)
        return Sought(tried=[given] if len(wrong) == 0 else [], wrong=wrong)
    node, mixture = min(8, known.gpus[given["gpu"]].joined), known.models[given["model"]].shapes["1"].experts > 0
    found = [laid_out_as(given, layout) for layout in layouts_fitting(8 * node, node, mixture, fits)]
    few = [why for why in wrong if why["field"] == "have"]
    return Sought(tried=found, wrong=few[:1] if len(few) > 0 else wrong[-1:])


def laid_out_as(given: Fields, layout: Layout) -> Fields:
    """Return fields with another layout, of pools, too."""
    named: Fields = {"prefill": "", "experts": "whole" if layout.ep > 1 else "split"}
    named["tp"], named["dp"], named["pp"] = str(layout.tp), str(layout.dp), str(layout.pp)
    return with_changes(given, named)


def paired(tried: list[Candidate], known: Known) -> list[Fields]:
    """Return the fields of decode units, each with the prefill unit that serves most with it: `tries.best_pairs`."""

    def pair(p: int, d: int) -> Fields:
        return tried[d].given if p == d else with_changes(tried[d].given, {"pooled": [tried[p].given, tried[d].given]})

    def served(p: int, d: int) -> float:
        one = candidate(pair(p, d), known)
        return pools_served(one.problem, few_draws(one, known))

    each = [halves(one.problem, few_draws(one, known)) for one in tried]
    units = [one.problem.unit for one in tried]
    best = best_pairs(each, [unit.gpus for unit in units], [unit.layout.tp for unit in units], served)
    return [pair(p, d) for p, d in best]


def joined_fields(together: list[Fields], apart: list[Fields]) -> Fields:
    """Return the fields of the first units that do both, beside the first pools, of other layouts; one is there."""
    if len(together) == 0 or len(apart) == 0:
        return together[0] if len(together) > 0 else apart[0]
    own, pools = together[0], apart[0]["pooled"] if len(apart[0]["pooled"]) > 0 else [apart[0], apart[0]]
    for pool in pools:
        for name in ["tp", "dp", "experts", "pp"]:
            if pool[name] != own[name]:
                return with_changes(own, {"pooled": pools})
    return own


def closest(tried: list[Candidate]) -> Fields:
    """Return the fields of which a request alone misses the limits, or the memory, least."""
    misses = [excess(one.problem, under(one.problem, one.centred.found, CENTRE)) for one in tried]
    return tried[misses.index(min(misses))].given
