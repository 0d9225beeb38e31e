"""What a plan has to say: which sentences, and with which numbers."""

from dataclasses import replace
from math import nan

import pytest
from made import Made
from msgspec import structs

from inference_math import SLA, Unit, Workload
from inference_math.catalogue.tiers import Tier
from inference_math.evidence.sentences import render
from inference_math.optimiser import answers, starts
from inference_math.optimiser.case import Case, under
from inference_math.optimiser.choice import middle_row
from inference_math.unit.nearest import known_errors
from inference_math.unit.scope import outside
from inference_math_planner.answers import notes
from inference_math_planner.answers.deployment import plan


def keys(said):
    """Return what is said, by its keys."""
    return [part["key"] for part in said]


@pytest.mark.parametrize(
    ("share", "cvs", "played", "many", "promise", "come"),
    [
        (0.9, [1, 1], "", False, "promise.share", ["how.random", "how.equal"]),
        (0.0, [4, 4], "mix", False, "promise.means", ["how.scatter", "how.mix"]),
        (0.9, [4, 1.5], "", True, "promise.share", ["how.scatter_each", "how.equal"]),
        (0.9, [4, 4], "trace", False, "promise.share", ["how.trace"]),
    ],
)
def test_under_what_a_fleet_holds(share, cvs, played, many, promise, come):
    said = notes.sized_how(share, cvs, played, 8, 40, 50, many)
    assert said["promise"]["key"] == promise
    assert keys(said["come"]) == come
    assert (said["share"], said["many"], said["turns"]) == (0.8, many, played == "trace")


def test_which_gpu_is_first_is_said_by_cost_where_two_have_a_price_else_by_rate():
    assert (
        render(notes.gpus_said(["a", "b"], [3.0, 2.0], [nan, nan]))
        == "one GPU serves most requests/s on a (3), then b (2)"
    )
    assert render(notes.gpus_said(["a", "b"], [3.0, 0.0], [0.5, nan])) == "one GPU serves most requests/s on a (3)"
    # Of three the one without a price is not compared, as fast as it may be.
    said = render(notes.gpus_said(["b", "a", "c"], [2.0, 3.0, 9.0], [0.25, 0.5, nan]))
    assert said == "an output token costs least on b ($0.25 a million), then a ($0.5 a million)"
    assert notes.gpus_said(["a"], [0.0], [nan]) == []
    *_, below = notes.gpus_said(["b200", "gb200"], [3.0, 2.0], [nan, nan])
    assert below == {"key": "gpus.below", "name": "gb200", "other": "b200"}
    assert keys(notes.gpus_said(["gb200", "b200"], [3.0, 2.0], [nan, nan])) == ["gpus.rate"]
    assert keys(notes.gpus_said(["b200", "gb200"], [3.0, 0.0], [nan, nan])) == ["gpus.rate"]


def test_the_runner_up_says_what_would_turn_the_order():
    rows = [
        Made({"input": "tpot", "best_low": "disaggregated", "best_high": "chunked"}),
        Made({"input": "n_in", "best_low": "chunked", "best_high": "disaggregated"}),
    ]
    assert render(notes.runner_up("chunked", "aggregated", 3.0, rows, False)) == (
        "runner-up at full load: aggregated, 3 requests/s per unit; disaggregated would serve most in the mean with"
        " limit on TPOT a fifth tighter or prompts a fifth longer"
    )
    lost = [rows[0] | {"best_low": ""}]
    for sensitivities, even, turns in (([], False, ["stays"]), (lost, False, ["unmet"]), ([], True, ["even"])):
        found = notes.runner_up("chunked", "aggregated", 3.0, sensitivities, even)
        assert keys(found["turns"]) == [f"runner_up.{name}" for name in turns]
    # Of two that are as good, hardly anything is needed.
    assert [one.get("name") for one in notes.runner_up("aggregated", "chunked", 3.0, rows, True)["turns"]] == [
        "disaggregated",
        None,
    ]
    assert notes.runner_up("chunked", "aggregated", 0.0, rows, False) == {"key": "runner_up.none"}


def test_an_input_that_turns_the_order_either_way_is_named_once():
    """Not "a fifth lower or a fifth higher", which reads as if its value did not matter."""
    either = [Made({"input": "accepted", "best_low": "chunked", "best_high": "chunked"})]
    said = render(notes.runner_up("aggregated", "chunked", 3.0, either, False))
    turn = "chunked would serve most in the mean with chance that a draft is accepted a fifth off, in either direction"
    assert said.endswith(turn)
    assert "lower" not in said
    assert "higher" not in said


@pytest.mark.parametrize(("engine", "slow"), [("sglang", True), ("vllm", False), ("trtllm", False)])
def test_an_fp8_cache_that_an_engine_reads_more_slowly_is_said(engine, slow):
    """SGLang's measured decode attention of DeepSeek on the H200 reaches 6 % of the bandwidth in FP8, 92 % in BF16."""
    unit = Unit.of("deepseek-v3", "h200-sxm", 8, "fp8", "fp8", engine)
    found = plan(unit, Workload(2000, 500), SLA(ttft=5, tpot=0.2), intervals=False)
    assert any("an FP8 cache makes each step longer" in one for one in found.cautions) is slow
    assert not any(
        "FP8 cache" in one
        for one in plan(unit.resized(kv="bf16"), Workload(2000, 500), found.case.sla, intervals=False).cautions
    )


@pytest.mark.parametrize(("gpu", "kv", "said"), [("b200", "bf16", 1), ("b200", "fp8", 0), ("h200-sxm", "bf16", 0)])
def test_a_cache_that_an_engine_would_keep_in_fp8_is_said_and_told_otherwise(gpu, kv, said):
    """SGLang's sparse attention on Blackwell: the plan in BF16 says so, and its commands do."""
    found = plan(Unit.of("glm-5", gpu, 8, "fp8", kv, "sglang"), Workload(2000, 500), SLA(5, 0.2), intervals=False)
    assert sum("untold, SGLang keeps this model's KV cache in FP8" in one for one in found.cautions) == said
    lines = next(iter(found.starts.values())).commands
    assert lines
    assert all(("--kv-cache-dtype bfloat16" in line) == bool(said) for title, line in lines if "router" not in line)


def test_what_a_replica_keeps_that_has_nothing_to_do():
    assert render(notes.short(0.9, 16, 15, [notes.idle("chunked", 12), notes.idle("aggregated", 0)])) == (
        "with queues, no architecture keeps 90% of the requests within both limits in nine of ten draws at any load; it"
        " takes 15 of 16 draws; with next to nothing to do, chunked keeps it in 12, aggregated keeps it in 0; loosen a"
        " limit"
    )


def test_two_winners_are_told_apart():
    assert notes.apart("chunked", "chunked", 4, 3) == []
    for best, have in (("aggregated", 3), ("disaggregated", 0), ("disaggregated", 4)):
        assert keys(notes.apart("chunked", best, 4, have)) == ["fleet.apart"]
    assert keys(notes.apart("chunked", "disaggregated", 4, 3)) == ["fleet.apart_pools"]


@pytest.mark.parametrize(
    ("gpu", "tp", "more", "said"),
    [
        ("h100-sxm", 2, {}, []),
        ("l40s", 1, {}, []),
        ("l40s", 2, {}, ["pcie"]),
        ("h100-sxm", 1, {"drafts": 1, "pp": 2}, ["drafts", "drafted", "mtp"]),
        ("rtx-pro-6000", 4, {"drafts": 2, "accepted": 0.5}, ["drafts", "drafted", "mtp", "pcie"]),
    ],
)
def test_what_is_taken_on_trust_is_said(gpu, tp, more, said):
    fields = (
        "kind",
        "engine",
        "maker",
        "source",
        "model",
        "gpu",
        "weights",
        "drafts",
        "points",
        "error",
        "ttft",
        "inside",
    )
    drafted = ("dense", "t", "AMD", "recipes", "d", "b", "fp8", "mtp", 11, 0.16, -1, 0.8)
    rows = [Made(zip(fields, one, strict=True)) for one in (drafted, (*drafted[:7], "none", 6, 0.4, -1, 0.8))]
    found = notes.trusted(Unit.of("llama-3-8b", gpu, tp, **more).numbers, rows)
    assert keys(found) == [f"trusted.{name}" for name in said]
    if more:
        drafts, told, mtp, *_ = found
        assert drafts["gives"] == pytest.approx({1: 1.8, 2: 1.75}[drafts["drafts"]])
        assert render(told) == "with drafts predictions were 16% off on 11 measurements (d in fp8 on b under t)"
        assert mtp["stages"] == ("pp" in more)


def test_what_else_tells_two_apart_is_said():
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2200, 170), SLA(0.4, 0.04))
    solved = answers.solve(case.problem, case.pairs(0))
    alone = [(name, middle_row(solved, name)["ttft"][0]) for name in solved.order]
    for change in ({"tie": True}, {"lead": 0.01}):
        said = notes.to_choose(case.problem, structs.replace(solved, **{"tie": False, "lead": 1.0} | change))[0]
        assert said["what"]["key"] == "choose.mean"
        assert [(one["name"], one["ttft"]) for one in said["each"]] == alone
    tail = structs.replace(case.problem, quantile=0.9)
    assert render(notes.to_choose(tail, structs.replace(solved, tie=True))[0]["what"]) == "P90 of TTFT"
    assert notes.to_choose(case.problem, structs.replace(solved, best="", tie=True)) == []


def test_who_is_the_best_in_few_draws_is_named():
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2200, 170), SLA(0.4, 0.04))
    solved = structs.replace(answers.solve(case.problem, case.pairs(0)), tie=False, lead=1.0)
    none = structs.replace(solved.each["chunked"][0], rate=0.0)
    rates, settings = solved.rates | {"chunked": [0.0]}, solved.settings | {"chunked": none}
    solved = structs.replace(solved, rates=rates, settings=settings)
    said = {"key": "choose.faster", "name": "chunked", "share": 0.3}
    for share, expected in ((0.3, [said]), (0.01, [])):
        told = notes.to_choose(case.problem, structs.replace(solved, best_in=solved.best_in | {"chunked": share}))
        assert [one for one in told if one["key"] == "choose.faster"] == expected


@pytest.mark.parametrize(("chunk", "told"), [(100.0, ""), (206.0, ""), (207.0, "cut"), (250.0, "tile"), (462.0, "")])
def test_a_chunk_above_a_tile_is_said(chunk, told):
    """With fifty decodes: below the first tile, full, a little above it, far above it, and two full ones."""
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2200, 170), SLA(0.4, 0.04))
    solved = structs.replace(answers.solve(case.problem, case.pairs(0)), best="chunked", tie=False, lead=1.0)
    row = Made({"batch": 50.0, "chunk": chunk, "rate": 1.0})
    order, chosen = ["chunked", "disaggregated", "aggregated"], solved.settings | {"chunked": row}
    solved = structs.replace(solved, order=order, settings=chosen)
    expected = [{"key": f"choose.{told}", "tokens": chunk + 50, "tile": 256}] if told else []
    assert notes.to_choose(case.problem, solved) == expected
    assert starts.chunk_told(case.problem, row) == (206 if told == "cut" else chunk)  # the settings keep to the tile
    others = (
        Unit.of("llama-3-70b", "h100-sxm", 2, "bf16"),
        Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", engine="sglang"),
    )
    for unit in others:  # whose tiles nobody measured
        case = replace(case, unit=unit)
        assert notes.to_choose(case.problem, solved) == []


@pytest.mark.parametrize("alpha", [0.3, 0.8])
def test_a_store_slower_than_computing_is_said_with_what_would_do(alpha):
    """At the bandwidth that is named, and with the share, it is as fast; a little beyond, it is not."""
    unit, work = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2000, 10, alpha)

    def said(gb, work):
        case = Case(unit, work, SLA(9, 0.9), tier=Tier.of_bandwidth(1e9 * gb)).checked()
        return notes.slow_store(case.problem, under(case), answers.whole_alone(case.problem, *case.pairs(0)[0]))

    ((told),) = said(0.9, work)
    assert told["has"] == pytest.approx(0.9)
    assert told["e"] < 1
    assert told["load"] > told["whole"]
    for factor, slow in ((0.99, True), (1.01, False)):
        assert bool(said(factor * told["needed"], work)) == slow
    if told["less"]:
        assert said(0.9, structs.replace(work, alpha=told["less"][0]["share"])) == []
    whole = Case(unit, structs.replace(work, alpha=0.0), SLA(9, 0.9), tier=Tier.of_bandwidth(1e9)).checked()
    assert notes.slow_store(whole.problem, under(whole), 0.1) == []


@pytest.mark.parametrize(("where", "hidden"), [("dram", True), (Tier.of_bandwidth(0.5e9), False)])
def test_what_a_store_loads_and_writes_is_said(where, hidden):
    unit, work = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2000, 300, 0.8)
    case = Case(unit, work, SLA(5, 0.2), tier=where).checked()
    (told,) = notes.store_moves(case.problem, under(case), 0.2, 3.0)
    each = unit.model.kv_bytes(1, "bf16")
    assert told["loaded"] == pytest.approx(3 * 1600 * each / 1e9)
    assert told["written"] == pytest.approx(3 * 700 * each / 1e9)  # of a prompt what is new, and the answer
    assert told["how"]["key"] == ("stored.beside" if hidden else "stored.longer")
    assert told["endless"] == [{"key": "stored.endless"}]
    (told,) = notes.store_moves(replace(case, sessions=9).problem, under(case), 0.2, 3.0)
    assert told["endless"] == []  # how many come back is said, and what they take
    assert notes.store_moves(replace(case, tier=None).problem, under(replace(case, tier=None)), 0.2, 3.0) == []


def test_intervals_that_are_wider_than_the_calibration_s_own_are_said_with_their_points():
    unit = Unit.of("qwen3-30b-a3b", "b200", weights="bf16")
    told = render(notes.widened(unit.score_key, known_errors())[0])
    assert "29% of 7 measurements lay (qwen3-30b-a3b in bf16 on b200)" in told
    assert notes.widened(structs.replace(unit.score_key, model="qwen3-235b-a22b"), known_errors()) == []
    (foreign,) = notes.widened(
        structs.replace(unit.score_key, model="llama-3-70b"), known_errors()
    )  # served in FP8 and NVFP4
    assert render(foreign).startswith("intervals are those of another engine than ours")


def test_whether_drafts_pay_is_said():
    assert [notes.drafting_pays(rate, 2.0)["pays"] for rate in (3.0, 1.0)] == [True, False]
    assert notes.drafting_pays(1.0, 0.0) == {"key": "drafts.needed"}


def test_what_is_missed_is_told_by_the_token():
    unit, work = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.6), Workload(1000, 200)
    alone = unit.tpot(work, 1)
    for limit, misses in ((0.5 * alone, True), (1.2 * alone, False)):
        case = Case(unit, work, SLA(1, limit))
        each = answers.under(case.problem, unit.found(work), [1.0, 1.0, 0.0])
        for said in (notes.missed(case.problem, each)[0], notes.hindered(case.problem, each, "disaggregated")):
            assert (said.get("limit") == "TPOT") == misses
            if misses:
                assert (said["alone"], said["excess"]) == pytest.approx((alone, 1.0), rel=1e-9)


def test_what_is_out_of_range_is_said_with_the_range():
    scope = {"n_in": (100, 4000), "gpu": ("h100-sxm", "h200-sxm")}
    assert list(map(render, outside(scope, {"n_in": (5000, 5000), "gpu": "h100-sxm"}))) == [
        "prompt length 5,000 is outside the calibrated range, 100 to 4,000"
    ]
    assert list(map(render, outside(scope, {"n_in": (50, 5000), "gpu": "l4"}))) == [
        "prompt length 50 to 5,000 is outside the calibrated range, 100 to 4,000",
        "GPU l4 is not among the calibrated: h100-sxm, h200-sxm",
    ]


@pytest.mark.parametrize(
    ("name", "step", "said"),
    [
        ("chunked", lambda b, p: 0.04 * b + (0.02 if 0 < p < 1 else 0.3 * p), {"key": "hindered.chunk", "least": 0.06}),
        ("chunked", lambda b, p: 0.04 * b + 0.3 * p, {"key": "hindered.late", "most": 0.5}),
        ("aggregated", lambda b, p: 0.04 * b + 0.3 * p, {"key": "hindered.beside"}),
        ("disaggregated", lambda b, p: 0.04 * b + 0.3 * p, {"key": "hindered.room"}),
        ("aggregated", lambda b, p: 0.04 * b + 0.6 * p, {"limit": "TTFT", "alone": 0.7, "excess": 0.4, "most": 0.5}),
        ("aggregated", lambda b, p: 0.06 * b, {"limit": "TPOT", "alone": 0.06, "excess": 0.2, "most": 0.05}),
    ],
)
def test_each_architecture_says_what_hinders_it(name, step, said):
    asked = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(2000, 200), SLA(0.5, 0.05)).problem
    found = notes.hindered(asked, Made({"step_seconds": step, "step_with_chunk_each": step, "front": 0.1}), name)
    assert found == {"key": "hindered.over"} | {
        one: value if isinstance(value, str) else pytest.approx(value) for one, value in said.items()
    }


@pytest.mark.parametrize(("share", "said"), [(0.099, False), (0.101, True)])
def test_a_front_is_spoken_of_from_a_tenth_of_the_limit_on(share, said):
    """By its upper end, and not where somebody measured it."""
    asked = Made({"front_sd": 0.2, "ttft": 0.5})
    assert bool(notes.front_weighs(asked, [0.01, 0.005, share * 0.5])) == said
    assert notes.front_weighs(asked | {"front_sd": 0.0}, [0.01, 0.005, share * 0.5]) == []
