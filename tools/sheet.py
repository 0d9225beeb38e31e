"""Write the sheet of one page that the front page links: book/_static/cheat-sheet.pdf.

    python tools/sheet.py

Formulas and numbers are printed by the package. The numbers stand in the file's keywords, too, so that a test can tell
a stale sheet.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from inference_math import catalogue, theory
from inference_math_book import served
from inference_math_book.colours import COLOURS
from inference_math_book.figures.style import use_book_style
from inference_math_book.predicted import served_both_ways
from inference_math_planner.answers import verdicts

SHEET = Path(__file__).parents[1] / "book" / "_static" / "cheat-sheet.pdf"
SIZE = (11.69, 8.27)  # inches: A4, landscape
INK = "#222832"
_LIMIT = 0.040  # seconds: the case's limit on TPOT
_ROOM, _BOLD = 48, 42  # letters of a line


@dataclass(frozen=True)
class Box:
    """A part of the sheet: a chapter's law by the names of its formulas, what it says of the case, and what to do."""

    title: str
    claims: str
    formulas: tuple[str, ...]
    case: str
    rule: str


def numbers() -> dict[str, float]:
    """Return what the sheet says of the case, in SI units, by name."""
    case, llama, h100 = served.CASE, catalogue.model("llama-3-70b"), catalogue.gpu("h100-sxm")
    token = case.prompt / case.n_in
    load = theory.kv_load_time(kv_token=llama.kv_token("bf16") / 2, io_bw=h100.pcie_bw)
    t_w = case.t_1 - case.delta_h
    gross = case.delta_p + t_w / case.n_out
    law = {"delta_h": case.delta_h, "t_w": t_w, "sla_tpot": _LIMIT}
    batch = theory.max_batch(sla_tpot=_LIMIT, tpot_1=case.t_1, delta_p=case.delta_p, delta_h=case.delta_h)
    pairs = served_both_ways()
    crowded = pairs[pairs["crowd"] > verdicts.rule()]
    return {
        "T": token,
        "e": token / load,
        "delta_p": case.delta_p,
        "delta_h": case.delta_h,
        "t_w": t_w,
        "ttft_alone": case.prompt + t_w,
        "bound": case.bound,
        "batch": batch,
        "chunk": theory.chunk_size_full(b=batch, n_in=case.n_in, n_out=case.n_out),
        "chunks_gain": theory.chunked_gain_sla_serial(delta_p_gross=gross, **law),
        "split": theory.pdd_split(delta_p_gross=gross, n_out=case.n_out, **law),
        "rate": theory.rate_bound(delta_p=case.delta_p, n_out=case.n_out, **law),
        "border": verdicts.rule(),
        "gained": float((crowded["gain"] > 1).sum()),
        "crowded": float(len(crowded)),
        "n_in": case.n_in,
        "n_out": case.n_out,
    }


def boxes(of: dict[str, float]) -> list[Box]:
    """Return the sheet's parts, with the numbers of `numbers` in them."""
    ms = {name: 1e3 * of[name] for name in ("delta_p", "delta_h", "t_w", "ttft_alone")}
    return [
        Box("1 · What a token costs", "C01, C02", ("token_time_causal", "kv_load_time"),
            f"T = {1e6 * of['T']:.0f} µs, and it loads e = T/R = {of['e']:.0f} times faster over PCIe.",
            "A decode alone costs about 200 tokens of a prompt: batch it."),
        Box("2 · Load or recompute", "C05, C06", ("speedup_layerwise", "crossover"),
            f"The best share is {of['e'] / (1 + of['e']):.2f}. The weight read caps a prompt alone.",
            "Load all that is stored where e > 1, up to 99 %."),
        Box("3 · One more request", "C12 to C14", ("expected_tpot", "delta_p"),
            f"P + t_w = {ms['ttft_alone']:.0f} ms, t_w = {ms['t_w']:.1f} ms.",
            "Means are lines in B. Gaps are not: look at P99."),
        Box("4 · Measured", "C14, C17", ("gain_bound",),
            f"ΔP = {ms['delta_p']:.2f} ms, ΔH = {ms['delta_h']:.3f} ms: at most {of['bound']:.1f} times the batch.",
            "One pair of lengths tells only the sum ΔP + ΔH."),
        Box("5 · Which batch", "C15, C16", ("max_batch",),
            f"{of['batch']:.0f} requests within {1e3 * _LIMIT:.0f} ms.",
            "Take the least of three limits: TPOT, TTFT, memory."),
        Box("6 · Chunks", "C22 to C24", ("chunk_size_full", "chunked_gain_sla_serial"),
            f"A chunk of {of['chunk']:.0f} tokens, a gain of {of['chunks_gain']:.1f} over prompts alone.",
            "512 tokens in a step if the mean must keep 40 ms, 256 if every gap must."),
        Box("7 · Disaggregation", "C26, C27", ("pdd_split",),
            f"{of['split']:.1f} prefill units for a decode unit, if memory has room.",
            f"Above {of['border']:.1f} users on a GPU {of['gained']:.0f} of {of['crowded']:.0f} served splits gained."),
        Box("8 · A store behind it", "C16, C31", ("batch_gain",),
            "A store makes ΔP smaller, and nothing else.",
            "Capacity and hits come before speed."),
        Box("9 · Which of the three", "E12, C36", ("rate_bound", "littles_law"),
            f"No schedule serves more than {of['rate']:.1f} requests/s of a unit.",
            "Ideal order: chunks, split, aggregated. Measure both."),
    ]  # fmt: skip


def draw() -> tuple[Figure, dict[str, float]]:
    """Return the sheet, and the numbers that it shows."""
    use_book_style()
    of = numbers()
    figure = plt.figure(figsize=SIZE, layout="none")
    figure.text(0.03, 0.955, "LLM serving on one page", fontsize=20, weight="bold", color=INK)
    set_up = (
        f"The case: Llama-3-70B, FP8, two H100, {of['n_in']:,.0f} tokens in, {of['n_out']:.0f} out, 40 ms a token. "
        "Numbers are fitted to a served engine (chapter 4)."
    )
    figure.text(0.03, 0.925, set_up, fontsize=10, color=INK)
    for place, box in enumerate(boxes(of)):
        _put(figure, box, 0.03 + 0.325 * (place % 3), 0.875 - 0.284 * (place // 3), COLOURS[place % 3])
    symbols = (
        "P what a prompt adds to a running step · t_w weight read · ΔP = P/N_out · ΔP_g gross, with t_w · "
        "ΔH a decode's increment · S limit on TPOT · u = 1 − t_w/S · x prefill speedup · e = T/R"
    )
    figure.text(0.03, 0.015, fill(symbols, 150), fontsize=9, color=INK)
    return figure, of


def _put(figure: Figure, box: Box, left: float, top: float, colour: str) -> None:
    figure.add_artist(Line2D((left, left + 0.3), (top + 0.022, top + 0.022), color=colour, linewidth=3))
    figure.text(left, top - 0.008, box.title, fontsize=12, weight="bold", color=INK)
    figure.text(left + 0.3, top - 0.008, box.claims, fontsize=8, color=INK, ha="right")
    for line, name in enumerate(box.formulas):
        latex = theory.CATALOGUE[name].latex.replace(r"\lvert", "|").replace(r"\rvert", "|")
        formula = latex.partition(r",\quad")[0]
        figure.text(left, top - 0.058 - 0.062 * line, f"${formula}$", fontsize=13, color=INK, va="center")
    low = top - 0.042 - 0.06 * len(box.formulas)
    figure.text(left, low, fill(box.case, _ROOM), fontsize=9, color=INK, va="top")
    figure.text(left, low - 0.045, fill(box.rule, _BOLD), fontsize=9, weight="bold", color=INK, va="top")


def main() -> None:
    """Write the sheet."""
    figure, of = draw()
    told = json.dumps({name: float(f"{value:.4g}") for name, value in of.items()})
    figure.savefig(SHEET, metadata={"Title": "LLM serving on one page", "Keywords": told, "CreationDate": None})


if __name__ == "__main__":
    main()
