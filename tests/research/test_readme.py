"""The README's errors are those of the tables that a release scores."""

from pathlib import Path

import numpy as np
import pytest

from inference_math import evidence


def test_the_readme_has_the_errors_of_the_tables():
    """By how near the set-up is: other curves of it chose terms, it was left out, its points were kept for a score.

    The first by kind of model, over the points that were set aside and say whether they drafted.
    """
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    aside = evidence.load("accuracy").frame.query("part == 'blind' and drafts != 'unknown'")
    dense, mixtures = aside[aside.model == "llama-3-70b"], aside[aside.model == "gpt-oss-120b"]
    latent = aside[aside.model.isin(["deepseek-v3", "kimi-k2"])]
    assert len(dense) + len(mixtures) + len(latent) == len(aside)
    left = evidence.load("served_left_out").frame
    today = evidence.load("served_error").frame.query("source.str.endswith(', set aside')")
    others = today[~today.source.str.startswith("InferenceX")]

    def off(rows, time):
        rows = rows.dropna(subset=time)
        return f"{100 * np.average(rows[time], weights=rows.points):.0f} %"

    by_engine = sorted(round(100 * one) for one in mixtures.e2e)
    worst = f"{100 * left.e2e.max():.0f} %"
    rows = {
        "of set-ups whose other curves chose terms of the model: dense models": (off(dense, "e2e"), off(dense, "ttft")),
        "the same: mixtures": (f"{by_engine[0]} to {by_engine[-1]} % by engine", off(mixtures, "ttft")),
        "the same: latent attention": (off(latent, "e2e"), off(latent, "ttft")),
        f"of {len(left)} set-ups left out of the fit": (f"{off(left, 'e2e')}, the worst {worst}", off(left, "ttft")),
        f"of newer engines, kept for a score: {today.points.sum()} points": (off(today, "error"), off(today, "ttft")),
        f"of these from sources that gave the fit nothing: {others.points.sum()} points": (off(others, "error"), ""),
    }
    table = readme[readme.index("## How far off is that?") :].split("\n\n")[2]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert cells[0] == ["points", "time per request or token", "TTFT"]
    assert {points: (time, ttft) for points, time, ttft in cells[2:]} == rows

    assert f"Of the three sources of the {today.points.sum()} points" in readme
    assert len(today.source.unique()) == 3
    own, printed = off(today, "inside"), off(today, "printed")
    assert f"{own} lie within the calibration's own intervals, and {printed} within those that a plan prints" in readme
    assert "a plan prints, which promise nine tenths" in readme
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
