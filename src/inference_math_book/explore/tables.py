"""Tables of the planner's page, each as rows of texts, its head first."""

from __future__ import annotations

from math import isfinite
from typing import Any

from inference_math.evidence.numerals import digits, percent
from inference_math.evidence.sentences import render
from inference_math.optimiser.answers import gains, usd_per_million
from inference_math.optimiser.choice import middle_row
from inference_math.optimiser.starts import settings
from inference_math.optimiser.types import Solution
from inference_math.optimiser.verdict import cell, hundredths
from inference_math.unit.problem import computed_tokens, of_architecture
from inference_math.unit.types import DrawnCoefficients, OperatingPoint, Problem
from inference_math_book.explore.form import Candidate, Fields, Known
from inference_math_planner.answers.card import laid_out
from inference_math_planner.answers.cautions import Decided
from inference_math_planner.answers.commands import with_cache
from inference_math_planner.answers.notes import drafts_said
from inference_math_planner.answers.numbers import spanned
from inference_math_planner.fleets.compared import NONE_MEETS, OtherGpu

MS = 1000.0


def optional(value: float) -> str:
    """Return a number, or nothing for NaN."""
    return digits(value) if isfinite(value) else ""


def ended(three: list[float]) -> str:
    """Return a number with its ends, or nothing where there is none."""
    return spanned(three, 1.0) if len(three) > 0 and isfinite(three[0]) else ""


def in_hundred(share: float) -> str:
    """Return a share of draws as the card has it."""
    return f"{hundredths(share)}%"


def options_said(problem: Problem, name: str, row: OperatingPoint, kv: str) -> str:
    """Return the settings of an architecture in words; `kv` as of `commands.with_cache`."""
    told = with_cache(problem.engine.cli, settings(of_architecture(problem, name), name, row), kv)
    return ", ".join([f"{option} {told[option]}" if told[option] != "" else option for option in told])


def drafts_table(one: Decided) -> list[list[str]]:
    """Return what drafts bring, and what is served without; no rows where nothing is drafted."""
    end = "at full load"
    rows = [["drafts", "best architecture", f"requests/s of a unit, {end}", f"TTFT {end} (ms)", f"TPOT {end} (ms)"]]
    for without in one.undrafted:
        rows.append(drafts_row(one.problem.unit.drafts, one.solved))
        rows.append(drafts_row(0, without))
    return rows


def drafts_row(many: float, solved: Solution) -> list[str]:
    """Return what is served with so many drafts."""
    said, row = render(drafts_said(int(many))), middle_row(solved, solved.order[0])
    if solved.best == "":
        return [said, NONE_MEETS, "", "", ""]
    return [said, solved.best, spanned(row["rate"], 1.0), spanned(row["ttft"], MS), spanned(row["tpot"], MS)]


def tiers_table(one: Candidate, draws: list[DrawnCoefficients], known: Known) -> list[list[str]]:
    """Return what loading from each tier brings; no rows where nothing is stored."""
    given, problem = one.given, one.problem
    rows = [["where", "a prompt alone waits for", "prefill speedup", "requests/s of a unit", "gain", "how sure"]]
    if not problem.work.alpha > 0:
        return rows
    own = f"a store of {given['store']} GB/s for each GPU"
    counted = "HBM of the unit" if problem.sessions > 0 else "HBM of the unit, if it holds what is stored"
    titles = {"nowhere": "nowhere: all is computed", "hbm": counted, "own": own}
    speeds: dict[str, float] = {}
    for name in known.tiers:
        speeds[name] = problem.unit.gpus * known.tiers[name]["read_bw"] if name != "hbm" else 0.0
    if given["tier"] == "own":
        speeds["own"] = problem.unit.gpus * 1e9 * float(given["store"])
    for row in gains(problem, draws, speeds):
        title = titles[row.where] if row.where in titles else known.tiers[row.where]["title"]
        rate = spanned([row.rate, row.rate_low, row.rate_high], 1.0) if row.rate > 0 else "none"
        speedup, gain = [digits(value) if isfinite(value) else "–" for value in [row.speedup, row.gain]]
        rows.append([title, row.binds, speedup, rate, gain, render(cell(row))])
    return rows


def gpus_table(rows: list[OtherGpu], own: str) -> list[list[str]]:
    """Return what other GPUs do in the place of the plan's `own`."""
    head = ["GPU", "numbers are", "best architecture", "requests/s of a GPU, at full load", f"as many {own}"]
    head.extend(["break-even price (USD/hour)", "price (USD/hour)", "USD per million output tokens at that"])
    head.append("J a token, rated power")
    table = [head]
    for row in rows:
        cells = [row.gpu, row.standing, row.architecture, ended(row.rate), ended(row.ratio), ended(row.break_even)]
        cells.extend([digits(row.price), spanned(row.cost, 1.0)] if len(row.cost) > 0 else ["", ""])
        joules = spanned(row.joules, 1.0) if len(row.joules) > 0 else "power not stated"
        cells.append(joules if len(row.rate) > 0 else "")
        table.append(cells)
    return table


def architectures_table(given: Fields, one: Decided, kv: str, choices: list[Any]) -> list[list[str]]:
    """Return what architectures do, a column each, those of a fleet first: "…" while there is none in `choices` yet."""
    problem, solved, fleets = one.problem, one.solved, given["goal"] != "unit"
    names = choices[0].order if len(choices) > 0 else solved.order
    columns: list[list[str]] = []
    for name in names:
        row, own = middle_row(solved, name), solved.settings[name]
        column = sized_cells(given, problem, name, solved.best != "", choices) if fleets else []
        column.extend(["", "none"] if not row["rate"][0] > 0 else [
            render(laid_out(problem, name)), spanned(row["rate"], 1.0), in_hundred(solved.best_in[name]),
            percent(solved.loss[name]), percent(solved.feasible_share[name]), digits(row["decodes"][0]),
            digits(computed_tokens(of_architecture(problem, name), own)) if own.chunk > 0 else "",
            optional(own.prefill_units), options_said(problem, name, own, kv), spanned(row["ttft"], MS),
            spanned(row["tpot"], MS),
        ])  # fmt: skip
        columns.append(column)
    labels, table = labels_of(given, problem), [["quantity"]]
    table[0].extend(names)
    for i in range(len(labels)):
        cells = [labels[i]]
        cells.extend([column[i] if i < len(column) else "" for column in columns])
        table.append(cells)
    return table


def sized_cells(given: Fields, problem: Problem, name: str, able: bool, choices: list[Any]) -> list[str]:
    """Return what an architecture's fleet takes, or serves."""
    if not able or len(choices) == 0:
        return [("…" if able else "") for _ in SIZED]
    fleet, have = choices[0].fleets[name], float(given["have"]) if given["goal"] == "have" else 0.0
    if not fleet.replicas > 0:
        return ["none" if i == 0 else "" for i in range(len(SIZED))]
    gpus = fleet.gpus_all[0]
    fewer = f", on {digits(gpus)}" if gpus < have else ""
    return [
        spanned(fleet.rate, 1.0) + fewer if have > 0 else spanned(fleet.gpus_all, 1.0),
        in_hundred(choices[0].best_in[name]), percent(choices[0].loss[name]), percent(fleet.feasible_share),
        spanned(fleet.ttft, MS), spanned(fleet.tpot, MS),
        optional(usd_per_million(gpus, problem.price, fleet.sold * problem.work.n_out)),
    ]  # fmt: skip


SIZED = [
    "", "the best in this share of draws", "", "keeps the promise in this share of draws", "mean TTFT (ms)",
    "mean TPOT (ms)", "USD per million output tokens at that",
]  # fmt: skip


def labels_of(given: Fields, problem: Problem) -> list[str]:
    """Return what the rows of `architectures_table` are called."""
    labels: list[str] = []
    loss, at = render({"key": "card.loss"}), ", at full load"
    if given["goal"] != "unit":
        labels = SIZED.copy()
        wanted = f"requests/s on {given['have']} GPUs at most"
        labels[0] = wanted if given["goal"] == "have" else f"GPUs for {given['traffic']} requests/s"
        labels[2] = loss
    labels.extend(["layout of a unit", "requests/s of a unit" + at, "the best in this share of draws" + at])
    labels.extend([f"{loss} (at full load)", "keeps the limits in this share of draws"])
    labels.extend(["decodes at once in a unit, in the mean at full load", "computed prompt tokens of a step" + at])
    labels.extend(["prefill units" + at, "settings to start with" + at])
    quantile = 100 * problem.quantile
    of = f"P{digits(quantile)} of " if quantile > 0 else "mean "
    labels.append(of + "TTFT at full load (ms)")
    labels.append(of + "the gaps between tokens (ms)" if quantile > 0 else "mean TPOT at full load (ms)")
    return labels
