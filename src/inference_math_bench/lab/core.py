"""vLLM's own core, its scheduler and its loop, without a model: on a clock that is told what each step takes.

So the simulated engine is held against vLLM step for step, on any machine: `ran` returns the steps, as a simulation's
log has them. Planning ahead (vLLM's async scheduling) is on or off, as asked, though vLLM has none on a CPU.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from inference_math.simulate import Cost
from inference_math_bench.lab.vllm_engine import prepare

__all__ = ["Ran", "Setting", "ran"]

_MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 1000, "hidden_size": 64,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
    "max_position_embeddings": 16_384,
}  # fmt: skip
_BLOCK, _LONGEST, _TOKENS = 16, 16_384, 1_000_000  # tokens of a block, of the longest request, of the KV cache


@dataclass(frozen=True)
class Setting:
    """What the engine is told: tokens of a step, requests at once (no more), whether it plans a step ahead."""

    budget: int
    seqs: int
    ahead: bool


class Ran(NamedTuple):
    """The steps (start, seconds, decodes, context, prefills, tokens), and the time to first token of each request."""

    log: pd.DataFrame
    ttft: list[float]


class _Steps:
    """A device that runs one step after the other, each as long as its cost says."""

    def __init__(self, cost: Cost) -> None:
        self._cost = cost
        self.now, self._free = 0.0, 0.0
        self.n_in: dict[str, int] = {}
        self.log: list[tuple[float, float, int, int, float, int]] = []

    def run(self, planned: Any) -> tuple[float, list[str], list[list[int]]]:
        """Take a step; return when it ends, whose it is, and the tokens that each gets."""
        known = planned.scheduled_cached_reqs
        before = {one.req_id: one.num_computed_tokens for one in planned.scheduled_new_reqs}
        before |= dict(zip(known.req_ids, known.num_computed_tokens, strict=True))
        decodes = context = tokens = 0
        prefills = pairs = 0.0
        given = []
        for name, new in planned.num_scheduled_tokens.items():
            n_in, done = self.n_in[name], before[name]
            given.append([1] if done + new >= n_in else [])
            if done >= n_in:
                decodes, context = decodes + 1, context + done + 1
            else:
                prefills, tokens = prefills + new / n_in, tokens + new
                pairs += ((done + new) ** 2 - done**2) / 2
        start = max(self.now, self._free)
        seconds = self._cost(decodes, context, prefills, tokens, pairs) if given else 0.0
        if given:
            self.log.append((start, seconds, decodes, context, prefills, tokens))
        self._free = start + seconds
        return self._free, list(planned.num_scheduled_tokens), given


def ran(
    cost: Cost, sizes: Sequence[tuple[int, int]], users: int, setting: Setting, delays: Sequence[float] | float = 0.0
) -> Ran:
    """Let users in a closed loop, who begin together, send requests to vLLM's core; it needs vLLM.

    Parameters
    ----------
    cost
        Seconds of a step.
    sizes
        Prompt and output tokens of each request, in the order in which they are sent.
    users
        At once: each sends the next request when the last one has ended.
    setting
        What the engine is told.
    delays
        Seconds from where a request is sent to where the core has it, for each, or for all.

    Raises
    ------
    ImportError
        Without vLLM.
    ValueError
        By vLLM, for a setting that it does not take: more requests at once than tokens of a step.
    """
    prepare()
    steps = _Steps(cost)
    waits = [float(delays)] * len(sizes) if isinstance(delays, int | float) else list(delays)
    core = _core(setting, steps)
    sent, first = [0.0] * len(sizes), [0.0] * len(sizes)
    begun, coming = 0, list[tuple[float, int]]()

    def send(now: float) -> None:
        nonlocal begun
        if begun < len(sizes):
            sent[begun] = now
            heappush(coming, (now + waits[begun], begun))
            begun += 1

    for _ in range(users):
        send(0.0)
    while coming or core.scheduler.has_requests() or core.batch_queue:  # as `EngineCoreProc.run_busy_loop`
        if not (core.scheduler.has_requests() or core.batch_queue):
            steps.now = max(steps.now, coming[0][0])
        while coming and coming[0][0] <= steps.now:
            _hand_in(core, steps, *_pop(coming, sizes))
        outputs, _ = core.step_fn()
        for output in [one for group in (outputs or {}).values() for one in group.outputs]:
            number = int(output.request_id)
            if output.new_token_ids and not first[number]:
                first[number] = steps.now
            if output.finish_reason is not None:
                send(steps.now)
    columns = ["start", "seconds", "decodes", "context", "prefills", "tokens"]
    return Ran(pd.DataFrame(steps.log, columns=columns), [b - a for a, b in zip(sent, first, strict=True)])


def _pop(coming: list[tuple[float, int]], sizes: Sequence[tuple[int, int]]) -> tuple[int, int, int]:
    number = heappop(coming)[1]
    return number, *sizes[number]


def _hand_in(core: Any, steps: _Steps, number: int, n_in: int, n_out: int) -> None:
    from vllm import SamplingParams
    from vllm.v1.request import Request

    steps.n_in[str(number)] = n_in
    sampling = SamplingParams(max_tokens=n_out, min_tokens=n_out, ignore_eos=True, detokenize=False)
    core.add_request(
        Request(request_id=str(number), prompt_token_ids=[1] * n_in, sampling_params=sampling, pooling_params=None)
    )


def _core(setting: Setting, steps: _Steps) -> Any:
    """Return vLLM's core with an executor that only takes time."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.engine.core import EngineCore

    executor = _executor(steps)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(_MODEL), encoding="utf-8")
        config = EngineArgs(
            model=folder, skip_tokenizer_init=True, load_format="dummy", enforce_eager=True, dtype="bfloat16",
            enable_prefix_caching=False, disable_log_stats=True, block_size=_BLOCK, max_model_len=_LONGEST,
            max_num_batched_tokens=setting.budget, max_num_seqs=setting.seqs, distributed_executor_backend=executor,
        ).create_engine_config()  # fmt: skip
        config.scheduler_config.async_scheduling = setting.ahead  # which vLLM leaves off on a CPU, whatever is asked
        return EngineCore(config, executor, log_stats=False)


def _executor(steps: _Steps) -> Any:
    import torch
    from vllm.v1.executor.abstract import Executor
    from vllm.v1.kv_cache_interface import FullAttentionSpec
    from vllm.v1.outputs import ModelRunnerOutput

    cache = FullAttentionSpec(block_size=_BLOCK, num_kv_heads=1, head_size=64, dtype=torch.bfloat16)
    answers = {
        "determine_available_memory": cache.page_size_bytes * (_TOKENS // _BLOCK),
        "get_kv_cache_spec": {"model.layers.0.self_attn.attn": cache},
        "get_supported_kv_cache_layouts": ["NHD"],
    }

    class Due(Future[Any]):
        """What a step gives, once the clock is at its end."""

        def __init__(self, end: float, output: Any) -> None:
            super().__init__()
            self._end, self._output = end, output

        def result(self, timeout: float | None = None) -> Any:
            steps.now = max(steps.now, self._end)
            return self._output

    class Told(Executor):  # type: ignore[misc]
        """An executor without a worker."""

        @classmethod
        def supports_async_scheduling(cls) -> bool:
            return True

        def _init_executor(self) -> None:
            self._due: list[Due] = []

        def check_health(self) -> None:
            pass

        def collective_rpc(self, method: Any, *_: Any, **__: Any) -> list[Any]:
            return [answers.get(method)]

        def compile_or_warm_up_model(self) -> None:
            pass

        def execute_model(self, scheduler_output: Any, non_block: bool = False) -> Any:
            end, names, given = steps.run(scheduler_output)
            places = {name: place for place, name in enumerate(names)}
            due = Due(end, ModelRunnerOutput(req_ids=names, req_id_to_index=places, sampled_token_ids=given))
            if not names:
                return due
            self._due.append(due)
            later: Future[Any] = Future()
            later.set_result(None)  # the tokens come with `sample_tokens`
            return later

        def sample_tokens(self, grammar_output: Any, non_block: bool = False) -> Any:
            due = self._due.pop()
            return due if non_block else due.result()

    return Told
