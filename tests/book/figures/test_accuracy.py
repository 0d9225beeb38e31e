import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import Unit
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
