"""Models and GPUs by name, and the user's own: what a cost formula needs to know about each."""

from __future__ import annotations

from inference_math.catalogue.models import (
    GPUS,
    MODELS,
    PRECISIONS,
    Gpu,
    Model,
    as_precision,
    bytes_per_value,
    gpu,
    model,
)

__all__ = ["GPUS", "MODELS", "PRECISIONS", "Gpu", "Model", "as_precision", "bytes_per_value", "gpu", "model"]
