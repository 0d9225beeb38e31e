"""What the planner's page keeps of a model: of one in the catalogue, and of one whose `config.json` a reader pastes.

The page prints the first and runs this module for the second, in an interpreter of Python that is itself JavaScript.
There is neither NumPy nor pandas, so nothing that this module imports may need them.
"""

from __future__ import annotations

import json
from typing import Any

from inference_math.catalogue.decoder import Model
from inference_math.catalogue.files import parsed
from inference_math.catalogue.precisions import STATE_BYTES
from inference_math.unit.shapes import kind_of, shape_of

__all__ = ["answer", "record"]

_SIZES = (1, 2, 4, 8)  # GPUs that share a matrix, as the page offers them
NAME = "your model"


def record(model: Model) -> dict[str, Any]:
    """Return a model by the GPUs that share a matrix; what does not depend on them stands once."""
    by_tp = {str(tp): dict(shape_of(model, tp)) for tp in _SIZES if model.n_heads % tp == 0}
    same = {name: value for name, value in by_tp["1"].items() if all(one[name] == value for one in by_tp.values())}
    own = {tp: {name: value for name, value in one.items() if name not in same} for tp, one in by_tp.items()}
    return {"kind": kind_of(model), "stored": model.stored, "context": model.context, "shape": same, "tp": own}


def answer(text: str) -> str:
    """Return what a pasted `config.json` states as JSON: its `record` and what it `said`, or what is `wrong`."""
    try:
        model = Model.from_config(parsed(text, json.loads, "config"), NAME)
    except (TypeError, ValueError) as error:
        return json.dumps({"wrong": str(error)})
    return json.dumps({"name": NAME, "record": record(model), "said": said(model)})


def said(model: Model) -> str:
    """Return in a line what was read, for the reader to compare with the model's card."""
    total = f"{(model.n_params_total + model.vocab_params) / 1e9:.3g} B parameters"
    # Of the embedding a token reads one row.
    active = [f"{(model.n_params + model.lm_head_params) / 1e9:.3g} B active"] if model.is_mixture else []
    cache = f"KV {model.kv_token('bf16') / 1e3:.3g} MB per 1,000 tokens in BF16"
    state = [f"states of {STATE_BYTES * model.state_values / 1e6:.3g} MB"] if model.state_values else []
    return ", ".join([f"{model.n_layers} layers", total, *active, cache, *state, f"stored in {model.stored.upper()}"])
