import json
import sys
from dataclasses import replace

import pytest
from IPython.utils.capture import capture_output

from inference_math.simulate import StepCost
from inference_math_book.explore.live import on_page
from inference_math_book.explore.widgets import drawn_again
from inference_math_book.figures import engine
from inference_math_book.notebook import CAPTION, VEGA_LITE, glue, show

COST = StepCost(t_w=0.017, T=8e-5, kv_read=7e-8)
WIDGET = "application/vnd.jupyter.widget-view+json"


def test_glue_takes_text_only():
    with pytest.raises(TypeError, match=r"share must be formatted text, not 0\.5"):
        glue(share=0.5)


def test_without_the_book_s_tools_the_numbers_are_printed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "myst_nb", None)
    glue(peak="10", share="90%")
    assert capsys.readouterr().out == "peak: 10\nshare: 90%\n"


def test_with_them_they_are_handed_over_silently(capsys):
    with capture_output():
        glue(peak="10")
    assert capsys.readouterr().out == ""


def shown(monkeypatch, watched):
    """Return what the engine's figure is to a notebook that a person runs, or to a build."""
    monkeypatch.delitem(sys.modules, "google.colab", raising=False)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if watched:
        monkeypatch.setenv("JPY_SESSION_NAME", "03.ipynb")
    with capture_output() as captured:
        show(engine.opening(COST, "Who waits?", prompt=2200, answer=6), "fig-play", "simulated", "Lanes.")
    *drawn, caption = (output.data for output in captured.outputs)
    assert caption[CAPTION]["name"] == "fig-play"
    return drawn[-1]  # without a front end, what a widget shows stands before it


def test_a_build_shows_the_engine_still_and_the_page_gives_it_its_controls(monkeypatch):
    spec = shown(monkeypatch, watched=False)[VEGA_LITE]
    bound = {param["name"] for param in spec["params"] if "bind" in param}
    assert bound == {"played"}
    page = json.loads(on_page(spec).split('<script type="application/json">')[1].split("</script>")[0])
    binds = {param["name"]: param["bind"] for param in page["params"] if "bind" in param}
    assert set(binds) == {"played", *engine.SETTINGS}
    assert binds["prompt"]["max"] == 4000


def test_a_running_notebook_plays_the_engine_again_when_a_control_moves(monkeypatch):
    played = []
    opening = engine.opening(COST, "Who waits?", prompt=2200, answer=6)
    figure = replace(opening, again=lambda **moved: played.append(moved) or engine.seen(COST, **moved))
    monkeypatch.setattr(engine, "opening", lambda *of, **first: figure)
    assert WIDGET in shown(monkeypatch, watched=True)
    box = drawn_again(figure.chart, figure.computes, figure.again)
    *first, more, _ = box.children
    sliders = [*first, *more.children[0].children]
    assert [slider.value for slider in sliders][:3] == [16, 2200, 6]
    sliders[1].value = 3000
    assert played[-1] == {name: slider.value for name, slider in zip(engine.SETTINGS, sliders, strict=True)}
    assert played[-1]["prompt"] == 3000
