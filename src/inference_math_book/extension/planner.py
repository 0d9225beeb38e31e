"""The planner's three pages; what they compute is `inference_math_book.explore.browser`, printed as a script.

What their forms ask is in `inference_math_planner.answers.fields`, its order here, its looks in `planner.html.jinja`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple
from urllib.parse import urlencode

from docutils import nodes
from docutils.statemachine import StringList
from jinja2 import Environment, PackageLoader, StrictUndefined
from sphinx.util.docutils import SphinxDirective

from inference_math.evidence.checks import as_one_of
from inference_math.unit.unit import ACCEPTED, MOST_DRAFTS
from inference_math_planner.answers.fields import on_page

__all__ = ["Planner"]


class Field(NamedTuple):
    """A number of a form, `label` with its unit; `value` None: left out, which is `empty`; `log` None: no slider."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float | None
    log: bool | None = None
    empty: str = ""


class Select(NamedTuple):
    """A choice of a form: its options' names and words, and the one that is chosen at first."""

    name: str
    label: str
    options: Mapping[str, str]
    value: str


class Line(NamedTuple):
    """A line of text of a form: an example of what it takes, what it has at first, whether names are proposed."""

    name: str
    label: str
    example: str
    value: str = ""
    names: bool = False


Row = Field | Select | Line


class Group(NamedTuple):
    """Fields under one heading: those that are always seen, and more behind a click on `summary`."""

    heading: str
    fields: tuple[Row, ...]
    summary: str = ""
    more: tuple[Row, ...] = ()


# The pages by what the directive says, with their files and what stands on their tabs.
PAGES = {
    "plan": ("planner", "Plan"),
    "sessions": ("planner-sessions", "Users who come back"),
    "benchmark": ("planner-benchmark", "Benchmark"),
}

# Rows of numbers alone, as the table has them; the first two stand open on their page.
SENT = ("max-concurrency", "num-prompts")
SENT_MORE = ("random-range-ratio", "request-rate", "max-num-batched-tokens", "max-num-seqs")
SESSIONS = tuple(f"sessions.{name}" for name in ("users", "units", "turns", "first", "message", "answer", "dram"))
SESSIONS_MORE = tuple(f"sessions.{name}" for name in ("shared", "think", "lifetime", "local_ssd"))

TABLES = {
    "architectures": "Architectures within the limits",
    "sizes": "Units of other sizes",
    "drafting": "With drafts and without, at full load",
    "gpus": "The same on other GPUs, at full load",
    "tiers": "Where the stored share may lie, at full load",
}


def number(name: str, *, value: float | None = None, high: float | None = None) -> Field:
    """Return a row of a number; what it has at first and its upper end are the table's, unless the package has them."""
    row = on_page()[name]
    top, first = row.high if high is None else high, row.value if value is None else value
    return Field(name, row.label, row.low, top, row.step, first, row.log, row.empty)


def choice(name: str, options: Mapping[str, str], value: str) -> Select:
    """Return a row of a choice."""
    return Select(name, on_page()[name].label, options, value)


def numbers(names: Iterable[str]) -> tuple[Field, ...]:
    """Return rows of numbers as the table has them."""
    return tuple(number(name) for name in names)


def presets() -> dict[str, dict[str, object]]:
    """Return set-ups by name: the case, those of the talks, some that readers ask about, and recorded lengths.

    What one leaves out, and what a link leaves out, is as in the case: the form's own values, with which it opens. The
    layout is left out, unless a talk names it.
    """
    from inference_math import evidence, theory

    reused = evidence.load("traces_alpha").frame.set_index("trace")["token_share"]
    stored = {turns: round(100 * theory.reuse_conversation(turns=turns), 1) for turns in (6.5, 15)}
    qwen = {"model": "qwen3-14b", "weights": "bf16", "prompt": 9600, "output": 100, "tp": "1"}
    return {
        "The case: Llama-3-70B, 2,200 in, 170 out": {},
        "The same, 15 turns on a local SSD": {"stored": stored[15], "tier": "local_ssd"},
        "The talks' Qwen3-14B: 9,600 in, 6.5 turns": qwen | {"stored": stored[6.5], "tier": "dram", "ttft": 1000},
        "Chat on an 8B": qwen | {"model": "llama-3-8b", "prompt": 500, "output": 300},
        "Documents on a 70B": {"prompt": 12000, "output": 300, "tp": "4", "ttft": 2000},
        "Code, lengths recorded by Azure, on a 70B": {"lengths": "azure-code", "ttft": 1000},
        "Chat, lengths recorded by Azure, on a 70B": {"lengths": "azure-conversation", "ttft": 1000},
        "Conversations recorded by Mooncake, on a 70B": {"lengths": "mooncake-conversation", "tp": "4", "ttft": 4000}
        | {"stored": round(100 * reused["mooncake-conversation"], 1), "tier": "dram"},
        "Reasoning on a 32B: 500 in, 8,000 out": qwen
        | {"model": "qwen3-32b", "tp": "2", "prompt": 500, "output": 8000, "ttft": 2000},
        "DeepSeek-V3 with its own draft (MTP), on H200s": {"model": "deepseek-v3", "gpu": "h200-sxm", "tp": "8"}
        | {"weights": "fp8", "engine": "sglang", "prompt": 2000, "output": 500, "ttft": 2000, "tpot": 30}
        | {"drafts": 1, "accepted": 85},
    }


def inputs() -> dict[str, tuple[Group, ...]]:
    """Return what the form of each page asks, filled in with the case."""
    from inference_math import catalogue
    from inference_math.catalogue.engines import engines
    from inference_math.catalogue.links import USUAL, links
    from inference_math.catalogue.tiers import tiers
    from inference_math.evidence.sentences import render
    from inference_math_book.case import LIMITS, UNIT, WORK
    from inference_math_planner.answers.card import shares_of
    from inference_math_planner.fleets.mixes import MIXES
    from inference_math_planner.fleets.tries import tried_in_a_node

    tier_names = {"hbm": "HBM of the unit"}
    tier_names |= {name: tier.title for name, tier in tiers().items() if name != "hbm"}
    tier_names["own"] = "another store, see its GB/s"
    precisions = {"fp8": "FP8", "bf16": "BF16", "nvfp4": "NVFP4", "mxfp4": "MXFP4", "int4": "INT4"}
    kv = {name: precisions[name] for name in ("fp8", "bf16")}
    sizes = {str(size): str(size) for size in (1, 2, 4, 8)}
    apart = {
        words: words for words in (", ".join(map(render, shares_of(one))) for one in tried_in_a_node(8, mixture=True))
    }
    goals = {
        "serve": "GPUs for my traffic",
        "have": "traffic for my GPUs",
        "unit": "what one unit does within the limits",
    }
    lengths = {"fixed": "all the same", "geometric": "answers geometric", **MIXES}
    bursts = {"1": "at random (Poisson)", "2": "in bursts, CV 2", "4": "in long bursts, CV 4"}
    experts = {"split": "a part of each on every GPU", "whole": "whole ones (EP)"}
    promises = {
        "usual": "as usual: nine requests in ten (of one unit: means)",
        "0.9": "nine requests in ten (of one unit: P90)",
        "0.99": "99 requests in a hundred (of one unit: P99)",
        "means": "means",
    }
    model = Line("model", on_page()["model"].label, "a name, e.g. Qwen2.5-72B", UNIT.model.name, names=True)
    gpu = choice("gpu", {name: name for name in catalogue.GPUS}, UNIT.gpu.name)
    weights = choice("weights", precisions, UNIT.weights)
    prompt, output = number("prompt", value=WORK.n_in), number("output", value=WORK.n_out)
    limits = (number("ttft", value=1e3 * LIMITS.ttft), number("tpot", value=1e3 * LIMITS.tpot))
    front = number("front")
    sent = (
        choice("lengths", lengths, "fixed"),
        choice("arrivals", bursts, "1"),
        number("stored"),
        choice("tier", tier_names, "hbm"),
        number("store"),
        number("sessions"),
    )
    laid_out = (
        choice("tp", {"auto": "auto", **sizes}, "auto"),
        choice("dp", sizes, "1"),
        choice("experts", experts, "split"),
        choice("pp", sizes, "1"),
        choice("engine", {name: record.title for name, record in engines().items()}, UNIT.engine),
        choice("kv", kv, UNIT.kv),
        number("drafts", high=MOST_DRAFTS),
        choice("prefill", {"": "as all others", **apart}, ""),
        number("accepted", value=100 * ACCEPTED),
        number("imbalance"),
    )
    fleets = (number("units"), choice("link", {name: record.title for name, record in links().items()}, USUAL))
    prices = Line("prices", on_page()["prices"].label, "b200=5 h200-sxm=3.2")
    promised = (choice("promise", promises, "usual"), number("price"), prices, front)
    on = "Layout, engine, KV cache, drafts"
    run_on = (gpu, weights, number("have"), number("need"))
    return {
        "plan": (
            Group("", (choice("goal", goals, "serve"),)),
            Group("What I serve", (model, number("traffic"), prompt, output), "Lengths, bursts, stored prompts", sent),
            Group("What I run on", run_on, f"{on}, pools", laid_out + fleets),
            Group("What I promise", limits, "For how many requests, prices, front", promised),
        ),
        "sessions": (
            Group("What I run on", (model, gpu, weights), f"{on}, limits", (*laid_out, *limits, front)),
            Group("Who comes back", numbers(SESSIONS), "Thinking, common beginning, SSDs", numbers(SESSIONS_MORE)),
        ),
        "benchmark": (
            Group("What I run on", (model, gpu, weights), on, (*laid_out, front)),
            Group(
                "What is sent",
                (prompt, output, *numbers(SENT)),
                "Lengths, rate, the engine's limits",
                numbers(SENT_MORE),
            ),
        ),
    }


def defaults() -> dict[str, str]:
    """Return what every field of every page has at first, by its name: what a link may leave out."""
    rows = chain.from_iterable((*one.fields, *one.more) for groups in inputs().values() for one in groups)
    values = {row.name: "" if row.value is None else row.value for row in rows}
    return {name: value if isinstance(value, str) else f"{value:g}" for name, value in values.items()}


def page(name: str) -> str:
    """Return the form of a page, and the places of all that it answers, as HTML."""
    from inference_math_book.explore.pictures import PICTURES

    loader = PackageLoader("inference_math_book.extension", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["short"] = "{:g}".format
    environment.tests["select_row"] = lambda row: isinstance(row, Select)
    environment.tests["line_row"] = lambda row: isinstance(row, Line)
    shown = presets() if name == "plan" else {}
    return environment.get_template("planner.html.jinja").render(
        page=name,
        pages=PAGES,
        groups=inputs()[name],
        notes={key: row.notes.get(name, row.note) for key, row in on_page().items()},
        known=json.dumps(defaults()),
        pictures=PICTURES,
        tables=TABLES,
        presets={title: f"#plan:{urlencode(values)}" for title, values in shown.items()},
    )


class Planner(SphinxDirective):
    """Directive: a form, and what it answers; of `plan` with the equation behind each number."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        from inference_math_planner.answers.deployment import ANSWERS

        name = as_one_of("planner", self.arguments[0] if self.arguments else "plan", PAGES)
        content = nodes.container(classes=["planner-table", "generated"])
        content += nodes.raw("", page(name), format="html")
        if name != "plan":
            return [content]
        lines = [
            ":::{dropdown} All numbers, and the equation behind each",
            "| answer | value (5 to 95 % of the calibration) | what it is | computed by | closed form | which says |",
            "|---|---|---|---|---|---|",
        ]
        for answer, title, _, _, formula, _ in ANSWERS:
            value, why, by, said = (f'<span data-{kind}="{answer}"></span>' for kind in ("value", "why", "by", "said"))
            equation = f"{{eq}}`{formula}`" if formula else ""
            lines.append(f"| {title} | {value} | {why} | {by} | {equation} | {said} |")
        self.state.nested_parse(StringList([*lines, ":::"], source="inference_math"), self.content_offset, content)
        return [content]
