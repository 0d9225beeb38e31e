"""What a plan says in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference_math import SLA, Unit, Workload
from inference_math.checks.numerals import digits
from inference_math.perf import answers
from inference_math.perf.choice import median_row
from inference_math.perf.scope import outside
from inference_math.perf.words import (
    apart,
    checked,
    drafting_pays,
    front_weighs,
    gpus_said,
    hindered,
    idle,
    missed,
    short,
    sized,
    sized_how,
    slow_store,
    to_choose,
    trusted,
    verdict,
)
from inference_math.planner.case import Case

FIELDS = ("kind", "engine", "maker", "source", "model", "gpu", "weights", "drafts", "points", "error", "ttft", "inside")
ROWS = [
    dict(zip(FIELDS, row, strict=True))
    for row in [
        ("dense", "atom", "AMD", "recipes", "m", "x1", "fp8", "none", 6, 0.4, -1, 0.8),
        ("dense", "sglang", "AMD", "book", "n", "x1", "fp8", "none", 5, 0.1, -1, 0.9),
        ("dense", "sglang", "NVIDIA", "book", "m", "h", "fp8", "none", 10, 0.2, -1, 0.7),
        ("dense", "sglang", "NVIDIA", "book", "n", "h", "fp8", "none", 30, 0.4, -1, 0.3),
        ("dense", "vllm", "NVIDIA", "set aside", "m", "h", "fp8", "none", 4, 0.3, 0.5, 1),
        ("dense", "vllm", "NVIDIA", "left out", "m", "h", "fp8", "none", 9, 0.7, 0.7, -1),
        ("dense", "vllm", "NVIDIA", "left out", "m", "b", "fp8", "none", 8, 0.05, 0.25, -1),
        ("dense", "trtllm", "NVIDIA", "book", "n", "b", "fp8", "none", 3, 0.6, -1, 0),
        ("dense", "trtllm", "NVIDIA", "set aside", "m", "h", "fp8", "none", 140, 0.1, 0.2, 0.5),
        ("dense", "trtllm", "NVIDIA", "set aside", "m", "h", "nvfp4", "none", 40, 0.4, 0.6, 0.5),
        ("dense", "trtllm", "NVIDIA", "set aside", "m", "b", "fp8", "none", 60, 0.2, 0.2, 0.5),
        ("dense", "trtllm", "NVIDIA", "set aside", "m", "h", "fp8", "unknown", 999, 0.9, 0.9, 0.1),
    ]
]


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        # The model on the GPU in the precision; of the other source another model.
        (
            ("m", "h", "fp8", "dense", "trtllm", "NVIDIA"),
            ["10% off in latency, 20% in TTFT, on 140", "60% off in TPOT on 3"],
        ),
        # Both precisions, where neither is the one that is asked for.
        (("m", "h", "bf16", "dense", "trtllm", "NVIDIA"), ["17% off in latency, 29% in TTFT, on 180", "60% off"]),
        # Left out with its engine on that GPU, which is nearer than what was set aside on another.
        (("m", "b", "fp8", "dense", "vllm", "NVIDIA"), ["5% off in latency, 25% in TTFT, on 8", "left out of the fit"]),
        # Set aside, where there is both.
        (("m", "h", "fp8", "dense", "vllm", "NVIDIA"), ["30% off in latency, 50% in TTFT, on 4", "held 100%"]),
        # Another model of its kind.
        (("o", "h", "fp8", "dense", "sglang", "NVIDIA"), ["no served points", "35% off in TPOT on 40", "to 70% off"]),
        # The same engine first.
        (("m", "x1", "fp8", "dense", "sglang", "AMD"), ["GPUs of AMD", "10% off in TPOT on 5", "40% off in TPOT on 6"]),
        (("m", "h", "fp8", "hybrid", "sglang", "NVIDIA"), ["no served points of hybrid under sglang"]),
    ],
)  # fmt: skip
def test_what_was_checked_is_said_of_what_is_nearest(asked, parts):
    said = checked(*asked, False, ROWS)
    assert [said.find(part) for part in parts] == sorted(said.find(part) for part in parts)
    assert min(said.find(part) for part in parts) >= 0
    assert said.count("% off") == sum("% off" in part for part in parts)  # of nothing else


def test_of_operators_older_versions_are_all_that_was_checked():
    said = checked("m", "h", "fp8", "dense", "vllm", "NVIDIA", True, ROWS)
    assert said.startswith(
        "no served points check operators under today's vllm; of older ones predictions were 30% off"
    )


def sizes(following="", *others, have=0, tie=False, ahead=0.8, lost=0.04, gpus=(6, 4, 9), rate=40):
    ends = [list(one) for one in others]
    return sized("chunked", 3, 1, list(gpus), rate, following.split(), ends, have, tie, ahead, lost)


def test_a_fleet_in_a_sentence():
    assert sizes() == "6 GPUs (4 to 9) for 40 requests/s: chunked, 3 replicas of one unit"
    assert sizes(gpus=(6, 4, float("inf"))).startswith("6 GPUs (4 to no number)")
    said = sizes("aggregated", (8, 6, 10))
    assert said.endswith(
        "; aggregated takes 8 GPUs (6 to 10); chunked is the best in 80% of the draws; in the mean it loses 4% to the"
        " best one"
    )
    owned = sizes("aggregated", (7.25, 6, 8), have=6, rate=9.5, lost=0.0)
    assert owned.startswith("9.5 requests/s on 6 GPUs: chunked")
    assert sizes(have=8, rate=9.5).startswith("9.5 requests/s on 6 of 8 GPUs: chunked")
    assert owned.endswith("; aggregated serves 7.25 requests/s (6 to 8); chunked is the best in 80% of the draws")
    assert sizes("split", (8, 8, 8), tie=True).endswith("its lead varies by more than it is")
    assert sizes("split", (6, 6, 6), tie=True).endswith("to the best one")
    assert "; split takes 1 GPU (1 to 2); " in sizes("split", (1, 1, 2))
    assert "; as few with split" in sizes("split", (6, 6, 6))
    assert "; within 4 %, as much with split" in sizes("split", (7.249, 7, 8), have=6, rate=7.251)
    assert "; as few with split and whole; chunked" in sizes("split whole", (6, 6, 6), (6, 5, 8), tie=True, lost=0)
    assert "; as few with split; " in sizes("split whole", (6, 6, 6), (8, 5, 8))
    assert "; split takes 8 GPUs (8 to 8); chunked" in sizes("split whole", (8, 8, 8), (8, 8, 8))


def how(share=0.9, cvs=(1, 1), played="", units=8, many=False):
    return sized_how(share, list(cvs), played, units, 40, 50, many)


def test_under_what_a_fleet_holds():
    assert "promise: 90% of the requests" in how()
    assert "promise: mean TTFT and mean TPOT" in how(share=0.0)
    assert "counted: arrivals at random, equal prompts" in how()
    assert "counted: arrivals with a CV of 4, lengths as recorded, in replicas of 6 units" in how(
        cvs=(4, 4), played="mix", units=6
    )
    assert "a CV of 4 (1.5 at each replica), equal prompts" in how(cvs=(4, 1.5), many=True)
    assert how().endswith("so set, and without limits, the same GPUs would serve 50 requests/s, of which this is 80%")
    assert "8 units at most (fewer GPUs may do in larger ones), to which requests come by chance" in how(many=True)
    assert "arrivals and lengths as recorded" in how(cvs=(4, 4), played="trace")
    assert "to which requests come in turn" in how(played="trace")


def test_which_gpu_is_first_is_said_by_cost_where_two_have_a_price_else_by_rate():
    nan = float("nan")
    assert gpus_said(["a", "b"], [3.0, 2.0], [nan, nan]) == "one GPU serves most requests/s on a (3), then b (2)"
    assert gpus_said(["a", "b"], [3.0, 0.0], [0.5, nan]) == "one GPU serves most requests/s on a (3)"
    # Of three the one without a price is not compared, as fast as it may be.
    said = gpus_said(["b", "a", "c"], [2.0, 3.0, 9.0], [0.25, 0.5, nan])
    assert said == "an output token costs least on b ($0.25 a million), then a ($0.5 a million)"
    assert gpus_said(["a"], [0.0], [nan]) == ""
    below = "gb200 stands below b200: different measurements tell of them"
    assert gpus_said(["b200", "gb200"], [3.0, 2.0], [nan, nan]).endswith(f"b200 (3), then gb200 (2); {below}")
    assert "below" not in gpus_said(["gb200", "b200"], [3.0, 2.0], [nan, nan])
    assert "below" not in gpus_said(["b200", "gb200"], [3.0, 0.0], [nan, nan])


def test_a_verdict_says_how_often_and_what_it_costs_elsewhere():
    said = verdict("split", "chunked", 3.9, 0.12, 0.9, 0.02, 0.09, False, 0.0)
    assert said == (
        "split serves 3.9 requests/s per unit at full load, the best in 90% of the draws of the calibration; in the"
        " mean it loses 2% to the best one; chunked loses 12% more"
    )
    assert verdict("split", "chunked", 3.9, 0.05, 0.9, 0.0, 0.09, True, 0.0).endswith(
        ": a tie, for from draw to draw that varies by 9%"
    )
    assert verdict("split", "chunked", 3.9, 0.001, 1.0, 0.0, 0.0, False, 0.0).endswith(
        "chunked loses as little: either will do"
    )
    assert "best in fewer than half" in verdict("split", "chunked", 3.9, 0.2, 0.4, 0.0, 0.09, True, 0.0)
    assert "(in 5% nothing meets the limits)" in verdict("split", "chunked", 3.9, 0.2, 0.9, 0.0, 0.09, False, 0.05)
    assert "chunked" not in verdict("split", "chunked", 3.9, float("nan"), 1.0, 0.0, 0.09, False, 0.0)
    assert verdict("", "chunked", 0, float("nan"), 0, 1, 0.09, False, 1.0) == "no architecture meets the SLA"
    assert "in 70% of them none does" in verdict("", "chunked", 0, 0.1, 0, 1, 0.09, False, 0.7)


def test_what_a_replica_keeps_that_has_nothing_to_do():
    said = short(0.9, 16, 15, [idle("chunked", 12), idle("aggregated", 0)])
    assert said.startswith("with queues, no architecture keeps 90% of the requests within both limits in nine of ten")
    assert said.endswith(
        "15 of 16 draws; with next to nothing to do, chunked keeps it in 12, aggregated keeps it in 0; loosen a limit"
    )


def test_two_winners_are_told_apart():
    assert apart("chunked", "chunked", 4, 3) == ""
    assert apart("chunked", "aggregated", 4, 3).startswith("with queues chunked comes first")
    for have in (0, 4):
        assert apart("chunked", "disaggregated", 4, have).startswith("with queues chunked comes first")
    assert apart("chunked", "disaggregated", 4, 3).startswith(
        "chunked comes first of what 3 GPUs allow, for pools take 4, two units; with"
    )
    said = sizes("split", (8, 6, 10), tie=True, ahead=0.1, lost=0.23)
    assert said.endswith(": not sure, for it is the best in fewer than half of them")
    assert sizes("split", (8, 6, 10), tie=True, ahead=0.97).endswith(
        ": not sure, for from draw to draw its lead varies by more than it is"
    )


@pytest.mark.parametrize(
    ("gpu", "tp", "more", "said"),
    [
        ("h100-sxm", 2, {}, []),
        ("l40s", 1, {}, []),
        ("l40s", 2, {}, ["over PCIe"]),
        ("h100-sxm", 1, {"drafts": 1, "pp": 2}, ["with 1 draft a", "16% off on 11", "stages engines may refuse"]),
        (
            "rtx-pro-6000",
            4,
            {"drafts": 2, "accepted": 0.5},
            ["with 2 drafts a step is taken to give 1.75 tokens", "(d in fp8 on b under t)", "EAGLE", "over PCIe"],
        ),
    ],
)
def test_what_is_taken_on_trust_is_said(gpu, tp, more, said):
    rows = [*ROWS, ROWS[0] | {"model": "d", "gpu": "b", "engine": "t", "drafts": "mtp", "points": 11, "error": 0.16}]
    found = trusted(Unit.of("llama-3-8b", gpu, tp, **more).numbers, rows)
    assert len(found) == len(said)
    for sentence, words in zip(found, said, strict=True):
        assert words in sentence


def test_what_else_tells_two_apart_is_said():
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2200, 170), SLA(0.4, 0.04))
    solved = answers.solve(case.asked, case.pairs(0))
    first, second, _ = solved["order"]
    alone = {name: 1e3 * median_row(solved["each"][name])["ttft"][0] for name in (first, second)}
    for change in ({"tie": True}, {"lead": 0.01}):
        said = to_choose(case.asked, solved | {"tie": False, "lead": 1.0} | change)[0]
        assert f"mean TTFT is {first} {digits(alone[first])} ms, {second} {digits(alone[second])} ms" in said
    tail = case.asked | {"quantile": 0.9}
    assert "P90 of TTFT is" in to_choose(tail, solved | {"tie": True})[0]
    assert to_choose(case.asked, solved | {"best": "", "tie": True}) == []


def test_who_is_the_best_in_few_draws_is_named():
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2200, 170), SLA(0.4, 0.04))
    solved = answers.solve(case.asked, case.pairs(0)) | {"tie": False, "lead": 1.0}
    none = solved["each"]["chunked"][0] | {"rate": 0.0}
    solved |= {"each": solved["each"] | {"chunked": [none]}, "settings": solved["settings"] | {"chunked": none}}
    for share, said in ((0.3, True), (0.01, False)):
        told = to_choose(case.asked, solved | {"best_in": solved["best_in"] | {"chunked": share}})
        assert any("chunked meets the limits, too, and is the best in 30%" in one for one in told) == said


@pytest.mark.parametrize(("chunk", "said"), [(100.0, False), (206.0, False), (207.0, True), (462.0, False)])
def test_a_chunk_above_a_tile_is_said(chunk, said):
    """With fifty decodes: below the first tile, full, above it, and two full ones."""
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2200, 170), SLA(0.4, 0.04))
    solved = answers.solve(case.asked, case.pairs(0)) | {"best": "chunked", "tie": False, "lead": 1.0}
    solved["order"] = ["chunked", "disaggregated", "aggregated"]
    solved["settings"] = solved["settings"] | {"chunked": {"batch": 50.0, "chunk": chunk, "rate": 1.0}}
    found = to_choose(case.asked, solved)
    assert bool(found) == said
    assert all("257 tokens in a step" in one for one in found)
    others = (
        Unit.of("llama-3-70b", "h100-sxm", 2, "bf16"),
        Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", engine="sglang"),
    )
    for unit in others:  # whose tiles nobody measured
        case = replace(case, unit=unit)
        assert to_choose(case.asked, solved) == []


@pytest.mark.parametrize(("load", "said"), [(0.0, False), (0.05, False), (0.2, True)])
def test_a_store_slower_than_computing_is_said(load, said):
    each = {"load": load, "mixed": lambda decodes, prompts: max(0.03, load)}
    found = slow_store(each, 0.1)
    assert bool(found) == said
    assert all("200 ms with what it loads, and 100 ms computed: do not load" in one for one in found)


def test_whether_drafts_pay_is_said():
    assert drafting_pays(3.0, 2.0).endswith("2 requests/s at full load, with them 3")
    assert drafting_pays(1.0, 2.0).endswith("these drafts do not pay")
    assert drafting_pays(1.0, 0.0) == "without drafts nothing would meet the SLA"


def test_what_is_missed_is_told_by_the_token():
    unit, work = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.6), Workload(1000, 200)
    alone = unit.tpot(work, 1)
    for limit, said in ((0.5 * alone, True), (1.2 * alone, False)):
        case = Case(unit, work, SLA(1, limit))
        each = answers.under(case.asked, unit.found(work), [1.0, 1.0, 0.0])
        assert ("TPOT: a request alone takes" in " ".join(missed(case.asked, each))) == said
        hinders = hindered(case.asked, each, "disaggregated")
        assert hinders.startswith("TPOT") == said
        if said:
            assert hinders == f"TPOT: a request alone takes {digits(1e3 * alone)} ms, 100% over the limit of " + (
                f"{digits(500 * alone)} ms"
            )


def test_what_is_out_of_range_is_said_with_the_range():
    scope = {"n_in": (100, 4000), "gpu": ("h100-sxm", "h200-sxm")}
    assert outside(scope, {"n_in": (5000, 5000), "gpu": "h100-sxm"}) == [
        "n_in 5,000 is outside the calibrated range, 100 to 4,000"
    ]
    told = outside(scope, {"n_in": (50, 5000), "gpu": "l4"})
    assert told[0].startswith("n_in 50 to 5,000 is outside")
    assert told[1] == "gpu l4 is not among the calibrated: h100-sxm, h200-sxm"


@pytest.mark.parametrize(
    ("name", "step", "said"),
    [
        (
            "chunked",
            lambda b, p: 0.04 * b + (0.02 if 0 < p < 1 else 0.3 * p),
            "TPOT: a step with the smallest chunk takes 60 ms",
        ),
        (
            "chunked",
            lambda b, p: 0.04 * b + 0.3 * p,
            "TTFT: in chunks that keep the limit on TPOT, a prompt takes longer than 500 ms",
        ),
        (
            "aggregated",
            lambda b, p: 0.04 * b + 0.3 * p,
            "the limits, or the memory, leave no room for one request beside another's prompt",
        ),
        ("disaggregated", lambda b, p: 0.04 * b + 0.3 * p, "the memory, or the limits, leave no room for one request"),
        (
            "aggregated",
            lambda b, p: 0.04 * b + 0.6 * p,
            "TTFT: a request alone takes 700 ms, 40% over the limit of 500 ms",
        ),
        ("aggregated", lambda b, p: 0.06 * b, "TPOT: a request alone takes 60 ms, 20% over the limit of 50 ms"),
    ],
)
def test_each_architecture_says_what_hinders_it(name, step, said):
    asked = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(2000, 200), SLA(0.5, 0.05)).asked
    assert hindered(asked, {"mixed": step, "front": 0.1}, name) == said


@pytest.mark.parametrize(("share", "said"), [(0.099, False), (0.101, True)])
def test_a_front_is_spoken_of_from_a_tenth_of_the_limit_on(share, said):
    """By its upper end, and not where somebody measured it."""
    asked = {"front_sd": 0.2, "ttft": 0.5}
    assert bool(front_weighs(asked, [0.01, 0.005, share * 0.5])) == said
    assert front_weighs(asked | {"front_sd": 0.0}, [0.01, 0.005, share * 0.5]) == []
