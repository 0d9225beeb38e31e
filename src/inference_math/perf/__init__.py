"""The arithmetic of steps, batches and plans in plain Python: numbers, lists, dicts, functions; no arrays, no checks.

The book prints these modules as JavaScript, and the formulas that they call from SymPy: the planner's page computes
what `planner.plan` computes, because it is the same code. Keep to what both languages have: `max` and `min` of two
numbers, sorting with a key, no default arguments, no truth of lists.
"""

from inference_math.perf.answers import (
    batch_curve,
    batch_limits,
    binding_limits,
    by_formula,
    gains,
    gpus_ranked,
    numbers_of,
    ratios,
    solve,
    spent_on,
    swings,
    under,
    undrafted,
    usd_per_million,
    whole_alone,
)
from inference_math.perf.asked import computed_tokens, max_kv_seqs, sent_bytes
from inference_math.perf.choice import decide, layouts_near, layouts_ranked, median_row, tokens_of
from inference_math.perf.draws import interval, median
from inference_math.perf.starts import plain_settings, settings

__all__ = [
    "batch_curve",
    "batch_limits",
    "binding_limits",
    "by_formula",
    "computed_tokens",
    "decide",
    "gains",
    "gpus_ranked",
    "interval",
    "layouts_near",
    "layouts_ranked",
    "max_kv_seqs",
    "median",
    "median_row",
    "numbers_of",
    "plain_settings",
    "ratios",
    "sent_bytes",
    "settings",
    "solve",
    "spent_on",
    "swings",
    "tokens_of",
    "under",
    "undrafted",
    "usd_per_million",
    "whole_alone",
]
