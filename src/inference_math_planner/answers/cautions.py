"""What is said beside a plan of one unit, in its order: what is missed, why an architecture is not, what to mind."""

from __future__ import annotations

from msgspec.structs import replace

from inference_math.evidence.records import Record
from inference_math.optimiser.answers import best_rate, under, whole_alone
from inference_math.optimiser.choice import middle_row
from inference_math.optimiser.types import Solution
from inference_math.unit.deployed import Deployment, score_key_of, untold_kv
from inference_math.unit.types import CoefficientValues, ErrorRow, Message, Problem, StepCosts
from inference_math_planner.answers.card import evidence
from inference_math_planner.answers.notes import (
    drafting_pays,
    front_weighs,
    hindered,
    kept_in,
    linked,
    missed,
    slow_cache,
    slow_store,
    store_moves,
    to_choose,
    trusted,
    unlike_usual,
    widened,
)
from inference_math_planner.answers.types import About

__all__ = ["Decided", "Scores", "about_fleet", "about_unit", "cautions", "hindrances", "missed_of", "noted"]


class Scores(Record):
    """How predictions and verdicts did on served points: what `types.About` has of them."""

    errors: list[ErrorRow]
    verdicts: dict[str, list[int]]
    concurrency_bins: list[list[float]]
    unseen: float


class Decided(Record):
    """A plan as its notes take it: `found` are the calibration's own coefficients, whose `mode` says where from.

    Of drafts there is `undrafted`, what is decided without; of a KV cache in FP8 `plain`, the costs in BF16. The link
    to the decode pool has a title, and was `measured` or not.
    """

    of: Deployment
    problem: Problem
    found: CoefficientValues
    mode: str
    solved: Solution
    numbers: dict[str, list[float]]
    undrafted: list[Solution]
    plain: list[StepCosts]
    link: str
    measured: bool


def ships(mode: str) -> bool:
    """Tell whether a calibration ships, so that it needs no measurement of one's own."""
    return mode == "served" or mode == "zero-shot"


def about_unit(of: Deployment, problem: Problem, mode: str, never: bool, known: Scores) -> About:
    """Return of what the card of one unit is; `never`: whether something of it was never calibrated."""
    return About(
        goal="unit", traffic=0.0, have=0.0, gpus=problem.unit.gpus, price=problem.price, example=False,
        tail=problem.quantile, never=never, own=not ships(mode), scaled=mode == "zero-shot", model=of.model.name,
        gpu=of.gpu.name, weights=of.weights, kind=of.model.kind, engine=of.called, rows=known.errors,
        verdicts=known.verdicts, concurrency_bins=known.concurrency_bins, unseen=known.unseen,
    )  # fmt: skip


def about_fleet(unit: About, traffic: float, have: float) -> About:
    """Return of what the card of a fleet of such units is: for a traffic, or of the GPUs that there are."""
    return replace(unit, goal="rate" if have > 0 else "gpus", traffic=traffic, have=have, tail=0.0)


def missed_of(one: Decided) -> list[Message]:
    """Say why a store is slower than computing; where nothing meets the limits, by how much."""
    centre, whole = centre_of(one), whole_alone(one.problem, one.found, CENTRE)
    said = slow_store(one.problem, centre, whole)
    said.extend(missed(one.problem, centre) if one.solved.best == "" else [])
    return said


CENTRE = [1.0, 1.0, 0.0]  # factors of a draw that is the calibration itself


def centre_of(one: Decided) -> StepCosts:
    """Return the costs under the calibration itself."""
    return under(one.problem, one.found, CENTRE)


def hindrances(one: Decided) -> dict[str, Message]:
    """Say why an architecture meets the limits at no rate, by its name; nothing where none does."""
    by_architecture: dict[str, Message] = {}
    for name in one.solved.order if one.solved.best != "" else []:
        if not middle_row(one.solved, name)["rate"][0] > 0:
            by_architecture[name] = hindered(one.problem, centre_of(one), name)
    return by_architecture


def cautions(one: Decided, of: About) -> list[Message]:
    """Say how far predictions were off, what is taken on trust, what is served without drafts; of what the card is."""
    problem, solved, centre = one.problem, one.solved, centre_of(one)
    rate = one.numbers["rate"][0] if solved.best != "" else 0.0
    said = widened(score_key_of(one.of), of.rows) if ships(one.mode) else []
    said.extend(to_choose(problem, solved))
    said.extend(store_moves(problem, centre, whole_alone(problem, one.found, CENTRE), rate))
    said.extend(unlike_usual(problem, one.of.kv, untold_kv(one.of)))
    for plain in one.plain:
        said.extend(slow_cache(problem, centre, plain))
    said.extend(trusted(problem.unit, of.rows))
    said.extend(front_weighs(problem, one.numbers["front"]))
    said.extend(kept_in(problem))
    row = middle_row(solved, "disaggregated")
    if row["rate"][0] > 0:
        split = solved.settings["disaggregated"]
        said.append(linked(problem, row["rate"][0], split, one.link, one.measured))
    for without in one.undrafted if solved.best != "" else []:
        said.append(drafting_pays(rate, best_rate(without)))
    said.extend(evidence(of))
    return said


def noted(one: Decided, outside: list[Message], of: About) -> list[Message]:
    """Return all of it in its order; `outside` says what was never calibrated."""
    said, why = missed_of(one), hindrances(one)
    for name in why:
        said.append({"key": "noted.hindered", "name": name, "why": why[name]})
    said.extend([{"key": "noted.outside", "why": each} for each in outside])
    said.extend(cautions(one, of))
    return said
