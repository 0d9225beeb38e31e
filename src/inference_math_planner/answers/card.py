"""The answer as a card: one number, what it is, the architectures, the limits, how sure, what stands behind it.

The page prints this module: both languages make the same card of the same choice. Every sentence is a part, of which
`evidence.sentences` has the words.
"""

from __future__ import annotations

from math import ceil, isfinite

from inference_math.optimiser.answers import usd_per_million
from inference_math.optimiser.choice import CAREFUL, middle_row, regret
from inference_math.optimiser.load import used_units
from inference_math.optimiser.starts import paged
from inference_math.optimiser.types import Solution
from inference_math.optimiser.verdict import hundredths, word_of
from inference_math.unit.problem import of_architecture, prefill_unit, search_constants
from inference_math.unit.scope import FEW_HELD
from inference_math.unit.types import ErrorRow, Layout, Message, OperatingPoint, Problem
from inference_math_planner.answers.notes import LEFT_OUT, MATTERS, SET_ASIDE, VISIBLE, nearest_of, served_where
from inference_math_planner.answers.types import About, Card, CardMeter, CardRow, Sized

__all__ = ["card_of", "confidence", "evidence", "hundredths", "sized_as", "unit_card"]

THIRD = 0.25  # of the draws, or more: one of three that win as often
HALF = 0.4  # of the draws, or more: one of two


def confidence(choice: Solution, name: str, doubted: bool) -> str:
    """Return how sure a choice is by its draws and doubts: "sure", "likely" or "open".

    Open is what the rule of choice calls a tie, the best less often than `choice.LIKELY`, and a lead that is too small
    to matter. Sure is the best nine times in ten, unless the draws are `doubted`: of a set-up that was never
    calibrated, or of whose nearest points the intervals missed a quarter.
    """
    if choice.tie or choice.lead < MATTERS:
        return "open"
    return "sure" if word_of(choice.best_in[name]) == "sure" and not doubted else "likely"


def few_held(seen: Message) -> bool:
    """Tell whether the calibration's intervals held few of the points that stand behind an answer."""
    return len([one for one in seen.get("held", []) if one["held"] < FEW_HELD]) > 0


def card_of(problem: Problem, options: list[Sized], choice: Solution, about: About) -> Card:
    """Return the card of a choice among `options`, the chosen one first: fleets, or units at full load."""
    best, goal = options[0], about.goal
    seen = evidence(about)
    reservations: list[Message] = [{"key": "card.never"}] if about.never else []
    if len(reservations) == 0 and few_held(seen[0]):
        reservations.append({"key": "card.few_held"})
    word = confidence(choice, best.name, len(reservations) > 0)
    said = why(choice, best.name, word, goal)
    if word == "likely":
        said.extend(reservations)
    order = choice.order
    second = order[1] if order[0] == best.name else order[0]
    if best.name == "disaggregated" or second == "disaggregated":
        right, count, alone = about.verdicts[word]
        said.append({"key": "card.scored", "right": right, "count": count, "alone": alone})
        said.append(crowded_alike(users_on_a_gpu(problem, best, about), about.concurrency_bins))
    rows: list[CardRow] = [CardRow(name=one.name, value=counted(one, goal)) for one in options]
    others: list[Message] = [told(row.name, row.value, goal) for row in rows[1:]]
    tail = about.tail
    of: Message = {"key": "card.tail", "percent": 100 * tail} if tail > 0 else {"key": "card.mean"}
    return Card(
        name=best.name, goal=goal, value=rows[0].value, ranged=ranged(rows[0].value, about),
        headline=headline(best, about), noun={"key": "noun." + goal, "gpu": short_name(about.gpu)},
        axis={"key": "axis." + goal, "rate": about.traffic, "gpus": about.have},
        what=what(best, problem, about), others=others, rows=rows,
        meters=[
            CardMeter(name="TTFT", of=of, value=best.ttft, limit=problem.ttft),
            CardMeter(name="TPOT", of=of, value=best.tpot, limit=problem.tpot),
        ],
        sure=word, why=said, evidence=seen,
        cost=priced(problem, best, about), start=steps_of(best),
        next={"key": "next." + word, "name": best.name, "second": second},
    )  # fmt: skip


def users_on_a_gpu(problem: Problem, best: Sized, about: About) -> float:
    """Return the requests under way on each GPU of what is chosen, in the middle of the draws: by Little's law."""
    gpus = best.gpus[0] if about.goal != "unit" else about.gpus
    seconds = best.ttft[0] + best.tpot[0] * (problem.work.n_out - 1)
    return best.rate[0] * seconds / gpus


def crowded_alike(users: float, concurrency_bins: list[list[float]]) -> Message:
    """Say how many of the served splits gained that had about as many users on a GPU."""
    at = 0
    while at < len(concurrency_bins) - 1 and users > concurrency_bins[at][0]:
        at += 1
    here = concurrency_bins[at]
    return {"key": "card.crowd", "users": users, "gained": here[1], "count": here[2]}


def unit_card(problem: Problem, solved: Solution, about: About) -> Card:
    """Return the card of one unit at full load, of pools the mean of all units."""
    options: list[Sized] = []
    for name in solved.order:
        row, own = middle_row(solved, name), solved.settings[name]
        if row["rate"][0] > 0:
            of = of_architecture(problem, name)
            size = sized_as(of, name, used_units(search_constants(of), own) if name == "disaggregated" else 1, own)
            size.feasible_share = solved.feasible_share[name]
            size.rate, size.ttft, size.tpot = row["rate"], row["ttft"], row["tpot"]
            options.append(size)
    return card_of(problem, options, solved, about)


def sized_as(problem: Problem, name: str, units: float, row: OperatingPoint) -> Sized:
    """Return one replica's settings as a size, without what it serves."""
    chunked = name == "chunked"
    return Sized(
        name=name, replicas=1, units=units, gpus=[], rate=[], ttft=[], tpot=[],
        prefill=row.prefill_units if name == "disaggregated" else 0.0,
        decode=row.decode_units if name == "disaggregated" else 0.0,
        chunk=problem.unit.layout.dp * paged(problem, row) if chunked else 0.0,
        decodes=ceil(row.batch) if chunked else 0.0, feasible_share=0.0,
    )  # fmt: skip


def ranged(ends: list[float], about: About) -> bool:
    """Tell whether a number is given as its ends: those of a set-up that was never calibrated, where they differ."""
    return about.never and ends[1] < ends[2]


def counted(one: Sized, goal: str) -> list[float]:
    """Return what a card counts of an option, with both ends: GPUs, or requests/s."""
    return one.gpus if goal == "gpus" else one.rate


def short_name(gpu: str) -> str:
    """Return a GPU's name as people say it."""
    return gpu.replace("-sxm", "").upper()


def headline(best: Sized, about: About) -> Message:
    """Return the number as a sentence; of a set-up that was never calibrated its ends."""
    goal, ends = about.goal, counted(best, about.goal)
    key = "headline." + goal
    if ranged(ends, about):
        key = key + "_range" if isfinite(ends[2]) else key + "_more"
    used = best.gpus[0] if goal == "rate" else 0.0
    of: list[Message] = [{"key": "card.of", "have": about.have}] if used < about.have else []
    return {
        "key": key, "count": ends[0], "low": ends[1], "high": ends[2], "rate": about.traffic, "used": used,
        "of": of, "gpu": short_name(about.gpu), "name": best.name, "gpus": about.gpus,
    }  # fmt: skip


def shares_of(layout: Layout) -> list[Message]:
    """Return how the GPUs of a unit share a model, in parts of a sentence."""
    sizes = {"tp": layout.tp, "dp": layout.dp, "ep": layout.ep, "pp": layout.pp}
    shares: list[Message] = []
    for name in ["tp", "dp", "ep", "pp"]:
        if name == "tp" or sizes[name] > 1:
            shares.append({"key": "layout." + name, "size": sizes[name]})
    return shares


def laid_out(problem: Problem, name: str) -> Message:
    """Return the layout of an architecture's units, of pools that of a prefill unit, too, where it is another."""
    own = of_architecture(problem, name)
    unit = own.unit.layout
    return both_layouts(unit, prefill_unit(own).layout if name == "disaggregated" else unit)


def both_layouts(layout: Layout, prefill: Layout) -> Message:
    """Return a layout in words, with that of a prefill unit where it is another."""
    decode: Message = {"key": "layout.shares", "shares": shares_of(layout)}
    if same_layout(prefill, layout):
        return decode
    return {"key": "layout.apart", "decode": decode, "prefill": {"key": "layout.shares", "shares": shares_of(prefill)}}


def same_layout(one: Layout, other: Layout) -> bool:
    """Tell whether two units share a model alike among their GPUs."""
    alike = one.tp == other.tp and one.dp == other.dp
    return alike and one.ep == other.ep and one.pp == other.pp


def what(best: Sized, problem: Problem, about: About) -> Message:
    """Return what is started: replicas, their units, and how many GPUs each has in which precision and layout.

    And which number of a range it is for.
    """
    units: Message = {"key": "card.units", "units": best.units}
    of_its, own = of_architecture(problem, best.name), []
    unit, first = of_its.unit, prefill_unit(of_its)
    if best.prefill > 0:
        units = {"key": "card.pools", "prefill": best.prefill, "decode": best.decode}
        if not same_layout(first.layout, unit.layout):
            own = [{"key": "card.own_layout", "gpus": first.gpus, "shares": shares_of(first.layout)}]
    of: Message = {"key": "card.replicas", "replicas": best.replicas, "units": units}
    ends, goal = counted(best, about.goal), about.goal
    planned: Message = {"key": "planned." + goal, "count": ends[0], "priced": about.price > 0}
    return {
        "key": "card.what", "of": of if best.replicas > 1 else units, "gpus": unit.gpus,
        "weights": about.weights.upper(), "shares": shares_of(unit.layout), "own": own,
        "planned": [planned] if ranged(ends, about) else [],
        "kept": [{"key": "kept." + goal, "kept": hundredths(best.feasible_share)}],
    }  # fmt: skip


def told(name: str, ends: list[float], goal: str) -> Message:
    """Return what another architecture takes, or serves."""
    count, low, high = ends
    span: Message = {"key": "card.span" if isfinite(high) else "card.span_up", "low": low, "high": high}
    return {"key": "other." + goal, "name": name, "count": count, "span": [span] if low < high else []}


def why(choice: Solution, name: str, word: str, goal: str) -> list[Message]:
    """Return how often the choice wins over the draws, what it costs to choose without knowing, and if none does."""
    best_in = choice.best_in
    others = [one for one in choice.order if one != name]
    others.sort(key=lambda one: -best_in[one])
    second, third = others[0], others[1]
    said: Message = {
        "key": "card.tie", "name": name, "won": hundredths(best_in[name]), "second": second,
        "seconds": hundredths(best_in[second]), "most": MATTERS,
    }  # fmt: skip
    if word != "open":
        said["key"] = "card.wins"
    elif best_in[name] >= CAREFUL:
        said["key"] = "card.close" if choice.lead < MATTERS else "card.unresolved"
    elif best_in[name] >= THIRD and best_in[second] >= THIRD and best_in[third] >= THIRD:
        said["key"] = "card.thirds"
    elif best_in[name] >= HALF and best_in[second] >= HALF:
        said["key"] = "card.halves"
    elif best_in[second] > best_in[name]:
        said["key"] = "undecided." + goal
    messages: list[Message] = [said]
    lost = regret(choice.rates, name)
    if lost >= VISIBLE:
        messages.append({"key": "card.regret", "lost": lost})
    if choice.none_in >= VISIBLE:
        messages.append({"key": "card.none_in", "none": hundredths(choice.none_in)})
    return messages


def evidence(about: About) -> list[Message]:
    """Say how far off predictions were on points of this kind of model on this very GPU, by source, or that none is.

    Sources that have this very model come first; of those points that set no coefficient, or were left out of the fit,
    come before what others published. The first says how near they are to what is asked, and what the worst were.
    """
    if about.own:
        return [{"key": "card.own"}]
    here: list[ErrorRow] = []
    for row in about.rows:
        same = row.gpu == about.gpu and row.kind == about.kind and row.engine == about.engine
        if same and row.drafts == "none":  # what does not say whether tokens were drafted tells nothing
            here.append(row)
    messages: list[Message] = []
    sources = [SET_ASIDE if has(here, SET_ASIDE, about.model) else LEFT_OUT]
    if not has(here, LEFT_OUT, about.model) and len([row for row in here if row.source == SET_ASIDE]) > 0:
        sources = [SET_ASIDE]
    for row in here:
        if row.source not in sources and row.source not in [SET_ASIDE, LEFT_OUT]:
            sources.append(row.source)
    for known in [True, False]:
        for source in sources:
            own = [row for row in here if row.source == source]
            same = len([row for row in own if row.model == about.model]) > 0
            if len(own) > 0 and same == known:
                messages.append(off_on(nearest_of(about.model, about.gpu, about.weights, own), about.scaled))
    if len(messages) == 0:
        return [{"key": "card.unchecked", "kind": about.kind, "gpu": about.gpu, "engine": about.engine}]
    near = nearness(about, here)
    messages[0]["stands"] = {"key": "near." + near}
    messages[0]["worst"] = worst_of(messages)
    messages[0]["unseen"] = [{"key": "card.unseen", "off": about.unseen}] if near == "none" else []
    return messages


def has(rows: list[ErrorRow], source: str, model: str) -> bool:
    """Tell whether a source has points of a model."""
    return len([row for row in rows if row.source == source and row.model == model]) > 0


def nearness(about: About, rows: list[ErrorRow]) -> str:
    """Return how near points are to what is asked, a model, a GPU, an engine and a precision.

    "aside": of the same, and other curves of it chose terms; "left": it was left out of the fit for this error;
    "other": others alone measured it; "none": nobody did.
    """
    same = [row.source for row in rows if row.model == about.model and row.weights == about.weights]
    if SET_ASIDE in same:
        return "aside"
    if LEFT_OUT in same:
        return "left"
    return "other" if len(same) > 0 else "none"


def worst_of(messages: list[Message]) -> list[Message]:
    """Say how far off predictions were on the points near by that they fit least, unless that is about the first."""
    worst = messages[0]
    for one in messages:
        if one["off"] > worst["off"]:
            worst = one
    if worst["off"] - messages[0]["off"] < MATTERS:
        return []
    said: Message = {"key": "card.worst", "off": worst["off"], "count": worst["count"], "source": worst["source"]}
    said["where"] = worst["where"]
    return [said]


def off_on(rows: list[ErrorRow], scaled: bool) -> Message:
    """Say how far off predictions were on the points of one source."""
    source, count, off, held, early = rows[0].source, 0.0, 0.0, 0.0, 0.0
    for row in rows:
        count += row.points
        off += row.points * row.error
        held += row.points * row.inside
        early += row.points * row.ttft
    ours = source in [SET_ASIDE, LEFT_OUT]
    return {
        "key": ("card.older" if scaled else "card.checked") if ours else "card.published", "off": off / count,
        "count": count, "source": source, "engine": rows[0].engine, "where": served_where(rows),
        "first": [{"key": "card.first", "early": early / count}] if early >= 0 else [],
        "held": [{"key": "card.held", "held": held / count}] if held >= 0 else [],
        "stands": {"key": "near.more"}, "worst": [], "unseen": [],
    }  # fmt: skip


def priced(problem: Problem, best: Sized, about: About) -> list[Message]:
    """Return what a million output tokens cost, where there is a price, and the rated power, where it is known."""
    gpus = best.gpus[0] if about.goal != "unit" else about.gpus
    said: list[Message] = []
    if about.price > 0:
        rate = best.rate[0] * problem.work.n_out
        usd = usd_per_million(gpus, about.price, rate)
        said.append({"key": "card.usd", "usd": usd, "price": about.price, "example": about.example})
    if problem.watts > 0:
        said.append({"key": "card.power", "kw": gpus * problem.watts / 1000})
    return said


def steps_of(best: Sized) -> list[Message]:
    """Return why a step has as many tokens as it has, where it holds chunks."""
    return [{"key": "card.step", "chunk": best.chunk, "decodes": best.decodes}] if best.chunk > 0 else []
