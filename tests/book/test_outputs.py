"""What a page makes of a notebook's outputs and links."""

import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from inference_math_book import notebook
from inference_math_book.explore.live import on_page
from inference_math_book.extension.outputs import Outputs, links_on_page, picture
from inference_math_book.extension.pictures import drawn as on_paper, with_stills
from inference_math_book.notebook import CAPTION, show

BASE = "https://example.org/book-of/"


@pytest.fixture
def shown(monkeypatch):
    """Show a line, and return what was put out."""

    def of(**told):
        found = []
        monkeypatch.setattr(notebook, "display", lambda data, raw: found.append(data))
        fig, ax = plt.subplots()
        ax.plot([0, 1], [0, 1 / 3])
        show(fig, "fig-line", "exact", "A line.", **({"alt": "It rises."} | told))
        return found

    yield of
    plt.close("all")


def test_a_figure_is_a_picture_and_its_caption_and_the_same_in_every_run(shown):
    numbers = pd.DataFrame({"x": [0, 1], "y": [0, 1 / 3]})
    drawn, caption = shown(numbers=numbers)
    again, read_off = shown()
    assert drawn == again
    assert read_off[CAPTION]["csv"] == "panel,series,x,y\n1,line 0,0,0\n1,line 0,1,0.333333\n"
    assert drawn["text/plain"] == "It rises."
    assert caption[CAPTION] == {
        "name": "fig-line",
        "badge": "exact",
        "caption": "A line.",
        "csv": "x,y\n0,0\n1,0.333333\n",
    }
    assert caption["text/markdown"] == "*A line.* (exact)"
    assert not plt.get_fignums()


def test_a_picture_needs_words_and_a_badge_that_is_one(shown):
    with pytest.raises(ValueError, match="alt must say what fig-line shows, not ''"):
        shown(alt="")
    fig, _ = plt.subplots()
    with pytest.raises(ValueError, match="badge must be"):
        show(fig, "fig-line", "sure", "A line.", alt="It rises.")
    with pytest.raises(ValueError, match="numbers must be given for fig-bars"):
        show(fig, "fig-bars", "exact", "No line.", alt="Nothing.")


def test_on_a_page_a_picture_takes_the_ink_of_the_page_and_says_what_it_shows(shown):
    drawn = picture(shown()[0]["image/svg+xml"])
    assert "currentColor" in drawn
    assert not re.search(r"(fill|stroke): ?(#000000|black)", drawn)
    assert 'role="img" aria-label="It rises."' in drawn
    assert "patch_1" not in drawn
    assert "<metadata>" not in drawn
    assert on_paper(drawn).startswith(b"\x89PNG")


def test_until_it_is_drawn_a_live_figure_is_a_picture_that_later_builds_keep(tmp_path):
    points = [{"x": x, "y": x * x} for x in (0, 1, 2)]
    axes = {name: {"field": name, "type": "quantitative"} for name in "xy"}
    spec = {"data": {"values": points}, "mark": "line", "encoding": axes, "description": 'A "rising" line.'}
    body = f"<p>Before.</p>{on_page(spec)}<p>After.</p>"
    drawn = with_stills(SimpleNamespace(outdir=tmp_path), body, "../_static/live")
    assert drawn.startswith("<p>Before.</p>")
    assert drawn.endswith("</div><p>After.</p>")
    assert '<div class="live-view"></div><img' in drawn
    assert 'alt="A &quot;rising&quot; line."' in drawn
    (path,) = (tmp_path / "_static" / "live").iterdir()
    assert f'src="../_static/live/{path.name}"' in drawn
    svg = path.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in svg
    assert "aria-" not in svg
    assert not re.search(r"\.\d{3}", svg)
    path.write_text(svg.replace("<path", "<path id='kept'", 1), encoding="utf-8")
    assert with_stills(SimpleNamespace(outdir=tmp_path), body, "../_static/live") == drawn
    assert "kept" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("link", "on_page"),
    [
        ("[two](02-load-or-recompute.ipynb)", "[two](02-load-or-recompute.md)"),
        (f"[claims]({BASE}book/reference/claims.html)", "[claims](reference/claims.md)"),
        ("[it](#equation-crossover)", '<a class="reference internal" href="#equation-crossover">it</a>'),
        (
            f"[C06]({BASE}book/reference/claims.html#c06)",
            '<a class="reference internal" href="reference/claims.html#c06">C06</a>',
        ),
        ("[out](https://example.org/a.ipynb)", "[out](https://example.org/a.ipynb)"),
    ],
)
def test_links_of_a_notebook_are_links_of_a_page(link, on_page):
    app = SimpleNamespace(config=SimpleNamespace(html_baseurl=BASE), docname="book/03-another")
    source = [f"See {link}, please."]
    links_on_page(app, "book/03-another", source)
    assert source == [f"See {on_page}, please."]
    left = [f"See {link}, please."]
    links_on_page(app, "book/planner", left)
    assert left == [f"See {link}, please."]
    code = f"```{{code-cell}} ipython3\nMarkdown('{link}')\n```\n"  # by which the build finds its outputs
    both = [f"{code}\nSee {link}.\n\n{code}"]
    links_on_page(app, "book/03-another", both)
    assert both == [f"{code}\nSee {on_page}.\n\n{code}"]
    printed = SimpleNamespace(mime_type="text/markdown", content=f"See {link}.")
    environment = SimpleNamespace(sphinx_env=app)
    assert Outputs.handle_mime(SimpleNamespace(renderer=environment), printed, False) is None
    assert printed.content == f"See {on_page}."


def test_links_of_an_appendix_climb_to_the_book():
    app = SimpleNamespace(config=SimpleNamespace(html_baseurl=BASE))
    source = [
        f"[two](../02-x.ipynb), [C](c-x.ipynb), [fleet]({BASE}book/handbook/f.html), [C6]({BASE}book/r/c.html#c06)"
    ]
    links_on_page(app, "book/appendix/a-x", source)
    there = '<a class="reference internal" href="../r/c.html#c06">C6</a>'
    assert source == [f"[two](../02-x.md), [C](c-x.md), [fleet](../handbook/f.md), {there}"]
