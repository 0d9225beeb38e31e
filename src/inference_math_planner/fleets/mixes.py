"""Recorded traffic by name: requests whose lengths stand for those of a trace."""

from __future__ import annotations

from inference_math.evidence import load
from inference_math.evidence.checks import as_one_of
from inference_math.workload.requests import Trace

__all__ = ["MIXES", "mix"]

MIXES = {
    "azure-code": "code, recorded by Azure",
    "azure-conversation": "chat, recorded by Azure",
    "mooncake-conversation": "long conversations, recorded by Mooncake",
    "mooncake-synthetic": "long documents and short ones, composed by Mooncake",
}
"""What the mixes are, by name."""


def mix(name: str, alpha: float = 0.0) -> Trace:
    """Return a mix of `MIXES` as a trace of lengths, without arrivals; of each prompt the share `alpha` is stored.

    Each of its rows stands for as many recorded requests: those of a sixteenth of the prompts, and of these of a
    sixteenth of the answers. So it has the trace's means and nearly its scatter, but not its longest request.

    Raises
    ------
    ValueError
        For an unknown name, or an `alpha` outside [0, 1].

    Examples
    --------
    >>> from inference_math.workload import Workload
    >>> chat = Workload.from_trace(mix("azure-conversation"))
    >>> f"{chat.n_in:.0f} in, {chat.n_out:.0f} out"
    '1155 in, 211 out'
    """
    frame = load("traces_mixes").frame
    rows = frame[frame["trace"] == as_one_of("name", name, MIXES)]
    return Trace(rows["n_in"].to_numpy(), rows["n_out"].to_numpy(), alpha=alpha)
