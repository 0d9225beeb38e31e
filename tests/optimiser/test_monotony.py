"""No answer falls where less is asked or more is there: goodput of all architectures and of the answer.

For a limit it is a theorem: what keeps a limit keeps a looser one, and the settings looked at do not hang on limits.
For lengths, memory, links, drafts and units it is tested. Half a per cent is what the searches leave.
"""

from typing import Any

import pytest
from grids import each
from hypothesis import HealthCheck, given, settings, strategies as st

from inference_math import SLA, Unit, Workload
from inference_math.optimiser.case import DRAWS, Case
from inference_math.optimiser.search import ARCHITECTURES
from inference_math_planner.answers.deployment import Plan

LEFT = 0.005  # of a rate, by searches
CHANGES = ["ttft", "tpot", "n_in", "n_out", "alpha", "accepted", "memory", "link", "units"]
# Beside answers of fewer steps more prompts are computed, so that fewer fit: aggregated serving may lose. A whole
# request of a small batch is much of it, and so is the wait of a first token beside them.
FEWER_STEPS = ("n_out", "accepted")
UNITS = {
    "llama-3-70b": {"gpu": "h100-sxm", "tp": 2, "weights": "fp8", "kv": "bf16"},
    "llama-3-8b": {"gpu": "l40s"},
    "qwen3-32b": {"gpu": "a100-80gb", "tp": 2},
    "qwen3-30b-a3b": {"gpu": "h100-sxm"},
    "gpt-oss-120b": {"gpu": "h100-sxm"},
    "qwen3-235b-a22b": {"gpu": "h200-sxm", "tp": 4, "weights": "fp8", "engine": "trtllm"},
    "deepseek-v3": {"gpu": "h200-sxm", "dp": 8},
    "kimi-k2": {"gpu": "b200", "dp": 8, "ep": 8, "engine": "sglang"},
}


def case_of(
    model: str, ttft: float, tpot: float, n_in: int = 2200, n_out: int = 170, alpha: float = 0.0, units: int = 8,
    link: str = "rdma", tier: str | None = None, **unit: Any,
) -> Case:  # fmt: skip
    return Case(
        Unit.of(model, **{**UNITS[model], **unit}), Workload(n_in, n_out, alpha), SLA(ttft, tpot), units=units,
        tier=tier or ("dram" if alpha else None), link=link,
    ).checked()  # fmt: skip


def served(case: Case) -> dict[str, float]:
    """Return what each architecture serves, and the answer, in requests/s of a unit."""
    rates = Plan.of(case, DRAWS).compared.set_index("architecture").rate
    return {**{name: float(rates[name]) for name in ARCHITECTURES}, "answer": float(rates.max())}


def falls(model: str, less: dict[str, Any], more: dict[str, Any], **same: Any) -> dict[str, tuple[float, float]]:
    """Return what serves less with more: by architecture, what it serves before and after."""
    before, after = (served(case_of(model, **{**same, **change})) for change in (less, more))
    fallen = {name: (before[name], after[name]) for name in before if after[name] < (1 - LEFT) * before[name]}
    if any(name in more for name in FEWER_STEPS):
        fallen.pop("aggregated", None)
        if before["answer"] == before["aggregated"]:
            fallen.pop("answer", None)
    return fallen


DS, DL = {"n_in": 2200, "n_out": 170}, {"n_in": 4000, "n_out": 500}
DB = {"n_in": 4000, "n_out": 400, "gpu": "b200", "dp": 8, "ep": 8, "engine": "sglang"}
FOUND = [
    ("deepseek-v3", {"ttft": 0.8}, {"ttft": 1.0}, DL | {"tpot": 0.04}),
    ("deepseek-v3", {"ttft": 2.0}, {"ttft": 2.5}, DL | {"tpot": 0.04}),
    ("deepseek-v3", {"ttft": 3.0}, {"ttft": 4.0}, DL | {"tpot": 0.04}),
    ("deepseek-v3", {"ttft": 1.0}, {"ttft": 1.25}, DL | {"tpot": 0.04}),
    ("deepseek-v3", {"ttft": 2.0}, {"ttft": 2.5}, DS | {"tpot": 0.05}),
    ("deepseek-v3", {"ttft": 1.5}, {"ttft": 2.0}, DS | {"tpot": 0.05}),
    ("deepseek-v3", {"tpot": 0.035}, {"tpot": 0.04}, DS | {"ttft": 2.0}),
    ("deepseek-v3", {"ttft": 0.5}, {"ttft": 0.75}, DS | {"tpot": 0.1}),
    ("deepseek-v3", {"alpha": 0.3}, {"alpha": 0.6}, DS | {"ttft": 1.0, "tpot": 0.05, "tier": "hbm"}),
    ("deepseek-v3", {"accepted": 0.5}, {"accepted": 0.7}, DS | {"ttft": 1.0, "tpot": 0.04, "drafts": 3}),
    ("deepseek-v3", {"tpot": 0.05}, {"tpot": 0.07}, DB | {"ttft": 2.0}),
    ("deepseek-v3", {"ttft": 2.0}, {"ttft": 2.5}, DB | {"tpot": 0.05}),
    ("qwen3-235b-a22b", {"tpot": 0.025}, {"tpot": 0.03}, {"n_in": 3000, "n_out": 300, "ttft": 2.0}),
    ("llama-3-70b", {"units": 3}, {"units": 4}, DS | {"ttft": 1.0, "tpot": 0.05}),
    ("llama-3-70b", {"units": 6}, {"units": 8}, DS | {"ttft": 1.0, "tpot": 0.05}),
    ("deepseek-v3", {"units": 3}, {"units": 4}, DS | {"ttft": 1.0, "tpot": 0.05}),
    ("gpt-oss-120b", {"units": 3}, {"units": 4}, {"n_in": 2000, "n_out": 500, "ttft": 1.0, "tpot": 0.05}),
]


@each(FOUND, name=lambda row: f"{row[0]} {row[1]} to {row[2]}", parts=4)
def test_what_once_fell_falls_no_more(row):
    model, less, more, same = row
    assert falls(model, less, more, **same) == {}


cases = st.fixed_dictionaries(
    {
        "model": st.sampled_from(sorted(UNITS)),
        "ttft": st.sampled_from([0.3, 0.5, 0.8, 1.2, 2.0, 4.0]),
        "tpot": st.sampled_from([0.02, 0.03, 0.04, 0.05, 0.08, 0.12]),
        "n_in": st.sampled_from([200, 1000, 2200, 4000, 9000]),
        "n_out": st.sampled_from([20, 170, 500, 1500]),
        "alpha": st.sampled_from([0.0, 0.0, 0.3, 0.6]),
        "drafts": st.sampled_from([0, 0, 3]),
        "units": st.sampled_from([2, 3, 6, 8]),
    }
)


def neighbours(case: dict[str, Any], change: str, step: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an input as it is less welcome, and as it is more."""
    if change in ("ttft", "tpot"):
        return {change: case[change]}, {change: case[change] * step}
    if change in ("n_in", "n_out"):
        return {change: round(case[change] * step)}, {change: case[change]}
    if change == "units":
        return {"units": case["units"]}, {"units": case["units"] + 1}
    return {
        "alpha": ({"alpha": case["alpha"]}, {"alpha": case["alpha"] + (step - 1) / 2}),
        "accepted": ({"drafts": 3, "accepted": 0.5}, {"drafts": 3, "accepted": 0.5 * step}),
        "memory": ({"memory": 0.85}, {"memory": 0.9}),
        "link": ({"link": "tcp"}, {"link": "rdma"}),
    }[change]


def check(case: dict[str, Any], change: str, step: float) -> None:
    less, more = neighbours(case, change, step)
    same = {name: value for name, value in case.items() if name not in ("model", *less)}
    try:
        found = falls(case["model"], less, more, **same)
    except ValueError:  # it does not fit
        return
    assert found == {}, (case, less, more)


pairs = given(case=cases, change=st.sampled_from(CHANGES), step=st.sampled_from([1.1, 1.25, 1.6]))
slow = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=20, **slow)
@pairs
def test_less_asked_or_more_there_serves_no_less(case, change, step):
    check(case, change, step)


@pytest.mark.long
@settings(max_examples=400, **slow)
@pairs
def test_less_asked_or_more_there_serves_no_less_in_four_hundred_cases(case, change, step):
    check(case, change, step)
