"""Coefficients of an engine on a GPU for a model: its measured kernels, moved by what served points say.

Kernels (`unit.kernels`) say what products, attention, experts and all-reduces reach, and what their launches take.
Served points tell by how much the engine's generation, the model under it, a generation of GPUs, a kind of model and
the precision of the weights move that, in logarithms, and what an engine adds to a layer. What was never seen moves
nothing, and is as unsure as levels were assumed to differ before a point was seen; so is a combination of which only
the parts were.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inference_math.unit.types import (
    CoefficientKey,
    CoefficientValues,
    DrawnCoefficients,
    Fit,
    Kernels,
    MixedEffects,
    Operators,
    Scope,
)

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord

# What moves coefficients. The last three say which combinations were served.
FACTORS = ["engine", "model", "generation", "kind", "weights"]
# What moves the front of a request, from what all share to what one set-up has of its own.
FRONTS = ["base", "kind", "model", "engine", "engine, model", "engine, model, gpu"]
ONE_SCALE = "fp8 without blocks"
MOST = 0.995  # of a share: nothing reaches all of the datasheet
# Coefficients that are shares of a rate.
SHARE_NAMES = [
    "memory", "bf16", "fp8", "fp4", "attention", "decode_attention", "experts", "grouped", "kv",
    "interconnect_efficiency",
]  # fmt: skip


def by_operators(kernels: bool, given: dict[str, str]) -> bool:
    """Tell whether measured operators of the H100 stand nearer to a unit than served points do.

    `kernels` tells whether the engine runs them today. They do for a dense model in BF16 or FP8 under vLLM: what was
    served of those ran on vLLM of 2025. On Blackwell, whose kernels are others, served points do.
    """
    plain = given["weights"] == "bf16" or given["weights"] == "fp8"
    return kernels and given["kind"] == "dense" and plain and given["generation"] != "Blackwell"


def level_of(weights: str, of: Operators) -> str:
    """Return the level of "weights": the precision, but of FP8 experts with one scale, which no served point had."""
    return ONE_SCALE if weights == "fp8" and of.kind != "dense" and of.blocks == "fp8" else weights


def usual_kv(stored: str, heads: str, generation: str, engine: EngineRecord) -> str:
    """Return the precision of a KV cache where nobody tells it: the checkpoint's, else what an engine takes by itself.

    `heads` are those of `Operators`, `generation` is the GPU's.
    """
    sparse = heads == "sparse" and generation in engine.memory.kv_sparse
    return "fp8" if stored == "fp8" or sparse else "bf16"


def told_kv(kv: str, usual: str) -> str:
    """Return the precision that an engine is told, empty where it takes it by itself: FP8 is told in any case."""
    return "" if kv == "bf16" and usual == "bf16" else kv


def why_kv(kv: str, usual: str, stored: str, engine: str) -> str:
    """Return why a KV cache that nobody named is in FP8, `stored` what its checkpoint asks for; empty where none is."""
    if kv != "fp8" or usual != "fp8":
        return ""
    return "as its checkpoint has it" if stored == "fp8" else "as " + engine + " has it untold"


def coefficient_key_of(
    engine: str, newest: str, given: dict[str, str], together: float, of: Operators
) -> CoefficientKey:
    """Return where a unit stands: the level of each of `FACTORS`, and which of the measured kernels are its own.

    `engine` is the name of the engine's generation, `newest` that of its newest one; `given` names gpu, generation,
    weights and kv; `together` are the GPUs that add up one sum, `of` the operators of the model.
    """
    weights, blocks = given["weights"], of.blocks
    fine, common, routed = of.fine[weights], "bf16", ""
    if fine["attention"] == "fp8" or fine["attention"] == "nvfp4":
        common = blocks if fine["attention"] == "fp8" else "nvfp4"
    if of.mixed > 0:
        routed = blocks if fine["experts"] == "fp8" else fine["experts"]
    links = "" if together <= 1 else ("8" if together >= 8 else ("4" if together >= 4 else "2"))
    return CoefficientKey(
        levels={
            "engine": engine,
            "model": engine + "/" + of.name,
            "generation": given["generation"],
            "kind": of.kind,
            "weights": level_of(weights, of),
        },
        kernels=newest,
        gpu=given["gpu"],
        common=common,
        blocks=blocks,
        routed=routed,
        attention=of.heads + ", " + given["kv"],
        links=links,
        products=of.products,
        mixed=of.mixed,
    )


def kernel_values(kernels: Kernels, intercept: CoefficientValues, at: CoefficientKey) -> CoefficientValues:
    """Return an engine's centre with what its measured kernels reach; and `launch`, seconds of a layer's launches.

    Kernels are those of an engine's newest generation; an older one has them, too. What was not measured stays at the
    centre.
    """
    values, engine, gpu = intercept.copy(), at.kernels, kernels.like[at.gpu]
    products, attention = kernels.products[engine][gpu], kernels.attention[engine][gpu]
    experts, links = kernels.experts[engine][gpu], kernels.links[engine][gpu]
    launch = at.products * products["bf16"].launch
    for name, key in [["bf16", "bf16"], ["fp8", at.blocks], ["fp4", "nvfp4"]]:
        if key in products:
            values[name] = products[key].compute
    if at.common in products:
        values["memory"] = products[at.common].memory
    if at.attention in attention:
        looks = attention[at.attention]
        values["kv"] = looks.memory
        values["attention"] = looks.compute
        values["decode_attention"] = looks.decode
        launch += looks.launch
    if at.routed in experts:
        kernel = experts[at.routed]
        values["experts"] = min(MOST, kernel.memory / values["memory"])
        values["grouped"] = min(MOST, kernel.compute / values[kernel.rate])
        launch += at.mixed * kernel.launch
    if at.links in links:
        values["interconnect_efficiency"] = links[at.links].memory
        values["collective_latency"] = links[at.links].launch
    values["launch"] = launch
    return values


def composed(mixed_effects: MixedEffects, kernels: Kernels, at: CoefficientKey) -> dict[str, CoefficientValues]:
    """Return the coefficients (`values`), and the standard deviations of their logarithms (`widths`).

    `mixed_effects` has what engines start from (`intercept`), the `effects` by factor and level, the standard
    deviations of what was seen, and for each factor those of a level that was not. What an engine adds to a layer is
    added to its launches. A mixture in BF16 that was not served is no faster than its own in FP8.
    """
    fit, given = moved(mixed_effects, kernels, at), at.levels
    served = given["model"] in mixed_effects.effects["model"] and given["weights"] in precisions_seen(
        mixed_effects, given["generation"], given["kind"]
    )
    if given["weights"] == "bf16" and at.mixed > 0 and not served:
        factors = given.copy()
        factors["weights"] = "fp8" if at.blocks == "fp8 blocks" else ONE_SCALE
        other = replace(at, levels=factors, common=at.blocks, routed=at.blocks)
        return no_faster(fit, moved(mixed_effects, kernels, other)["values"])
    return fit


def no_faster(fit: dict[str, CoefficientValues], fp8: CoefficientValues) -> dict[str, CoefficientValues]:
    """Return what was found of a mixture in BF16, in no term faster than the same in FP8.

    Levels of precision tell one from another only where both were served. So a layer and its sums take as long at
    least, experts are chosen alike, and their products run at no higher rate; the datasheet's of FP8 is twice BF16's.
    """
    values = fit["values"].copy()
    for name in ["layer", "collective_latency"]:
        values[name] = max(values[name], fp8[name])
    values["expert_imbalance"] = fp8["expert_imbalance"]
    values["grouped"] = min(values["grouped"], 2 * fp8["fp8"] * fp8["grouped"] / values["bf16"])
    return {"values": values, "widths": fit["widths"]}


def moved(mixed_effects: MixedEffects, kernels: Kernels, at: CoefficientKey) -> dict[str, CoefficientValues]:
    """Return the same for a precision by itself."""
    values: CoefficientValues = {}
    widths: CoefficientValues = {}
    given = at.levels
    base = kernel_values(kernels, mixed_effects.intercept[given["engine"]], at)
    seen_together = given["weights"] in precisions_seen(mixed_effects, given["generation"], given["kind"])
    for name in mixed_effects.sd_seen:
        effect, variance = 0.0, mixed_effects.sd_seen[name] ** 2
        if not seen_together:
            variance += mixed_effects.sd_unseen["weights"][name] ** 2
        for factor in FACTORS:
            known = mixed_effects.effects[factor]
            if given[factor] in known:
                effect += known[given[factor]][name]
            else:
                variance += mixed_effects.sd_unseen[factor][name] ** 2
        value = base[name] * exp(effect)
        widths[name] = variance**0.5
        if name == "layer":
            widths[name] *= value / (value + base["launch"])
            value += base["launch"]
        values[name] = min(MOST, value) if name in SHARE_NAMES else value
    return {"values": values, "widths": widths}


def fitted(mixed_effects: MixedEffects, kernels: Kernels, scopes: dict[str, Scope], at: CoefficientKey) -> Fit:
    """Return a unit's kernels, moved by what served points say of its engine, model, GPU and precision.

    `scopes` are of the points that were "served", and of combinations that were served "together".
    """
    given, mixed = at.levels, composed(mixed_effects, kernels, at)
    scope, seen = scopes["served"].copy(), precisions_known(mixed_effects, given)
    if len(seen) > 0:
        scope["gpu"] = scopes["together"]["gpu"]
        scope["weights"] = seen
    return Fit(
        found=mixed["values"], widths=mixed["widths"], scope=scope,
        spread=mixed_effects.spread.get(given["kind"], 0.0),
    )  # fmt: skip


def precisions_seen(mixed_effects: MixedEffects, generation: str, kind: str) -> list[str]:
    """Return the precisions in which models of a kind were served on a generation of GPUs."""
    return [row[2] for row in mixed_effects.interactions if row[0] == generation and row[1] == kind]


def precisions_known(mixed_effects: MixedEffects, given: dict[str, str]) -> list[str]:
    """Return the same for the levels of a unit, in words: FP8 that was served had its scales for blocks."""
    one = given["weights"] == ONE_SCALE
    seen = precisions_seen(mixed_effects, given["generation"], given["kind"])
    return ["fp8 in blocks" if one and name == "fp8" else name for name in seen]


def own_root(names: list[str], widths: CoefficientValues) -> list[list[float]]:
    """Return the root of the covariance of coefficients that vary each by itself."""
    return [[widths[name] if name == other else 0.0 for other in names] for name in names]


def away(name: str, value: float, moved: float) -> float:
    """Return a coefficient that is `moved` away from its value on the scale of its logarithm.

    Beyond the value of a share, what it leaves unused shrinks instead, at first by as much: it never gets to 1.
    """
    if name not in SHARE_NAMES or moved < 0:
        return value * exp(moved)
    return 1 - (1 - value) * exp(-moved * value / (1 - value)) if value < 1 else 1.0


def anchored(anchors: list[dict[str, float]], n_in: float, n_out: float) -> float:
    """Return the seconds of an output token by which the run with the nearest lengths was off; 0 without any."""
    seconds, nearest = 0.0, inf
    for anchor in anchors:
        far = abs(log(anchor["n_in"] / n_in)) + abs(log(anchor["n_out"] / n_out))
        if far < nearest:
            nearest = far
            seconds = anchor["seconds"]
    return seconds


def drawn(
    names: list[str], values: CoefficientValues, root: list[list[float]], normals: list[list[float]], spread: float
) -> list[DrawnCoefficients]:
    """Return (coefficients, factors) for each row of normal numbers: the errors of a step and of its prompts' part, and
    a normal number for the front.

    `root` is the symmetric root of the covariance of the logarithms. An anchor is not drawn.
    """
    draws: list[DrawnCoefficients] = []
    size = len(names)
    for row in normals:
        coefficients: CoefficientValues = {}
        for j in range(size):
            moved = 0.0
            for i in range(size):
                moved += row[i] * root[i][j]
            coefficients[names[j]] = away(names[j], values[names[j]], moved)
        coefficients["anchor"] = values["anchor"]
        draws.append((coefficients, [exp(spread * row[size]), exp(spread * row[size + 1]), row[size + 2]]))
    return draws


def front_levels(engine: str, kind: str, model: str, gpu: str) -> dict[str, str]:
    """Return the level of each of `FRONTS` that a set-up stands at; the engine by the name of its generation."""
    both = engine + "/" + model
    return {
        "base": "all",
        "kind": kind,
        "model": model,
        "engine": engine,
        "engine, model": both,
        "engine, model, gpu": both + "/" + gpu,
    }


def fronted(moves: dict[str, CoefficientValues], levels: dict[str, str]) -> float:
    """Return the seconds of a request's front; a level that was never measured moves nothing."""
    moved = 0.0
    for factor in FRONTS:
        known = moves[factor]
        if levels[factor] in known:
            moved += known[levels[factor]]
    return exp(moved)
