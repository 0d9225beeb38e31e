"""What a plan has to say beside its card: what is missed and what would help, what was never calibrated.

A sentence is a part, or parts in a row, of which `evidence.sentences` has the words. Nothing to say is an empty list.
"""

from __future__ import annotations

from math import isfinite

from inference_math.optimiser.answers import store_break_even
from inference_math.optimiser.choice import middle_row
from inference_math.optimiser.load import used_units
from inference_math.optimiser.search import ARCHITECTURES
from inference_math.optimiser.starts import TILE, chunk_told, paged, tiled, tokens_at_once
from inference_math.optimiser.types import Sensitivity, Solution
from inference_math.unit.problem import NEARLY, kv_seqs, of_architecture, search_constants, sent_bytes, store_bytes
from inference_math.unit.scope import KERNELS_BY, extra_log_sd, few_of, set_up_of, set_ups_of
from inference_math.unit.steps import kv_held, kv_tokens, kv_written, stored_tokens
from inference_math.unit.types import ErrorRow, Message, OperatingPoint, Problem, ScoreKey, StepCosts, UnitNumbers

__all__ = [
    "KERNELS_BY", "LEFT_OUT", "MATTERS", "SET_ASIDE", "VISIBLE", "apart", "as_good", "drafting_pays", "drafts_said",
    "excess", "front_weighs", "gpus_said", "hindered", "idle", "kept_in", "linked", "missed", "nearest_of", "promised",
    "provenance_of", "remedy", "runner_up", "served_where", "short", "sized_how", "slow_cache", "slow_store",
    "store_moves", "to_choose", "trusted", "unlike_usual", "widened",
]  # fmt: skip

GUESSED = "a guess: no kernel of this maker was measured"
OPERATED = "h100-sxm"  # whose operators were measured one by one
LEFT_OUT = "left out"  # the source of points that were, with all of their engine on their GPU, for this error alone
SET_ASIDE = "set aside"  # the source of points that are of the same source as those that were fitted
FRONT_MUCH = 0.1  # of a limit on TTFT that the front may take before it is spoken of
VISIBLE = 0.005  # of a rate: less is printed as nothing
MATTERS = 0.02  # of a rate: a lead that is smaller may be sure, and is too small to matter


def to_choose(problem: Problem, solved: Solution) -> list[Message]:
    """Say what tells two architectures apart that serve as much, and what the form does not know of a chunk."""
    messages: list[Message] = []
    if solved.best == "":
        return messages
    if solved.tie or solved.lead < MATTERS:
        tail: Message = {"key": "choose.quantile", "percent": 100 * problem.quantile}
        each: list[Message] = []
        for name in solved.order:
            row = middle_row(solved, name)
            if row["rate"][0] > 0:
                each.append({"key": "choose.each", "name": name, "ttft": row["ttft"][0]})
        what: Message = {"key": "choose.mean"} if problem.quantile == 0 else tail
        messages.append({"key": "choose.ttft", "what": what, "each": each})
    for name in solved.order:
        share = solved.best_in[name]
        if share >= MATTERS and not middle_row(solved, name)["rate"][0] > 0:
            messages.append({"key": "choose.faster", "name": name, "share": share})
    chunks = solved.settings["chunked"]
    tokens = tokens_at_once(problem, chunks) if chunks.rate > 0 and tiled(problem) else 0
    if tokens > TILE and tokens % TILE > 0:
        cut = chunk_told(problem, chunks) < paged(problem, chunks)
        messages.append({"key": "choose.cut" if cut else "choose.tile", "tokens": tokens, "tile": TILE})
    return messages


def as_good(lead: float) -> bool:
    """Tell whether the next architecture loses as little as the first, as far as can be seen."""
    return lead < MATTERS


def ways_to(sensitivities: list[Sensitivity], first: str) -> list[Message]:
    """Name the inputs that make an architecture the first a fifth smaller, larger, or either; "" none at all."""
    ways: list[Message] = []
    for row in sensitivities:
        low, high = row.best_low == first, row.best_high == first
        if low and high:
            ways.append({"key": "either.input", "what": {"key": "input." + row.input}})
        elif low:
            ways.append({"key": "less." + row.input})
        elif high:
            ways.append({"key": "more." + row.input})
    return ways


def runner_up(best: str, second: str, rate: float, sensitivities: list[Sensitivity], even: bool) -> Message:
    """Name the second architecture and its rate, and what would make it, or the third, the best.

    `even`: both do as well, so that next to anything would, or nothing much.
    """
    if not rate > 0:
        return {"key": "runner_up.none"}
    turns: list[Message] = []
    for other in ARCHITECTURES:
        ways = ways_to(sensitivities, other)
        if other != best and len(ways) > 0 and not (even and other == second):
            turns.append({"key": "runner_up.first", "name": other, "ways": ways})
    lost = ways_to(sensitivities, "")
    if len(lost) > 0:
        turns.append({"key": "runner_up.unmet", "ways": lost})
    if even:
        turns.append({"key": "runner_up.even", "second": second})
    if len(turns) < 1:
        turns.append({"key": "runner_up.stays"})
    return {"key": "runner_up.is", "second": second, "rate": rate, "turns": turns}


def apart(name: str, best: str, pools: float, have: float) -> list[Message]:
    """Say that queues choose another architecture than full load does; nothing where they do not.

    Of the GPUs that there are, if not 0, there may be too few for `pools`, two units.
    """
    if name == best:
        return []
    few = best == "disaggregated" and 0 < have < pools
    key = "fleet.apart_pools" if few else "fleet.apart"
    return [{"key": key, "name": name, "best": best, "pools": pools, "have": have}]


def promised(share: float) -> Message:
    """Say what a fleet promises: a share of the requests within both limits, or for 0 the means."""
    return {"key": "promise.share" if share > 0 else "promise.means", "share": share}


def sized_how(
    share: float, cvs: list[float], played: str, units: float, rate: float, full_load: float, many: bool
) -> Message:
    """Say under what that holds, and what the same GPUs with the same settings would serve at most.

    `many`: there are several replicas, which larger ones might replace. `cvs` are those of the times between all
    arrivals, and between those at each replica; `played` what requests are: "", of equal prompts and geometric
    answers; "mix", of drawn lengths; "trace", as recorded. `units` are the most that a replica may have.
    """
    come: list[Message] = [{"key": "how.trace"}]
    if played != "trace":
        scatter: Message = {"key": "how.scatter_each" if many else "how.scatter", "cv": cvs[0], "own": cvs[1]}
        come = [{"key": "how.random"} if cvs[0] == 1 else scatter]
        come.append({"key": "how.mix" if played == "mix" else "how.equal"})
    return {
        "key": "how.is", "promise": promised(share), "come": come, "units": units, "many": many,
        "turns": played == "trace", "full": full_load, "share": rate / full_load,
    }  # fmt: skip


def short(share: float, count: float, needed: float, each: list[Message]) -> Message:
    """Say that no number of replicas is enough, and in how many draws `each` would do with nothing else to do."""
    return {"key": "short.is", "promise": promised(share), "needed": needed, "count": count, "each": each}


def idle(name: str, kept: float) -> Message:
    """Say in how many draws a replica that has next to nothing to do keeps the promise."""
    return {"key": "short.idle", "name": name, "kept": kept}


def linked(problem: Problem, rate: float, row: OperatingPoint, title: str, measured: bool) -> Message:
    """Say what the link into each decode unit carries, and whether that was measured.

    At so many requests/s of as many GPUs as a unit has, with the split of a row.
    """
    own = of_architecture(problem, "disaggregated")
    constants, larger = search_constants(own), own.unit.gpus / problem.unit.gpus
    each = rate * larger * used_units(constants, row) / row.decode_units
    needs, carries = each * sent_bytes(own) / 1e9, own.pool_bw / 1e9
    return {"key": "trusted.link", "needs": needs, "carries": carries, "measured": measured, "title": title}


def hindered(problem: Problem, each: StepCosts, name: str) -> Message:
    """Say why an architecture meets the SLA at no rate: the limit that its smallest step, or one prompt, misses."""
    constants, step = search_constants(problem), each.step_seconds
    tpot, ttft = constants.step, constants.ttft - each.front
    if name == "chunked" and not constants.mixes:
        return {"key": "hindered.drafts"}
    if step(1.0, 0.0) > tpot:
        return over("TPOT", step(1.0, 0.0) / constants.sharing, problem.tpot)
    alone = step(0.0, 1.0) + (constants.handover if name == "disaggregated" else 0.0)
    if alone > ttft:
        return over("TTFT", each.front + alone, problem.ttft)
    if name == "chunked":
        least = each.step_with_chunk_each(1.0, 1 / problem.work.n_in)
        late: Message = {"key": "hindered.late", "most": problem.ttft}
        return {"key": "hindered.chunk", "least": least} if least > tpot else late
    return {"key": "hindered.beside" if name == "aggregated" else "hindered.room"}


def nearest_of(model: str, gpu: str, weights: str, rows: list[ErrorRow]) -> list[ErrorRow]:
    """Return the rows of the model on the GPU in the precision; else on the GPU, of any model there, of it, or all."""
    like = [row for row in rows if row.model == model]
    here = [row for row in like if row.gpu == gpu]
    exact = [row for row in here if row.weights == weights]
    there = [row for row in rows if row.gpu == gpu]
    for matching in [exact, here, there, like]:
        if len(matching) > 0:
            return matching
    return rows


def widened(at: ScoreKey, rows: list[ErrorRow]) -> list[Message]:
    """Say that intervals are wider than the calibration's own, and why; nothing where they are not."""
    if not extra_log_sd(at, rows) > 0:
        own = set_up_of(at.model, at.gpu, at.engine, at.weights) in set_ups_of(rows)
        return [] if own else [{"key": "checked.foreign"}]
    few, count, held = few_of(at, rows), 0.0, 0.0
    for row in few:
        count += row.points
        held += row.points * row.inside
    return [{"key": "checked.widened", "count": count, "held": held / count, "where": served_where(few)}]


def served_where(rows: list[ErrorRow]) -> Message:
    """Name the models, precisions and GPUs of some points, three at most."""
    messages: list[Message] = []
    for row in rows:
        if len([one for one in messages if same_place(one, row)]) == 0:
            messages.append({"key": "checked.at", "model": row.model, "weights": row.weights, "gpu": row.gpu})
    return {"key": "checked.where", "each": messages[:3], "more": len(messages) > 3}


def same_place(one: Message, row: ErrorRow) -> bool:
    """Tell whether both name the same model in the same precision on the same GPU."""
    same: bool = one["model"] == row.model and one["weights"] == row.weights and one["gpu"] == row.gpu
    return same


def gpus_said(names: list[str], rates: list[float], costs: list[float]) -> list[Message]:
    """Say of GPUs in the order of `answers.gpus_ranked`, guesses left out, which is first and by how much.

    `rates` are requests/s of one, 0 where nothing meets the limits; `costs` USD for a million output tokens, NaN where
    no price is known. Nothing where none meets the limits.
    """
    priced = len([one for one in costs if isfinite(one)]) > 1
    key = "gpus.costs" if priced else "gpus.serves"
    each: list[Message] = []
    for i in range(len(names)):
        if rates[i] > 0 and (isfinite(costs[i]) or not priced):
            each.append({"key": key, "name": names[i], "cost": costs[i], "rate": rates[i]})
    if len(each) == 0:
        return []
    said: list[Message] = [{"key": "gpus.cost" if priced else "gpus.rate", "each": each[:2]}]
    for i in range(len(names)):
        for j in range(len(names)):
            # A superchip has the GPU of its name, and yet other measurements behind it.
            if names[i] == "g" + names[j] and rates[i] > 0 and rates[j] > rates[i]:
                said.append({"key": "gpus.below", "name": names[i], "other": names[j]})
    return said


def trusted(unit: UnitNumbers, rows: list[ErrorRow]) -> list[Message]:
    """Say what a plan takes on trust of a unit: what drafts bring and cost, and a link that nobody calibrated.

    `rows` as of `types.About`.
    """
    messages: list[Message] = []
    drafts, layout = unit.drafts, unit.layout
    if drafts > 0:
        messages.append({"key": "trusted.drafts", "drafts": drafts, "gives": unit.accepted_per_step})
        for row in [row for row in rows if row.drafts == "mtp"]:
            where, points = served_where([row]), row.points
            seen: Message = {"key": "trusted.drafted", "off": row.error, "points": points, "where": where}
            seen["engine"] = row.engine
            messages.append(seen)
        messages.append({"key": "trusted.mtp", "stages": layout.pp > 1})
    if layout.dp > 1:
        messages.append({"key": "trusted.groups", "groups": layout.dp})
    if layout.tp * layout.dp > 1 and unit.link_bw * unit.gpus <= unit.pcie_bw:
        messages.append({"key": "trusted.pcie"})
    return messages


def slow_store(problem: Problem, each: StepCosts, whole: float) -> list[Message]:
    """Say that and why a store keeps a prompt alone for longer than computing all of it, which takes `whole` seconds.

    And from which bandwidth on, and up to which share of a prompt, it does not.
    """
    if not each.load > 0 or each.step_seconds(0.0, 1.0) <= whole:
        return []
    e, share = store_break_even(problem, whole)
    less: list[Message] = [{"key": "stored.less", "share": share}] if share >= VISIBLE else []
    return [{
        "key": "stored.slow", "load": each.load, "whole": whole, "e": e, "less": less,
        "has": problem.read_bw / problem.unit.gpus / 1e9, "needed": needed_gb(problem, each, whole),
    }]  # fmt: skip


def needed_gb(problem: Problem, each: StepCosts, whole: float) -> float:
    """Return the GB/s of each GPU at which a store keeps a prompt for the `whole` seconds of computing it."""
    return problem.read_bw / problem.unit.gpus / 1e9 * each.load / whole


def store_moves(problem: Problem, each: StepCosts, whole: float, rate: float) -> list[Message]:
    """Say what a store loads and takes in at `rate` requests/s of a unit, and what hides it from rate and TTFT.

    Both keep its links, and hide beside what a prompt alone computes in the same step; see `slow_store` for `whole`.
    """
    unit, work = problem.unit, problem.work
    if not (each.load > 0 and rate > 0):
        return []
    cached = stored_tokens(work.n_in, work.alpha)
    alone = each.step_seconds(0.0, 1.0)
    how: Message = {"key": "stored.longer"}
    if each.load * NEARLY < alone:
        how = {"key": "stored.beside", "alone": alone, "needed": needed_gb(problem, each, whole)}
    endless: list[Message] = [] if problem.sessions > 0 else [{"key": "stored.endless"}]
    return [{
        "key": "stored.moves", "load": each.load, "how": how,
        "loaded": rate * kv_held(unit, cached) / 1e9, "carries": problem.read_bw / 1e9,
        "written": rate * kv_written(unit, work) / 1e9, "endless": endless,
    }]  # fmt: skip


def unlike_usual(problem: Problem, kv: str, usual: str) -> list[Message]:
    """Say that an engine left alone would keep the KV cache in FP8, where the plan has it in BF16."""
    if kv != "bf16" or usual != "fp8":
        return []
    return [{"key": "trusted.usual_cache", "engine": problem.engine.title}]


def slow_cache(problem: Problem, eight: StepCosts, plain: StepCosts) -> list[Message]:
    """Say that a unit's engine reads a KV cache in FP8, `eight`, more slowly than one in BF16, `plain`."""
    slower, least = 1e3 * eight.cache_read, 1e3 * plain.cache_read
    if not slower > least:
        return []
    return [{"key": "trusted.slow_cache", "engine": problem.engine.title, "slower": slower, "least": least}]


def kept_in(problem: Problem) -> list[Message]:
    """Say how many sessions what is stored has room for in HBM, and what sessions take elsewhere."""
    messages: list[Message] = []
    if not problem.work.alpha > 0:
        return messages
    if not problem.read_bw > 0:
        messages.append({"key": "stored.hbm", "places": kv_seqs(problem)})
    if problem.units > 1:
        messages.append({"key": "stored.shared"})
    if problem.sessions > 0:
        messages.append({"key": "stored.sessions", "sessions": problem.sessions, "gb": store_bytes(problem) / 1e9})
    return messages


def drafts_said(many: int) -> Message:
    """Say how many tokens each step drafts."""
    return {"key": "drafts.each" if many > 0 else "drafts.none", "many": many}


def drafting_pays(rate: float, without: float) -> Message:
    """Say what a unit serves at full load with its drafts and without, in the median of the draws."""
    if not without > 0:
        return {"key": "drafts.needed"}
    return {"key": "drafts.pay", "without": without, "rate": rate, "pays": rate > without}


def front_weighs(problem: Problem, front: list[float]) -> list[Message]:
    """Say which part of the limit on TTFT the front may take, where nobody measured it and that is much."""
    if not problem.front_sd > 0 or not front[2] > FRONT_MUCH * problem.ttft:
        return []
    middle, low, high = [1e3 * one for one in front]
    return [{"key": "trusted.front", "limit": problem.ttft, "front": middle, "low": low, "high": high}]


def alone_in(problem: Problem, each: StepCosts) -> list[float]:
    """Return TPOT and TTFT of a request alone in seconds, the tokens of KV cache that it needs, and those that fit."""
    tpot = (each.t_w + each.cache_read + each.own) / search_constants(problem).sharing
    needed = problem.work.n_in + problem.work.n_out
    return [tpot, each.front + each.t_w + each.ttft_1, needed, kv_tokens(problem.unit, needed)]


def excess(problem: Problem, each: StepCosts) -> float:
    """Return how many times what it may a request alone takes, of the limit, or the memory, that it misses most."""
    tpot, ttft, needed, room = alone_in(problem, each)
    return max(tpot / problem.tpot, ttft / problem.ttft, needed / max(room, 1.0))


def missed(problem: Problem, each: StepCosts) -> list[Message]:
    """Say by how much a request alone misses each limit."""
    messages: list[Message] = []
    tpot, ttft, needed, room = alone_in(problem, each)
    if tpot > problem.tpot:
        messages.append(over("TPOT", tpot, problem.tpot))
    if ttft > problem.ttft:
        messages.append(over("TTFT", ttft, problem.ttft))
    if needed > room:
        messages.append({"key": "missed.memory", "needed": needed, "room": room})
    if len(messages) == 0:
        messages.append({"key": "missed.pace"})
    return messages


def over(name: str, alone: float, limit: float) -> Message:
    """Say by how much a request alone is over one limit."""
    return {"key": "hindered.over", "limit": name, "alone": alone, "excess": alone / limit - 1, "most": limit}


def remedy(tp: int, gpus: int, precision: str, rate: float) -> Message:
    """Say that another unit, of so many GPUs, meets the SLA."""
    unit: list[Message] = [{"key": "missed.unit", "gpus": gpus}] if gpus != tp else []
    return {"key": "missed.remedy", "tp": tp, "precision": precision, "unit": unit, "rate": rate}


def provenance_of(
    mode: str, unseen: list[str], gpu: str, like: str, kind: str, engine: str, weights: str, maker: str,
    rows: list[ErrorRow],
) -> str:  # fmt: skip
    """Return what a unit's numbers stand on: "calibrated" (served points), "measured" (kernels), "scaled", or a guess.

    `mode` is of its calibration: "zero-shot", operators of the H100 for all; "served" points where there are such; or
    one's own, which never saw the inputs `unseen`. `like` is the GPU whose kernels stand for it; `rows` as of
    `types.About`, which have each group that was fitted.
    """
    own = [row for row in rows if row.source == LEFT_OUT and row.gpu == gpu and row.kind == kind]
    fitted = [row for row in own if row.engine == engine and row.weights == weights]
    if maker != KERNELS_BY and not (mode == "served" and len(fitted) > 0):
        return GUESSED
    if mode == "zero-shot":
        return "measured" if gpu == OPERATED else "scaled"
    if mode != "served":
        return "scaled" if "gpu" in unseen else "calibrated"
    if len(fitted) > 0:
        return "calibrated"
    return "scaled" if like != gpu else "measured"
