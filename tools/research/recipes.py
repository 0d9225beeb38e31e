"""How a served point was run: the flags of its benchmark's recipe that move the time to the first token.

Table `served` says model, GPU, engine, version, layout, lengths and users. What the engine was told besides stands in
the scripts that started it: tokens of a step, what prompts wait for, how often an engine looks who has come, drafts.
Source: SemiAnalysis InferenceX, github.com/SemiAnalysisAI/InferenceX (Apache-2.0), benchmarks/ of October 2025 to April
2026, each rule with its script. A row that no rule knows has its engine's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pandas as pd
from msgspec import structs

from inference_math.evidence.checks import as_one_of
from inference_math.simulate import Chunked, SchedulerPolicy
from inference_math.unit import Unit
from inference_math.unit.problem import weights_share
from inference_math.unit.shapes import MEMORY
from inference_math_planner.fleets.benchmarks import policy_of

__all__ = ["ACCEPTED", "COLD", "EACH", "SPAN", "WARM", "Recipe", "ServedRow", "recipe_of", "unit_of"]

# A row of `served`: a mapping or a series of its columns.
ServedRow: TypeAlias = Mapping[Any, Any] | pd.Series

EACH = 10  # requests of each user, all scripts: --num-prompts is ten times --max-concurrency
SPAN = 1 / 9  # lengths are drawn from 0.8 to 1.0 of nominal, 8/9 to 10/9 of their mean: --random-range-ratio 0.8
WARM = 15_000  # tokens of a step up to which an engine that has answered one prompt is warm
ACCEPTED = 0.6  # of random tokens' drafts: calibration rows of DeepSeek with two drafts under SGLang, nearest tenth
COLD = 70.0  # seconds: what ten times the mean TTFT of calibration rows without a warm-up holds beyond the others

# When scripts changed: FP8 caches of SGLang on MI300X, three drafts of ATOM, FP8 caches of SGLang on MI355X.
CHANGED = ("2026-01-20", "2026-03-01", "2026-03-05")


@dataclass(frozen=True)
class Recipe:
    """What an engine was told.

    Attributes
    ----------
    budget
        Tokens of a step, of all groups of attention together.
    habits
        How prompts are let in.
    kv
        Precision of the KV cache.
    drafts
        Tokens that each request drafts in a step.
    memory
        Share of the GPUs' memory for weights and KV caches; with `free` of what the weights leave. None: as the engine
        takes by itself.
    free
        Whether it is (TensorRT-LLM).
    cold
        Seconds that the first step with more than `WARM` tokens takes more, as kernels are compiled in it.
    """

    budget: int
    policy: SchedulerPolicy
    kv: str
    drafts: int = 0
    cold: float = 0.0
    memory: float | None = MEMORY
    free: bool = False

    def sized(self, unit: Unit) -> Unit:
        """Return the unit with the memory that the recipe gives it."""
        if self.memory is None or not self.free:
            return replace(unit, memory=self.memory)
        taken = weights_share(replace(unit, memory=1.0).numbers, unit.gpu.driver_bytes or unit.gpu.hbm_bytes)
        return replace(unit, memory=taken + self.memory * (1 - taken))

    def scheduler(self, places: float, ranks: int = 1) -> Chunked:
        """Return it as a scheduler with so many places, of so many groups of attention that step together."""
        return Chunked(self.budget, max_batch=max(1, places), policy=self.policy, ranks=ranks)


def recipe_of(row: ServedRow) -> Recipe:
    """Return the recipe of a row of `served`, whose drafts may be unknown."""
    return _OF[as_one_of("engine", row["engine"], tuple(_OF))](row)


def unit_of(row: ServedRow, **changed: Any) -> Unit:
    """Return the unit of a row of a table of served points, a mapping or a series; `changed` as `Unit.of` names it.

    It takes `MEMORY` until its recipe says otherwise.
    """
    layout = {name: int(row[name]) for name in ("tp", "ep", "dp")}
    told = (
        layout
        | {"memory": MEMORY}
        | {name: row[name] for name in ("weights", "engine", "version") if name not in changed}
    )
    return Unit.of(row["model"], row["gpu"], **(told | changed))


def _vllm(row: ServedRow) -> Recipe:
    """70b_fp8_h200_slurm@6ebc882, gptoss_fp4_h100@1fc5d73, kimik2.5_fp4_b200@04107b3: 8,192 tokens, also the default.

    minimaxm2.5_fp8_b200@43ae41b and its twins of vLLM 0.19 on Blackwell: twice the prompt's nominal tokens. Caches are
    in FP8 where that, 70b_fp8 or gptoss_fp4_b200@34bc7c4 (from 0.11.2 on) ask for it, and where NVFP4 checkpoints bring
    the scales.
    """
    blackwell = row["gpu"] in ("b200", "b300")
    doubled = row["model"] == "minimax-m2" and blackwell and row["version"] != "0.17.0"
    asked = row["model"] == "gpt-oss-120b" and blackwell and row["version"] != "0.11"
    eight = doubled or asked or row["model"] == "llama-3-70b" or row["weights"] == "nvfp4"
    budget = 2 * _nominal(row["n_in"]) if doubled else 8192
    policy = policy_of("vllm", version=str(row["version"]))
    return Recipe(budget * int(row["dp"]), policy, "fp8" if eight else "bf16")


def _trtllm(row: ServedRow) -> Recipe:
    """Prompts are never cut: no script asks for chunked context. Caches are in FP8 where checkpoints or scripts say so.

    The engine's default, "auto", follows the checkpoint: one in BF16, and OpenAI's in MXFP4, have no FP8 cache, and
    NVIDIA's runs of the latter on Hopper leave it so. They take a share of what the weights leave, 0.9 unless a script
    says 0.8. Groups of attention wait for each other's prompts (`attention_dp_config`: `enable_balance`,
    `timeout_iters: 60`; tensorrt_llm/_torch/pyexecutor/py_executor.py, `_balance_adp_requests`).

    70b_fp8_h200_trt_slurm@a267b4b, 70b_fp8_b200_trt_slurm@a267b4b, gptoss_fp4_b200_trt@34bc7c4,
    dsr1_fp4_b200_trt@34bc7c4, dsr1_fp8_b200_trt@34bc7c4 and their twins with drafts.
    """
    n_in, dp, users = _nominal(row["n_in"]), int(row["dp"]), int(row["users"])
    room: Any = {"memory": 0.9, "free": True}
    whole = policy_of("trtllm")
    short = n_in == 1024 and _nominal(row["n_out"]) == 1024
    if row["model"] == "llama-3-70b":
        waiting = structs.replace(whole, wait_steps=20, wait_tokens=0.9 * 16_384)
        return Recipe(16_384, waiting if short and row["tp"] < 8 else whole, "fp8", **room)
    drafts = (1 if dp > 1 else 3) if row["model"] == "deepseek-v3" and row["drafts"] == "mtp" else 0
    balanced = structs.replace(whole, wait_steps=60, balanced=True)
    if row["model"] == "gpt-oss-120b" and row["gpu"] == "b200":
        return Recipe(20_000 * dp, balanced if dp > 1 else whole, "fp8", **room)
    if row["model"] != "deepseek-v3":
        sixteen = row["weights"] in ("bf16", "mxfp4")
        return Recipe(8192 * dp, whole, "bf16" if sixteen else "fp8", **room)
    batch = (1 + drafts) * (users // dp if drafts else users)
    tokens = -(-(batch + n_in + 64) // 64) * 64
    today = str(row["version"]).startswith(("1.2", "1.3"))
    if today and not drafts:
        tokens = max(tokens, 8192)
    policy = balanced if dp > 1 else whole
    if today and not drafts and row["weights"] == "fp8" and short and users >= 64 and dp == 1:
        policy = structs.replace(whole, wait_steps=40, wait_tokens=0.8 * tokens)
    return Recipe(tokens * dp, policy, "fp8", drafts, memory=0.8, free=True)


def _sglang(row: ServedRow) -> Recipe:
    """A step computes prompts or decodes: no script asks for mixed chunks. Caches are in FP8 where a script says so.

    With drafts no step is planned ahead: scripts set SGLANG_ENABLE_SPEC_V2, which would allow it, and do not export it.

    dsr1_fp8_b200@16ffb65, dsr1_fp8_b200_mtp@285b662, dsr1_fp4_b200@285b662, glm5_fp8_b200@4eca3fe,
    glm5_fp4_b200@405c601, glm5_fp8_h200@0c82808, qwen3.5_bf16_b200@29d69fa, qwen3.5_fp8_b200@01fa35c,
    qwen3.5_fp4_b200@088fe66, qwen3.5_fp8_b300@5632483, qwen3.5_fp8_h200@2116fc4, and their twins on the B300.
    """
    if row["model"] == "deepseek-v3" and row["gpu"].startswith("mi"):
        return _sglang_amd(row)
    model, gpu, eight = row["model"], row["gpu"], row["weights"] == "fp8"
    often = 30 if row["users"] >= 16 else 10
    budget, looks, drafts, kv, cold, memory = 8192, 1, 0, "bf16", 0.0, MEMORY
    drafting = row["drafts"] == "mtp"
    if model == "deepseek-v3":
        kv, looks, budget = "fp8", often, 32_768 if eight and row["tp"] != 4 else 16_384
        # The client of 2025 sent one prompt before the clock began, today's two for each user.
        cold = COLD if row["weights"] == "nvfp4" and row["version"] == "" else 0.0
        if drafting:
            budget, drafts = 16_384, 2
        elif eight and row["tp"] == 4:
            budget, looks, memory = 8192, min(often, 10), 0.95
    elif model == "glm-5" and gpu != "h200-sxm":
        kv, budget, looks = "fp8", 32_768, 1 if eight else 10
    elif model == "qwen3.5-397b-a17b":
        kv, budget, looks = "bf16" if row["weights"] == "bf16" else "fp8", 32_768, often
        if eight and gpu != "b200":
            budget, looks = 16_384, 10 if gpu == "b300" else 1
    if drafting and model != "deepseek-v3":
        drafts = 3
    policy = SchedulerPolicy(alone=True, looks=looks, ahead=not drafting)
    return Recipe(budget * int(row["dp"]), policy, kv, drafts, cold, memory)


def _sglang_amd(row: ServedRow) -> Recipe:
    """DeepSeek on AMD's GPUs: nearly all prompts in one step, and no interval between looks for new requests.

    dsr1_fp8_mi300x_slurm@2e46dba, dsr1_fp8_mi300x@285b662, dsr1_fp8_mi355x@1fc5d73 and @285b662,
    dsr1_fp4_mi355x@1fc5d73, dsr1_fp8_mi355x_mtp@7a78682 and @ba8d7d0: three drafts, also by SGLang's choice where the
    first says no number. When caches became FP8 is told by perf-changelog.yaml, pull requests 544 (MI300X, MI325X;
    January 2026) and 865 (MI355X; March). Pools: multi_node/amd_utils/models.yaml@02d1804, env.sh beside it, and pull
    request 674 for their drafts.
    """
    eight, newest, date = row["weights"] == "fp8", row["gpu"] == "mi355x", str(row.get("date", "today"))
    spread, drafting = row["dp"] > 1, row["drafts"] == "mtp"
    if row.get("prefill_workers", 0) > 0:
        budget, kv, drafts = 262_144 if eight and not spread else 16_384, "fp8", 1 if spread else 2
    else:
        kv = "bf16" if eight and date < CHANGED[2 if newest else 0] else "fp8"
        long = _nominal(row["n_in"]) == 8192 and row["users"] > 32
        budget, drafts = 196_608, 3
        if not eight and long:
            budget = 32_768
        elif kv == "fp8" and not newest:
            budget = 131_072
    policy = SchedulerPolicy(
        alone=True, ahead=kv == "fp8" or not drafting
    )  # the script with FP8 exports SGLANG_ENABLE_SPEC_V2
    return Recipe(budget * int(row["dp"]), policy, kv, drafts if drafting else 0, memory=0.8)


def _atom(row: ServedRow) -> Recipe:
    """AMD's engine: a step computes prompts or decodes, whole prompts up to 16,384 tokens, caches in FP8.

    dsr1_fp8_mi355x_atom@1fc5d73, dsr1_fp8_mi355x_atom_mtp@6da3382 and dsr1_fp4_mi355x_atom_mtp@bc11f9a, of February
    2026, which name no number of drafts: one. Later ones, @14da3ee, say three. Defaults and scheduler:
    github.com/ROCm/ATOM, atom/model_engine/arg_utils.py at 0027562 and scheduler.py.
    """
    few = str(row.get("date", "today")) < CHANGED[1]
    drafts = (1 if few else 3) if row["drafts"] == "mtp" else 0
    return Recipe(16_384 * int(row["dp"]), SchedulerPolicy(whole=True, alone=True), "fp8", drafts)


def _nominal(mean: float) -> int:
    """Return the nominal tokens of lengths whose mean is nine tenths of it, as all scripts draw them."""
    return round(mean / 0.9)


_OF = {"vllm": _vllm, "trtllm": _trtllm, "sglang": _sglang, "atom": _atom}
