"""Set-ups of every kind, drawn once with a seed: each model, four GPUs, small and large batches, stored or not."""

import itertools

import numpy as np

from inference_math import Unit, Workload, catalogue

__all__ = ["SETUPS", "name_of"]

GPUS = ("h100-sxm", "h200-sxm", "b200", "a100-80gb")


def _drawn() -> list[tuple[Unit, Workload, int]]:
    rng, found = np.random.default_rng(14), []
    for number, (model, gpu) in enumerate(itertools.product(catalogue.MODELS, GPUS)):
        for lengths in ("geometric", "fixed")[number % 2 :: 1][:2]:
            weights = "fp8" if catalogue.gpu(gpu).fp8_flops and rng.random() < 0.5 else "bf16"
            tp = int(rng.choice([1, 2, 4, 8]))
            engine = str(rng.choice(["vllm", "trtllm", "sglang"]))
            n_in, n_out = int(rng.choice([64, 300, 2048, 6000])), int(rng.choice([4, 32, 128, 512]))
            work = Workload(n_in, n_out, float(rng.choice([0.0, 0.9])), lengths)
            for more in (tp, 4, 8):
                try:
                    unit = Unit.of(model, gpu, more, weights, weights, engine)
                except ValueError:
                    continue
                users = min(int(rng.choice([1, 2, 4, 16, 64, 256])), unit.places(work))
                if users:
                    found.append((unit, work, users))
                    break
    return found


# Layouts, precisions and an engine's host that the draw above does not reach.
LAYOUTS = (
    (Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8, engine="sglang"), Workload(2048, 128), 64),
    (Unit.of("deepseek-v3", "b200", 2, "nvfp4", "fp8", "trtllm", dp=4, ep=8), Workload(300, 128), 5),
    (Unit.of("minimax-m2", "b200", 4, "nvfp4", ep=4), Workload(6000, 32, 0.9), 16),
    (Unit.of("llama-3-70b", "h100-sxm", 4, "fp8", pp=2), Workload(2048, 128), 64),
    (Unit.of("gpt-oss-120b", "h100-sxm"), Workload(2048, 512), 64),
    (Unit.of("kimi-k2", "b200", 8), Workload(300, 128), 16),
    (Unit.of("qwen3.5-397b-a17b", "b300", 4, "nvfp4", engine="sglang"), Workload(6000, 128), 16),
    (Unit.of("llama-3-8b", "mi300x", weights="fp8"), Workload(300, 128), 64),
    (Unit.of("llama-3-8b", "h100-sxm", async_scheduling=False), Workload(300, 128), 64),
)
# Requests that draft tokens.
DRAFTING = (
    (Unit.of("deepseek-v3", "h200-sxm", 8, engine="sglang", drafts=1, accepted=0.85), Workload(2048, 512), 32),
    (Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.6), Workload(300, 512, 0, "geometric"), 16),
    (Unit.of("gpt-oss-120b", "h100-sxm", drafts=2, accepted=1.0), Workload(300, 700, 0.9), 8),
)


def name_of(setup: tuple[Unit, Workload, int]) -> str:
    """Return a set-up as the name of a test."""
    unit, work, users = setup
    return f"{unit.name}: {work.n_in}/{work.n_out} {work.lengths} {work.alpha}, {users}".replace(" ", "_")


SETUPS = [*_drawn(), *LAYOUTS, *DRAFTING]
