"""Derive served points of three sources, half of whose groups choose: data/measured/served_halves.csv.

    python tools/research/derive_halves.py inferencex.csv aggregated.csv gpustack.csv sgl_cookbook.csv long_prompts.csv

Which half a group is in was fixed, with its seed, before anything was predicted for a row of it; see `draw`. Groups
that were drawn stand in tools/research/halves_drawn.csv; rows and groups that come later move none of them.

* `inferencex.csv` is the file that `derive_splits.py` takes; here are aggregated points that `served_splits` has not.
  `aggregated.csv` is the file that `derive_served.py` takes: runs that are in it, too, are left out.
* `gpustack.csv` has the blocks of GPUStack's performance lab, github.com/gpustack/gpustack at 47277d79 (Apache-2.0).
* `sgl_cookbook.csv` has cells of SGLang's cookbook of 2026 with their flags, github.com/sgl-project/sglang at 01308120,
  05751c8d and 038bd158, and a mirror of it (Apache-2.0).
* `long_prompts.csv` has points of github.com/SemiAnalysisAI/InferenceX at 843c6254, experimental (Apache-2.0); they
  become data/measured/served_lengths.csv: how times grow with prompts and users there, since their levels stand for no
  engine of today.

Left out are rows whose model or GPU the catalogue lacks, and those that the function of their source names; the script
prints how many, by reason.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from pathlib import Path
from typing import Any

import derive_served
import derive_splits
import numpy as np
import pandas as pd
from recipes import EACH
from tables import rounded, write

from inference_math.catalogue import model
from inference_math.evidence import load
from inference_math.unit import kind_of

SEED = 57  # of `draw`: set before anything was predicted for these rows
DRAWN = Path(__file__).with_name("halves_drawn.csv")  # groups as they were drawn, once, and their parts
SEEN = "seen"  # the stratum of groups with a set-up that was fitted or scored before
GROUP = ["source", "gpu", "model", "weights", "engine"]  # and the engine's generation
LAYOUT = ["tp", "dp", "ep"]
SET_UP = ["model", "gpu", "engine", "weights", *LAYOUT, "drafts", "n_in", "n_out", "users"]
PLACES = {"vllm": 2, "trtllm": 2, "sglang": 3}  # numbers of a version that name a generation, of some weeks each
TIMES = ["ttft_s", "ttft_p50_s", "tpot_s", "tpot_p50_s", "rate"]
COLUMNS = [
    "part", "source", "model", "gpu", *LAYOUT, "engine", "version", "date", "weights", "kv", "drafts", "drafted",
    "accepted", "lengths", "n_in", "n_out", "users", "requests", "budget", "seqs", "memory", "told", *TIMES, "run",
]  # fmt: skip
SHAPE = ["part", "model", "weights", *LAYOUT, "drafts", "n_in", "users", "ttft_p50_s", "tpot_p50_s", "rate"]

# The version in an image's name.
VERSION = {"sglang": r":v(\d[\d.]*(?:post\d+)?)", "trtllm": r":(\d.*)", "atom": r"atom(\d[\d.]*?)(?:-|$)"}
NEAR = 0.05  # of the time per token: two entries of one run, a mean and a median, differ by less
SLACK = 0.05  # requests under way by Little's law, beyond the users that there are: means of means
IDLE = 0.1  # share of the time that one user alone, who asks again at once, has no request under way

# Model on a page of GPUStack: ours, and what the checkpoint of that name is stored in.
GPUSTACK = {
    "deepseek-ai/DeepSeek-V3.2": ("deepseek-v3.2", "fp8"), "/workspace/DeepSeek-v3.2": ("deepseek-v3.2", "fp8"),
    "zai-org/GLM-5.2-FP8": ("glm-5.2", "fp8"), "openai/gpt-oss-120b": ("gpt-oss-120b", "mxfp4"),
    "Qwen/Qwen3-8B": ("qwen3-8b", "bf16"), "Qwen/Qwen3-8B-FP8": ("qwen3-8b", "fp8"),
    "Qwen/Qwen3-14B": ("qwen3-14b", "bf16"), "Qwen/Qwen3-14B-FP8": ("qwen3-14b", "fp8"),
    "Qwen/Qwen3-14B-AWQ": ("qwen3-14b", "int4"), "Qwen/Qwen3-32B": ("qwen3-32b", "bf16"),
    "Qwen/Qwen3-32B-FP8": ("qwen3-32b", "fp8"), "Qwen/Qwen3-32B-AWQ": ("qwen3-32b", "int4"),
    "Qwen/Qwen3-235B-A22B-Instruct-2507": ("qwen3-235b-a22b", "bf16"),
    "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8": ("qwen3-235b-a22b", "fp8"),
    "Qwen/Qwen3.5-35B-A3B": ("qwen3.5-35b-a3b", "bf16"), "Qwen/Qwen3.5-9B": ("qwen3.5-9b", "bf16"),
}  # fmt: skip
# Its pages say "H100 SXM" of cards that read 64 GB of weights in 43 ms, 1.5 TB/s: these are PCIe cards. The page of
# Qwen3-8B reads 15.1 GB in 7.2 ms, more than a PCIe card's memory gives. A card with HBM3 is an SXM card.
CARDS = {"a100": "a100-80gb", "h200": "h200-sxm", "h200-latency": "h200-sxm", "h100": "h100-pcie"}
CARDS |= {"h100-latency": "h100-sxm"}
# Model of the cookbook and its variant: ours, whose layers it has.
COOKBOOK = {
    "glm-5.1": "glm-5", "glm-5.2": "glm-5.2", "minimax-m2.7": "minimax-m2", "minimax-m3": "minimax-m3",
    "deepseek-v4 flash": "deepseek-v4-flash", "deepseek-v4 pro": "deepseek-v4-pro",
}  # fmt: skip
WEIGHTS = {"fp4": "mxfp4", "mxfp8": "fp8"}  # FP8 with a scale for 32 values has 3 % more bytes
LONG = {
    "GLM-5 FP8": ("glm-5", "fp8"), "MiniMax-M2.5 FP8": ("minimax-m2", "fp8"),
    "Qwen3.5-397B-A17B (BF16 checkpoint)": ("qwen3.5-397b-a17b", "bf16"),
}  # fmt: skip
GPU = {"h200": "h200-sxm"}
LIMIT = 512  # users of GPUStack's closed loops
# Flags that say nothing of speed, or stand in a column.
_OTHER = re.compile(
    r"model|model-path|host|port|m|chat-template|\S*parser|tokenizer-mode|enable-auto-tool-choice|max-model-len"
    r"|context-length|max_seq_len|tp|dp|\w+[-_]size|tensor-parallel-size|enable-dp-attention|enable-expert-parallel"
    r"|kv-cache-dtype|mem-fraction-static|gpu-memory-utilization|max-num-batched-tokens|max_num_tokens"
    r"|chunked-prefill-size|max-num-seqs|max-running-requests|speculative-\S+|trust-remote-code|deepep-config"
)
_FLAG = re.compile(r"(?<!\S)--?([a-z][\w-]*)(?:[= ](?!-)(\S+))?")


def main() -> None:
    """Write the tables; print what was written, and what was left out."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("inferencex", "aggregated", "gpustack", "cookbook", "long_prompts"):
        arguments.add_argument(name, type=Path)
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    sources = [
        inferencex(pd.read_csv(options.inferencex), pd.read_csv(options.aggregated)),
        gpustack(pd.read_csv(options.gpustack)),
        cookbook(pd.read_csv(options.cookbook)),
    ]
    every = pd.concat(sources, ignore_index=True)
    print(every[every["left_out"] != ""].groupby(["source", "left_out"]).size().to_string())
    table = every[every["left_out"] == ""]
    table = rounded(table, "n_in", "n_out").astype({"n_in": float, "n_out": float})
    counts = dict.fromkeys(["drafted", "requests", "budget", "seqs"], "Int64")
    table = table.astype(dict.fromkeys(counts, float)).astype(counts)
    seen = load("served").frame
    if not DRAWN.exists():  # they are drawn once
        groups = groups_of(table, seen)
        groups.assign(part=draw(groups)).to_csv(DRAWN, index=False, lineterminator="\n")
    table = table.assign(part=parts(table, seen))[COLUMNS].sort_values(COLUMNS[:-6], kind="stable")
    write(table, options.out / "served_halves.csv", "n_in", "n_out", *TIMES)
    shape = long_prompts(pd.read_csv(options.long_prompts))
    shape = shape.assign(part=parts(shape))[SHAPE].sort_values(SHAPE[:-3], kind="stable")
    write(shape, options.out / "served_lengths.csv", *SHAPE[-3:])


def draw(groups: pd.DataFrame) -> pd.Series[str]:
    """Return the part of each group: "choose", by which terms and widths are chosen, or "score", which is scored once.

    A group has a `name`, a `stratum` (kind of model and engine) and so many `rows`. In a stratum the largest two are a
    pair, then the next two; the hash of the names says which of a pair scores, so that neither part has all large
    groups. A group that is left over has the parity of its hash. Groups that were `SEEN` choose.
    """
    order = groups.assign(hashed=groups["name"].map(hashed)).sort_values(["rows", "hashed"], ascending=[False, True])
    part = groups["name"].map(half).where(groups["stratum"] != SEEN, "choose")
    for _, some in order[order["stratum"] != SEEN].groupby("stratum"):
        for first, second in zip(some.index[::2], some.index[1::2], strict=False):
            lower = order["hashed"][first] < order["hashed"][second]
            part[first], part[second] = ("score", "choose") if lower else ("choose", "score")
    return part


def groups_of(table: pd.DataFrame, seen: pd.DataFrame) -> pd.DataFrame:
    """Return the groups to `draw`: a source, a GPU, a model, a precision, an engine and its generation."""
    told = table.assign(name=names_of(table), stratum=table["model"].map(lambda name: kind_of(model(name))))
    told["stratum"] += ", " + told["engine"]
    told.loc[told["name"].isin(told["name"][known(table, seen)]), "stratum"] = SEEN
    return told.groupby(["stratum", "name"]).size().rename("rows").reset_index()


def parts(table: pd.DataFrame, seen: pd.DataFrame | None = None) -> pd.Series[str]:
    """Return the part of each row: that of its group as it was drawn.

    A group that comes later has the parity of its own hash, so that it moves no other; it chooses if it has a set-up
    among the rows `seen`, which were fitted or scored before.
    """
    names = names_of(table)
    later = names.map(half)
    if seen is not None:
        later[names.isin(names[known(table, seen)])] = "choose"
    return names.map(pd.read_csv(DRAWN).set_index("name")["part"]).fillna(later)


def names_of(table: pd.DataFrame) -> pd.Series[str]:
    """Return the name of each row's group."""
    return table[GROUP].agg(" ".join, axis=1) + " " + generations(table)


def known(table: pd.DataFrame, seen: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows repeat a set-up among those `seen`."""
    found = pd.MultiIndex.from_frame(table[SET_UP]).isin(pd.MultiIndex.from_frame(seen[SET_UP]))
    return pd.Series(found, table.index)


def hashed(name: str) -> bytes:
    """Return the hash of a group of this name."""
    return hashlib.sha256(f"{SEED} {name}".encode()).digest()


def half(name: str) -> str:
    """Return the part that the parity of its hash gives a group of this name."""
    return "score" if hashed(name)[0] % 2 else "choose"


def generations(table: pd.DataFrame) -> pd.Series[str]:
    """Return the generation of the engine of each row: first numbers of its version, or the quarter of a dated run.

    Dated runs seldom state a version, and those of one week have one engine.
    """
    quarters = pd.to_datetime(table["date"]).dt.to_period("Q").astype(str)
    versions = [generation(*row) for row in zip(table["engine"], table["version"].fillna(""), strict=True)]
    return pd.Series(versions, table.index).where(table["date"].isna(), quarters)


def generation(engine: str, version: str) -> str:
    """Return the generation of a version, "unstated" where it is none of a release."""
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    if not numbers:
        return "unstated"
    return ".".join([number or "0" for number in numbers.groups()][: PLACES.get(engine, 3)])


def reasons(table: pd.DataFrame, told: dict[str, Any]) -> pd.Series[str]:
    """Return the first of the reasons that holds for each row, empty where none does."""
    return pd.Series(np.select([np.asarray(rows, bool) for rows in told.values()], list(told), ""), table.index)


def inferencex(raw: pd.DataFrame, listed: pd.DataFrame) -> pd.DataFrame:
    """Return the aggregated points; left out are those in `served_splits`, and runs that `served` has from its list."""
    engines = derive_splits.ENGINE | {"atom": "atom"}
    beside = derive_splits.served_splits(raw).index
    raw = raw[raw["disagg"] == 0].assign(gpus=lambda rows: rows[["decode_tp", "decode_ep"]].max(axis=1))
    table = derive_splits.served_points(raw).assign(engine=raw["engine"].map(engines))
    image = raw["image"].fillna("")
    told = [re.search(VERSION[engine], name) for engine, name in zip(table["engine"], image, strict=True)]
    table["version"] = [found.group(1).rstrip(".") if found else None for found in told]
    # Rows of one configuration in one run have one image, which some of them state.
    alike = table.groupby(["gpu", "engine", "weights", "drafts", "date"])["version"]
    table["version"] = table["version"].fillna(alike.transform("first").where(alike.transform("nunique") == 1))
    table = table.rename(columns={"ttft_s": "ttft_p50_s", "tpot_s": "tpot_p50_s"})
    table["ttft_s"], table["tpot_s"] = raw["ttft_mean_s"], raw["tpot_mean_s"]
    return table.assign(
        source="InferenceX", model="deepseek-v3", lengths="0.8 to 1", requests=EACH * table["users"],
        left_out=reasons(table, {"in served_splits": raw.index.isin(beside), "in served": same_run(raw, listed)}),
    )  # fmt: skip


def same_run(raw: pd.DataFrame, listed: pd.DataFrame) -> pd.Series[bool]:
    """Return which points a list has, too: of the same day, load and layout, with the same time per token."""
    key = ["date", "gpu", "engine", "precision", "gpus", "ep", "isl", "osl", "users"]
    own = raw.assign(ep=raw["decode_ep"], engine=raw["engine"].replace("trt", "trtllm"), number=raw.index)
    other = listed.rename(columns={"concurrency": "users", "n_gpus": "gpus"})
    other = other[other["model"].str.startswith("DeepSeek")].assign(
        gpu=other["gpu"].replace(derive_served.GPU), ep=other["ep"].clip(lower=1)
    )
    both = own[[*key, "number", "tpot_p50_s"]].merge(other[[*key, "tpot_mean_ms"]], on=key)
    near = (both["tpot_p50_s"] * 1e3 / both["tpot_mean_ms"] - 1).abs() < NEAR
    return pd.Series(raw.index.isin(both.loc[near, "number"]), raw.index)


def gpustack(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the blocks of known models. Where no users are stated, all requests come at once."""
    page = raw["page"].str.removesuffix(".md").str.split("/", expand=True)
    name = raw["model"].str.removeprefix("- ")
    table = pd.DataFrame({"source": "GPUStack", "engine": raw["engine"], "version": raw["version"].str.lstrip("v")})
    ours = pd.DataFrame([GPUSTACK.get(one, (None, None)) for one in name], name.index, ["model", "weights"])
    table["model"], table["weights"] = ours["model"], ours["weights"]
    table["gpu"] = page[1].map(CARDS).mask(raw["hardware"].str.contains("H100 80GB HBM3"), "h100-sxm")
    size, whole = raw["tp"].fillna(1).astype(int), raw["ep"].replace("on", np.nan).astype(float)
    table["dp"] = raw["dp"].where(raw["dp_attention"] == 1).fillna(1).astype(int)
    table["tp"] = size // table["dp"]
    table["ep"] = whole.fillna(size.astype(float)).where(raw["ep"].notna(), 1).astype(int)
    table["kv"] = raw["kv"].str.split("_").str[0]
    table["drafts"], table["drafted"] = np.where(raw["drafts"] == 1, "mtp", "none"), raw["command"].map(drafted)
    table["lengths"] = np.where(raw["profile"].str.contains("random") | (page[0] == "glm-5.2"), "equal", "chats")
    table.loc[raw["step"].str.endswith("ShareGPT"), "lengths"] = "chats"
    table["n_in"], table["n_out"], table["requests"] = raw["isl"], raw["osl"], raw["requests"].astype(int)
    table["users"] = raw["users"].fillna(raw["requests"]).astype(int)
    table["budget"], table["seqs"] = raw["budget"], raw["max_seqs"]
    table["memory"] = raw["command"].str.extract(r"(?:static|utilization)[= ]([\d.]+)", expand=False)
    table["told"] = [settings(*row) for row in zip(raw["command"], raw["step"], raw["profile"], strict=True)]
    # Its second tool counts the first token's time in TPOT; no drafts were read with it.
    steady = raw["tool"].str.startswith("guidellm")
    for time, theirs in (("tpot_s", "mean"), ("tpot_p50_s", "p50")):
        table[time] = raw[f"itl_{theirs}_ms"].where(steady, raw[f"tpot_{theirs}_ms"]) / 1e3
    table["ttft_s"], table["ttft_p50_s"] = raw["ttft_mean_ms"] / 1e3, raw["ttft_p50_ms"] / 1e3
    table["rate"] = raw["out_tok_s"]
    return table.assign(left_out=unfit(raw, table))


def unfit(raw: pd.DataFrame, table: pd.DataFrame) -> pd.Series[str]:
    """Return why a block is left out of a table of them, empty where it is not."""
    pages, names = raw["page"].str.split("/").str[0], raw["model"].str.lower()
    size, steady = table["tp"] * table["dp"], raw["tool"].str.startswith("guidellm")
    there = raw["hardware"].str.extract(r"^(\d+) |x(\d+)$").bfill(axis=1)[0].fillna("1").astype(int)
    told = {
        "GPU not in the catalogue": table["gpu"].isna(),
        "model not in the catalogue": table["model"].isna(),
        "precision that the GPU does not compute in": table["gpu"].eq("a100-80gb")
        & table["weights"].isin(["fp8", "int4"]),
        "another page's model": [here not in one for here, one in zip(pages, names, strict=True)],
        "another engine's section": raw["step"].str.endswith("> SGLang") & (raw["engine"] != "sglang"),
        "tokens came together": steady & (raw["itl_p50_ms"] == 0),  # the tool saw no time between them
        # What its second tool has as users is a limit of 512, or how many there were of requests that come at a rate.
        "open loop": steady & (raw["users"] != LIMIT),
        "drafts of another model, in trees": raw["command"].str.contains("draft-model"),
        "pipeline": raw["command"].str.contains(" -pp ") | (raw["pp"] > 1),
        "more GPUs than the page has": size > there,
    }
    return reasons(table, told)


def drafted(command: str) -> float:
    """Return how many tokens a command has a request draft in a step."""
    found = re.search(r'num_speculative_tokens":\s*(\d+)|speculative-num-steps[= ](\d+)', command)
    return float(found.group(1) or found.group(2)) if found else np.nan


def settings(command: str, step: str, profile: str) -> str:
    """Return what else an engine was told that may move its times."""
    # The heading of some blocks corrects the command that stands above all of them.
    backend = re.fullmatch(r"(?:--attention-backend=)?(fa3|flashinfer|triton)", str(profile))
    told = [
        f"{name}={value}" if value else name
        for name, value in _FLAG.findall(command.split(" ", 1)[-1])
        if not _OTHER.fullmatch(name) and not (backend and name == "attention-backend")
    ]
    told += [f"attention-backend={backend.group(1)}"] if backend else []
    return " ".join(told + (["no DeepGEMM"] if "Turn off DeepGEMM" in step else []))


def cookbook(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of known models, with what their flags and notes say."""
    note, flags = raw["note"].fillna(""), raw["serve_flags"].fillna("")
    both, name = flags + " " + note, (raw["model"] + " " + raw["variant"]).str.removesuffix(" default")
    table = pd.DataFrame({"source": "SGLang cookbook", "model": name.map(COOKBOOK), "engine": raw["engine"]})
    table["gpu"], table["weights"] = raw["gpu"].replace(GPU), raw["weights"].replace(WEIGHTS)
    table["version"] = raw["version"]
    size, table["dp"] = raw["tp"].astype(int), raw["dp"].fillna(1).astype(int)
    whole = note.str.extract(r"\bep (\d+)", expand=False).astype(float)
    spread = flags.str.contains("moe-a2a-backend") | note.str.contains("DeepEP")  # each of them over all GPUs
    table["tp"], table["ep"] = size // table["dp"], whole.fillna(size.astype(float).where(spread, 1)).astype(int)
    table["kv"] = note.str.extract(r"KV (\w+)", expand=False)
    table["drafts"] = raw["drafts"].map({"yes": "mtp", "no": "none"})
    steps = both.str.extract(r"(?:EAGLE|MTP) (\d)-\d-\d|num-steps (\d+)")
    table["drafted"] = steps.bfill(axis=1)[0].astype(float)
    table["accepted"] = note.str.extract(r"(?:pinned to|acceptance about) ([\d.]+)", expand=False)
    # The benchmark's command for DeepSeek-V4 names no range: its tool's default. Rates and times agree so.
    drawn = note.str.contains("uniform 1..1000", regex=False) | raw["model"].eq("deepseek-v4")
    table["lengths"] = np.where(drawn, "0 to 1", "equal")
    table["n_in"], table["n_out"] = (raw[name].where(~drawn, (1 + raw[name]) / 2) for name in ("isl", "osl"))
    table["users"], table["requests"] = raw["users"], raw["num_prompts"]
    table["budget"] = both.str.extract(r"chunked-prefill-size (\d+)", expand=False)
    table["seqs"] = both.str.extract(r"max-running(?:-requests)? (\d+)", expand=False)
    table["memory"] = both.str.extract(r"mem(?:-fraction-static)? ([\d.]+)", expand=False).str.rstrip(".")
    words = ("attention-backend=triton", "triton attention"), ("64 prompts before", "64 warm-up")
    table["told"] = [
        settings("sglang " + line, "", "") or " ".join(ours for ours, theirs in words if theirs in one)
        for line, one in zip(flags, note, strict=True)
    ]
    median = note.str.contains("medians")
    for time in ("ttft", "tpot"):
        value = raw[f"{time}_mean_ms"] / 1e3
        table[f"{time}_s"], table[f"{time}_p50_s"] = value.where(~median), value.where(median)
    table["rate"] = raw["tok_s_gpu"] * size
    # Some cells count prompts' tokens, too, which not all of them say.
    both_ways = note.str.contains("total tok/s") | (under_way(table) > 2 * table["users"])
    table["rate"] *= (table["n_out"] / (table["n_in"] + table["n_out"])).where(both_ways, 1)
    return table.assign(left_out=untold(raw, table, spread | flags.ne("")))


def under_way(table: pd.DataFrame) -> pd.Series[float]:
    """Return how many requests are under way by Little's law, if the rate is one of output tokens."""
    first, each = (table[f"{time}_s"].fillna(table[f"{time}_p50_s"]) for time in ("ttft", "tpot"))
    return table["rate"] / table["n_out"] * (first.fillna(0) + (table["n_out"] - 1) * each)


def untold(raw: pd.DataFrame, table: pd.DataFrame, stated: pd.Series[bool]) -> pd.Series[str]:
    """Return why a cell is left out of a table of them, empty where it is not."""
    share = under_way(table) / table["users"]
    told = {
        "model not in the catalogue": table["model"].isna(),
        # Cells with notes in place of flags name attention and experts where they are spread, or state one rank.
        "layout not stated": ~(raw["dp"].eq(1) | stated),
        "rate and times contradict": (share > 1 + SLACK) | (table["users"].eq(1) & (share < 1 - IDLE)),
    }
    return reasons(table, told)


def long_prompts(raw: pd.DataFrame) -> pd.DataFrame:
    """Return points of one engine whose prompts are of many lengths."""
    ours = raw["model"].map(LONG)
    table = pd.DataFrame({"source": "InferenceX, long prompts", "model": ours.str[0], "weights": ours.str[1]})
    table["gpu"], table["engine"], table["version"], table["date"] = "h200-sxm", "vllm", "", raw["date"].str[:8]
    table["dp"] = np.where(raw["layout"] == "dep8", 8, 1)
    table["tp"], table["ep"] = 8 // table["dp"], np.where(raw["layout"] == "tp8", 1, 8)
    table["drafts"] = raw["drafts"].replace("mtp1", "mtp")
    table["n_in"], table["users"], table["rate"] = raw["isl"], raw["users"], raw["output_throughput"]
    return table.assign(ttft_p50_s=raw["median_ttft_s"], tpot_p50_s=raw["median_tpot_s"])


if __name__ == "__main__":
    main()
