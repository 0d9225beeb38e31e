"""No output has digits of a fit that another processor would not find."""

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from grids import early, rest_long
from nudged import nudge

from inference_math import evidence
from inference_math.simulate import StepCost
from inference_math.unit.coefficients import Calibration
from inference_math_bench.lab import costs
from inference_math_bench.lab.engines import Played
from inference_math_bench.lab.experiments.bench import Bench, calibration
from inference_math_book import own_file, served
from inference_math_book.figures import laboratory
from inference_math_planner.calibrate import from_kernels
from inference_math_planner.calibrate.fitting import moved_to

ROOT = Path(__file__).parents[2]
TWINS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
TEXTS = (p for p in (ROOT / "book").rglob("*.md") if "\nkernelspec:" in p.read_text(encoding="utf-8")[:800])
PAGES = sorted(p for p in TEXTS if not (p.name[:2].isdigit() or p.parent.name == "appendix"))
OWN = own_file.ours()[0]
SIGNS = pytest.mark.parametrize("sign", [1, -1], ids=["up", "down"])


def law(of: served.Law) -> list[float]:
    return [of.t_1, *of.prompts, of.each, of.h]


def bare_steps():
    return calibration(Bench(Played(StepCost(t_w=0.006, T=2e-4, kv_read=8e-7), noise=0.1), np.random.default_rng(0)))


def calibrated():
    start = Calibration.zero_shot("vllm")
    work = np.random.default_rng(0).uniform(0.1, 1, (40, 2))
    rates = lambda at: work @ np.array([1 / at.coefficients.bf16, 1 / at.coefficients.kv])  # noqa: E731
    return asdict(moved_to(1.1 * rates(start), rates, start, {"bf16": 0.2, "kv": 0.35}, "profile")[0].coefficients)


FITS = {
    "the law": lambda: [law(served.fit(served.rows(tp), whole)) for tp in (2, 4, 8) for whole in (False, True)],
    "its other form": lambda: [law(served.fit(served.rows(tp)).even()) for tp in (2, 4, 8)],
    "its interval": lambda: served.interval(served.rows(2), lambda law: law.delta_p(2200, 170)),
    "kernels": lambda: served.kernels().kv_reads().cache_read.tolist(),
    "a GPU's lines": lambda: from_kernels.lines(OWN.times, OWN.unit)[0].value.tolist(),
    "a calibration": calibrated,
    "bare steps": lambda: asdict(costs.fit(bare_steps())),
    "unmixed steps": lambda: asdict(costs.fit_alone(bare_steps(), "quadrature")),
    "forms of a step": lambda: laboratory.judged_steps(evidence.load("lab_gpu_steps").frame)["said_ms"].tolist(),
}


@pytest.mark.parametrize("fit", FITS)
@SIGNS
def test_a_fit_has_the_digits_on_which_solvers_agree(fit, sign, monkeypatch):
    before = FITS[fit]()
    calls = nudge(sign, monkeypatch.setattr)
    assert FITS[fit]() == before
    assert calls


def compared(notebook: Path, sign: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a notebook whose solvers are nudged from the start, and compare its outputs with those that it has."""
    (folder / "sitecustomize.py").write_text(f"import nudged\n\nnudged.nudge({sign})\n")
    paths = [folder, ROOT / "tests" / "helpers", *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", notebook, "tests/conftest.py"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("twin", early(TWINS, "04"), ids=lambda p: p.stem)  # where the fits are
@pytest.mark.parametrize("sign", rest_long([1, -1]), ids=["up", "down"])
def test_a_notebook_shows_the_same_where_solvers_differ(twin, sign, tmp_path):
    run = compared(twin, sign, tmp_path)
    assert run.returncode == 0, run.stdout


@pytest.mark.long
@pytest.mark.parametrize("text", PAGES, ids=lambda p: p.stem)
def test_a_page_of_the_handbook_does(text, site, tmp_path):
    run = compared((site.parent / "pages" / text.relative_to(ROOT / "book")).with_suffix(".ipynb"), 1, tmp_path)
    assert run.returncode == 0, run.stdout
