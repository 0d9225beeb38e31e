"""The same question gets the same answer in every room, it is within its limits, and no answer beats the floor.

The page's JavaScript answers the same set-ups in `tests/book/explore/test_node.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
from grids import each
from made import Made
from scipy import stats
from setups import SETUPS, name_of

import inference_math_planner as planner
from inference_math import SLA, Unit, Workload, catalogue, simulate, theory
from inference_math.optimiser import answers, architectures
from inference_math.optimiser.case import Case, under
from inference_math.optimiser.load import at_full_load, settings_row
from inference_math.unit.batch import mean_seen, round_trip
from inference_math.unit.coefficients import Anchor
from inference_math.unit.costs import measured
from inference_math.unit.operators import Operators
from inference_math.unit.problem import search_constants
from inference_math.unit.steps import stored_tokens
from inference_math_planner.answers.deployment import Plan
from inference_math_planner.fleets import queues

EXACT = 1e-6


@each(SETUPS, name_of)
def test_unit_costs_and_plan_agree(setup):
    unit, work, users = setup
    tpot, ttft = unit.tpot(work, users), unit.ttft(work, users)
    rate = users / unit.e2e(work, users)
    if not unit.drafts:  # in the talks' numbers a step gives one token
        costs = unit.costs(work)
        assert costs.tpot(users) == pytest.approx(tpot, rel=EXACT)
        assert costs.ttft(users) == pytest.approx(ttft, rel=EXACT)
        assert costs.rate(users) == pytest.approx(rate, rel=EXACT)
    asked = Case(unit, work, SLA(1.0, 1.0))
    step, steps = under(asked).step_seconds, search_constants(asked.problem).steps
    assert mean_seen(step, users, steps, 0) / asked.problem.unit.accepted_per_step == pytest.approx(tpot, rel=EXACT)
    assert users / round_trip(step, users, steps) == pytest.approx(rate, rel=EXACT)
    # A plan whose limits this batch just meets takes it, or a larger one that is as fast.
    front = unit.front.seconds
    limits = SLA(1.0000001 * (ttft + front), 1.0000001 * tpot)
    whole = Plan.of(Case(unit, work, limits), 0).compared.set_index("architecture")
    batch = int(whole.batch["aggregated"])
    assert batch >= min(users, int(unit.places(work)))
    assert whole.tpot["aggregated"] == pytest.approx(unit.tpot(work, batch), rel=EXACT)
    assert whole.ttft["aggregated"] == pytest.approx(unit.ttft(work, batch) + front, rel=EXACT)
    assert whole.rate["aggregated"] == pytest.approx(batch / unit.e2e(work, batch), rel=EXACT)


@pytest.mark.parametrize("anchor", [0.0, 2e-3, -4e-3])
@each(SETUPS, name_of)
def test_a_step_is_the_same_in_every_room(setup, anchor):
    """The law, the simulator's and the planner's; with anchors below zero the floor of all three cuts in."""
    (of, work, users), moved = setup, []
    calibration = replace(of.calibration, anchors=(Anchor(work.n_in, work.n_out, anchor),) if anchor else ())
    unit = of.calibrated(calibration)
    numbers = answers.under(Case(unit, work, SLA(1.0, 1.0)).problem, unit.found(work), [1.0, 1.0, 0.0])
    context = theory.mean_context(n_in=work.n_in * work.pairing, n_out=max(work.n_out, 1.001), cv=work.cv)
    cached = stored_tokens(work.n_in, work.alpha)
    fresh = work.n_in - cached
    for prompts in (0, 1):
        law = unit.step_time(users, context, prompts * fresh, prompts * cached)
        planned = numbers.step_seconds(users, prompts)
        pairs = prompts * fresh * (cached + fresh / 2)
        simulated = simulate.Steps(unit)(users, users * context, prompts, prompts * fresh, pairs)
        assert planned == pytest.approx(law, rel=EXACT)
        assert simulated == pytest.approx(law, rel=EXACT)
        moved.append(law - of.step_time(users, context, prompts * fresh, prompts * cached))
        assert law >= unit.floor.step_time(users, context, prompts * fresh, prompts * cached) * (1 - 1e-12)
    assert all(np.sign(each) in (0, np.sign(anchor)) for each in moved)
    assert anchor <= 0 or max(moved) > 0


def test_the_exact_mean_is_the_sum_over_who_prefills():
    """By SciPy's binomial and the simulator's price of a step, for every set-up."""
    for unit, work, users in SETUPS:
        context = work.n_in + work.n_out / 2 + work.cv**2 * work.n_out**2 / (2 * (work.n_out - 1))
        cached = min(work.alpha * work.n_in, work.n_in - 1)
        fresh = work.n_in - cached
        for own, said in ((0, unit.tpot(work, users)), (1, unit.ttft(work, users))):
            k = np.arange(users)
            seconds = [
                simulate.Steps(unit)(users - own - i, (users - own - i) * context, own + i, (own + i) * fresh,
                               (own + i) * fresh * (cached + fresh / 2))
                for i in k.tolist()
            ]  # fmt: skip
            given = sum(unit.accepted**i for i in range(unit.drafts + 1))  # tokens of a step
            steps = 1 + (work.n_out - 1) / given
            mean = stats.binom(users - 1, 1 / steps).pmf(k) @ np.array(seconds) / (1 if own else given)
            assert said == pytest.approx(mean, rel=1e-9), (unit.name, work, users, own)


@pytest.mark.parametrize("dp", [1, 4, 8])
@pytest.mark.parametrize("larger", [1.0, 3.0])
def test_chunks_of_groups_are_those_that_ranks_compute(dp, larger):
    """Each group has a chunk of its own: full where it must be; three times as large, so that not every step has."""
    unit, work = Unit.of("deepseek-v3", "h200-sxm", tp=8 // dp, dp=dp, ep=8, weights="fp8"), Workload(2200, 170)
    case = Case(unit, work, SLA(10.0, 1.0))
    constants, batch = search_constants(case.problem), 64
    chunk = larger * theory.chunk_size_full(b=batch, n_in=work.n_in, n_out=work.n_out) / dp
    planned = at_full_load(constants, under(case), "chunked", settings_row(batch, chunk, 0.0, 0.0))
    users = batch + (dp if larger == 1 else round(dp / larger))  # prompts under way hold places
    scheduler = simulate.Chunked(round(dp * chunk) + users, max_batch=users, ranks=dp)
    told = {"concurrency": users, "requests": 900, "warmup": 300, "start": "steady", "scheduler": scheduler}
    run = simulate.closed_loop(work, simulate.Steps(unit), seed=1, **told)
    assert planned.rate == pytest.approx(run.request_rate, rel=0.1)
    assert planned.step == pytest.approx(run.gaps.mean, rel=0.1)


def _simulated(unit, work, users, seed):
    requests = min(max(25 * users, 400), 2500)
    whole = Workload(work.n_in, work.n_out, work.alpha, work.lengths)
    run = simulate.closed_loop(
        whole, simulate.Steps(unit), concurrency=users, requests=requests, warmup=3 * users, start="steady", seed=seed
    )
    return run.requests.tpot.mean() if unit.drafts else run.gaps.mean, run.request_rate


@each(SETUPS, name_of, parts=6)
def test_the_simulator_agrees_within_its_own_scatter(setup):
    """Seeds scatter: answers of equal length keep their phases for a whole run."""
    unit, work, users = setup
    runs = np.array([_simulated(unit, work, users, seed) for seed in range(4)])
    said = unit.tpot(work, users), users / unit.e2e(work, users)
    error = runs.std(axis=0, ddof=1) / 2
    # Of a mixture, or of windows, a step is not linear in contexts that differ and are met in phase.
    near = 0.015 if unit.model.is_mixture else 0.01
    if unit.drafts:  # of an answer's last step some drafts are too many
        near += 0.5 * unit.tokens_a_step / work.n_out
    for mean, sd, value in zip(runs.mean(axis=0), error, said, strict=True):
        assert abs(mean / value - 1) <= near + 4 * sd / value


CASES = [one for one in SETUPS if one[2] >= 4][::5]


def scheduler(system):
    """Return what `queues` has the simulator run, as a scheduler."""
    common = {name: getattr(system, name) for name in ("max_batch", "kv_capacity", "grows")}
    if system.prefill_units:
        pools = {
            name: getattr(system, name) for name in ("prefill_units", "groups", "decode_units", "transfer", "budget")
        }
        return simulate.Disaggregated(**pools, **common)
    if system.budget == np.inf:  # of an engine that plans no step ahead
        return simulate.Aggregated(**common)
    return simulate.Chunked(system.budget, **common, policy=system.policy)


def tried(case, row):
    """Return a row as a fleet tries it, with its own places: of a pool's prompts each group of GPUs has its part."""
    if row["architecture"] != "disaggregated":
        return row
    plain = settings_row(row["batch"], row["chunk"], row["prefill_units"], row["decode_units"])
    rows = queues.trials(case.problem, row["architecture"], plain)
    own = next(one for one in rows if one.prefill_units == row.prefill_units)
    return queues.seated(own, row["batch"])


def together(case, row):
    """Return the requests/s of a replica that computes all prompts that arrive together, as the plan takes it."""
    system = queues.system_for(case.problem, "aggregated", row)
    scheduler = simulate.Aggregated(**{name: getattr(system, name) for name in ("max_batch", "kv_capacity", "grows")})
    return simulate.closed_loop(
        case.work, simulate.Steps(case.unit), concurrency=int(row["batch"]), requests=3000, warmup=1500,
        scheduler=scheduler,
    ).request_rate  # fmt: skip


def let_in(case, row):
    """Return the share of the plan's requests that an engine's budget lets in, at most one.

    A request has its prompt and a token of each later step computed: a step has room for `budget` of these tokens, and
    of `batch` requests with `n_out` steps each the plan lets batch / n_out in. Steps of fewer prompts are no longer.
    """
    work, budget = case.work, queues.system_for(case.problem, "aggregated", row).budget
    tokens = work.n_in - stored_tokens(work.n_in, work.alpha) + work.n_out - 1
    return min(1.0, budget / tokens / (row["batch"] / work.n_out))


@each(CASES, name_of, parts=3)
def test_a_fleet_s_replica_finishes_what_the_plan_says(setup):
    """At saturation, with the schedulers that a fleet simulates."""
    unit, work, users = setup
    tpot, ttft = 1.5 * unit.tpot(work, users), 3 * unit.ttft(work, users)
    case = Case(unit, Workload(work.n_in, work.n_out, work.alpha, "geometric"), SLA(ttft, tpot), units=4, front=0.0)
    for row in map(Made, Plan.of(case, 0).compared.to_dict("records")):
        if not row["rate"]:
            continue
        many = int(row["prefill_units"] + row["decode_units"]) if row["architecture"] == "disaggregated" else 1
        waiting = int(many * (row["batch"] + 2 * max(row["chunk"] if many > 1 else 0, work.n_in) / work.n_in) + 8)
        run = simulate.closed_loop(
            case.work, simulate.Steps(unit), concurrency=min(waiting, 3000), requests=3000, warmup=1500,
            scheduler=scheduler(queues.system_for(case.problem, row["architecture"], tried(case, row))),
        )  # fmt: skip
        # Whole batches, transfers: the count is of an engine, not of a formula. Of a
        # mixture a step grows the less the more there is in it: of a few decodes beside a chunk the mean step is
        # shorter than the step of their mean.
        few = row["architecture"] == "chunked" and row["batch"] < 5 and unit.model.is_mixture
        assert run.request_rate / many <= (1.6 if few else 1.1) * row["rate"]
        if row["architecture"] == "aggregated":
            assert run.request_rate <= 1.05 * row["rate"]
            assert together(case, row) == pytest.approx(row["rate"], rel=0.05)
            # Stages share two prompts of one step, but not the one that a budget leaves; nor do groups of attention.
            if unit.dp * unit.pp == 1:
                assert run.request_rate >= 0.85 * let_in(case, row) * row["rate"]
        if row["architecture"] == "disaggregated" and unit.dp * unit.pp == 1:
            assert run.request_rate / many >= 0.85 * row["rate"]


LLAMA = Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="fp8")


def composed(decodes, context, tokens, n_in):
    """Seconds of a step straight from the tables: matrices of all tokens at once, and each attention."""
    prefills, reads = LLAMA.prefills().set_index("n_in"), LLAMA.kv_reads()
    products = LLAMA.products().set_index("tokens").gemm
    together = (decodes + tokens) * (1 - 1e-9)
    larger = products[products.index >= min(together, products.index.max())]
    padded = larger.min() if together <= products.index.max() else larger.iloc[0] * together / products.index.max()
    between = min(np.interp(together, products.index, products), padded) if together else 0.0
    links = np.interp(together, prefills.index, prefills.allreduce) if together >= 64 else 0.0
    attention = decodes * np.interp(context, reads.context, reads.cache_read)
    return between + links + attention + tokens / n_in * np.interp(n_in, prefills.index, prefills.attention)


LENGTHS = [(512, 512), (1200, 250), (2048, 170), (1024, 512), (2048, 1024), (600, 3000)]


def kept(rows, n_in, n_out, limit):
    """Assert that the settings of a plan keep a limit by the operators, whichever mix prompts and decodes."""
    for name in ("chunked", "disaggregated"):
        row = rows.loc[name]
        if row.rate > 0:
            assert composed(row.batch, n_in + n_out / 2, row.chunk if name == "chunked" else 0.0, n_in) <= limit


@each([(*lengths, limit) for limit in (0.04, 0.02, 0.1) for lengths in LENGTHS], parts=3)
def test_settings_from_operators_keep_their_limit_by_the_operators(asked):
    n_in, n_out, limit = asked
    found = architectures.compare(measured(LLAMA, n_in, n_out), limit, 1.0).set_index("architecture")
    kept(found, n_in, n_out, limit * (1 + 1e-6))


@each([*LENGTHS[:3], (2200, 170)], parts=2)
def test_a_plan_s_settings_err_by_no_more_than_it_says(lengths):
    """The plan's form against the tables: within two of the standard deviations that it calls its spread."""
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
    found = planner.plan(unit, Workload(*lengths), SLA(1.0, 0.04)).compared.set_index("architecture")
    kept(found, *lengths, 0.04 * (1 + 2 * unit.calibration.spread))


@each(SETUPS, name_of, parts=6)
def test_no_answer_beats_the_floor(setup):
    unit, work, users = setup
    near = 1 - 1e-12
    for name in ("ttft", "tpot", "e2e"):
        least = getattr(unit.floor, name)(work, users) * near
        assert getattr(unit, name)(work, users) >= least
        assert getattr(unit.at_datasheet, name)(work, users) >= least
        assert unit.predict(name, work, users).low >= least
    # Seconds of a unit that the FLOPs of a request take at least, and its reads.
    stored = stored_tokens(work.n_in, work.alpha)
    shared = sum(group.seconds for group in unit.numbers.groups) / (unit.dp * unit.pp)
    computes = (work.n_in - stored + work.n_out - 1) * (shared + unit.numbers.experts.seconds / unit.pp)
    before, later = (unit.model.kv_bytes(n, unit.kv) for n in (work.n_in * work.alpha, work.n_in + work.n_out / 2))
    reads = (work.n_out - 1) * (later - before) / unit.numbers.all_bw
    case = Case(unit, work, SLA(10 * unit.ttft(work, users), 2 * unit.tpot(work, users)))
    for pair in (*case.pairs(0), case.pairs(8)[SETUPS.index(setup) % 8]):  # of eight draws each is some set-ups'
        for row in Plan(case, (pair,), answers.solve(case.problem, [pair])).compared.itertuples():
            assert not row.rate > 0 or 1 / row.rate >= max(computes, reads) * (1 - 1e-9)
