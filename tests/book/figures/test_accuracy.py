from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import evidence
from inference_math.unit import Unit
from inference_math.unit.coefficients import Calibration
from inference_math_book.figures import accuracy as plots


def test_compute_alone_would_lie_on_the_root_s_line():
    """Steps that the unit itself predicts add their z, and leave nothing."""
    unit = Unit.of("llama-3-8b", "h100-sxm", calibration=Calibration.zero_shot("vllm").kernels)
    batch, context = np.array([64.0, 256.0]), np.array([600.0, 600.0])
    seconds = unit.step_time(batch, context)
    frame = pd.DataFrame(
        {"model": "llama-3-8b", "tp": 1, "batch": batch, "context": context, "measured": seconds, "predicted": seconds}
    )
    drawn = plots.implied_share(tuple(Figure().subplots(1, 2)), frame, {("llama-3-8b", 1): unit})
    assert drawn.implied.to_numpy() == pytest.approx(drawn.root.to_numpy(), abs=0.15)  # activations are on top
    assert drawn.left_us.to_numpy() == pytest.approx(0, abs=1e-9)


def test_the_readme_has_the_errors_of_the_tables():
    """By how near the set-up is: other curves of it chose terms, it was left out, its points were kept for a score.

    The first by kind of model, over the points that were set aside and say whether they drafted.
    """
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    aside = evidence.load("accuracy").frame.query("part == 'blind' and drafts != 'unknown'")
    dense, mixtures = aside[aside.model == "llama-3-70b"], aside[aside.model == "gpt-oss-120b"]
    latent = aside[aside.model.isin(["deepseek-v3", "kimi-k2"])]
    assert len(dense) + len(mixtures) + len(latent) == len(aside)

    def off(rows, time):
        return f"{100 * np.average(rows[time], weights=rows.points):.0f} %"

    by_engine = sorted(round(100 * one) for one in mixtures.e2e)
    assert f"dense models comes out {off(dense, 'e2e')} off, of latent attention {off(latent, 'e2e')}" in readme
    assert f"of mixtures {by_engine[0]} to {by_engine[-1]} % by engine" in readme
    assert f"{off(dense, 'ttft')} for dense models, {off(mixtures, 'ttft')} for mixtures" in readme
    assert f"{off(latent, 'ttft')} for latent attention" in readme
    left = evidence.load("served_left_out").frame
    worst = f"{100 * left.e2e.max():.0f} % in the worst of {len(left)} set-ups"
    assert f"Latency comes out {off(left, 'e2e')} off in the mean, and {worst}" in readme
    first = left.dropna(subset="ttft")
    assert f"the time to the first token {off(first, 'ttft')}. These points have the source" in readme
    today = evidence.load("served_error").frame.query("source.str.endswith(', set aside')")
    assert f"The time per token comes out {off(today, 'error')} off on {today.points.sum()} points" in readme
    assert f"the time to the first token {off(today.dropna(subset='ttft'), 'ttft')}; on" in readme
    others = today[~today.source.str.startswith("InferenceX")]
    assert f"on the {others.points.sum()} points of sources that gave the fit nothing" in readme
    assert f"nothing the time per token is {off(others, 'error')} off" in readme
    assert (
        f"Of the {today.points.sum()} points {off(today, 'inside')} lie within the calibration's own intervals"
        in readme
    )
    assert f"{off(today, 'printed')} within those that a plan prints, which promise nine tenths" in readme
    assert len(today.source.unique()) == 3
    # Who is nearer is predicted better, and intervals that a plan prints hold more than the calibration's own.
    assert np.average(left.tpot, weights=left.points) < np.average(today.error, weights=today.points) / 2
    assert np.average(today.inside, weights=today.points) < np.average(today.printed, weights=today.points) < 0.9
    offline = evidence.load("saturated_error").frame
    stages, spread = offline.layout.str.contains("stages"), offline.layout.str.contains("whole experts")
    shares = [
        np.average(offline.error[rows], weights=offline.points[rows])
        for rows in (~stages & (offline.kind == "dense"), spread & (offline.kind == "mixture of experts"), stages)
    ]
    assert shares == pytest.approx([0.09, 1 / 3, 0.38], abs=0.02)
    spread_out = "of layouts that spread experts out a third, of pipelines nearly two fifths"
    assert f"dense models is some 10 % off, {spread_out}" in readme
