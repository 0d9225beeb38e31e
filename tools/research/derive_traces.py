"""Derive data/measured/traces_lengths.csv, _mixes, _reuse, _alpha, _saving and _halves from recorded requests.

    python tools/research/derive_traces.py conversation_trace.jsonl synthetic_trace.jsonl \\
        AzureLLMInferenceTrace_conv.csv AzureLLMInferenceTrace_code.csv

The first two are in `FAST25-release/traces` of github.com/kvcache-ai/Mooncake at 3b5a5941 (Apache-2.0), the others
in `data` of github.com/Azure/AzurePublicDataset at b469a113 (CC BY 4.0).
"""

from __future__ import annotations

import argparse
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from tables import write

from inference_math_planner.fleets.caches import clairvoyant
from inference_math_planner.fleets.traces import QUANTILES, Read, gains, length_quantiles, read, reuse_curve

FILES = {"mooncake-conversation": "conversation_trace.jsonl", "mooncake-synthetic": "synthetic_trace.jsonl",
         "azure-conversation": "AzureLLMInferenceTrace_conv.csv",
         "azure-code": "AzureLLMInferenceTrace_code.csv"}  # fmt: skip
CAPACITIES = 40
SMALLEST = 10  # blocks
GROUPS = 16  # of prompts, and of the answers of each
HIGH = (0.5, 0.9, 0.99)
HALVES, FEWEST = 13, 1000  # sizes at which halves are compared; requests of a trace that is
ALPHA = [f"p{q}" for q in QUANTILES]
E = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 1e9)  # the last is as good as infinite


def main() -> None:
    """Write the tables."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for trace, file in FILES.items():
        arguments.add_argument(trace, type=Path, help=file)
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = vars(arguments.parse_args())
    traces = {trace: read(options[trace], strict=True) for trace in FILES}
    known = {trace: this for trace, this in traces.items() if this.requests.blocks.notna().all()}
    write(lengths(traces), options["out"] / "traces_lengths.csv", "correlation")
    write(mixes(traces), options["out"] / "traces_mixes.csv")
    write(reuse(known), options["out"] / "traces_reuse.csv", "block_share", "token_share", "mean_alpha")
    shares = ["token_share", "mean", "std", *ALPHA, *(f"share_{high}" for high in HIGH)]
    write(alpha(known), options["out"] / "traces_alpha.csv", *shares)
    write(saving(known), options["out"] / "traces_saving.csv", "e", "saved_load_all", "saved_mixed")
    write(halves(known), options["out"] / "traces_halves.csv", "law", "independent", "same", "other", "best", "kept_s")


def lengths(traces: dict[str, Read]) -> pd.DataFrame:
    """Return the distribution of the prompt and the output lengths of each trace."""
    tables = []
    for trace, this in traces.items():
        requests = this.requests
        table = length_quantiles(requests.n_in, requests.n_out).rename_axis("quantity").reset_index()
        table = table.rename(columns={"count": "requests"}).round({"mean": 2, "std": 2})
        table.insert(0, "trace", trace)
        table.insert(3, "duration_s", round(float(requests.arrival.iloc[-1]), 3))
        tables.append(table.assign(correlation=requests.n_in.corr(requests.n_out)))
    return pd.concat(tables).sort_values(["trace", "quantity"], ignore_index=True)


def mixes(traces: dict[str, Read]) -> pd.DataFrame:
    """Return few requests that stand for each trace: as many lie behind each, so that means are kept.

    Ordered by prompts, the requests are cut into groups of the same size, each of these by answers again; a row is the
    mean of such a part, in whole tokens. That sizes are the same, each request is there as often as there are parts.
    """
    rows = []
    for trace, this in traces.items():
        n_in, n_out = (np.repeat(this.requests[name].to_numpy(), GROUPS**2) for name in ("n_in", "n_out"))
        for group in np.lexsort((n_out, n_in)).reshape(GROUPS, -1):
            for part in group[np.lexsort((n_in[group], n_out[group]))].reshape(GROUPS, -1):
                rows.append({"trace": trace, "n_in": n_in[part].mean(), "n_out": n_out[part].mean()})
    return pd.DataFrame(rows).round().astype({"n_in": int, "n_out": int})


def reuse(traces: dict[str, Read]) -> pd.DataFrame:
    """Return the LRU curve of each trace at about `CAPACITIES` capacities, the last of them all its blocks."""
    tables = []
    for trace, this in traces.items():
        blocks = list(this.requests.blocks)
        stored = len(set().union(*blocks))
        steps = np.unique(np.geomspace(min(SMALLEST, stored), stored, CAPACITIES).round().astype(np.int64))
        curve = reuse_curve(blocks, this.requests.n_in, this.block_tokens, steps * this.block_tokens)
        curve["capacity"] = curve.capacity.astype(np.int64)
        curve.insert(0, "trace", trace)
        tables.append(curve.rename(columns={"capacity": "capacity_tokens"}))
    return pd.concat(tables, ignore_index=True)


def alpha(traces: dict[str, Read]) -> pd.DataFrame:
    """Return the distribution over the requests of the share that an unlimited cache finds."""
    rows = []
    for trace, this in traces.items():
        recorded = this.trace()
        n_in, shares = recorded.n_in, recorded.alpha
        row = {"trace": trace, "requests": len(n_in), "prompt_tokens": int(n_in.sum())}
        row |= {"token_share": float(shares @ n_in / n_in.sum()), "mean": shares.mean(), "std": shares.std()}
        row |= dict(zip(ALPHA, np.percentile(shares, QUANTILES, method="inverted_cdf"), strict=True))
        rows.append(row | {f"share_{high}": (shares >= high).mean() for high in HIGH})
    return pd.DataFrame(rows)


def halves(traces: dict[str, Read]) -> pd.DataFrame:
    """Return what a store is said to find by the first half of a trace, and what it finds in either half.

    `law` is from when tokens came back in the first half, `independent` takes each block for independent of all others
    (Che, 2002); `same` and `other` are an LRU store in the first and in the second half, empty at the beginning of
    each; `best` is what a store finds in the second half that knows what will come (Belady, 1966). `kept_s` is the time
    for which the store keeps what nobody uses, by the law.
    """
    tables = []
    for trace, this in traces.items():
        requests, size = this.requests, this.block_tokens
        if len(requests) < FEWEST:
            continue
        middle = len(requests) // 2
        first, second = requests.iloc[:middle], requests.iloc[middle:]
        blocks = list(first.blocks)
        stored = len(set().union(*blocks))
        slots = np.unique(np.geomspace(100, stored, HALVES).round().astype(np.int64))[:-1]
        law = Returns(blocks, first.arrival, first.n_in, size)
        kept = [law.kept(float(size * slot)) for slot in slots]
        table = pd.DataFrame({"trace": trace, "capacity_tokens": size * slots, "kept_s": kept})
        table["law"] = [law.within(seconds) for seconds in kept]
        table["independent"] = _independent(blocks, slots)
        for name, half in (("same", first), ("other", second)):
            curve = reuse_curve(list(half.blocks), half.n_in, size, size * slots)
            table[name] = curve.token_share.to_numpy()
        table["best"] = [_best(second, int(slot), size) for slot in slots]
        tables.append(table)
    columns = ["trace", "capacity_tokens", "kept_s", "law", "independent", "same", "other", "best"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


class Returns:
    """What a store finds of a recorded stream, by its size: from when tokens come back.

    A store of C tokens that drops what nobody used for longest holds the C tokens used last: what was used within some
    time θ. In a stationary stream W(θ) different tokens are used within θ, where W is the integral of the rate of
    tokens that were not used within the time before (Denning and Schwartz, 1972): C = W(θ) says θ, and the share of
    tokens that come back within θ is found. Whole conversations come back at once; a law that takes each block for
    independent of all others (Che, 2002) cannot see that.
    """

    def __init__(self, blocks: list[list[Hashable]], arrival: pd.Series, n_in: pd.Series, block_tokens: int) -> None:
        last: dict[Hashable, float] = {}
        ago: list[float] = []
        for now, prompt in zip(arrival, blocks, strict=True):
            ago += [now - last.get(block, -np.inf) for block in prompt]
            last.update(dict.fromkeys(prompt, now))
        order = np.argsort(ago, kind="stable")[: int(np.isfinite(ago).sum())]
        self.seconds = np.array(ago)[order]  # after which each return came, ascending
        self.found = np.concatenate([[0], np.cumsum(gains(blocks, n_in, block_tokens)[order])]) / n_in.sum()
        # Of so many seconds: all tokens that are used in them, less what was used again meanwhile.
        breaks = np.concatenate([[0.0], self.seconds])  # in between it is linear
        again = breaks * np.arange(breaks.size) - np.cumsum(breaks)
        used = block_tokens * (breaks * len(ago) - again) / np.ptp(arrival)
        self.breaks, self.working_set = breaks, used

    def kept(self, capacity: float) -> float:
        """Return the seconds for which a store of so many tokens keeps what nobody uses; infinite beyond the record."""
        return float(np.interp(capacity, self.working_set, self.breaks, right=np.inf))

    def within(self, seconds: float) -> float:
        """Return the share of all prompt tokens that were used within so many seconds before."""
        return float(self.found[np.searchsorted(self.seconds, seconds, side="right")])


def _best(requests: pd.DataFrame, slots: int, block_tokens: int) -> float:
    found = np.array(clairvoyant(list(requests["blocks"]), slots)) * block_tokens
    return float(np.minimum(found, requests["n_in"]).sum() / requests["n_in"].sum())


def _independent(blocks: list[list[int]], slots: np.ndarray) -> list[float]:
    """Return the share of all blocks that stores of some sizes find if each is asked for independently of all others.

    As often as it was: Che's approximation.
    """
    _, counts = np.unique(np.concatenate([np.asarray(prompt) for prompt in blocks]), return_counts=True)
    rates = counts / counts.sum()
    found = []
    for slot in slots:
        kept = brentq(lambda t, slot=slot: (1 - np.exp(-rates * t)).sum() - slot, 0.0, 1e9)
        found.append(float((rates * (1 - np.exp(-rates * kept))).sum()))
    return found


def saving(traces: dict[str, Read]) -> pd.DataFrame:
    """Return the share of all prefill time that an unlimited cache saves, by e, if a token's time is constant.

    A prompt takes n_in without the cache, max(1 - alpha, alpha/e) of it when all stored tokens are loaded beside
    the computing of the others, and max(1 - alpha, 1/(1 + e)) of it when some of them are computed instead.
    """
    rows = []
    for trace, this in traces.items():
        recorded = this.trace()
        n_in, shares = recorded.n_in, recorded.alpha
        for e in E:
            load_all = n_in * np.maximum(1 - shares, shares / e)
            mixed = n_in * np.maximum(1 - shares, 1 / (1 + e))
            saved = {"saved_load_all": 1 - load_all.sum() / n_in.sum(), "saved_mixed": 1 - mixed.sum() / n_in.sum()}
            rows.append({"trace": trace, "e": e} | saved)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
