from __future__ import annotations

import sys

import matplotlib as mpl
import pytest
from IPython.utils.capture import capture_output

from inference_math_book.notebook import glue, setup


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


def test_setup_sets_the_style():
    with mpl.rc_context():
        setup()
        assert mpl.rcParams["axes.grid"]
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"][0] == "#0072B2"
