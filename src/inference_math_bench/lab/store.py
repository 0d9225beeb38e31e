"""A store of KV caches for vLLM with a knob: it serves them at a chosen bandwidth, layer by layer or whole first.

It is vLLM's connector interface, and needs vLLM. KV caches lie as files in a folder (of memory, say /dev/shm, or of
a disk), one for each prompt and layer. A load is copied at once, then held back until its bytes over the bandwidth have
passed since the step began; the engine waits meanwhile, as it would for a transfer.

What is done for a request is in its `kv_transfer_params`: `key` names the KV cache, `load` says how many tokens of it
come from the store, at `bandwidth` bytes/s and `layerwise` or not, `save` puts it there.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorMetadata

__all__ = ["ThrottledStore"]


@dataclass
class _Move:
    """Tokens of one request between the cache's blocks and the store's files of `key`."""

    key: str
    tokens: int
    blocks: list[int]
    bandwidth: float = float("inf")
    layerwise: bool = True


@dataclass
class _Moves(KVConnectorMetadata):  # type: ignore[misc]
    loads: list[_Move] = field(default_factory=list)
    saves: list[_Move] = field(default_factory=list)


class ThrottledStore(KVConnectorBase_V1):  # type: ignore[misc]
    """See the module; one object lives beside the scheduler, another in the worker."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any = None) -> None:
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        self._block = int(vllm_config.cache_config.block_size)
        self._folder = Path(self._kv_transfer_config.get_from_extra_config("folder", "."))
        self._to_load: dict[str, Any] = {}
        self._to_save: dict[str, tuple[Any, list[int]]] = {}
        self._caches: dict[str, torch.Tensor] = {}
        self._start = 0.0
        self._read = 0  # layers of this step that are there

    # Beside the scheduler.

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        """Return how many tokens beyond `num_computed_tokens` the store has for `request`, in whole blocks, at once."""
        wanted = int((request.kv_transfer_params or {}).get("load", 0)) // self._block * self._block
        return max(0, wanted - num_computed_tokens), False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Note that `request` has blocks for what is loaded."""
        if num_external_tokens > 0:
            self._to_load[request.request_id] = request

    def build_connector_meta(self, scheduler_output: Any) -> _Moves:
        """Return what is loaded and saved in this step."""
        moves, new = _Moves(), scheduler_output.num_scheduled_tokens
        for request in scheduler_output.scheduled_new_reqs:
            extra = (request.sampling_params and request.sampling_params.extra_args) or {}
            told = extra.get("kv_transfer_params", {})
            blocks = list(request.block_ids[0])
            if self._to_load.pop(request.req_id, None) is not None:
                moves.loads.append(
                    _Move(told["key"], told["load"], blocks, told.get("bandwidth", float("inf")), told["layerwise"])
                )
            if told.get("save"):
                self._to_save[request.req_id] = (request, blocks)
                self._save_if_done(moves, request.req_id, request.num_computed_tokens + new[request.req_id])
        known = scheduler_output.scheduled_cached_reqs
        for i, name in enumerate(known.req_ids):
            if name in self._to_save:
                if known.new_block_ids[i]:
                    self._to_save[name][1].extend(known.new_block_ids[i][0])
                self._save_if_done(moves, name, known.num_computed_tokens[i] + new[name])
        return moves

    def _save_if_done(self, moves: _Moves, name: str, computed: int) -> None:
        """Save a prompt in the step that computes the last of it."""
        request, blocks = self._to_save[name]
        tokens = len(request.prompt_token_ids)
        if computed >= tokens:
            key = request.sampling_params.extra_args["kv_transfer_params"]["key"]
            moves.saves.append(_Move(key, tokens, blocks))
            del self._to_save[name]

    # In the worker.

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """Keep the caches of the layers, in the order of the layers."""
        self._caches = dict(kv_caches)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Begin the loads of this step; what is not wanted layer by layer is there when this returns."""
        self._start, self._read = time.perf_counter(), 0
        moves: _Moves = self._get_connector_metadata()
        if any(not move.layerwise for move in moves.loads):
            for name in self._caches:
                self._load_layer(name, moves)
            self._read = len(self._caches)
            self._hold(moves, 1.0)

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Return when the layer's share of the loads is there."""
        moves: _Moves = self._get_connector_metadata()
        if moves.loads and self._read < len(self._caches):
            self._load_layer(layer_name, moves)
            self._read += 1
            self._hold(moves, self._read / len(self._caches))

    def save_kv_layer(self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **kwargs: Any) -> None:
        """Write the layer of every prompt that is to be kept: its blocks as they are, to the last one."""
        moves: _Moves = self._get_connector_metadata()
        for move in moves.saves:
            blocks = self._caches[layer_name][torch.tensor(move.blocks[: -(-move.tokens // self._block)])]
            part = self._file(move.key, layer_name, ".part")
            blocks.contiguous().view(torch.uint8).numpy().tofile(part)  # as bytes: NumPy has no bfloat16
            os.replace(part, self._file(move.key, layer_name))

    def wait_for_save(self) -> None:
        """Nothing is left to wait for."""

    def _load_layer(self, name: str, moves: _Moves) -> None:
        cache = self._caches[name]
        for move in moves.loads:
            blocks = move.tokens // self._block
            shape = (blocks, *cache.shape[1:])
            file = str(self._file(move.key, name))
            stored = torch.from_file(file, shared=False, size=math.prod(shape), dtype=cache.dtype).view(shape)
            cache[torch.tensor(move.blocks[:blocks])] = stored

    def _hold(self, moves: _Moves, share: float) -> None:
        """Wait until `share` of all bytes could have come since the step began."""
        seconds = sum(self._bytes(move) / move.bandwidth for move in moves.loads)
        while time.perf_counter() < self._start + share * seconds:
            pass  # a core that sleeps wakes up late, by milliseconds on some machines

    def _bytes(self, move: _Move) -> int:
        per_token = sum(t.numel() // (t.shape[0] * t.shape[2]) * t.element_size() for t in self._caches.values())
        return int(move.tokens * per_token)

    def _file(self, key: str, layer: str, end: str = "") -> Path:
        return self._folder / f"{key}-{layer}{end}"
