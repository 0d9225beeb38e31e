"""Models as the short rows that the planner's page is sent, made records of again; `browser` packs them."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BLOCKS",
    "OF_A_CACHE",
    "OF_A_SHAPE",
    "OF_A_TOKEN",
    "SHARED_BY",
    "named_values",
    "unlisted",
    "unpack",
    "unpacked",
]

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
    """Return a model as `form.KnownModel`, its shape for each number of GPUs that divides the heads.

    A cache's `copies` are packed as its heads.
    """
    shapes: dict[str, Any] = {}
    for k in range(len(SHARED_BY)):
        if row[6][k] > 0:
            caches: list[Any] = []
            for values in row[7]:
                cache = named_values(OF_A_CACHE, values)
                cache["copies"] = max(1.0, SHARED_BY[k] / cache["copies"])
                caches.append(cache)
            shape = named_values(OF_A_SHAPE, row[4])
            shape["params"], shape["fine"] = named_values(OF_A_TOKEN, row[5]), fines[row[3][3]]
            shape["caches"], shape["layer_bytes"] = caches, row[6][k]
            shapes[str(SHARED_BY[k])] = shape
    operators = {
        "name": name, "kind": row[0], "heads": row[3][0], "products": row[3][1], "mixed": row[3][2],
        "blocks": BLOCKS if row[3][4] > 0 else "fp8", "fine": fines[row[3][3]],
    }  # fmt: skip
    return {
        "name": name, "kind": row[0], "stored": row[1], "stored_kv": "fp8" if row[3][5] > 0 else "bf16",
        "context": row[2], "operators": operators, "shapes": shapes,
    }  # fmt: skip


def named_values(names: list[str], values: list[Any]) -> dict[str, Any]:
    """Return values by their names."""
    found: dict[str, Any] = {}
    for i in range(len(names)):
        found[names[i]] = values[i]
    return found


def unlisted(part: Any, names: list[str], absent: dict[str, Any]) -> Any:
    """Return measured kernels that are kept as lists by name; a decode's share that is left out is that of prompts."""
    if isinstance(part, list):
        kernel: dict[str, Any] = {}
        for i in range(len(names)):
            other = absent[names[i]] if names[i] in absent else part[1]
            kernel[names[i]] = part[i] if i < len(part) else other
        return kernel
    found: dict[str, Any] = {}
    for name in part:
        found[name] = unlisted(part[name], names, absent)
    return found


def unpack(data: dict[str, Any]) -> None:
    """Make records of what the page is sent packed: models by name, measured kernels, errors, normal numbers of draws.

    A model with another's calibration has its name.
    """
    models: dict[str, Any] = {}
    rows, like, kernels, errors = data["packed"]["rows"], data["packed"]["like"], data["kernels"], data["errors"]
    for name in rows:
        models[name] = unpacked(name, rows[name], data["packed"]["fines"])
    for name in like:
        models[name] = models[like[name][0]].copy()
        models[name]["context"] = like[name][1]
    data["models"] = models
    data["kernels"] = unlisted(kernels["parts"], kernels["names"], kernels["no_index"])
    data["kernels"]["like"] = kernels["like"]
    data["errors"] = [named_values(errors["names"], row) for row in errors["rows"]]
    for row in data["errors"]:
        gpu = data["gpus"][row["gpu"]]
        row["kind"], row["maker"], row["generation"] = models[row["model"]]["kind"], gpu["maker"], gpu["generation"]
    values = data["normals"]["values"]
    data["normals"] = [[values[at] for at in row] for row in data["normals"]["rows"]]
