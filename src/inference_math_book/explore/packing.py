"""Models as the short rows that the planner's page is sent, made records of again; `browser` packs them."""

from __future__ import annotations

from typing import Any

__all__ = ["BLOCKS", "OF_A_CACHE", "OF_A_SHAPE", "OF_A_TOKEN", "SHARED_BY", "unpacked"]

SHARED_BY = [1, 2, 4, 8]  # GPUs that share a matrix, as the page offers them
OF_A_SHAPE = [
    "n_layers", "d_model", "routed_params", "padded", "head_params", "vocab_params", "experts", "idle", "chosen",
    "state_bytes", "sum_bytes",
]  # fmt: skip
OF_A_CACHE = [
    "values", "own_bytes", "copies", "pair_flops", "prompt_flops", "least_flops", "decode_flops", "reach", "evicts",
    "aligned", "choices",
]  # fmt: skip
OF_A_TOKEN = ["attention", "ffn", "experts"]
BLOCKS = "fp8 blocks"


def unpacked(name: str, row: list[Any], fines: list[Any]) -> dict[str, Any]:
    """Return kind, what is stored, context, operators, and the shape: what does not hang on the GPUs, and `tp`.

    That has for each number of GPUs that divides the heads what does. A cache's `copies` are packed as its heads.
    """
    shape: dict[str, Any] = {"fine": fines[row[3][3]], "params": {}}
    for i in range(len(OF_A_SHAPE)):
        shape[OF_A_SHAPE[i]] = row[4][i]
    for i in range(len(OF_A_TOKEN)):
        shape["params"][OF_A_TOKEN[i]] = row[5][i]
    by_tp: dict[str, Any] = {}
    for k in range(len(SHARED_BY)):
        if row[6][k] > 0:
            caches: list[Any] = []
            for values in row[7]:
                cache: dict[str, Any] = {}
                for i in range(len(OF_A_CACHE)):
                    cache[OF_A_CACHE[i]] = values[i]
                cache["copies"] = max(1.0, SHARED_BY[k] / cache["copies"])
                caches.append(cache)
            by_tp[str(SHARED_BY[k])] = {"caches": caches, "layer_bytes": row[6][k]}
    operators = {"name": name, "kind": row[0], "heads": row[3][0], "products": row[3][1], "mixed": row[3][2]}
    operators["blocks"] = BLOCKS if row[3][4] > 0 else "fp8"
    return {
        "kind": row[0], "stored": row[1], "stored_kv": "fp8" if row[3][5] > 0 else "bf16", "context": row[2],
        "operators": operators, "shape": shape, "tp": by_tp,
    }  # fmt: skip
