"""The map of chapter 9: times, borders, the bound, and what the figure makes of them."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import pytest
import sympy as sp
import vl_convert

from inference_math import theory
from inference_math.theory.notation import n_out
from inference_math_book.explore import plane
from inference_math_book.explore.stills import RELEASE

CASES = [
    {plane.b_S: x, plane.b_P: y, plane.b_r: w, plane.sigma: sigma, n_out: n}
    for x, y, w, sigma, n in itertools.product([1, 7, 140, 900], [5, 430, 9000], [3, 101], [0, 0.5, 1], [2, 170])
]


NAMES = (plane.b_S, plane.b_P, plane.b_r, plane.sigma, n_out)


@lru_cache
def printed(expr):
    return sp.lambdify(NAMES, expr)


def at(expr, case):
    """Return the value of an expression, NaN where it has none."""
    with np.errstate(all="ignore"):
        return float(printed(expr)(*(np.float64(case[name]) for name in NAMES)))


def stepped(case, b):
    """Return the seconds, in decodes, of a step with `b` decodes and the chunk that keeps up with them."""
    chunk = b * (case[plane.b_P] + case[plane.sigma] * case[plane.b_r]) / (case[n_out] - 1)
    return case[plane.b_r] + chunk - min(case[plane.sigma] * case[plane.b_r], chunk) + b


YS = np.geomspace(1.5, 1e6, 400)


def test_chunks_fill_the_largest_step_that_keeps_the_limit():
    for case in CASES:
        limit, low, high = case[plane.b_S] + case[plane.b_r], 0.0, 1e6
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if stepped(case, middle) <= limit else (low, middle)
        assert at(plane.TIMES["chunked"], case) == pytest.approx((case[n_out] - 1) * limit / low, rel=1e-9)


def test_no_way_is_below_the_bound_which_is_the_theory_s_at_both_ends():
    decode = 0.2e-3
    for case in CASES:
        bound = at(plane.BOUND, case)
        assert all(at(time, case) >= bound * (1 - 1e-12) for time in plane.TIMES.values())
        x, y, w, n = (case[name] for name in (plane.b_S, plane.b_P, plane.b_r, n_out))
        law = {"n_out": n, "delta_h": decode, "t_w": w * decode, "sla_tpot": (x + w) * decode}
        if case[plane.sigma] == 0:
            assert theory.rate_bound(delta_p=y * decode / n, **law) == pytest.approx(1 / bound / decode)
        if case[plane.sigma] == 1:
            assert theory.rate_bound_serial(delta_p_gross=(y + w) * decode / n, **law) == pytest.approx(
                1 / bound / decode
            )
            assert at(plane.TIMES["chunked"], case) == pytest.approx(bound)


def test_borders_are_all_places_where_the_better_of_two_ways_changes():
    crossed = 0
    for (one, other), lines in plane.BORDERS.items():
        for x, w, sigma, n in itertools.product([2, 60, 400, 3000], [10, 101], [0.1, 0.5, 0.9], [20, 170]):
            here = {plane.b_S: x, plane.b_P: 1, plane.b_r: w, plane.sigma: sigma, n_out: n}
            ahead = [at(plane.TIMES[one] - plane.TIMES[other], here | {plane.b_P: y}) for y in YS]
            steps = zip(itertools.pairwise(YS), itertools.pairwise(ahead), strict=True)
            flips = [pair for pair, (low, high) in steps if low * high < 0]
            borders = [at(line, here) for line in lines]
            assert all(any(low <= y <= high for y in borders) for low, high in flips), (one, other, here)
            crossed += len(flips)
    assert crossed > 50


def test_where_more_decodes_fit_than_an_answer_has_tokens_whole_prompts_serve_as_much_as_chunks():
    """Every step has a prompt there, so nothing is left to spread."""
    for case in CASES:
        whole, chunked = (at(plane.TIMES[name], case) for name in ("aggregated", "chunked"))
        batch = 1 + (case[plane.b_S] - 1) * case[n_out] / (case[plane.b_P] + case[n_out] - 1)
        if batch > case[n_out] + 1:
            assert 0.9 < whole / chunked < 1 + 1e-9
            if case[plane.sigma] == 1:
                assert whole == pytest.approx(chunked)


def test_the_figure_computes_what_python_does():
    ring = (140.0, 1090.0)
    chart = plane.chart(101, 170, 0.5, ring, (0.166e-3, 82e-6))
    spec = chart.to_dict() | {"width": 500}
    by_name = {param["name"]: param for param in spec["params"]}
    assert by_name["ring"]["value"] == [{"log_x": 7.13, "log_y": 10.09}]
    assert list(by_name["ring"]["bind"]) == by_name["ring"]["select"]["fields"]
    svg = vl_convert.vegalite_to_svg(spec, vl_version=RELEASE)
    opened = {plane.b_S: 2**7.13, plane.b_P: 2**10.09, plane.b_r: 101, plane.sigma: 0.5, n_out: 170}
    for name, time in plane.TIMES.items():
        assert f"{name}: {at(plane.BOUND, opened) / at(time, opened):.0%} of the bound" in svg
    prompt, tpot = round(2**10.09 * 0.166e-3 / 82e-6), 0.166 * (2**7.13 + 101)
    assert f"output=170&amp;prompt={prompt}&amp;tpot={tpot:.1f}" in svg
