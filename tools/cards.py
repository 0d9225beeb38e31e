"""Draw what a link to the book shows: book/_static/card.png, and card-planner.png for the planner.

    python tools/cards.py

All that is drawn is computed. The numbers stand in each picture's own text, so that a test can tell a stale one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from PIL import Image, PngImagePlugin

import inference_math_planner as planner
from inference_math.unit import costs
from inference_math_book import case
from inference_math_book.colours import ROLES
from inference_math_book.figures import engine
from inference_math_book.figures.interference import KINDS
from inference_math_book.figures.style import use_book_style

STATIC = Path(__file__).parents[1] / "book" / "_static"
SIZE = (1200, 630)  # pixels, the shape that sites show
INK = "#222832"
_TRAFFIC = 40  # requests per second, with which the planner opens
_COLOURS = 32  # a card's; few, for a small file


def site(ax: Axes) -> dict[str, float]:
    """Draw the engine of the front page; return its longest gap between tokens by architecture (ms)."""
    bars, tokens = engine.played(costs.step_cost(case.KERNELS))
    for kind, colour in KINDS.items():
        own = bars[bars["curve"] == kind]
        tall = own["y2"] - own["y"]
        ax.barh(own["y"], own["value"], tall, own["start"], align="edge", color=colour, ec="w", lw=0.4)
    longest: dict[str, float] = {}
    for name, came in tokens.groupby("architecture", sort=False):
        longest[str(name)] = float(came["gap"].max())
        ax.text(4, came["y"].iloc[0] + 0.7, f"{name}: longest gap {longest[str(name)]:.0f} ms", fontsize=13, color=INK)
    ax.set(xlim=(0, bars["end"].max()), yticks=[])
    ax.invert_yaxis()
    places = [ax.plot([], [], "s", ms=9, color=colour, label=kind)[0] for kind, colour in KINDS.items()]
    ax.legend(handles=places, ncols=4, loc="lower left", bbox_to_anchor=(-0.03, 1.0), fontsize=13, handletextpad=0.1)
    ax.set_xlabel("time (ms), simulated", fontsize=13)
    return longest


def plan(ax: Axes) -> dict[str, float]:
    """Draw how many GPUs the case's traffic takes; return them by architecture."""
    first = planner.fleet(case.planned(), _TRAFFIC)
    found = {first.architecture: first, **{one.architecture: one for one in first.others}}
    for place, (name, one) in enumerate(found.items()):
        middle, low, high = one.gpus
        ax.barh(place, middle, 0.55, color=ROLES[name])
        ax.plot([low, high], [place, place], color=INK, lw=3)
        words = f"{name}: {middle:.0f} ({low:.0f} to {high:.0f})"
        ax.text(0, place - 0.38, words, fontsize=16, weight="normal" if place else "bold", color=INK)
    ax.set(yticks=[], ylim=(len(found) - 0.5, -0.7))
    ax.set_xlabel("GPUs, and their range over the planner's draws", fontsize=13)
    return {name: one.gpus[0] for name, one in found.items()}


CARDS: Mapping[str, tuple[str, str, Callable[[Axes], dict[str, float]]]] = {
    "card": (
        "Can LLM serving\nbe worked out\non paper?",
        "Inference Math: derived, tested,\nheld against measured GPUs",
        site,
    ),
    "card-planner": (
        "How many GPUs\ndoes my traffic\nneed?",
        "Inference Math, the planner.\nHere: Llama-3-70B, FP8, H100,\n"
        f"{case.WORK.n_in:,.0f} tokens in, {case.WORK.n_out:.0f} out,\n{_TRAFFIC} requests a second",
        plan,
    ),
}
"""By file: title, subtitle, and what draws the picture."""


def draw(name: str) -> bytes:
    """Return a card as PNG, with the numbers that it shows in its own text."""
    title, under, picture = CARDS[name]
    use_book_style()
    with plt.rc_context({"figure.constrained_layout.use": False, "axes.grid": False, "axes.spines.left": False}):
        figure = plt.figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100)
        numbers = picture(figure.add_axes((0.44, 0.12, 0.52, 0.74)))
        for place, line in enumerate(title.splitlines()):  # each by itself, for even distances
            figure.text(0.04, 0.8 - 0.095 * place, line, fontsize=31, weight="bold", color=INK)
        for place, line in enumerate(reversed(under.splitlines())):
            figure.text(0.04, 0.12 + 0.06 * place, line, fontsize=17, color=INK)
        raw = io.BytesIO()
        figure.savefig(raw, format="png")
        plt.close(figure)
    told, out = PngImagePlugin.PngInfo(), io.BytesIO()
    told.add_text("numbers", json.dumps({name: round(value, 3) for name, value in numbers.items()}))
    Image.open(raw).convert("RGB").quantize(_COLOURS).save(out, format="png", optimize=True, pnginfo=told)
    return out.getvalue()


if __name__ == "__main__":
    for name in CARDS:
        (STATIC / f"{name}.png").write_bytes(draw(name))
