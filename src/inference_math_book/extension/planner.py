"""The planner's form and tables; what they compute is `inference_math_book.explore.browser`, printed as a script."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from inference_math.perf.bench import BUDGET
from inference_math.unit.unit import ACCEPTED, MOST_DRAFTS

__all__ = ["Planner"]

# Name, label with unit, smallest, largest, step, value; whether its slider is logarithmic, None for no slider.
Field = tuple[str, str, float, float, float, float | None, bool | None]
FIELDS: tuple[Field, ...] = (
    ("prompt", "Prompt (tokens)", 1, 100_000, 1, 2200, True),
    ("output", "Output (tokens)", 2, 10_000, 1, 170, True),
    ("stored", "Stored share of the prompt (%)", 0, 100, 0.1, 0, False),
    ("ttft", "Limit on TTFT (ms)", 10, 60_000, 1, 400, True),
    ("tpot", "Limit on TPOT (ms)", 2, 500, 0.1, 40, True),
    ("traffic", "Traffic (requests/s)", 0.1, 1000, 0.1, 40, True),
    ("have", "GPUs I have", 1, 10_000, 1, 16, True),
)
SMALL: tuple[Field, ...] = (
    ("units", "Units of a disaggregated replica, at most", 2, 64, 1, 8, None),
    ("sessions", "Sessions whose stored part a unit keeps (0: not known)", 0, 1_000_000, 1, 0, None),
    ("price", "Price of a GPU (USD/hour)", 0, 100, 0.01, 2.5, None),
    ("store", "Another store: GB/s of each GPU", 0.1, 5000, 0.1, 12.8, None),
)
DRAFTING: tuple[Field, ...] = (
    ("drafts", "Tokens drafted in each step (MTP, EAGLE)", 0, MOST_DRAFTS, 1, 0, None),
    ("accepted", "Chance that a draft is accepted (%)", 0, 100, 0.1, 100 * ACCEPTED, None),
)


# Named as the options of ``vllm bench serve``; what has no value is left out of the command.
BENCHMARK: tuple[Field, ...] = (
    ("max-concurrency", "Users at once", 1, 4096, 1, 32, None),
    ("num-prompts", "Prompts in all", 1, 20_000, 1, 320, None),
    ("random-range-ratio", "Lengths differ by ± (%)", 0, 99, 1, 10, None),
    ("request-rate", "Requests/s, at most", 0.01, 10_000, 0.01, None, None),
    ("max-num-batched-tokens", "Tokens of a step", 16, 1_000_000, 1, BUDGET, None),
)

# What may be pasted: its name, what it is called in a heading, and to whoever cannot see that.
PASTED = (
    ("model", "Your own model: paste its <code>config.json</code>", "config.json of your model"),
    (
        "requests",
        "Your own requests: paste a CSV with the columns <code>n_in,n_out</code>, or a trace of Azure's or Mooncake's",
        "your requests",
    ),
    (
        "calibration",
        "Your own calibration: paste the TOML file of <code>inference-math profile</code>, or of "
        "<code>calibrate</code>",
        "your calibration",
    ),
)


def presets() -> dict[str, dict[str, Any]]:
    """Return set-ups by name: those of the talks, some that readers ask about, and lengths of recorded traffic."""
    from inference_math import evidence, theory

    reused = evidence.load("traces_alpha").frame.set_index("trace")["token_share"]
    stored = {turns: round(100 * theory.reuse_conversation(turns=turns), 1) for turns in (6.5, 15)}
    seventy = {"model": "llama-3-70b", "tp": "2", "weights": "fp8", "kv": "fp8", "prompt": 2200, "output": 170}
    qwen = {"model": "qwen3-14b", "tp": "1", "weights": "bf16", "kv": "bf16", "prompt": 9600, "output": 100}
    return {
        "The talks' cluster: 70B, 2,200 in, 170 out": seventy | {"stored": 0, "tier": "hbm"},
        "The same, 15 turns on a local SSD": seventy | {"stored": stored[15], "tier": "local_ssd"},
        "The talks' Qwen3-14B: 9,600 in, 6.5 turns": qwen | {"stored": stored[6.5], "tier": "dram", "ttft": 1000},
        "Chat on an 8B": qwen | {"model": "llama-3-8b", "prompt": 500, "output": 300, "stored": 0, "tier": "hbm"},
        "Documents on a 70B": seventy
        | {"prompt": 12000, "output": 300, "tp": "4", "ttft": 2000, "stored": 0, "tier": "hbm"},
        "Code, lengths recorded by Azure, on a 70B": seventy | {"lengths": "azure-code", "ttft": 1000},
        "Chat, lengths recorded by Azure, on a 70B": seventy | {"lengths": "azure-conversation", "ttft": 1000},
        "Conversations recorded by Mooncake, on a 70B": seventy
        | {"lengths": "mooncake-conversation", "tp": "4", "ttft": 4000, "tier": "dram"}
        | {"stored": round(100 * reused["mooncake-conversation"], 1)},
        "Reasoning on a 32B: 500 in, 8,000 out": qwen
        | {"model": "qwen3-32b", "tp": "2", "prompt": 500, "output": 8000, "ttft": 2000, "stored": 0, "tier": "hbm"},
        "DeepSeek-V3 with its own draft (MTP), on H200s": seventy
        | {"model": "deepseek-v3", "gpu": "h200-sxm", "tp": "8", "kv": "bf16", "engine": "sglang", "prompt": 2000}
        | {"output": 500, "ttft": 2000, "tpot": 30, "drafts": 1, "accepted": 85},
    }  # fmt: skip


def form() -> str:
    """Return the form as HTML."""
    from inference_math import catalogue
    from inference_math.catalogue.engines import engines
    from inference_math.catalogue.links import USUAL, links
    from inference_math.catalogue.tiers import tiers
    from inference_math.workload.mixes import MIXES

    models = {name: name for name in catalogue.MODELS}
    tier_names = {"hbm": "HBM of the unit"}
    tier_names |= {name: one.title for name, one in tiers().items() if name != "hbm"}
    tier_names["own"] = "another store, see its GB/s"
    precisions = {"fp8": "FP8", "bf16": "BF16", "nvfp4": "NVFP4", "mxfp4": "MXFP4", "int4": "INT4"}
    kv = {name: precisions[name] for name in ("fp8", "bf16")}
    sizes = {str(size): str(size) for size in (1, 2, 4, 8)}
    goals = {
        "serve": "GPUs for my traffic", "have": "traffic for my GPUs", "unit": "what one unit does within the limits",
    }  # fmt: skip
    lengths = {
        "fixed": "all the same",
        "geometric": "answers geometric",
        **MIXES,
    }
    bursts = {"1": "at random (Poisson)", "2": "in bursts, CV 2", "4": "in long bursts, CV 4"}
    first = [
        _select("goal", "I am looking for", goals, "serve"),
        _select("preset", "Set-up", {"": "yours", **{name: name for name in presets()}}, ""),
        _select("model", "Model", models, "llama-3-70b"),
        _select("gpu", "GPU", {name: name for name in catalogue.GPUS}, "h100-sxm"),
        _select("tp", "GPUs that share each matrix (TP)", sizes, "2"),
        _select("weights", "Weights", precisions, "fp8"),
        _select("kv", "KV cache", kv, "bf16"),
        *(_number(*field) for field in FIELDS),
    ]
    more = [
        _select("engine", "Engine", {name: one["title"] for name, one in engines().items()}, next(iter(engines()))),
        *(_number(*field) for field in DRAFTING),
        _select("dp", "Groups that share the attention (DP)", sizes, "1"),
        _select(
            "experts", "Routed experts", {"split": "a part of each on every GPU", "whole": "whole ones (EP)"}, "split"
        ),
        _select("pp", "Pipeline stages (PP)", sizes, "1"),
        _select("link", "Link between pools", {name: one.title for name, one in links().items()}, USUAL),
        _select("tier", "What is stored lies in", tier_names, "hbm"),
        _select(
            "promise",
            "The limits hold for",
            {
                "mean": "nine requests in ten; at full load means",
                "means": "means, with queues, too",
                "0.9": "nine in ten; at full load P90 of TTFTs and gaps",
                "0.99": "99 in a hundred; at full load P99 of TTFTs and gaps",
            },
            "mean",
        ),
        _select("arrivals", "Requests arrive", bursts, "1"),
        _select("lengths", "Lengths of prompts and answers", lengths, "fixed"),
        _select("calibration", "Calibration", {"nearest": "the nearest that ships"}, "nearest"),
        _number("front", "Front of a request (ms)", 0, 10_000, 0.1, None, None),
        *(_number(*field) for field in SMALL),
    ]
    known = escape(json.dumps(presets()), quote=True)
    return (
        f'<form id="planner-form" data-presets="{known}" aria-label="Planner">'
        f'<div class="planner-fields">{"".join(first)}</div>'
        "<details open><summary>Engine, drafts, parallelism, tier, quantile, pools, price</summary>"
        f'<div class="planner-fields">{"".join(more)}</div></details><div class="planner-tools"></div></form>'
        f"{''.join(_pasted(*one) for one in PASTED)}"
        '<p id="planner-said" class="visually-hidden" role="status"></p>'
        '<p id="planner-link" role="status"></p>'
        '<div class="planner-answer"><p id="planner-headline">This page needs JavaScript.</p>'
        '<dl id="planner-big"></dl></div><p id="planner-how"></p><p id="planner-verdict"></p>'
        '<p id="planner-runner"></p>'
        '<p id="planner-settings"></p><ul id="planner-notes"></ul>'
    )


def benchmark() -> str:
    """Return the form of a benchmark of the unit, and the place of what it will show."""
    fields = "".join(_number(*field) for field in BENCHMARK).replace('"as fitted"', '"all together"')
    return (
        '<section id="planner-bench"><h3>What a benchmark of this unit will show</h3>'
        "<p>Users send the prompts and answers of the form above, each the next when the last is answered: "
        "<code>vllm bench serve</code>, played.</p>"
        f'<form aria-label="Benchmark"><div class="planner-fields">{fields}</div>'
        '<div class="planner-tools"></div></form>'
        '<pre hidden></pre><div class="plan"><table hidden></table></div><ul role="status"></ul></section>'
    )


def pictures() -> str:
    """Return the places of the pictures, each with what to see in it."""
    from inference_math_book.explore.pictures import PICTURES

    places = (
        f'<figure><h3>{escape(title)}</h3><div class="planner-picture" data-name="{name}" role="group" '
        f'aria-label="{escape(title)}"></div><figcaption>{escape(see)}</figcaption></figure>'
        for name, (title, see) in PICTURES.items()
    )
    return f'<section id="planner-pictures">{"".join(places)}</section>'


def tables() -> str:
    """Return the places of the tables, and of what starts an engine."""
    titles = {
        "architectures": "Architectures within the limits",
        "sizes": "Units of other sizes",
        "gpus": "The same on other GPUs, at full load",
        "tiers": "Where the stored share may lie, at full load",
    }
    sections = (
        f'<section id="planner-{name}"><h3>{title}</h3><div class="plan"><table></table></div></section>'
        for name, title in titles.items()
    )
    return f'{"".join(sections)}<section id="planner-starts"></section>'


def _select(name: str, label: str, options: dict[str, str], value: str) -> str:
    shown = "".join(
        f'<option value="{escape(key, quote=True)}"{" selected" if key == value else ""}>{escape(text)}</option>'
        for key, text in options.items()
    )
    return f'<div class="planner-field"><label>{escape(label)}<select name="{name}">{shown}</select></label></div>'


def _pasted(what: str, heading: str, label: str) -> str:
    return (
        f'<details class="planner-own" id="planner-{what}"><summary>{heading}</summary>'
        f'<textarea rows="8" spellcheck="false" aria-label="{escape(label)}"></textarea>'
        '<div class="planner-tools"></div><p role="status"></p></details>'
    )


def _number(name: str, label: str, low: float, high: float, step: float, value: float | None, log: bool | None) -> str:
    shown = 'placeholder="as fitted"' if value is None else f'value="{value:g}"'
    limits = f'min="{low:g}" max="{high:g}" step="{step:g}" {shown}'
    number = f'<input type="number" name="{name}" {limits} inputmode="decimal">'
    scale = "log" if log else "linear"
    moved = (
        f'<input type="range" data-for="{name}" data-scale="{scale}" min="0" max="1000" aria-label="{escape(label)}">'
    )
    slider = "" if log is None else moved
    return f'<div class="planner-field" data-name="{name}"><label>{escape(label)}{number}</label>{slider}</div>'


class Planner(SphinxDirective):
    """Directive: the form, what it answers with the equation behind each number, architectures and tiers."""

    def run(self) -> list[nodes.Node]:
        from inference_math.planner.deployment import ANSWERS

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
        content += nodes.raw("", form() + pictures() + tables() + benchmark(), format="html")
        self.state.nested_parse(StringList([*lines, ":::"], source="inference_math"), self.content_offset, content)
        return [content]
