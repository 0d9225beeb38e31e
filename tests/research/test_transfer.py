"""What a calibration cannot know: each width from what was measured, and none that silybench's own engine has."""

from __future__ import annotations

import from_operators
import numpy as np
import pytest
import transfer

from inference_math import evidence
from inference_math.unit.coefficients import COEFFICIENTS, Calibration

VLLM = Calibration.zero_shot("vllm")


def test_the_centre_is_the_leanest_engine_and_the_width_their_scatter():
    seen = transfer.requests(VLLM.coefficients)
    assert seen.version.tolist() == ["mid-2023", "0.11", "0.9"]
    assert seen.seconds[0] > 3 * seen.seconds[1] > 5 * seen.seconds[2]
    for engine in ("vllm", "trtllm", "sglang"):
        assert Calibration.zero_shot(engine).coefficients.per_sequence_overhead == pytest.approx(
            seen.seconds.min(), rel=0.01
        )
    at = COEFFICIENTS.index("per_sequence_overhead")
    assert VLLM.covariance[at, at] ** 0.5 == pytest.approx(np.log(seen.seconds).std(ddof=1), rel=0.01)
    kv, memory = COEFFICIENTS.index("kv"), COEFFICIENTS.index("memory")
    assert VLLM.covariance[kv, kv] - VLLM.covariance[memory, memory] == pytest.approx(np.log(2) ** 2 / 2, rel=0.01)


@pytest.mark.long
def test_the_committed_widths_are_what_was_derived():
    table = evidence.load("widths").frame
    found = transfer.widths(from_operators.composed_steps())
    assert table.name.tolist() == found.name.tolist()
    assert table.width.to_numpy() == pytest.approx(found.width.to_numpy(), rel=1e-3)
    evidences = table.set_index("name").evidence
    assert (evidences[["dp", "nodes", "kind"]] == "judged").all()
    assert (evidences.drop(["dp", "nodes", "kind"]) == "fitted").all()
