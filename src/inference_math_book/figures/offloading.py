"""KV-cache offloading: pairs with and without a tier, what faster loading saves, measured loads.

What draws does so on given axes, and returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from inference_math import evidence
from inference_math_book.colours import COLOURS

__all__ = ["load_or_compute", "pairs", "saved_by_acceleration"]


def pairs() -> pd.DataFrame:
    """Return every published pair of an engine with and without a tier below, whose rates are known.

    Returns
    -------
    pandas.DataFrame
        pair, in words; gain, the tokens per second with the tier over those without; ratio_of_misses, the computed
        share of the prompt tokens without over that with it, where both are known; ttft_without and ttft_with, in
        seconds, of the same statistic in each row.
    """
    runs = evidence.load("agent_stores").frame
    runs = runs.assign(tokens=runs.answers_s.fillna(runs.prompts_s)).dropna(subset="tokens")
    with_ = runs[runs.arm == "host tier"].set_index("pair")
    without = runs[runs.arm == "no host tier"].set_index("pair").loc[with_.index]
    agents = pd.DataFrame(
        {
            "pair": without.model + ", " + without.gpu + ", " + without.users.astype(str) + " users",
            "gain": with_.tokens / without.tokens,
            "ratio_of_misses": (1 - without.found) / (1 - with_.found),
            "ttft_without": without.ttft_s,
            "ttft_with": with_.ttft_s,
        }
    )
    guides = evidence.load("tiered_cache").frame.groupby(["model", "prefix_tokens"], as_index=False)
    less, more = guides.first(), guides.last()
    prefixes = pd.DataFrame(
        {
            "pair": less.model + ", H100, prefixes of " + less.prefix_tokens.map("{:,}".format),
            "gain": more.tokens_per_s / less.tokens_per_s,
            "ttft_without": less.ttft_mean_s,
            "ttft_with": more.ttft_mean_s,
        }
    )
    return pd.concat([agents, prefixes], ignore_index=True)


def saved_by_acceleration(ax: Axes, trace: str, tiers: Mapping[str, float]) -> pd.DataFrame:
    """Draw the share of prefill time saved against e, all found tokens loaded or the best mix; a rule for each tier."""
    frame = evidence.load("traces_saving").frame.query("trace == @trace")
    limit = float(frame.saved_mixed.max())
    shown = frame[frame.e < 1000]
    for name, label, colour, dash in (
        ("saved_mixed", "load what pays", COLOURS[0], "-"),
        ("saved_load_all", "load all", COLOURS[1], "--"),
    ):
        ax.semilogx(shown.e, shown[name], dash, marker=".", color=colour, label=label)
    ax.axhline(limit, color="black", linewidth=0.9)
    for name, e in tiers.items():
        ax.axvline(e, color="black", linewidth=0.9, linestyle=":")
        ax.annotate(
            name, (e, 0.04), xycoords=("data", "axes fraction"), rotation=90, ha="right", va="bottom", fontsize=9
        )
    ax.set(xlabel="token acceleration e (no unit)", ylabel="share of prefill time saved", ylim=(-0.1, 1.15 * limit))
    ax.legend(loc="center right")
    return frame


def load_or_compute(ax: Axes) -> pd.DataFrame:
    """Draw vLLM's measured times to load and to compute a prompt's KV cache, and their ratio e as numbers."""
    frame = evidence.load("vllm_kv_offload").frame
    ax.plot(frame.prompt_tokens, frame.compute_ms, "o-", color=COLOURS[0], label="compute")
    ax.plot(frame.prompt_tokens, frame.load_ms, "s--", color=COLOURS[1], label="load from host memory")
    ax.set(xlabel="prompt (tokens)", ylabel="time (ms)", yscale="log")
    ax.legend()
    return frame.assign(e=frame.compute_ms / frame.load_ms)
