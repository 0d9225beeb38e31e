"""The text of every chapter and appendix and its executed twin tell the same."""

import io
import re
from base64 import b64decode
from pathlib import Path

import jupytext
import nbformat
import numpy as np
import pytest
import yaml
from jupytext.compare import compare_notebooks
from PIL import Image

from inference_math_book.notebook import VEGA_LITE, WIDTH

ROOT = Path(__file__).parents[2]
TEXTS = sorted([*(ROOT / "book").glob("[0-9][0-9]-*.md"), *(ROOT / "book" / "appendix").glob("*.md")])
PAGES = sorted(p for p in (ROOT / "book").rglob("*.md") if "\nkernelspec:" in p.read_text(encoding="utf-8")[:800])
DISTRIBUTIONS = ("inference-math", "inference-math-planner", "inference-math-bench", "inference-math-book")
UNEXECUTED = {"skip-execution", "nbval-skip"}


def twin_of(text: Path) -> Path:
    return (ROOT / "notebooks" / text.relative_to(ROOT / "book")).with_suffix(".ipynb")


def code_cells(text: Path) -> list[nbformat.NotebookNode]:
    return [c for c in nbformat.read(twin_of(text), as_version=4).cells if c.cell_type == "code"]


def name(text: Path) -> str:
    return text.relative_to(ROOT / "book").as_posix()


def test_there_are_chapters_and_no_orphans():
    assert TEXTS
    twins = {p for p in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts}
    assert twins == {twin_of(t) for t in TEXTS}


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_the_twin_has_the_text_s_cells(text):
    compare_notebooks(nbformat.read(twin_of(text), as_version=4), jupytext.read(text), fmt="md:myst")


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_the_twin_was_run_from_top_to_bottom(text):
    run = [c for c in code_cells(text) if not UNEXECUTED & set(c.metadata.get("tags", ()))]
    assert [c.execution_count for c in run] == list(range(1, len(run) + 1))
    skipped = [c for c in code_cells(text) if UNEXECUTED & set(c.metadata.get("tags", ()))]
    assert all(set(c.metadata.tags) >= UNEXECUTED and not c.outputs for c in skipped)
    outputs = [o for c in run for o in c.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_a_live_figure_has_a_picture_beside_it_for_who_does_not_draw_it(text):
    """On GitHub, nbviewer and Colab: drawn lines and bars, which unlike axes are no greys, at the figure's width."""
    for output in (o.data for c in code_cells(text) for o in c.outputs if VEGA_LITE in o.get("data", {})):
        drawn = Image.open(io.BytesIO(b64decode(output["image/png"]))).convert("RGB")
        assert WIDTH <= drawn.width < 1.3 * WIDTH
        pixels = np.asarray(drawn, dtype=int)
        assert (pixels[0] == 255).all(), "paper is white"
        assert (np.ptp(pixels, axis=2) > 80).sum() > 500


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_a_cell_in_view_shows_what_it_derives(text):
    """In JupyterLab a cell that ends in an assignment shows nothing; only functions and plans may be made silently."""
    for cell in code_cells(text):
        folded = any("input" in tag or "cell" in tag for tag in cell.metadata.get("tags", ()))
        assert folded or cell.outputs or re.search(r"^def |= plan\(", cell.source, re.M), cell.source


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_the_first_code_cell_installs_from_the_configured_repository(text):
    url = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
    (line,) = [line for line in code_cells(text)[0].source.splitlines() if "%pip" in line]
    raw = url.replace("github.com", "raw.githubusercontent.com")
    assert line.split()[-1] == f"{raw}/main/.binder/colab.txt"
    listed = (ROOT / ".binder" / "colab.txt").read_text(encoding="utf-8")
    assert re.findall(r"^(inference-math\S*) @ git\+([^\s#]+)", listed, re.M) == [(name, url) for name in DISTRIBUTIONS]


@pytest.mark.parametrize("text", [p for p in PAGES if p not in TEXTS], ids=name)
def test_figures_are_shown_and_carry_numbers(text):
    """`show` asks for a badge and alt text; the front's figures alone are the page's."""
    source = text.read_text(encoding="utf-8")
    for cell in (c.split("\n```", 1)[0] for c in source.split("```{code-cell} ipython3\n")[1:]):
        assert "  figure:\n" not in cell or ".opening(" in cell
        assert "numbers=" in cell or "\nshow(" not in cell or "explore.Live(" in cell


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_a_chapter_is_plain_markdown_that_any_notebook_shows(text):
    """No role, no directive and no label outside cells: a page alone would understand it."""
    prose = "\n".join(c.source for c in jupytext.read(text).cells if c.cell_type == "markdown")
    assert re.findall(r"\{[\w:-]+\}`|^:::|^\([\w-]+\)=|\[\]\(", prose, re.M) == []


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_a_chapter_s_links_lead_somewhere(text):
    """To notebooks beside it, and to pages of the published book, which JupyterLab, GitHub and Colab can open."""
    base = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
    prose = "\n".join(c.source for c in jupytext.read(text).cells if c.cell_type == "markdown")
    files = re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", prose)
    ours = [file.removeprefix(base) for file in files if file.startswith(base)]
    assert [page for page in ours if not (ROOT / page).with_suffix(".md").exists()] == []
    near = [file for file in files if not file.startswith("http")]
    assert [file for file in near if not (file.endswith(".ipynb") and (twin_of(text).parent / file).exists())] == []
    assert [
        f for f in files if f.startswith("http") and re.search(r"/book/.*\.html", f) and not f.startswith(base)
    ] == []


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_what_a_page_folds_is_folded_in_jupyterlab(text):
    for cell in jupytext.read(text).cells:
        if cell.cell_type == "code":
            folded = bool({"hide-input", "remove-cell"} & set(cell.metadata.get("tags", ())))
            assert cell.metadata.get("jupyter", {}).get("source_hidden", False) == folded, cell.source
