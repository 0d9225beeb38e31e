from __future__ import annotations

import itertools

import ipywidgets

from inference_math_book.explore import explorer
from inference_math_planner import Plan


def test_every_corner_of_the_ranges_is_answered():
    """Two ends of each slider, on the models that differ most."""
    sliders = {name: (c.min, c.max) for name, c in explorer._controls().items() if hasattr(c, "min")}
    units = [("llama-3-8b", "h100-sxm", 1, "fp8", "fp8"), ("llama-3-405b", "b200", 8, "fp8", "fp8")]
    corners = [dict(zip(sliders, ends, strict=True)) for ends in itertools.product(*sliders.values())]
    found = [explorer.planned(*unit, **corner) for unit in units for corner in corners]
    assert all(isinstance(plan, Plan) for plan in found)
    assert 10 < sum(plan.feasible for plan in found) < len(found)


def test_what_is_no_unit_is_answered_in_words():
    found = explorer.planned("llama-3-405b", "a6000", 1, "fp8", "fp8", 100, 10, 0.0, 400, 40)
    assert isinstance(found, str)
    assert "weights must be bf16" in found


def test_controls_have_labels_and_units_and_move_the_plan():
    widget = explorer.plan_explorer()
    controls = [child for child in widget.children if not isinstance(child, ipywidgets.Output)]
    assert all(control.description for control in controls)
    assert widget.f(**{name: control.value for name, control in explorer._controls().items()}).feasible
