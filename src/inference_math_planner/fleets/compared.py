"""What GPUs do in the place of a plan's own: a row each, in their order; the planner's page runs this, too."""

from __future__ import annotations

from math import nan

from msgspec.structs import replace

from inference_math.evidence.records import Record
from inference_math.optimiser.answers import gpus_ranked, gpus_worth, spent_on, usd_per_million
from inference_math.optimiser.choice import told_rate
from inference_math.optimiser.types import Solution
from inference_math.unit.types import Message, Problem
from inference_math_planner.answers.notes import GUESSED, gpus_said

__all__ = ["OtherGpu", "Own", "absent_gpu", "first_gpu", "in_their_order", "other_gpu"]

NONE_MEETS = "none meets the SLA"


class Own(Record):
    """The plan that GPUs are compared with: what was decided, nothing where none meets the limits; GPUs of its unit."""

    solved: list[Solution]
    gpus: float
    price: float  # of a GPU and hour; NaN where none is known


class OtherGpu(Record):
    """What one GPU of a kind does at full load; three numbers have both ends, none are there where there is no answer.

    What its numbers stand on, and the best architecture, or why there is none; requests/s; how many of the plan's own
    it is worth, and at which price it is as good; its own price, USD a million output tokens, J a token.
    """

    gpu: str
    standing: str
    architecture: str
    price: float
    rate: list[float]
    ratio: list[float]
    break_even: list[float]
    cost: list[float]
    joules: list[float]


def absent_gpu(gpu: str, provenance: str, why: str, price: float) -> OtherGpu:
    """Return the row of a GPU on which there is no answer."""
    return OtherGpu(
        gpu=gpu, standing=provenance, architecture=why, price=price,
        rate=[], ratio=[], break_even=[], cost=[], joules=[],
    )  # fmt: skip


def other_gpu(gpu: str, provenance: str, problem: Problem, solved: Solution, own: Own, price: float) -> OtherGpu:
    """Return the row of a GPU on which something was decided; `price` NaN where none is known."""
    row = absent_gpu(gpu, provenance, NONE_MEETS, price)
    if solved.best == "":
        return row
    rate = [each / problem.unit.gpus for each in told_rate(solved, solved.best)]
    made = [each * problem.work.n_out for each in rate]
    worth = [gpus_worth(solved, problem.unit.gpus, here, own.gpus) for here in own.solved]
    ratio = worth[0] if len(worth) > 0 else []
    return replace(
        row, architecture=solved.best, rate=rate, ratio=ratio,
        break_even=[own.price * each for each in ratio] if own.price > 0 else [],
        cost=spent_on(made, usd_per_million(1, price, 1)) if price > 0 else [],
        joules=spent_on(made, problem.watts) if problem.watts > 0 else [],
    )  # fmt: skip


def in_their_order(rows: list[OtherGpu]) -> list[OtherGpu]:
    """Return rows, guesses last; else the cheapest token first where two have a price, or the fastest."""
    guessed = [row.standing == GUESSED for row in rows]
    order = gpus_ranked([first_or(row.rate, 0.0) for row in rows], [first_or(row.cost, nan) for row in rows], guessed)
    return [rows[i] for i in order]


def first_or(three: list[float], other: float) -> float:
    """Return the middle of a number with both ends, or another one of none."""
    return three[0] if len(three) > 0 else other


def first_gpu(rows: list[OtherGpu]) -> list[Message]:
    """Say of rows in their order, guesses left out, which GPU is first, and by how much; nothing where none answers."""
    known = [row for row in rows if row.standing != GUESSED]
    rates, costs = [first_or(row.rate, 0.0) for row in known], [first_or(row.cost, nan) for row in known]
    return gpus_said([row.gpu for row in known], rates, costs)
