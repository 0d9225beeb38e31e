"""What a chapter's notebook needs besides the formulas: SymPy set up, numbers handed to the prose."""

from __future__ import annotations

import sympy as sp

from inference_math.theory.formula import to_latex
from inference_math_book.figures.style import use_book_style

__all__ = ["glue", "setup"]


def setup() -> None:
    """Print SymPy as the book does and give Matplotlib the book's look."""
    sp.init_printing(use_latex="mathjax", latex_printer=lambda expr, **_: to_latex(expr))
    use_book_style()


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
