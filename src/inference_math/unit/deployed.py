"""What serves, as plain records, and what follows from it alone: its numbers, where it stands, what is wrong with it.

`Unit` asks these functions with models and GPUs of anybody's, the planner's page with those of the catalogue.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

from inference_math.evidence.records import Record
from inference_math.unit.mixing import usual_kv
from inference_math.unit.problem import kept_by, usual_share
from inference_math.unit.steps import drafting, index_of, most_uneven, unit_numbers
from inference_math.unit.types import Kernels, Layout, Message, Operators, Rates, Scope, ScoreKey, Shape, UnitNumbers

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord


class ServedModel(Record):
    """A model as a unit serves it: `shape` is that on its GPUs; `context` 0 is not stated."""

    name: str
    kind: str
    stored_kv: str
    context: int
    operators: Operators
    shape: Shape


class ServingGpu(Record):
    """A GPU: `like` names the one whose measured kernels it has, `joined` are those that its links reach."""

    name: str
    like: str
    maker: str
    generation: str
    joined: int
    watts: float
    rates: Rates


class Deployment(Record):
    """A model on GPUs in some precisions under an engine, whose names are those of `unit.Unit`.

    The engine is `called` so, `kernels` names that whose coefficients it takes, `age` the generation of that. Of its
    `memory` 0 is what the engine takes, whose steps have so many `tokens` where nobody says; an `imbalance` below 0
    nobody counted.
    """

    model: ServedModel
    gpu: ServingGpu
    engine: EngineRecord
    called: str
    kernels: str
    age: str
    layout: Layout
    weights: str
    kv: str
    memory: float
    tokens: float
    drafts: float
    accepted: float
    imbalance: float


def untold_share(of: Deployment, known: Kernels, tokens: float, graph: float) -> float:
    """Return the share of the memory that the engine takes with so many tokens of a step; see `asked.usual_share`."""
    return usual_share(of.engine, of.gpu.rates.driver_bytes, numbers_with(of, known, 1.0), tokens, graph, of.drafts)


def numbers_with(of: Deployment, known: Kernels, share: float) -> UnitNumbers:
    """Return the numbers of a deployment that takes a share of its GPUs' memory, as if nothing was drafted."""
    layout = of.layout
    rates = kept_by(of.engine, of.gpu.rates, layout.tp * layout.dp * layout.pp)
    index = index_of(known, of.kernels, of.gpu.like, of.model.operators.heads + ", " + of.kv)
    return unit_numbers(of.model.shape, rates, layout, of.weights, of.kv, share, index)


def deployment_numbers(of: Deployment, known: Kernels) -> UnitNumbers:
    """Return the numbers of a deployment; `known` are the measured kernels."""
    share = of.memory if of.memory > 0 else untold_share(of, known, of.tokens, 0.0)
    return drafting(numbers_with(of, known, share), of.drafts, of.accepted)


def untold_kv(of: Deployment) -> str:
    """Return the precision of the KV cache that the engine takes where nobody tells it."""
    return usual_kv(of.model.stored_kv, of.model.operators.heads, of.gpu.generation, of.engine)


def score_key_of(of: Deployment) -> ScoreKey:
    """Return what says which scored points are its own; see `unit.scope.extra_log_sd`."""
    gpu = of.gpu
    return ScoreKey(
        model=of.model.name, gpu=gpu.name, generation=gpu.generation, maker=gpu.maker,
        engine=of.kernels, weights=of.weights,
    )  # fmt: skip


def units_within(units: int, have: float, gpus: int) -> int:
    """Return the units of a replica, of so many GPUs each: no more than the GPUs that there are have, two at least."""
    return max(2, min(units, floor(have / gpus))) if have > 0 else units


def divisors(whole: int, most: int) -> list[int]:
    """Return the numbers up to `most` that divide a number."""
    return [n for n in range(1, most + 1) if whole % n == 0]


def unfit(of: Deployment) -> list[Message]:
    """Say why a deployment cannot be, with the `field` that must be another; nothing where it can, if it fits.

    Templates are those of the command line; the page has its own words for some of them.
    """
    model, shape, layout = of.model, of.model.shape, of.layout
    fine, together = shape.fine[of.weights], layout.tp * layout.dp
    if "fp8" in [fine[name] for name in fine] and not of.gpu.rates.flops["fp8"] > 0:
        return [{"key": "unfit.precision", "field": "weights", "weights": of.weights, "gpu": of.gpu.name}]
    ep: Message = {"field": "ep", "model": model.name, "ep": layout.ep, "together": together, "experts": shape.experts}
    if layout.ep > 1 and not shape.experts > 0:
        ep["key"] = "unfit.whole"
        return [ep]
    if together % layout.ep > 0:
        ep["key"] = "unfit.groups"
        return [ep]
    if max(shape.experts, 1) % layout.ep > 0:
        ep["key"] = "unfit.experts"
        ep["able"] = [n for n in divisors(together, together) if shape.experts % n == 0]
        return [ep]
    if layout.pp > shape.n_layers:
        return [{"key": "unfit.stages", "field": "pp", "layers": shape.n_layers, "pp": layout.pp}]
    counted: Message = {"field": "expert_imbalance", "model": model.name, "value": of.imbalance}
    if of.imbalance >= 0 and not shape.experts > 0:
        counted["key"] = "unfit.counted"
        return [counted]
    most = most_uneven(shape.idle)
    if of.imbalance > most:
        counted["key"] = "unfit.uneven"
        counted["most"] = most
        return [counted]
    return []


def ranges_of(of: Deployment, n_in: float, n_out: float, users: float) -> Scope:
    """Return what a calibration's scope names of a deployment within a node: names, and numbers as both ends."""
    layout, model = of.layout, of.model
    return {
        "engine": of.kernels, "model": model.name, "kind": model.kind, "gpu": of.gpu.name, "nodes": "one",
        "tp": [layout.tp, layout.tp], "dp": [layout.dp, layout.dp], "weights": of.weights, "kv": of.kv,
        "n_in": [n_in, n_in], "n_out": [n_out, n_out], "concurrency": [users, users],
    }  # fmt: skip
