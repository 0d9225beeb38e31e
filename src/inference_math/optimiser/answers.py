"""All numbers of a deployment over the draws of its calibration, and the same questions asked a little differently.

What is asked is a `Problem`. Coefficients are a dict by their names, with the seconds of an anchor; `factors` are those
of a step and of what prompts add to it, and how many standard deviations the front of a request is off in its
logarithm. A draw is a pair of both.
"""

from __future__ import annotations

from math import exp, inf, isfinite

from msgspec.structs import replace

from inference_math.optimiser.choice import decide, feasible_rate, middle_row, served_with, told_rate
from inference_math.optimiser.draws import fixed, interval, mean_of, median
from inference_math.optimiser.gain_error import add_log_errors, factors_of
from inference_math.optimiser.search import NEVER
from inference_math.optimiser.settings import keeping, pools_halves, pools_settings
from inference_math.optimiser.types import Sensitivity, Solution, StoreGain
from inference_math.optimiser.verdict import UNSAID, verdict
from inference_math.theory.plain import (
    chunk_size_full,
    chunked_gain_sla_serial,
    concurrent_prefills,
    crossover_shared_link,
    delta_p,
    expected_tpot_full,
    expected_ttft_full,
    gain_bound,
    max_batch,
    max_batch_ttft_full,
    pdd_concurrency,
    pdd_gain_same,
    pdd_split,
    request_rate,
)
from inference_math.unit.batch import MOST_TOGETHER, largest_batch
from inference_math.unit.problem import (
    NEARLY,
    computed_tokens,
    moved_by,
    of_architecture,
    prefill_unit,
    search_constants,
    sessions_overflow,
)
from inference_math.unit.steps import costs, drafting, kv_loaded, kv_moved, kv_written, stored_tokens, unit_terms
from inference_math.unit.types import (
    CoefficientValues,
    DrawnCoefficients,
    Problem,
    SearchConstants,
    StepCosts,
    UnitNumbers,
)


def under(problem: Problem, coefficients: CoefficientValues, factors: list[float]) -> StepCosts:
    """Return `steps.costs` under some `coefficients`, a step, its prompts' part and the front stretched."""
    unit = problem.unit
    each = costs_of(problem, unit, moved_by(coefficients, problem.moves), factors)
    prefill = each.prefill
    if len(problem.pools) > 0:
        moved = moved_by(coefficients, problem.pools[0].prefill_moves)
        prefill = costs_of(problem, prefill_unit(problem), moved, factors).step_seconds
    return replace(each, front=problem.front * exp(problem.front_sd * factors[2]), prefill=prefill)


def costs_of(problem: Problem, unit: UnitNumbers, own: CoefficientValues, factors: list[float]) -> StepCosts:
    """Return what requests cost on a unit under its own coefficients."""
    loads = kv_moved(unit, problem.work, problem.read_bw * unit.gpus / problem.unit.gpus)
    return costs(unit, unit_terms(unit, own), problem.work, loads, factors[0], factors[1])


def drawn_costs(problem: Problem, draws: list[DrawnCoefficients]) -> list[StepCosts]:
    """Return what requests cost under each of some draws: pairs of coefficients and factors."""
    return [under(problem, one[0], one[1]) for one in draws]


def solve(problem: Problem, draws: list[DrawnCoefficients]) -> Solution:
    """Return `decide` over some draws, of which there is one at least, with the costs under each, those of pools too.

    Rates are those of as many GPUs as a unit has that is not of pools.
    """
    each, pools = drawn_costs(problem, draws), of_architecture(problem, "disaggregated")
    apart = drawn_costs(pools, draws) if len(problem.pools) > 0 else each
    of_pools = replace(search_constants(pools), share=problem.unit.gpus / pools.unit.gpus)
    solution = decide([search_constants(problem), of_pools], [each, apart], problem.gain_errors)
    return replace(solution, costs=each, pool_costs=apart)


def halves(problem: Problem, draws: list[DrawnCoefficients]) -> list[float]:
    """Return the requests/s that a unit feeds as one of a prefill pool, and takes as one of a decode pool."""
    return pools_halves(search_constants(problem), drawn_costs(problem, draws))


def pools_served(problem: Problem, draws: list[DrawnCoefficients]) -> float:
    """Return the goodput of a GPU of pools over some draws, in requests/s; 0 of what most of them do not allow."""
    own = of_architecture(problem, "disaggregated")
    constants, drawn = search_constants(own), drawn_costs(own, draws)
    row = pools_settings(constants, drawn)
    keeps = keeping(constants, drawn, "disaggregated", row)
    rates = [one.rate for one in served_with(constants, drawn, "disaggregated", row, keeps)]
    return feasible_rate(rates, keeps) / own.unit.gpus if median(rates) > 0 else 0.0


def batch_limits(constants: SearchConstants, one: StepCosts, near: dict[str, int]) -> dict[str, int]:
    """Return the largest batch by each limit alone, aggregated (at most `MOST_TOGETHER`): of means or a quantile.

    Looked for from those of a case near it, where there are any.
    """
    steps, quantile, tpot, ttft = constants.steps, constants.quantile, constants.step, constants.ttft - one.front
    step, most = one.step_seconds, MOST_TOGETHER
    return {
        "TPOT": largest_batch(step, near.get("TPOT", 1), most, steps, tpot, inf, quantile),
        "TTFT": largest_batch(step, near.get("TTFT", 1), most, steps, inf, ttft, quantile),
        "memory": constants.kv_seqs,
    }


def gpus_worth(solved: Solution, gpus: float, other: Solution, others: float) -> list[float]:
    """Return how many GPUs of another kind serve as much as one of this, with both ends over the draws.

    By what units of so many GPUs serve in the best architecture of each.
    """
    top, bottom = told_rate(solved, solved.best), told_rate(other, other.best)
    ends = interval(NEVER, ratios(solved.rates[solved.best], other.rates[other.best]))
    each = [one * others / gpus for one in [top[0] / bottom[0], ends[1], ends[2]]]
    return [each[0], min(each[1], each[0]), max(each[2], each[0])]


def usd_per_million(gpus: float, price: float, tokens: float) -> float:
    """Return US dollars for a million tokens, `tokens` per second on so many GPUs at a price per hour; NaN without."""
    return gpus * price / 3600 / tokens * 1e6 if tokens > 0 and price > 0 else NEVER


def gpus_ranked(rates: list[float], costs: list[float], guessed: list[bool]) -> list[int]:
    """Return the order of GPUs by the rate of one; by the cost of a token, if two have a price; guesses come last.

    A cost is NaN where no price is known, a rate 0 where nothing meets the limits.
    """
    priced = [i for i in range(len(costs)) if isfinite(costs[i])]
    order = list(range(len(rates)))
    order.sort(key=lambda i: -rates[i])
    if len(priced) > 1:
        order.sort(key=lambda i: costs[i] if isfinite(costs[i]) else inf)
    order.sort(key=lambda i: 1 if guessed[i] else 0)
    return order


def smallest(limits: dict[str, int]) -> int:
    """Return the smallest of the three limits."""
    return min(limits["TPOT"], min(limits["TTFT"], limits["memory"]))


def ratios(top: list[float], bottom: list[float]) -> list[float]:
    """Return the ratio of two rates under each draw, NaN where there is none."""
    return [top[i] / bottom[i] if bottom[i] > 0 else NEVER for i in range(len(top))]


# Numbers of a plan that each draw has one of.
OF_DRAWS = ["batch", "batch_tpot", "batch_ttft", "t_w", "delta_p", "delta_p_gross", "delta_h", "gain_bound", "front"]


def numbers_of(problem: Problem, solved: Solution) -> dict[str, list[float]]:
    """Return each number of a plan as [median, low, high] over the draws.

    What is a setting is the same under each draw.
    """
    constants, best = search_constants(problem), solved.best
    steps = constants.steps
    by_draw: dict[str, list[float]] = {}
    for name in OF_DRAWS:
        by_draw[name] = []
    limits: dict[str, int] = {}
    for one in solved.costs:
        limits = batch_limits(constants, one, limits)
        net, read = delta_p(one.ttft_1, steps), one.cache_read + one.own
        by_draw["batch"].append(smallest(limits))
        by_draw["batch_tpot"].append(limits["TPOT"])
        by_draw["batch_ttft"].append(limits["TTFT"])
        by_draw["t_w"].append(one.t_w)
        by_draw["delta_p"].append(net)
        by_draw["delta_p_gross"].append(delta_p(one.ttft_1 + one.t_w, steps))
        by_draw["delta_h"].append(read)
        by_draw["front"].append(one.front)
        by_draw["gain_bound"].append(gain_bound(net, read) if read > 0 else NEVER)
    numbers: dict[str, list[float]] = {}
    for name in by_draw:
        numbers[name] = interval(NEVER, by_draw[name])
    chunk, pools, whole = [solved.settings[name] for name in ["chunked", "disaggregated", "aggregated"]]
    numbers["batch_memory"] = fixed(constants.kv_seqs)
    if best != "":
        computed = constants.groups * computed_tokens(problem, chunk) if chunk.rate > 0 else NEVER
        numbers["chunk"] = fixed(computed)
        numbers["prefill_units"] = fixed(pools.prefill_units)
        numbers["chunked_gain"] = gained(problem, solved, "chunked", "aggregated")
        numbers["pdd_gain"] = gained(problem, solved, "disaggregated", "aggregated")
        left = max(problem.ttft - problem.front, 0.0)
        numbers["concurrent_prefills"] = fixed(concurrent_prefills(max(whole.batch, 1), steps))
        numbers["pdd_concurrency"] = fixed(pdd_concurrency(left, steps, constants.step))
        numbers.update(lead(problem, solved))
    return numbers


def binding_limits(numbers: dict[str, list[float]]) -> list[str]:
    """Return which limits bind the batch of a plan, by the medians of its numbers."""
    keys = {"TPOT": "batch_tpot", "TTFT": "batch_ttft", "memory": "batch_memory"}
    least = min(numbers["batch_tpot"][0], min(numbers["batch_ttft"][0], numbers["batch_memory"][0]))
    return [name for name in keys if numbers[keys[name]][0] == least]


def gained(problem: Problem, solved: Solution, name: str, over: str) -> list[float]:
    """Return the ratio of the goodputs of two architectures, with ends over the draws and the errors.

    NaN where either serves nothing in most draws: it would be about something else.
    """
    top, bottom = solved.rates[name], solved.rates[over]
    if not median(top) > 0 or not median(bottom) > 0:
        return fixed(NEVER)
    of_rates = solved.goodput[name] / solved.goodput[over]
    ratios_drawn: list[float] = []
    for one in ratios(top, bottom):
        for more in factors_of(problem.gain_errors[name]):
            for less in factors_of(problem.gain_errors[over]):
                ratios_drawn.append(one * more / less if one > 0 else NEVER)
    ends = interval(of_rates, ratios_drawn)
    return [of_rates, min(ends[1], of_rates), max(ends[2], of_rates)]


def lead(problem: Problem, solved: Solution) -> dict[str, list[float]]:
    """Return what the chosen architecture does at full load, and how far it is ahead of the next."""
    best, second = solved.best, solved.order[1]
    row = middle_row(solved, best)
    tokens = [rate * problem.work.n_out / problem.unit.gpus for rate in row["rate"]]
    watts = problem.watts if problem.watts > 0 else NEVER
    return {
        "rate": row["rate"],
        "margin": [one - 1 for one in gained(problem, solved, best, second)],
        "tokens_per_gpu": tokens,
        "usd_per_million": spent_on(tokens, usd_per_million(1, problem.price, 1)),
        "joules_per_token": spent_on(tokens, watts),
        "ttft": row["ttft"],
        "tpot": row["tpot"],
    }


def spent_on(tokens: list[float], spent: float) -> list[float]:
    """Return what one of so many tokens/s takes, a number with both ends; infinite where there is none."""
    return [spent / one if one > 0 else inf for one in [tokens[0], tokens[2], tokens[1]]]


def by_formula(problem: Problem, solved: Solution, numbers: dict[str, list[float]]) -> dict[str, float]:
    """Return what the closed forms say where a search or a comparison says more: at the medians of t_w, ΔP and ΔH.

    In them a step is a sum of which nothing hides, or only the weight read, batches and pools are no whole numbers. A
    form stands only where what it assumes holds; `unfounded` says what does not.
    """
    constants, settings = search_constants(problem), solved.settings
    steps, tpot = constants.steps, constants.step
    t_w, net, read = numbers["t_w"][0], numbers["delta_p"][0], numbers["delta_h"][0]
    front, ttft_1 = numbers["front"][0], net * steps
    tpot_1, batch = t_w + read, settings["aggregated"].batch
    by_tpot = max_batch(tpot, tpot_1, net, read)
    by_ttft = max_batch_ttft_full(problem.ttft - front, steps, ttft_1, read, t_w)
    forms: dict[str, float] = {}
    in_mean = not problem.quantile > 0  # what the forms of aggregated serving are about
    if in_mean:
        forms["batch"] = min(by_tpot, min(by_ttft, numbers["batch_memory"][0]))
        forms["batch_tpot"] = by_tpot
        forms["batch_ttft"] = by_ttft
    if solved.best == "aggregated" and batch > 0:
        forms["rate"] = request_rate(batch, steps, t_w, net, read)
    if solved.best == "aggregated" and batch > 0 and in_mean:
        forms["ttft"] = expected_ttft_full(batch, steps, ttft_1, read, t_w) + front
        forms["tpot"] = expected_tpot_full(batch, steps, tpot_1, net, read, 1.0, 0.0) / constants.sharing
    b = settings["chunked"].batch
    if settings["chunked"].rate > 0:
        forms["chunk"] = chunk_size_full(b, problem.work.n_in, steps) * constants.fresh
        # The form lets a step be as long as the limit on TPOT; where that on TTFT stops it sooner, it is about nothing.
        # Settings keep both limits in most draws, so it is the slow ones that stop it.
        late = middle_row(solved, "chunked")["ttft"][2] > NEARLY_LATE * problem.ttft
        if tpot >= tpot_1 and read > 0 and in_mean and by_tpot <= by_ttft and not late:
            forms["chunked_gain"] = chunked_gain_sla_serial(numbers["delta_p_gross"][0], read, t_w, tpot)
    if (
        tpot >= tpot_1
        and read > 0
        and in_mean
        and by_tpot <= by_ttft
        and unfounded(problem, constants, t_w, read) == ""
    ):
        split = pdd_split(numbers["delta_p_gross"][0], read, t_w, tpot, steps)
        forms["prefill_units"] = problem.units * split / (1 + split)
        forms["pdd_gain"] = pdd_gain_same(net, read, t_w, tpot, steps)
    return forms


def unfounded(problem: Problem, constants: SearchConstants, t_w: float, read: float) -> str:
    """Return what the closed forms of disaggregation assume and this unit does not have; "" where nothing is missing.

    They let a decode unit have as many requests as the limit on TPOT allows, and all units have one layout.
    """
    if len(problem.pools) > 0:
        return "layout"
    return "memory" if constants.kv_seqs < (constants.step - t_w) / read else ""


NEARLY_LATE = 0.9  # of the limit on TTFT: it shapes what is chosen
SWING = 0.2  # of an input, either way
SWUNG = ["n_in", "n_out", "alpha", "ttft", "tpot", "accepted"]


def sensitivities(problem: Problem, draws: list[DrawnCoefficients]) -> list[Sensitivity]:
    """Return for each input what a fifth less and a fifth more of it bring, as goodput over the draws.

    Columns: input, low, high (requests/s of a unit), best_low, best_high, and `change`, the distance; largest first.
    """
    rows = [sensitivity_of(problem, draws, name) for name in sensitivity_inputs(problem)]
    rows.sort(key=lambda row: -row.change)
    return rows


def sensitivity_inputs(problem: Problem) -> list[str]:
    """Return the inputs of a question that may be larger or smaller."""
    stored, drafted = problem.work.alpha > 0, problem.unit.drafts > 0
    return [name for name in SWUNG if (name != "alpha" or stored) and (name != "accepted" or drafted)]


def sensitivity_of(problem: Problem, draws: list[DrawnCoefficients], name: str) -> Sensitivity:
    """Return what a fifth less and a fifth more of an input bring; see `sensitivities`."""
    low, high = [solve(swung(problem, name, factor), draws) for factor in [1 - SWING, 1 + SWING]]
    ends = [best_rate(low), best_rate(high)]
    return Sensitivity(
        input=name, low=ends[0], high=ends[1], best_low=low.best, best_high=high.best, change=abs(ends[1] - ends[0])
    )


def swung(problem: Problem, name: str, factor: float) -> Problem:
    """Return the question with one of its inputs by a factor larger: a length, a share, a limit."""
    work, unit = problem.work, problem.unit
    if name == "ttft":
        return replace(problem, ttft=problem.ttft * factor)
    if name == "tpot":
        return replace(problem, tpot=problem.tpot * factor)
    if name == "accepted":
        return replace(problem, unit=drafting(unit, unit.drafts, min(1.0, unit.accepted * factor)))
    if name == "n_in":
        lengths = replace(work, n_in=max(1.0, work.n_in * factor))
    elif name == "n_out":
        lengths = replace(work, n_out=max(1.01, work.n_out * factor), lengths="")
    else:
        lengths = replace(work, alpha=min(1.0, work.alpha * factor))
    return replace(problem, work=lengths)


def best_rate(solved: Solution) -> float:
    """Return the goodput of a unit at full load of the chosen architecture, in requests/s; 0 where there is none."""
    return told_rate(solved, solved.best)[0] if solved.best != "" else 0.0


def undrafted(problem: Problem, draws: list[DrawnCoefficients]) -> Solution:
    """Return what is decided if nothing is drafted."""
    return solve(replace(problem, unit=drafting(problem.unit, 0, 0.0)), draws)


def gains(problem: Problem, draws: list[DrawnCoefficients], read_bws: dict[str, float]) -> list[StoreGain]:
    """Return what loading the stored share of the prompts gains, by where it lies: "nowhere", then each tier.

    where, binds ("computing" or "loading", what a prompt alone waits for), rate (goodput of a unit in requests/s of
    the best architecture, with low and high) and speedup (of a prompt alone, the median), over computing all;
    gain, the ratio of two such rates, with chance and sure, its `verdict` over draws and errors: where it changes the
    best architecture, with the errors of both. HBM that does not hold the sessions gains nothing, and serves nothing.
    """
    where: list[tuple[str, Problem]] = [("nowhere", all_computed(problem))]
    if problem.work.alpha > 0:
        for name in read_bws:
            where.append((name, replace(problem, read_bw=read_bws[name])))
    rows: list[StoreGain] = []
    firsts: list[float] = []
    plain: list[float] = []
    base, name_plain, errors = NEVER, "", problem.gain_errors
    for name, there in where:
        if len(sessions_overflow(there)) > 0:
            rows.append(StoreGain(where=name, binds="room: it does not hold the sessions"))
            continue
        solved = solve(there, draws)
        alone = [one.step_seconds(0.0, 1.0) for one in solved.costs]
        quick = [one.step_seconds(0.0, 1.0) for one in drawn_costs(replace(there, read_bw=0.0), draws)]
        best = solved.order[0]
        each = solved.rates[best]
        span, sure = told_rate(solved, best), UNSAID
        if name == "nowhere":
            firsts, plain, base, name_plain = alone, each, span[0], best
        elif base > 0:
            same = best == name_plain
            error = errors["store"] if same else add_log_errors(errors["store"], errors[best], errors[name_plain])
            sure = verdict(each, plain, error)
        binds = "loading" if mean_of(alone) > mean_of(quick) * NEARLY else "computing"
        rows.append(StoreGain(
            where=name, binds=binds, rate=span[0], rate_low=span[1], rate_high=span[2],
            speedup=interval(NEVER, ratios(firsts, alone))[0], gain=span[0] / base if base > 0 else NEVER,
            chance=sure.chance, sure=sure.sure,
        ))  # fmt: skip
    return rows


def whole_alone(problem: Problem, coefficients: CoefficientValues, factors: list[float]) -> float:
    """Return the seconds of a prompt alone of which nothing is stored."""
    return under(all_computed(problem), coefficients, factors).step_seconds(0.0, 1.0)


def store_break_even(problem: Problem, whole: float) -> list[float]:
    """Return how much faster a token is loaded than computed, and up to which stored share a prompt gains by it.

    Computing all of a prompt takes `whole` seconds; what is new is written over the same links.
    """
    work, unit = problem.work, problem.unit
    e = whole / kv_loaded(unit, work.n_in, problem.read_bw)
    fresh = work.n_in - stored_tokens(work.n_in, work.alpha)
    write = kv_written(unit, work) / (problem.read_bw / unit.layout.dp) / fresh
    return [e, crossover_shared_link(e, whole / work.n_in, write)]


def all_computed(problem: Problem) -> Problem:
    """Return the question with nothing stored."""
    return replace(problem, work=replace(problem.work, alpha=0.0), read_bw=0.0)
