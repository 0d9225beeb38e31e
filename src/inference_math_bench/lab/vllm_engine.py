"""vLLM in this process, one step at a time, with random weights and token IDs: nothing is downloaded."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from inference_math_bench.lab.engines import ALL_AT_ONCE, Emitted, Prompt, Step

__all__ = ["Vllm", "build", "prepare"]

_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine lives here, so that its steps can be watched
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # OMP_NUM_THREADS and the process's own affinity decide
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
_FLAGS = {
    "load_format": "dummy",
    "skip_tokenizer_init": True,
    "enable_prefix_caching": True,
    "disable_log_stats": True,
    "async_scheduling": False,  # a step then ends when its tokens are there
    "max_num_batched_tokens": ALL_AT_ONCE,
    "max_num_seqs": 256,
    "seed": 0,
}
# Without graphs, since there are none; bfloat16 is slow without AVX-512.
_ON_A_CPU = {"enforce_eager": True, "block_size": 32, "dtype": "float32"}
_FIRST, _VOCAB = 3, 1000  # token IDs that are drawn: none is special


class Vllm:
    """An `engines.Engine`: vLLM's V1 engine in this process.

    Parameters
    ----------
    config
        The model, as the content of a Hugging Face `config.json`.
    folder
        Where its `config.json` is written.
    max_model_len
        Tokens of the longest request.
    store
        Folder of the store of KV caches (`store.ThrottledStore`); None: no store.
    flags
        Other arguments of vLLM's `EngineArgs`.

    Raises
    ------
    ValueError
        For flags that this vLLM lacks.
    ImportError
        Without vLLM.
    """

    def __init__(
        self, config: Mapping[str, Any], folder: Path, max_model_len: int, store: Path | None = None, **flags: Any
    ) -> None:
        import vllm
        from vllm.engine.arg_utils import EngineArgs
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.llm_engine import LLMEngine

        (folder / "config.json").write_text(json.dumps(dict(config)), encoding="utf-8")
        cpu = self._cpu = vllm.platforms.current_platform.is_cpu()
        self._link: float | None = None
        self.flags = {**_FLAGS, **(_ON_A_CPU if cpu else {}), "max_model_len": max_model_len, **flags}
        if store is not None:
            self.flags["kv_transfer_config"] = {
                "kv_connector": "ThrottledStore",
                "kv_connector_module_path": "inference_math_bench.lab.store",
                "kv_role": "kv_both",
                "kv_connector_extra_config": {"folder": str(store)},
            }
        try:
            arguments = EngineArgs(model=str(folder), **self.flags)
        except TypeError as error:
            raise ValueError(f"vLLM {vllm.__version__} does not know a flag: {error}") from None
        self._engine = LLMEngine.from_engine_args(arguments)
        kind = RequestOutputKind.DELTA
        self._sampling = {"temperature": 0.0, "ignore_eos": True, "detokenize": False, "output_kind": kind}
        self._make_sampling = vllm.SamplingParams
        self._version = vllm.__version__
        self._number, self._requests = 0, {}  # type: ignore[var-annotated]
        self._random = np.random.default_rng(int(self.flags["seed"]))
        self.cadence, self._steps = 1, 0
        self._watch()

    @property
    def description(self) -> Mapping[str, Any]:
        """Name, version and flags."""
        shown = {name: value for name, value in self.flags.items() if name != "kv_transfer_config"}
        return {"engine": "vLLM", "version": self._version, "flags": shown}

    @property
    def device(self) -> Mapping[str, Any]:
        """The GPU, its memory and PyTorch; nothing on a CPU."""
        if self._cpu:
            return {}
        import torch

        found = torch.cuda.get_device_properties(0)
        software = f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"
        return {"device": found.name, "memory_bytes": found.total_memory, "software": software}

    @property
    def budget(self) -> int:
        """Tokens of a step at most."""
        return int(self._core.scheduler.max_num_scheduled_tokens)

    @budget.setter
    def budget(self, tokens: int) -> None:
        self._core.scheduler.max_num_scheduled_tokens = tokens

    def now(self) -> float:
        """Return the clock, in seconds."""
        return time.perf_counter()

    def wait(self, until: float) -> None:
        """Let the clock get to `until`, awake: a core that slept runs its next step slower."""
        while self.now() < until:
            pass

    def submit(self, prompt: Prompt, n_out: int) -> int:
        """Queue a request; return its number."""
        return self.submit_tokens(self._tokens(prompt), n_out, **_transfer(prompt))

    def submit_tokens(self, tokens: Sequence[int], n_out: int, **transfer: Any) -> int:
        """Queue a request of these token IDs, with what the store is to do for it.

        What the store keeps is not looked for in the engine's own cache.
        """
        self._number += 1
        asked: dict[str, Any] = {"prompt_token_ids": list(tokens)}
        if transfer:
            asked["cache_salt"] = str(self._number)
        extra = {"extra_args": {"kv_transfer_params": transfer}} if transfer else {}
        sampling = self._make_sampling(max_tokens=n_out, min_tokens=n_out, **self._sampling, **extra)
        # vLLM may call the request otherwise inside.
        name = self._engine.add_request(str(self._number), asked, sampling)
        self._requests[name] = [self._number, len(tokens), 0, 0]
        return self._number

    def step(self) -> Step | None:
        """Run one step, if there is anything to do."""
        if not self._engine.has_unfinished_requests():
            return None
        self._scheduled, self._model_seconds = None, 0.0
        start = self.now()
        outputs = self._engine.step()
        seconds = self.now() - start
        emitted = []
        for output in outputs:
            number = int(output.request_id)
            emitted += [Emitted(number, False)] * len(output.outputs[0].token_ids)
            if output.finished:
                emitted[-1] = Emitted(number, True)
        if self._scheduled is None:
            raise RuntimeError("vLLM stepped without scheduling anything")
        counts = self._counts(self._scheduled)
        for name in [name for name, kept in self._requests.items() if Emitted(kept[0], True) in emitted]:
            del self._requests[name]
        return Step(start, seconds, self._model_seconds, *counts, len(self._core.scheduler.waiting), tuple(emitted))

    def clear(self) -> None:
        """Drop all requests."""
        names = list(self._requests)
        if names:
            self._engine.abort_request(names, internal=True)
        while self._engine.has_unfinished_requests():
            self._engine.step()
        self._requests.clear()

    @property
    def link(self) -> float:
        """Bytes/s from pinned host memory, measured once; infinite where the model runs on the CPU."""
        if self._link is None:
            self._link = inf if self._cpu else _copied()
        return self._link

    def forget(self) -> None:
        """Drop the engine's own cache; what host memory keeps stays there.

        Raises
        ------
        RuntimeError
            Where requests hold on to it.
        """
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("the engine's cache cannot be dropped: requests hold it")

    def _tokens(self, prompt: Prompt) -> list[int]:
        own: list[int] = self._random.integers(_FIRST, _VOCAB, prompt.n_in - prompt.shared).tolist()
        if not prompt.shared:
            return own
        family = np.random.default_rng([7, prompt.family or 0])
        shared: list[int] = family.integers(_FIRST, _VOCAB, prompt.shared).tolist()
        return shared + own

    def _counts(self, scheduled: Any) -> tuple[int, int, float, int, int, float]:
        """Return decodes, context, prefills, tokens, cached and pairs of a step."""
        before = {r.req_id: r.num_computed_tokens for r in scheduled.scheduled_new_reqs}
        for name, done in before.items():
            self._requests[name][2] = done  # prompt tokens that were in a cache
        cached = sum(before.values())
        known = scheduled.scheduled_cached_reqs
        before |= dict(zip(known.req_ids, known.num_computed_tokens, strict=True))
        decodes = context = tokens = 0
        prefills = pairs = 0.0
        for name, new in scheduled.num_scheduled_tokens.items():
            _, n_in, found, _ = self._requests[name]
            done = before[name]
            if done >= n_in:
                decodes, context = decodes + 1, context + done + 1
            else:
                prefills, tokens = prefills + new / (n_in - found), tokens + new
                pairs += ((done + new) ** 2 - done**2) / 2
        return decodes, context, prefills, tokens, cached, pairs

    def _watch(self) -> None:
        """Look over the engine's shoulder: what it schedules, and how long its model takes."""
        self._core = self._engine.engine_core.engine_core
        self._scheduled, self._model_seconds = None, 0.0
        schedule = self._core.scheduler.schedule

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._scheduled = schedule(*args, **kwargs)
            self._steps += 1
            return self._scheduled

        self._core.scheduler.schedule = watched
        # The scheduler knows a cadence, and only the core of data-parallel engines asks for it, by its count of steps.
        self._core._should_throttle_prefills = lambda: self._steps % self.cadence != 0
        for name in ("execute_model", "sample_tokens"):
            setattr(self._core.model_executor, name, self._timed(getattr(self._core.model_executor, name)))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = self.now()
            found = function(*args, **kwargs)
            if hasattr(found, "result"):
                found.result()
            self._model_seconds += self.now() - start
            return found

        return timed


def _copied() -> float:
    """Return the bytes/s of a copy of half a GiB from pinned host memory, the best of a few."""
    import torch

    there = torch.empty(2**29, dtype=torch.uint8, pin_memory=True)
    here, seconds = torch.empty_like(there, device="cuda"), []
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        here.copy_(there, non_blocking=True)
        end.record()
        torch.cuda.synchronize()
        seconds.append(start.elapsed_time(end) / 1e3)
    return float(there.numel() / min(seconds))


def prepare() -> None:
    """Set vLLM's environment variables that are not set; before it is imported."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def build(config: Mapping[str, Any], longest: int, store: bool, flags: Mapping[str, Any], folder: Path) -> Vllm:
    """Return an engine with a folder of its own within `folder`, which is the store's, if there is one."""
    prepare()
    return Vllm(config, Path(tempfile.mkdtemp(dir=folder)), longest, folder if store else None, **flags)


def _transfer(prompt: Prompt) -> dict[str, Any]:
    """Return what the store is told of a prompt: its family is the name under which its KV cache is kept."""
    told: dict[str, Any] = {}
    if prompt.stored is not None:
        tokens, bandwidth, layerwise = prompt.stored
        told = {"load": tokens, "bandwidth": bandwidth, "layerwise": layerwise}
    if prompt.save:
        told["save"] = True
    return {"key": f"family-{prompt.family}", **told} if told else {}
