"""What the planner's page runs is what the package runs: the printed kernel in node, on records made by the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from forms import as_fields, case_of, known, settings as forms_settings
from made import Made
from node import Node, close, plain
from setups import SETUPS, name_of

from inference_math.evidence.sentences import HOLE, JOINS, render
from inference_math.optimiser import answers
from inference_math.optimiser.case import Case
from inference_math.optimiser.starts import settings
from inference_math.optimiser.verdict import cell, stands_on, verdict
from inference_math.unit import Unit
from inference_math.unit.max_load import expected_max_load
from inference_math.unit.nearest import known_comparisons
from inference_math.workload import SLA, Workload
from inference_math_book.explore.browser import script, sentences
from inference_math_book.explore.form import candidate, few_draws
from inference_math_planner import capacity, fleet
from inference_math_planner.answers import notes
from inference_math_planner.answers.deployment import Plan
from inference_math_planner.fleets.bench import cadence_errors, cadence_said
from inference_math_planner.fleets.ladder import tier_verdicts
from inference_math_planner.fleets.traffic import chances

CROWD_JS = Path(__file__).parents[3] / "book" / "_static" / "planner-crowd.js"


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    return Node(f"{script()}\n{CROWD_JS.read_text(encoding='utf-8')}", tmp_path_factory.mktemp("node"))


MEANS = """(problem, drawn, users) => {
    const step = math.under(problem, ...drawn).step_seconds, { steps } = math.search_constants(problem);
    return [math.mean_seen(step, users, steps, 0) / problem.unit.accepted_per_step,
        math.round_trip(step, users, steps)];
}"""


def test_the_page_has_the_unit_s_own_means(node):
    """The set-ups of `tests/planner/fleets/test_conservation.py`."""
    problem = [Case(unit, work, SLA(1.0, 1.0)) for unit, work, _ in SETUPS]
    rows = [[one.problem, one.pairs(0)[0], setup[2]] for one, setup in zip(problem, SETUPS, strict=True)]
    for setup, (gap, trip) in zip(SETUPS, node.ask(MEANS, rows), strict=True):
        unit, work, users = setup
        assert gap == pytest.approx(unit.tpot(work, users), rel=1e-9), name_of(setup)
        assert trip == pytest.approx(unit.e2e(work, users), rel=1e-9)


def test_the_page_has_the_same_prompts_on_the_fullest_group(node):
    rows = [[k, groups * stages, stages] for k in (0.3, 1, 2.5, 40, 300) for groups in (1, 8, 64) for stages in (1, 2)]
    assert node.ask("math.expected_max_load", rows) == pytest.approx(
        [expected_max_load(*row) for row in rows], rel=1e-12
    )


SOLVE = """(problem, draws, speeds) => {
    const solved = math.solve(problem, draws), numbers = math.numbers_of(problem, solved), { best } = solved;
    const middle = solved.costs[Math.floor(draws.length / 2)];
    return {
        solved, numbers, formulas: math.by_formula(problem, solved, numbers),
        sensitivities: best && draws.length === 1 ? math.sensitivities(problem, draws) : [],
        gains: math.gains(problem, draws, speeds),
        settings: best ? math.settings(problem, best, solved.settings[best]) : {},
        hindered: solved.order.map((name) => math.hindered(problem, middle, name)),
    };
}"""


def in_python(problem, draws, speeds):
    """Return what `SOLVE` returns."""
    solved = answers.solve(problem, draws)
    numbers, best = answers.numbers_of(problem, solved), solved.best
    middle = solved.costs[len(draws) // 2]
    return {
        "solved": solved, "numbers": numbers, "formulas": answers.by_formula(problem, solved, numbers),
        "sensitivities": answers.sensitivities(problem, draws) if best and len(draws) == 1 else [],
        "gains": answers.gains(problem, draws, speeds),
        "settings": settings(problem, best, solved.settings[best]) if best else {},
        "hindered": [notes.hindered(problem, middle, name) for name in solved.order],
    }  # fmt: skip


def test_decisions_are_those_of_the_package(node):
    """Under the calibration alone, and every tenth under some draws."""
    rows = []
    for i, given in enumerate(forms_settings(40)):
        case = case_of(given)
        speeds = {"nowhere near": 1e9, "hbm": 0.0}
        rows.append([case.problem, case.pairs(0 if i % 10 else 8), speeds])
    met = 0
    for row, printed in zip(rows, node.ask(SOLVE, rows), strict=True):
        own = plain(in_python(*row))
        met += bool(own["solved"]["best"])
        for name in own:
            assert close(own[name], printed[name]), (name, own[name], printed[name])
    assert met > 10


ASKED = """(given) => {
    const one = math.candidate(given, math.data);
    return [one.problem, one.centred.found, math.few_draws(one, math.data), math.refused(given, true, math.data)];
}"""


def test_the_form_asks_the_same_in_both_languages(node):
    rows = [as_fields(given) for given in forms_settings(40)]
    for given, there in zip(rows, node.ask(ASKED, [[given] for given in rows]), strict=True):
        one = candidate(given, known())
        assert close(plain([one.problem, one.centred.found, few_draws(one, known()), []]), there), given


NUMBERS = (0.0, 0.0049, 0.5, 1, 1.5, 17, 99.95, 1234.6, 2.5e6)


PARTS = [{"key": "checked.at", "model": "m", "weights": 8, "gpu": "g"}, ", too"]


def filled(hole, number):
    """Return what fills a hole: a list where one is joined, a part in a row with a text, or a number."""
    if hole[2] in JOINS:
        return ["a name", PARTS[0], PARTS]
    return number if hole[2] or hole[3] is not None else PARTS


def test_both_languages_say_the_same(node):
    """Every template with numbers of each size, and what is no number."""
    said = [
        {"key": key} | {hole[1]: filled(hole, number) for hole in HOLE.finditer(text)}
        for key, text in sentences().items()
        for number in NUMBERS
    ]
    said.append({"text": "{most:most} {gap:seconds}", "most": float("inf"), "gap": float("nan")})
    said += [{"text": "{n|one|others}", "n": so} for so in (True, False)]
    said.append([{"text": "{a} ${LONGEST:-{b}} '{\"c\": {b}}'", "a": [{"key": "start.unit"}, "!"], "b": 7}, " ", []])
    assert node.ask("(said) => math.render(said)", [[one] for one in said]) == list(map(render, said))


VERDICTS = """(first, second, own, rows, gain_errors) => {
    const one = math.verdict(first, second, own);
    const stands = math.stands_on(math.data.comparisons.store);
    const told = [...math.cell(one), ...math.cadence_said(rows, gain_errors, ""), stands];
    return [one, told.map(math.render), math.tier_verdicts({ gain_error: own }, rows.map((row) => ({ rate: row[6] })))];
}"""


def test_verdicts_are_those_of_the_package(node):
    """Chances from nearly 0 to nearly 1, words and sentences, of one draw and of several."""
    rng = np.random.default_rng(1)
    known = known_comparisons()
    problem = []
    for sd in (0.01, 0.1, 0.5, 2.0):
        for count in (1, 5):
            rates = [rng.lognormal(0, 0.5, count).tolist() for _ in range(2)]
            rows = [[float(every), *rng.lognormal(0, 0.2, 6).tolist()] for every in (1, 4, 16)]
            gain_errors = cadence_errors(known, "MLA", "Hopper", 2200 * sd, 170)
            problem.append([*rates, [0.05, sd, 6], rows, gain_errors])
    words = set()
    for (first, second, own, rows, gain_errors), there in zip(problem, node.ask(VERDICTS, problem), strict=True):
        one = verdict(first, second, own)
        told = [*cell(one), *cadence_said(rows, gain_errors, ""), stands_on(known["store"])]
        tiers = tier_verdicts(Made(gain_error=own), [Made(rate=row[6]) for row in rows])
        assert close(plain([one, list(map(render, told)), tiers]), there)
        words |= {one.sure, *(tier.sure for tier in tiers)}
    assert words == {"", "sure", "likely", "open"}


CROWD = """(problem, drawn, played, goal) => {
    const run = window.inferenceMathCrowd.sized({ problem, solved: math.solve(problem, drawn), drawn }, played, goal);
    for (;;) {
        const { done, value } = run.next();
        if (!done) continue;
        const held = Object.values(value.fleets).filter((one) => one.replicas > 0);
        return held.map((one) => [one.name, one.units, one.replicas, one.gpus_all, one.sold, one.ttft, one.tpot]);
    }
}"""


@pytest.mark.parametrize("version", ["", "0.12"])
def test_fleets_are_those_of_the_package(node, version):
    """The same replicas, found by the same simulations: for a traffic, and for the GPUs that there are.

    Of a vLLM that plans its steps ahead, and of one that did not.
    """
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", version=version)
    case = Case(unit, Workload(1500, 120), SLA(0.5, 0.04), units=3).checked()
    assert case.problem.ahead is (version == "")
    found = Plan.of(case, 20)
    gaps, lengths = chances(0, 1.0)
    played = {"gaps": gaps, "cv": 1, "lengths": lengths, "like": [], "share": 0.9}
    goals = [{"traffic": 12.0, "have": 0, "cv": 1}, {"traffic": 0.0, "have": 8, "cv": 1}]
    drawn = [list(pair) for pair in found.pairs]
    told = node.ask(CROWD, [[case.problem, drawn, played, goal] for goal in goals])
    for best, there in zip((fleet(found, 12.0), capacity(found, 8)), told, strict=True):
        each = sorted((best, *best.others), key=lambda one: one.architecture)
        here = [
            [one.architecture, one.units, one.replicas, list(one.gpus), one.rate, list(one.ttft), list(one.tpot)]
            for one in each
        ]
        assert close(here, sorted(there))
