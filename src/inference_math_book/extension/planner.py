"""The planner's form and tables; what they compute is `inference_math_book.explore.browser`, printed as a script.

What the form asks is here, how it looks in `planner.html.jinja`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from docutils import nodes
from docutils.statemachine import StringList
from jinja2 import Environment, PackageLoader, StrictUndefined
from sphinx.util.docutils import SphinxDirective

from inference_math.unit.unit import ACCEPTED, MOST_DRAFTS

__all__ = ["Planner"]


class Field(NamedTuple):
    """A number of the form, `label` with its unit; `value` None: left out, which is `empty`; `log` None: no slider."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float | None
    log: bool | None = None
    empty: str = ""


class Select(NamedTuple):
    """A choice of the form: its options' names and words, and the one that is chosen at first."""

    name: str
    label: str
    options: Mapping[str, str]
    value: str


class Line(NamedTuple):
    """A line of text of the form, with an example of what it takes."""

    name: str
    label: str
    example: str


class Group(NamedTuple):
    """Fields under one heading: those that are always seen, and more behind a click on `summary`."""

    heading: str
    fields: tuple[Field | Select, ...]
    summary: str = ""
    more: tuple[Field | Select | Line, ...] = ()


# Named as the options of ``vllm bench serve``; what has no value is left out of the command.
BENCHMARK: tuple[Field, ...] = (
    Field("max-concurrency", "Users at once", 1, 4096, 1, 32),
    Field("num-prompts", "Prompts in all", 1, 20_000, 1, 320),
    Field("random-range-ratio", "Lengths differ by ± (%)", 0, 99, 1, 10),
    Field("request-rate", "Requests/s, at most", 0.01, 10_000, 0.01, None),
    Field("max-num-batched-tokens", "Tokens of a step", 16, 1_000_000, 1, None, empty="as the engine does"),
    Field("max-num-seqs", "Requests in the engine", 1, 1_000_000, 1, None, empty="as the engine does"),
)

# Named as `fleets.turns.Turns` and `catalogue.tiers` name them.
SESSIONS: tuple[Field, ...] = (
    Field("users", "Users with a session under way", 1, 1_000_000, 1, 100),
    Field("units", "Units that serve them", 1, 10_000, 1, 8),
    Field("turns", "Turns of a session", 1, 10_000, 1, 60),
    Field("first", "Its first prompt (tokens)", 1, 2_000_000, 1, 15_000),
    Field("message", "Each further turn brings (tokens)", 0, 2_000_000, 1, 1500),
    Field("answer", "Answer (tokens)", 2, 100_000, 1, 500),
    Field("shared", "Beginning that all prompts share, besides (tokens)", 0, 2_000_000, 1, 0),
    Field("think", "Thinking, in the mean (s)", 0, 1_000_000, 0.1, 20),
    Field("lifetime", "Dropped if not used for (s)", 1, 10_000_000, 1, None),
    Field("dram", "Host memory of all machines (GB)", 0, 1_000_000_000, 1, 2000),
    Field("local_ssd", "SSDs of all machines (GB)", 0, 1_000_000_000, 1, 0),
)

TABLES = {
    "architectures": "Architectures within the limits",
    "sizes": "Units of other sizes",
    "drafting": "With drafts and without, at full load",
    "gpus": "The same on other GPUs, at full load",
    "tiers": "Where the stored share may lie, at full load",
}


def presets() -> dict[str, dict[str, object]]:
    """Return set-ups by name: the case, those of the talks, some that readers ask about, and recorded lengths.

    What one leaves out, and what a link leaves out, is as in the case: the form's own values, with which it opens.
    """
    from inference_math import evidence, theory

    reused = evidence.load("traces_alpha").frame.set_index("trace")["token_share"]
    stored = {turns: round(100 * theory.reuse_conversation(turns=turns), 1) for turns in (6.5, 15)}
    qwen = {"model": "qwen3-14b", "tp": "1", "weights": "bf16", "prompt": 9600, "output": 100}
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


def inputs() -> tuple[Group, ...]:
    """Return what the form asks, filled in with the case: for what, then what is served, on what, and how fast."""
    from inference_math import catalogue
    from inference_math.catalogue.engines import engines
    from inference_math.catalogue.links import USUAL, links
    from inference_math.catalogue.tiers import tiers
    from inference_math_book.case import LIMITS, UNIT, WORK
    from inference_math_planner.fleets.mixes import MIXES

    tier_names = {"hbm": "HBM of the unit"}
    tier_names |= {name: one.title for name, one in tiers().items() if name != "hbm"}
    tier_names["own"] = "another store, see its GB/s"
    precisions = {"fp8": "FP8", "bf16": "BF16", "nvfp4": "NVFP4", "mxfp4": "MXFP4", "int4": "INT4"}
    kv = {name: precisions[name] for name in ("fp8", "bf16")}
    sizes = {str(size): str(size) for size in (1, 2, 4, 8)}
    goals = {
        "serve": "GPUs for my traffic",
        "have": "traffic for my GPUs",
        "unit": "what one unit does within the limits",
    }
    lengths = {"fixed": "all the same", "geometric": "answers geometric", **MIXES}
    bursts = {"1": "at random (Poisson)", "2": "in bursts, CV 2", "4": "in long bursts, CV 4"}
    experts = {"split": "a part of each on every GPU", "whole": "whole ones (EP)"}
    promises = {
        "mean": "nine requests in ten (full load: means)",
        "means": "means, with queues, too",
        "0.9": "nine in ten (full load: P90)",
        "0.99": "99 in a hundred (full load: P99)",
    }
    aim = (
        Select("goal", "I am looking for", goals, "serve"),
        Select("preset", "Set-up", {"": "yours", **{name: name for name in presets()}}, ""),
    )
    served = (
        Select("model", "Model", {name: name for name in catalogue.MODELS}, UNIT.model.name),
        Field("traffic", "Traffic (requests/s)", 0.1, 1000, 0.1, 40, True),
        Field("prompt", "Prompt (tokens)", 1, 2_000_000, 1, WORK.n_in, True),
        Field("output", "Output (tokens)", 2, 100_000, 1, WORK.n_out, True),
    )
    sent = (
        Select("lengths", "Lengths of prompts and answers", lengths, "fixed"),
        Select("arrivals", "Requests arrive", bursts, "1"),
        Field("stored", "Stored share of the prompt (%)", 0, 100, 0.1, 0, False),
        Select("tier", "What is stored lies in", tier_names, "hbm"),
        Field("store", "Another store: GB/s of each GPU", 0.1, 5000, 0.1, 12.8),
        Field("sessions", "Sessions whose stored part a unit keeps (0: not known)", 0, 1_000_000, 1, 0),
    )
    run = (
        Select("gpu", "GPU", {name: name for name in catalogue.GPUS}, UNIT.gpu.name),
        Select("tp", "Tensor parallelism (TP)", sizes, str(UNIT.tp)),
        Select("weights", "Weights", precisions, UNIT.weights),
        Select("kv", "KV cache", kv, UNIT.kv),
        Select("engine", "Engine", {name: one["title"] for name, one in engines().items()}, UNIT.engine),
        Field("have", "GPUs I have", 1, 10_000, 1, 16, True),
    )
    laid_out = (
        Field("drafts", "Tokens drafted in each step (MTP, EAGLE)", 0, MOST_DRAFTS, 1, 0),
        Field("accepted", "Chance that a draft is accepted (%)", 0, 100, 0.1, 100 * ACCEPTED),
        Select("dp", "Groups that share the attention (DP)", sizes, "1"),
        Select("experts", "Routed experts", experts, "split"),
        Field("imbalance", "Expert imbalance, if you counted (CV)", 0, 100, 0.01, None),
        Select("pp", "Pipeline stages (PP)", sizes, "1"),
        Field("units", "Units of a replica, at most", 2, 64, 1, 8),
        Select("link", "Link from prefill to decode pool", {name: one.title for name, one in links().items()}, USUAL),
        Field("price", "Price of a GPU (USD/hour)", 0, 100, 0.01, 2.5),
        Line("prices", "Prices of other GPUs", "b200=5 h200-sxm=3.2"),
        Field("front", "Front of a request (ms)", 0, 10_000, 0.1, None),
    )
    limits = (
        Field("ttft", "Limit on TTFT (ms)", 10, 60_000, 1, 1e3 * LIMITS.ttft, True),
        Field("tpot", "Limit on TPOT (ms)", 2, 500, 0.1, 1e3 * LIMITS.tpot, True),
    )
    return (
        Group("", aim),
        Group("What I serve", served, "Lengths, bursts, stored prompts", sent),
        Group("What I run on", run, "Drafts, parallelism, link, price, front", laid_out),
        Group(
            "What I promise",
            limits,
            "Means, or a share of the requests",
            (Select("promise", "The limits hold for", promises, "mean"),),
        ),
    )


def page() -> str:
    """Return the form, and the places of all that it answers, as HTML."""
    from inference_math_book.explore.pictures import PICTURES

    loader = PackageLoader("inference_math_book.extension", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["short"] = "{:g}".format
    environment.tests["select_row"] = lambda row: isinstance(row, Select)
    environment.tests["line_row"] = lambda row: isinstance(row, Line)
    return environment.get_template("planner.html.jinja").render(
        groups=inputs(),
        benchmark=BENCHMARK,
        sessions=SESSIONS,
        pictures=PICTURES,
        tables=TABLES,
        presets=json.dumps(presets()),
    )


class Planner(SphinxDirective):
    """Directive: the form, what it answers with the equation behind each number, architectures and tiers."""

    def run(self) -> list[nodes.Node]:
        from inference_math_planner.answers.deployment import ANSWERS

        lines = [
            ":::{dropdown} All numbers, and the equation behind each",
            "| answer | value (5 to 95 % of the calibration) | what it is | computed by | closed form | which says |",
            "|---|---|---|---|---|---|",
        ]
        for name, title, _, _, formula, _ in ANSWERS:
            value, why, by, said = (f'<span data-{kind}="{name}"></span>' for kind in ("value", "why", "by", "said"))
            equation = f"{{eq}}`{formula}`" if formula else ""
            lines.append(f"| {title} | {value} | {why} | {by} | {equation} | {said} |")
        content = nodes.container(classes=["planner-table", "generated"])
        content += nodes.raw("", page(), format="html")
        self.state.nested_parse(StringList([*lines, ":::"], source="inference_math"), self.content_offset, content)
        return [content]
