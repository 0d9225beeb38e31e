"""What somebody means who types a name, a model's or a GPU's; the planner's page runs this, too."""

from __future__ import annotations

__all__ = ["cards", "meant", "near", "plain_name"]

# What a repository's name has beside that of the model: who tuned it for what, when, and in which precision it is.
BESIDE = [
    "instruct", "chat", "it", "hf", "base", "thinking", "reasoning", "plus", "preview", "python", "deduped", "sft",
    "dpo", "meta", "nvidia", "bf16", "fp8", "nvfp4", "awq", "gptq", "int4", "static", "pertensor", "1124", "2407",
    "2411", "2507", "2512",
]  # fmt: skip
ALIKE = 0.4  # of the pairs of letters of two names: less is another name


def plain_name(said: str) -> str:
    """Return a name in small letters, without owner, tuning, date and precision.

    >>> plain_name(" meta-llama/Meta-Llama-3.1-8B-Instruct")
    'llama-3.1-8b'
    """
    words = said.strip().lower().replace("_", "-").replace(" ", "-").split("/")
    parts = words[len(words) - 1].split("-")
    kept = [part for part in parts if part not in BESIDE and part != ""]
    return "-".join(kept)


def meant(said: str, names: list[str]) -> str:
    """Return which of the names is meant, or "" if none is."""
    plain = plain_name(said)
    return plain if plain in names else ""


def cards(said: str, names: list[str]) -> list[str]:
    """Return the GPUs that are meant: the one of that name, or those of the chip that it names.

    >>> cards("NVIDIA H200", ["h200-sxm", "h20"])
    ['h200-sxm']
    """
    plain = plain_name(said)
    if plain in names:
        return [plain]
    return [name for name in names if name.startswith(plain + "-") and not plain.isalpha()]


def near(said: str, names: list[str], most: int) -> list[str]:
    """Return the names that are written most alike, the nearest first, at most so many.

    >>> near("lama-3.1-8b", ["qwen3-8b", "llama-3.1-8b"], 2)
    ['llama-3.1-8b']
    """
    plain = plain_name(said)
    similar = [name for name in names if likeness(plain, name) >= ALIKE]
    similar.sort(key=lambda name: -likeness(plain, name))
    return similar[:most]


def likeness(one: str, other: str) -> float:
    """Return the share of the pairs of neighbouring letters that two names have in common (Dice's coefficient)."""
    left, shared = pairs(other), 0
    total = len(pairs(one)) + len(left)
    for pair in pairs(one):
        if pair in left:
            shared += 1
            left.remove(pair)
    return 2 * shared / total if total > 0 else 0.0


def pairs(name: str) -> list[str]:
    """Return the pairs of neighbouring letters of a name."""
    return [name[i : i + 2] for i in range(len(name) - 1)]
