"""What the book needs of Sphinx beyond its extensions.

* Formulas become MathML when the book is built (`mathml`). Vega is taken from an installed PyPI package, so that
  pages load nothing from elsewhere (`assets`).
* Launch buttons lead to the executed twin (.ipynb) of a chapter; edit links lead to its text (`assets`).
* The `badge` role names the evidence of a figure; the `formula` directive prints one of the package's,
  `notation-table` and `formula-table` print all of them, `citation` prints the BibTeX entry (`formulas`).
* `claims-ledger` judges the claims and `errata` lists what changes (`ledger`), `crosswalk` leads from each slide to
  its tests (`crosswalk`), `planner` is the planner's form and tables (`planner`). Claims and equations have BibTeX
  entries (`citing`).
* A notebook's outputs become numbered equations, figures and live figures, and its links a page's (`outputs`); another
  chapter's figure is shown small (`thumbnails`).
* The first of each of the glossary's terms in a page of the handbook is a link with its definition (`terms`).
* On paper live figures are pictures (`pictures`).
* Every page carries the book's version and the digest of its data (`assets`).
* The site's root leads to the book, and an address that is not there says so (`entrance`).
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from inference_math_book.extension import (
    assets,
    crosswalk,
    entrance,
    formulas,
    ledger,
    mathml,
    outputs,
    pictures,
    planner,
    terms,
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register everything above."""
    app.add_role("badge", formulas.badge)
    app.add_directive("formula", formulas.FormulaDirective)
    app.add_directive("notation-table", formulas.NotationTable)
    app.add_directive("formula-table", formulas.FormulaTable)
    app.add_directive("claims-ledger", ledger.ClaimsLedger)
    app.add_directive("errata", ledger.Errata)
    app.add_directive("crosswalk", crosswalk.Crosswalk)
    app.add_directive("citation", formulas.Citation)
    app.add_directive("captioned", outputs.Captioned)
    app.add_directive("planner", planner.Planner)
    app.add_post_transform(outputs.Together)
    app.add_post_transform(pictures.OnPaper)
    mathml.setup(app)
    app.connect("config-inited", assets.prepare)
    app.connect("source-read", outputs.links_on_page)
    app.connect("doctree-resolved", terms.link_terms)
    app.connect("html-page-context", assets.finish_page, priority=900)
    app.connect("build-finished", assets.lighten)
    app.connect("build-finished", entrance.write, priority=900)  # Jupyter Book writes a bare door
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
