"""What a chapter's notebook needs besides the formulas: SymPy set up, figures with captions, numbers for the prose."""

from __future__ import annotations

import base64
import io
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import sympy as sp
from IPython.display import Markdown, display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference_math.evidence.checks import as_one_of
from inference_math.theory.formula import to_latex
from inference_math_book.claims import EVIDENCE
from inference_math_book.explore.live import Live
from inference_math_book.explore.stills import lighter, png
from inference_math_book.figures.style import use_book_style

__all__ = ["CAPTION", "OURS", "VEGA_LITE", "Markdown", "Ours", "glue", "guess", "seen", "setup", "show", "takeaway"]

CAPTION = "application/vnd.inference-math.caption+json"  # what a page needs to number a figure
OURS = "application/vnd.inference-math.ours+json"  # what a page needs to show another chapter's figure, small
VEGA_LITE = "application/vnd.vegalite.v5+json"  # what JupyterLab draws itself, without a network
_POINTS = 40  # of a line that a reader downloads, at most
WIDTH = 600  # pixels of a live figure in JupyterLab
_TAG = re.compile(r"<[^>]*>")
_DIGITS = re.compile(r"(\d+\.\d{2})\d+")  # of a coordinate: finer ones differ between machines, and show nowhere


def setup() -> None:
    """Print SymPy as the book does and give Matplotlib the book's look."""
    sp.init_printing(use_latex="mathjax", latex_printer=lambda expr, **_: to_latex(expr))
    use_book_style()


def guess(question: str, worked: str) -> Markdown:
    """Return a question whose answer is folded: the numbers put into the formula, in two or three lines of Markdown.

    >>> print(guess("How much is twice 21?", "2 · 21 = 42").data)
    <details><summary><strong>Guess, then open.</strong> How much is twice 21?</summary>
    <BLANKLINE>
    2 · 21 = 42
    <BLANKLINE>
    </details>
    """
    head = f"<details><summary><strong>Guess, then open.</strong> {question}</summary>"
    return Markdown(f"{head}\n\n{worked.strip()}\n\n</details>")  # type: ignore[no-untyped-call]


def takeaway(text: str) -> Markdown:
    """Return what a reader should keep of a section: one sentence with one number.

    >>> takeaway("Twice 21 is 42.").data
    '> **Takeaway.** Twice 21 is 42.'
    """
    return Markdown(f"> **Takeaway.** {text}")  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Ours:
    """A figure of another chapter, which a page shows small with its badge, and a notebook as a link.

    >>> Ours("02-load-or-recompute", "fig-speedup")
    Ours(chapter='02-load-or-recompute', figure='fig-speedup')
    """

    chapter: str
    figure: str


def show(
    drawn: Figure | Sequence[Figure | Ours] | Live,
    name: str,
    badge: str,
    caption: str,
    *,
    alt: str = "",
    numbers: pd.DataFrame | None = None,
) -> None:
    """Show a figure and, below it, its caption.

    Parameters
    ----------
    drawn
        One of Matplotlib's, several that stand beside each other where there is room, or a live one. Among several may
        be a chapter's own (`Ours`).
    name
        The figure's anchor on the page, ``"fig-speedup"``.
    badge
        What the figure rests on, one of `claims.EVIDENCE`.
    caption
        In Markdown.
    alt
        What is to be seen, for a reader who cannot see it; a live figure has its own.
    numbers
        What was drawn, for readers to download; else they are read off the picture's lines and dots.

    Raises
    ------
    ValueError
        For another badge, for pictures without `alt`, and without `numbers` where no line or dot has any.
    """
    as_one_of("badge", badge, EVIDENCE)
    if isinstance(drawn, Live):
        if drawn.again is not None and _is_watched():
            display(_drawn_again(drawn))  # type: ignore[no-untyped-call]
        else:
            _put(_live(drawn))
    else:
        if not alt:
            raise ValueError(f"alt must say what {name} shows, not {alt!r}")
        figures = [drawn] if isinstance(drawn, Figure) else drawn
        if numbers is None and badge != "schematic":
            numbers = _read_off([ax for figure in figures if isinstance(figure, Figure) for ax in figure.axes], name)
        for figure in figures:
            if isinstance(figure, Ours):
                _put_ours(figure)
                continue
            _put({"image/svg+xml": _svg(figure, name, alt), "text/plain": alt})
            plt.close(figure)
    table = "" if numbers is None else numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    told = {"name": name, "badge": badge, "caption": caption, "csv": table}
    _put({CAPTION: told, "text/markdown": f"*{caption}* ({badge})", "text/plain": caption})


def _read_off(panels: list[Axes], name: str) -> pd.DataFrame:
    """Return the points of all lines and dots in the units of their axes, evenly fewer of a long line.

    A series has its label's name, without the underscore of those that no legend has.
    """
    parts = []
    for panel, ax in enumerate(panels, 1):
        for line in (line for line in ax.lines if line.get_transform() == ax.transData):  # others rule the picture
            points, series = np.array(line.get_xydata()), re.sub("^_child", "line ", str(line.get_label()))
            points = points if line.get_linestyle() == "None" else points[:: 1 + len(points) // _POINTS]
            x, y = {ax.get_xlabel() or "x": points[:, 0]}, {ax.get_ylabel() or "y": points[:, 1]}
            parts.append(pd.DataFrame({"panel": ax.get_title() or panel, "series": series.removeprefix("_")} | x | y))
    if not parts:
        raise ValueError(f"numbers must be given for {name}, which has neither lines nor dots")
    return pd.concat(parts)


def _put(bundle: dict[str, Any]) -> None:
    display(bundle, raw=True)  # type: ignore[no-untyped-call]


def _put_ours(ours: Ours) -> None:
    link = f"[Our figure]({ours.chapter}.ipynb#{ours.figure})"
    _put({OURS: asdict(ours), "text/markdown": link, "text/plain": ours.figure})
    beside = Path(ours.chapter).with_suffix(".ipynb")
    if _is_watched() and beside.exists():  # not so on Colab, which has one notebook alone
        bundles, _ = seen(beside, ours.figure)
        for bundle in bundles:
            _put(bundle)


def seen(notebook: Path, figure: str) -> tuple[list[dict[str, Any]], str]:
    """Return the pictures of a figure in an executed notebook, as they were put out, and the figure's badge.

    Raises
    ------
    ValueError
        Where the notebook has no such figure.
    """
    for cell in nbformat.read(notebook, as_version=4).cells:  # type: ignore[no-untyped-call]
        bundles = [output.data for output in cell.get("outputs", ()) if "data" in output]
        badge = next((data[CAPTION]["badge"] for data in bundles if data.get(CAPTION, {}).get("name") == figure), None)
        if badge is not None:
            return [data for data in bundles if {VEGA_LITE, "image/svg+xml"} & set(data)], badge
    raise ValueError(f"no figure {figure!r} in {notebook.name}")


def _is_watched() -> bool:
    """Tell whether a person runs this notebook: a server's session, or Colab; not a build."""
    return "JPY_SESSION_NAME" in os.environ or "google.colab" in sys.modules


def _drawn_again(figure: Live) -> Any:
    from inference_math_book.explore.widgets import drawn_again

    def draw(**moved: float) -> None:
        assert figure.again is not None
        _put(_live(replace(figure, chart=figure.again(**moved))))

    return drawn_again(figure.chart, figure.computes, draw)


def _live(figure: Live) -> dict[str, Any]:
    spec = figure.spec()
    # What Python computes has no control of the chart's own: the page has one, and plays it itself.
    binds = {p["name"]: p.pop("bind") for p in spec["params"] if p["name"] in figure.computes}
    # JupyterLab has Vega-Lite 5, whose language is the same for what the book draws. A figure that is as wide as its
    # place makes it lay out its cells without end.
    older = spec | {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "width": WIDTH}
    told = spec.get("usermeta", {}) | ({"binds": binds} if binds else {})
    still = base64.b64encode(lighter(png(spec, WIDTH))).decode()
    return {VEGA_LITE: older | {"usermeta": told}, "image/png": still, "text/plain": figure.alt_text}


def _svg(figure: Figure, name: str, alt: str) -> str:
    """Return a picture as SVG with text as text: the same bytes in every run."""
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Title": alt})
    text = out.getvalue()
    # Labels are between tags, and keep their digits.
    return _TAG.sub(lambda tag: _DIGITS.sub(r"\1", tag[0]), text[text.index("<svg") :])


def glue(**texts: str) -> None:
    """Hand formatted numbers to the prose of the page, which names them in ``{glue:text}`` roles.

    Where the book's tools are not installed (Colab), they are printed instead.
    """
    try:
        from myst_nb import glue as to_page
    except ImportError:
        to_page = None
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be formatted text, not {text!r:.80}")
        if to_page is None:
            print(f"{name}: {text}")
        else:
            to_page(name, text, display=False)
