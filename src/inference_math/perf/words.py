"""What a plan says in words: the verdict, what is missed and what would help, what was never calibrated."""

from __future__ import annotations

from math import isfinite

from inference_math.checks.numerals import digits, percent
from inference_math.perf.asked import places, sent_bytes, store_bytes, target_of
from inference_math.perf.choice import RESOLVED, SURE, median_row
from inference_math.perf.search import ARCHITECTURES
from inference_math.perf.starts import tokens_at_once
from inference_math.perf.steps import kv_tokens
from inference_math.perf.types import Asked, ErrorRow, Solution, StepCosts, Swing, UnitNumbers

__all__ = [
    "CALIBRATED", "LEFT_OUT", "SET_ASIDE", "apart", "as_good", "checked", "drafting_pays", "drafts_said",
    "front_weighs", "gpus_of", "gpus_said", "hindered", "idle", "kept_in", "linked", "missed", "most_of",
    "promised", "remedy", "runner_up", "short", "sized", "sized_how", "slow_store", "standing_of",
    "swing_name", "to_choose", "trusted", "used_of", "verdict",
]  # fmt: skip

GUESSED = "a guess: none of this maker is calibrated"
OPERATED = "h100-sxm"  # whose operators were measured one by one
CALIBRATED = "NVIDIA"  # whose GPUs' points set the coefficients that ship
LEFT_OUT = "left out"  # the source of points that were, with all of their engine on their GPU, for this error alone
SET_ASIDE = "set aside"  # the source of points that are of the same source as those that were fitted
OURS = {"set aside": "chose nothing", "left out": "were left out of the fit with their engine on that GPU"}
FRONT_MUCH = 0.1  # of a limit on TTFT that the front may take before it is spoken of
TILE = 256  # rows of a tile of vLLM's FP8 products, the coarsest measured
VISIBLE = 0.005  # of a rate: less is printed as nothing
MATTERS = 0.02  # of a rate: a lead that is smaller may be sure, and is too small to matter


def verdict(
    best: str, second: str, rate: float, lead: float, ahead: float, lost: float, scatter: float, tie: bool, none: float
) -> str:
    """Name the architecture that loses least, how often it is the best and what it costs where it is not, or a tie.

    `lead` is by how much more the `second` loses in the mean, NaN where that meets the limits nowhere; `ahead` and
    `none` are shares of the draws, `scatter` by how much the lead varies between them.
    """
    if best == "":
        said = "no architecture meets the SLA"
        return (
            said
            if none >= 1
            else said + " in most draws of the calibration: in " + percent(none) + " of them none does"
        )
    said = best + " serves " + digits(rate) + " requests/s per unit at full load, the best in " + percent(ahead)
    said += " of the draws of the calibration"
    if none >= VISIBLE:
        said += " (in " + percent(none) + " nothing meets the limits)"
    if lost >= VISIBLE:
        said += "; in the mean it loses " + percent(lost) + " to the best one"
    if not isfinite(lead):
        return said
    if lead >= VISIBLE:
        said += "; " + second + " loses " + percent(lead) + (" more" if lost >= VISIBLE else "")
    else:
        said += "; " + second + " loses as little"
    if not tie:
        return said if lead >= MATTERS else said + ": either will do"
    if ahead < SURE:
        return said + ": a tie, for it is the best in fewer than half of them"
    return said + ": a tie, for from draw to draw that varies by " + percent(scatter)


def to_choose(asked: Asked, solved: Solution) -> list[str]:
    """Say what tells two architectures apart that serve as much, and what the form does not know of a chunk."""
    found: list[str] = []
    if solved["best"] == "":
        return found
    if solved["tie"] or solved["lead"] < MATTERS:
        said = "where rates tell little, the first token may decide: at full load "
        said += "mean TTFT" if asked["quantile"] == 0 else "P" + digits(100 * asked["quantile"]) + " of TTFT"
        able = [name for name in solved["order"] if median_row(solved["each"][name])["rate"][0] > 0]
        each = [name + " " + in_ms(median_row(solved["each"][name])["ttft"][0]) for name in able]
        found.append(said + " is " + ", ".join(each))
    for name in solved["order"]:
        if solved["best_in"][name] >= MATTERS and not median_row(solved["each"][name])["rate"][0] > 0:
            said = "where steps are faster than said, " + name + " meets the limits, too, and is the best in "
            found.append(said + percent(solved["best_in"][name]) + " of the draws")
    chunks = solved["settings"]["chunked"]
    tokens = tokens_at_once(asked, chunks) if chunks["rate"] > 0 and tiled(asked) else 0
    if tokens > TILE and tokens % TILE > 0:
        said = (
            "chunks at full load: vLLM's FP8 kernels take as long for " + str(tokens) + " tokens in a step as for the "
        )
        found.append(said + "next multiple of " + str(TILE) + ": try the one below")
    return found


def tiled(asked: Asked) -> bool:
    """Tell whether steps of a unit are products of FP8 by vLLM, whose tiles were measured."""
    products = [one["rate"] for one in asked["unit"]["groups"]]
    return asked["engine"]["title"] == "vLLM" and "fp8" in products


def in_ms(seconds: float) -> str:
    """Return a time in ms."""
    return digits(1e3 * seconds) + " ms"


SWING_NAMES = {
    "n_in": "prompts",
    "n_out": "answers",
    "alpha": "stored share",
    "ttft": "limit on TTFT",
    "tpot": "limit on TPOT",
    "accepted": "chance that a draft is accepted",
}
SHORTER = {
    "n_in": "shorter",
    "n_out": "shorter",
    "alpha": "smaller",
    "ttft": "tighter",
    "tpot": "tighter",
    "accepted": "lower",
}
LONGER = {
    "n_in": "longer",
    "n_out": "longer",
    "alpha": "larger (or all of it)",
    "ttft": "looser",
    "tpot": "looser",
    "accepted": "higher",
}


def swing_name(name: str) -> str:
    """Return an input that `answers.swings` moves, in words."""
    return SWING_NAMES[name]


def as_good(lead: float) -> bool:
    """Tell whether the next architecture loses as little as the first, as far as can be seen."""
    return lead < MATTERS


def ways_to(swings: list[Swing], first: str) -> list[str]:
    """Name the inputs that make an architecture the first a fifth smaller or larger; "" none at all."""
    ways: list[str] = []
    for row in swings:
        if row["best_low"] == first:
            ways.append(SWING_NAMES[row["input"]] + " a fifth " + SHORTER[row["input"]])
        if row["best_high"] == first:
            ways.append(SWING_NAMES[row["input"]] + " a fifth " + LONGER[row["input"]])
    return ways


def runner_up(best: str, second: str, rate: float, swings: list[Swing], even: bool) -> str:
    """Name the second architecture and its rate, and what would make it, or the third, the best.

    `even`: both do as well, so that next to anything would, or nothing much.
    """
    if not rate > 0:
        return "no other architecture meets the SLA"
    said = "runner-up at full load: " + second + ", " + digits(rate) + " requests/s per unit"
    turns = []
    for other in ARCHITECTURES:
        ways = ways_to(swings, other)
        if other != best and len(ways) > 0 and not (even and other == second):
            turns.append(other + " would be first with " + " or ".join(ways))
    lost = ways_to(swings, "")
    if len(lost) > 0:
        turns.append("nothing would meet the SLA with " + " or ".join(lost))
    if even:
        turns.append("next to nothing puts " + second + " first")
    if len(turns) < 1:
        turns.append("no length or limit a fifth smaller or larger would put another first")
    return said + "; " + "; ".join(turns)


def sized(
    name: str, replicas: float, units: float, gpus: list[float], rate: float, following: list[str],
    others: list[list[float]], have: float, tie: bool, ahead: float, lost: float,
) -> str:  # fmt: skip
    """Say what a fleet serves, and what follows it: by its GPUs, or if there are so many by its requests/s.

    `gpus` are those of the fleet and both ends of what the traffic needs, `others` the same of each that is
    `following`, the nearest first, or its requests/s and their ends.
    """
    each = "one unit" if units == 1 else digits(units) + " units"
    many = "1 replica" if replicas == 1 else digits(replicas) + " replicas"
    said = gpus_of(gpus[0]) + " (" + digits(gpus[1]) + " to " + most_of(gpus[2]) + ") for " + digits(rate)
    said += " requests/s: "
    owned = have > 0
    if owned:
        said = digits(rate) + " requests/s on " + used_of(gpus[0], have) + ": "
    said += name + ", " + many + " of " + each
    if len(following) < 1:
        return said
    second, own = others[0], rate if owned else gpus[0]
    near = RESOLVED if owned else 1.0
    equal = [following[i] for i in range(len(following)) if others[i][0] <= near * own and own <= near * others[i][0]]
    if len(equal) > 0:
        said += ("; within 4 %, as much" if owned else "; as few") + " with " + " and ".join(equal)
    else:
        unit = " requests/s" if owned else (" GPU" if second[0] == 1 else " GPUs")
        said += "; " + following[0] + (" serves " if owned else " takes ") + digits(second[0]) + unit
        said += " (" + digits(second[1]) + " to " + most_of(second[2]) + ")"
    said += "; " + name + " is the best in " + percent(ahead) + " of the draws"
    if lost >= VISIBLE:
        said += "; in the mean it loses " + percent(lost) + " to the best one"
    if not tie or len(equal) > 0:
        return said
    if ahead < SURE:
        return said + ": not sure, for it is the best in fewer than half of them"
    return said + ": not sure, for from draw to draw its lead varies by more than it is"


def gpus_of(many: float) -> str:
    """Return a number of GPUs in words."""
    return digits(many) + (" GPU" if many == 1 else " GPUs")


def used_of(many: float, have: float) -> str:
    """Return the GPUs that are used of those that there are."""
    return (digits(many) + " of " if many < have else "") + gpus_of(have)


def apart(name: str, best: str, pools: float, have: float) -> str:
    """Say that queues choose another architecture than full load does; "" where they do not.

    Of the GPUs that there are, if not 0, there may be too few for `pools`, two units.
    """
    if name == best:
        return ""
    if best == "disaggregated" and 0 < have < pools:
        few = name + " comes first of what " + gpus_of(have) + " allow, for pools take " + digits(pools)
        return few + ", two units; with as many, at full load, it is " + best
    return "with queues " + name + " comes first; at full load, where nobody waits for anything, it is " + best


def most_of(number: float) -> str:
    """Return the upper end of an interval, which may be infinite."""
    return digits(number) if isfinite(number) else "no number"


def promised(share: float) -> str:
    """Say what a fleet promises: a share of the requests within both limits, or for 0 the means."""
    if share > 0:
        return percent(share) + " of the requests within both limits"
    return "mean TTFT and mean TPOT within the limits"


def sized_how(
    share: float, cvs: list[float], played: str, units: float, rate: float, full_load: float, many: bool
) -> str:
    """Say under what that holds, and what the same GPUs with the same settings would serve at most.

    `many`: there are several replicas, which larger ones might replace. `cvs` are those of the times between all
    arrivals, and between those at each replica; `played` what requests are: "", of equal prompts and geometric
    answers; "mix", of drawn lengths; "trace", as recorded. `units` are the most that a replica may have.
    """
    come = "arrivals at random"
    if cvs[0] != 1:
        come = "arrivals with a CV of " + digits(cvs[0])
        come += " (" + digits(cvs[1]) + " at each replica)" if many else ""
    if played == "trace":
        come = "arrivals and lengths as recorded"
    else:
        come += ", lengths as recorded" if played == "mix" else ", equal prompts, geometric answers"
    size = "replicas of " + digits(units) + " units at most"
    size += " (fewer GPUs may do in larger ones)" if many else ""
    how = "promise: " + promised(share) + ", in nine of ten draws; queues counted: " + come + ", in " + size
    how += (
        ", to which requests come "
        + ("in turn" if played == "trace" else "by chance")
        + ", and in which each goes to the unit that has the fewest"
    )
    more = (
        "; so set, and without limits, the same GPUs would serve "
        + digits(full_load)
        + " requests/s, of which this is "
    )
    return how + more + percent(rate / full_load)


def short(share: float, count: float, needed: float, each: list[str]) -> str:
    """Say that no number of replicas is enough, and in how many draws `each` would do with nothing else to do."""
    none = "with queues, no architecture keeps " + promised(share) + " in nine of ten draws at any load; "
    takes = "it takes " + digits(needed) + " of " + digits(count) + (" draw" if count == 1 else " draws")
    return none + takes + "; with next to nothing to do, " + ", ".join(each) + "; loosen a limit"


def idle(name: str, kept: float) -> str:
    """Say in how many draws a replica that has next to nothing to do keeps the promise."""
    return name + " keeps it in " + digits(kept)


def linked(asked: Asked, rate: float, title: str, measured: bool) -> str:
    """Say what the link into each decode unit carries at so many requests/s of it, and whether that was measured."""
    needs = rate * sent_bytes(asked) / 1e9
    said = "pools at full load: each decode unit takes in " + digits(needs) + " GB/s of KV caches, of the "
    said += digits(asked["pool_bw"] / 1e9) + " that the links of its GPUs carry at the rate "
    said += "measured" if measured else "of the datasheet"
    said += ": " + title
    return said if measured else said + "; no engine's transfer over it was measured"


def hindered(asked: Asked, each: StepCosts, name: str) -> str:
    """Return why an architecture meets the SLA at no rate: the limit that its smallest step, or one prompt, misses."""
    target, step = target_of(asked), each["mixed"]
    tpot, ttft = target["step"], target["ttft"] - each["front"]
    if name == "chunked" and not target["mixes"]:
        return "SGLang does not compute chunks beside decodes where tokens are drafted"
    if step(1.0, 0.0) > tpot:
        return over("TPOT", step(1.0, 0.0) / target["sharing"], asked["tpot"])
    alone = step(0.0, 1.0)
    if alone > ttft:
        return over("TTFT", each["front"] + alone, asked["ttft"])
    if name == "chunked":
        least = step(1.0, 1 / asked["work"]["n_in"])
        if least > tpot:
            return "TPOT: a step with the smallest chunk takes " + in_ms(least)
        late = "TTFT: in chunks that keep the limit on TPOT, a prompt takes longer than "
        return late + in_ms(asked["ttft"])
    if name == "aggregated":
        return "the limits, or the memory, leave no room for one request beside another's prompt"
    return "the memory, or the limits, leave no room for one request"


def checked(
    model: str, gpu: str, weights: str, kind: str, engine: str, maker: str, scaled: bool, rows: list[ErrorRow]
) -> str:
    """Say how far predictions were off on served points that set no coefficient, of what is nearest to a unit.

    `rows` have model, gpu, weights, kind (of model), engine, maker (of the GPU), source, drafts, points, error (mean,
    of end-to-end latency; of TPOT elsewhere), ttft and inside (share within the 90 % interval). Sources are points set
    aside that chose neither a term nor a width, calibration points that were left out of the fit with their group, and
    whoever else published some. Those of the model on the GPU in the precision count, else on the GPU, else of the
    model, else of its kind. On GPUs of a maker whose points set nothing, any engine's tell something. Points that do
    not say whether tokens were drafted tell nothing of a unit of which that is known. `scaled`: the unit's steps are
    not those of served points, but of operators, so older versions' are all that there is.
    """
    told = [row for row in rows if row["drafts"] == "none"]
    known = [row for row in told if row["kind"] == kind and row["maker"] == maker]
    same = [row for row in known if row["engine"] == engine]
    others = [row for row in known if row["engine"] != engine]
    own = nearest_of(model, gpu, weights, [row for row in same if row["source"] in OURS])
    aside = [row for row in own if row["source"] == SET_ASIDE]
    own = aside if len(aside) > 0 else own
    elsewhere = ""
    for part in [same, others if maker != CALIBRATED else []]:
        for first in firsts_of([row for row in part if row["source"] not in OURS]):
            of = [row for row in part if row["source"] == first["source"] and row["engine"] == first["engine"]]
            elsewhere += ("; " if len(elsewhere) > 0 else "") + off_on(nearest_of(model, gpu, weights, of))
    if len(own) > 0:
        said = off_on(own) + ("; " + elsewhere if elsewhere != "" else "")
        older = "no served points check operators under today's " + engine + "; of older ones "
        return (older if scaled else "") + "predictions were " + said
    said = "no served points of " + kind + " under " + engine + ("" if maker == CALIBRATED else " on GPUs of " + maker)
    said += " are left to check predictions"
    if elsewhere != "":
        said += "; elsewhere they were " + elsewhere
    worst = 0.0
    for row in others:
        if row["source"] in OURS:
            worst = max(worst, row["error"])
    return said + ("; under other engines up to " + percent(worst) + " off in the mean" if worst > 0 else "")


def nearest_of(model: str, gpu: str, weights: str, rows: list[ErrorRow]) -> list[ErrorRow]:
    """Return those rows that are of the model on the GPU in the precision; else on the GPU, of the model, or all."""
    like = [row for row in rows if row["model"] == model]
    here = [row for row in like if row["gpu"] == gpu]
    exact = [row for row in here if row["weights"] == weights]
    for found in [exact, here, like]:
        if len(found) > 0:
            return found
    return rows


def firsts_of(rows: list[ErrorRow]) -> list[ErrorRow]:
    """Return the first row of each source under each engine."""
    found: list[ErrorRow] = []
    for row in rows:
        if len([one for one in found if one["source"] == row["source"] and one["engine"] == row["engine"]]) == 0:
            found.append(row)
    return found


def off_on(rows: list[ErrorRow]) -> str:
    """Say how far off predictions were on the points of one source under one engine."""
    first, count, off, held, early = rows[0], 0.0, 0.0, 0.0, 0.0
    for row in rows:
        count += row["points"]
        off += row["points"] * row["error"]
        held += row["points"] * row["inside"]
        early += row["points"] * row["ttft"]
    ours = first["source"] in OURS
    said = percent(off / count) + (" off in latency" if ours else " off in TPOT")
    said += (", " + percent(early / count) + " in TTFT," if early >= 0 else "") + " on " + digits(count)
    said += " served points that " + OURS[first["source"]] if ours else " points of " + first["source"]
    said += " (" + served_where(rows) + " under " + first["engine"] + ")"
    return said + (", and the 90 % interval held " + percent(held / count) if held >= 0 else "")


def served_where(rows: list[ErrorRow]) -> str:
    """Name the models, precisions and GPUs of some points, three at most."""
    found: list[str] = []
    for row in rows:
        name = row["model"] + " in " + row["weights"] + " on " + row["gpu"]
        if len([one for one in found if one == name]) == 0:
            found.append(name)
    return ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")


def gpus_said(names: list[str], rates: list[float], costs: list[float]) -> str:
    """Say of GPUs in the order of `answers.gpus_ranked`, guesses left out, which is first and by how much.

    `rates` are requests/s of one, 0 where nothing meets the limits; `costs` USD for a million output tokens, NaN where
    no price is known. "" where none meets the limits.
    """
    priced = len([one for one in costs if isfinite(one)]) > 1
    told: list[str] = []
    for i in range(len(names)):
        if rates[i] > 0 and (isfinite(costs[i]) or not priced):
            value = "$" + digits(costs[i]) + " a million" if priced else digits(rates[i])
            told.append(names[i] + " (" + value + ")")
    if len(told) == 0:
        return ""
    said = "an output token costs least on " if priced else "one GPU serves most requests/s on "
    said += told[0] + (", then " + told[1] if len(told) > 1 else "")
    for i in range(len(names)):
        for j in range(len(names)):
            # A superchip has the GPU of its name, and yet other measurements behind it.
            if names[i] == "g" + names[j] and rates[i] > 0 and rates[j] > rates[i]:
                said += "; " + names[i] + " stands below " + names[j] + ": different measurements tell of them"
    return said


def trusted(unit: UnitNumbers, rows: list[ErrorRow]) -> list[str]:
    """Return what a plan takes on trust of a unit: what drafts bring and cost, and a link that nobody calibrated.

    `rows` as of `checked`.
    """
    found = []
    drafts, layout = unit["drafts"], unit["layout"]
    if drafts > 0:
        many = " draft" if drafts == 1 else " drafts"
        given = "with " + digits(drafts) + many + " a step is taken to give " + digits(unit["gives"])
        found.append(
            given + " tokens in the mean, and each draft to cost a layer, the LM head and no memory; what is accepted"
            " hangs on the prompts: measure it on yours; a fleet counts with requests that differ in that"
        )
        seen = [row for row in rows if row["drafts"] == "mtp"]
        for row in seen:
            found.append(
                "with drafts predictions were "
                + percent(row["error"])
                + " off on "
                + digits(row["points"])
                + " served points ("
                + served_where([row])
                + " under "
                + row["engine"]
                + ")"
            )
        found.append(
            "commands have the model draft by itself (MTP); one that cannot needs a drafter, as for EAGLE"
            + ("; across pipeline stages engines may refuse to draft" if layout["pp"] > 1 else "")
        )
    if layout["dp"] > 1:
        found.append(
            "attention is split by requests into " + digits(layout["dp"]) + " groups, each with a link of its own;"
            " a prompt keeps one of them, so a command lets each compute in a step what a table says of the whole unit"
        )
    if layout["tp"] * layout["dp"] > 1 and unit["link_bw"] * unit["gpus"] <= unit["pcie_bw"]:
        found.append(
            "the GPUs work together over PCIe: no link as slow was calibrated, and where one was run, steps took longer"
            " than predicted"
        )
    return found


def slow_store(each: StepCosts, whole: float) -> list[str]:
    """Say that loading what is stored takes a prompt alone longer than computing it, which takes `whole` seconds."""
    alone = each["mixed"](0.0, 1.0)
    if not (each["load"] > 0 and alone > whole):
        return []
    said = "a prompt alone takes " + in_ms(alone) + " with what it loads, and " + in_ms(whole) + " computed: do not"
    return [said + " load from this store, or no more than comes while the rest is computed"]


def kept_in(asked: Asked) -> list[str]:
    """Return how many sessions what is stored has room for in HBM, and what sessions take elsewhere."""
    if not asked["work"]["alpha"] > 0:
        return []
    found = []
    if not asked["read_bw"] > 0:
        said = (
            "HBM has room for " + digits(places(asked)) + " requests: it finds nothing of a session that is not among"
        )
        found.append(said + " the last so many")
    if asked["units"] > 1:
        found.append(
            "in a fleet, unless units share the store, a router must send a request to the one that has its past, while"
            " queues are counted with one that looks at numbers of requests alone"
        )
    if asked["sessions"] > 0:
        size = digits(store_bytes(asked) / 1e9) + " GB"
        many = " session of a unit takes " if asked["sessions"] == 1 else " sessions of a unit take "
        found.append(digits(asked["sessions"]) + many + size + " of store")
    return found


def drafts_said(many: int) -> str:
    """Return how many tokens each step drafts, in words."""
    return str(many) + (" draft a step" if many == 1 else " drafts a step") if many > 0 else "none"


def drafting_pays(rate: float, without: float) -> str:
    """Say what a unit serves at full load with its drafts and without, in the median of the draws."""
    if not without > 0:
        return "without drafts nothing would meet the SLA"
    said = (
        "without drafts a unit would serve " + digits(without) + " requests/s at full load, with them " + digits(rate)
    )
    return said + ("" if rate > without else ": these drafts do not pay")


def front_weighs(asked: Asked, front: list[float]) -> list[str]:
    """Say which part of the limit on TTFT the front may take, where nobody measured it and that is much."""
    if not asked["front_sd"] > 0 or not front[2] > FRONT_MUCH * asked["ttft"]:
        return []
    said = "of " + digits(1e3 * asked["ttft"]) + " ms to the first token the front takes " + digits(1e3 * front[0])
    said += " (" + digits(1e3 * front[1]) + " to " + digits(1e3 * front[2]) + "): HTTP, tokenizer, launch, as fitted to"
    return [said + " other machines; measure yours with one short request, and say it"]


def missed(asked: Asked, each: StepCosts) -> list[str]:
    """Return by how much a request alone misses each limit."""
    found = []
    tpot = (each["t_w"] + each["delta_h"] + each["own"]) / target_of(asked)["sharing"]
    ttft = each["front"] + each["t_w"] + each["ttft_1"]
    if tpot > asked["tpot"]:
        found.append(over("TPOT", tpot, asked["tpot"]))
    if ttft > asked["ttft"]:
        found.append(over("TTFT", ttft, asked["ttft"]))
    needed = asked["work"]["n_in"] + asked["work"]["n_out"]
    room = kv_tokens(asked["unit"], needed)
    if needed > room:
        tokens = digits(needed) + " tokens of KV cache, " + digits(room) + " fit"
        found.append("memory: a request needs " + tokens)
    if len(found) == 0:
        found.append("a request alone meets each limit, but no architecture keeps up with new ones within them")
    return found


def over(name: str, alone: float, limit: float) -> str:
    """Return the sentence for one limit, in ms."""
    excess = percent(alone / limit - 1) + " over the limit of " + in_ms(limit)
    return name + ": a request alone takes " + in_ms(alone) + ", " + excess


def remedy(tp: int, gpus: int, precision: str, rate: float) -> str:
    """Return the sentence for another unit, of so many GPUs, that meets the SLA."""
    unit = "TP " + str(tp) + " in " + precision
    if gpus != tp:
        unit += " (a unit of " + str(gpus) + " GPUs)"
    return unit + " would meet the SLA: " + digits(rate) + " requests/s per unit"


def standing_of(
    mode: str, unseen: list[str], gpu: str, like: str, kind: str, engine: str, weights: str, maker: str,
    rows: list[ErrorRow],
) -> str:  # fmt: skip
    """Return what a unit's numbers stand on: "calibrated" (served points), "measured" (kernels), "scaled", or a guess.

    `mode` is of its calibration: "operators" of the H100 for all, "served" points where there are such, or one's own,
    which never saw the inputs `unseen`. `like` is the GPU whose kernels stand for it; `rows` as of `checked`, which
    have each group that was fitted.
    """
    if maker != CALIBRATED:
        return GUESSED
    if mode == "operators":
        return "measured" if gpu == OPERATED else "scaled"
    if mode != "served":
        return "scaled" if "gpu" in unseen else "calibrated"
    own = [row for row in rows if row["source"] == LEFT_OUT and row["gpu"] == gpu and row["kind"] == kind]
    fitted = [row for row in own if row["engine"] == engine and row["weights"] == weights]
    if like != gpu:
        return "scaled"
    return "calibrated" if len(fitted) > 0 else "measured"
