"""The scenes of ΔP and ΔH: what they say and how high their bars are, by the runtime that draws them on the page."""

import json
import re

import pytest
import vl_convert

from inference_math_book import served
from inference_math_book.explore.stills import RELEASE
from inference_math_book.figures import scenes

CASE = served.CASE
DELTA_H = (1 - 1 / CASE.n_out) * CASE.delta_h


def shown(moment):
    """Return the texts of a moment, and how long each step is (ms)."""
    spec = scenes.opening(CASE).spec()
    next(param for param in spec["params"] if param["name"] == "scene")["value"] = moment
    svg = vl_convert.vegalite_to_svg(json.dumps(spec | {"width": 480}), vl_version=RELEASE)
    ends = re.findall(r'answer: (\d+); [^"]*?; to: ([\d.]+); curve: prompt', svg)
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg), {int(step): float(end) for step, end in ends}


@pytest.mark.parametrize(
    ("moment", "words", "added", "longest"),
    [
        (1, f"1 · Each|= {1e3 * CASE.t_1:.1f} ms", 0, 0),
        (2, f"2 · One|P = {1e3 * CASE.prompt:.0f} ms,", CASE.delta_p, CASE.prompt),
        (2.3, f"3 · Spread|/ {CASE.n_out} = {1e3 * CASE.delta_p:.2f} ms", CASE.delta_p, None),  # on its way
        (4, f"4 · In|both add {1e3 * (CASE.delta_p + DELTA_H):.2f} ms", CASE.delta_p + DELTA_H, CASE.delta_p + DELTA_H),
        (5, "5 · Or|step: 53 ms", CASE.delta_p + DELTA_H, CASE.prompt / scenes.CHUNKS + DELTA_H),
        (6, f"6 · Or|left: {1e3 * CASE.delta_h:.3f} ms", DELTA_H, DELTA_H),
    ],
)
def test_a_scene_says_and_draws_what_is_added_to_a_step(moment, words, added, longest):
    texts, steps = shown(moment)
    assert all(any(part in text for text in texts) for part in words.split("|"))
    assert sum(steps.values()) / CASE.n_out == pytest.approx(1e3 * (CASE.t_1 + added), rel=1e-5)
    assert longest is None or max(steps.values()) == pytest.approx(1e3 * (CASE.t_1 + longest), rel=1e-5)
