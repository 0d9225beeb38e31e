"""The commands, and what they take by the table of `answers.fields`; what their arguments are called in an error."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any, NoReturn

from inference_math import __version__
from inference_math.catalogue import PRECISIONS
from inference_math.catalogue.engines import engines
from inference_math.catalogue.tiers import tiers
from inference_math.unit.unit import ACCEPTED
from inference_math.workload import LENGTHS
from inference_math_planner.answers.fields import Option, fields
from inference_math_planner.fleets.benchmarks import MOST_PROMPTS
from inference_math_planner.fleets.mixes import MIXES
from inference_math_planner.fleets.traffic import SHARED

__all__ = ["BENCH", "GROUP", "MEANS", "SEARCHED", "flagged", "parser", "unknown"]

DESCRIPTION = "The mathematics of LLM serving: plan a deployment, foresee a benchmark, fit both to your engine or GPU."
# Each command: what it is for, and the sections of the table that it takes.
COMMANDS = {
    "plan": ("answers under an SLA", ("unit", "plan", "prefill", "sessions")),
    "benchmark": ("what vllm bench serve will show, its options named as there", ("unit", "benchmark", "prefill")),
    "store": ("how big a store for sessions, which tier, what it brings", ("unit", "sessions", "store")),
    "profile": ("fit coefficients to runs of your engine", ("unit", "profile")),
    "watch": ("hold a running engine's /metrics against the prediction, say what moved", ("unit", "watch")),
    "calibrate": ("fit coefficients to a measurement of your own GPU", ("calibrate",)),
}
# Arguments that no option has alone.
_PARTS = {"work.n_out": "--output", "prefill_units": "--pools (for prefill)", "decode_units": "--pools (for decode)"}
# Commands that another distribution brings, as entry points of this group: modules with `parser` and `run`.
GROUP = "inference_math.commands"
BENCH = {
    "measure": "measure the steps of a model on the GPU at hand (needs PyTorch)",
    "lab": "try the laws on vLLM, on this machine (needs vLLM)",
}
SEARCHED = 8  # GPUs of a unit among which layouts are tried, where nobody names one
MEANS = "means"


def flagged(message: str, command: str = "plan") -> str:
    """Return an error by the name of the option of a command that it is about."""
    name, _, rest = message.partition(" ")
    _, sections = COMMANDS.get(command, COMMANDS["plan"])
    rows = {key: row for section in sections for key, row in fields()[section].items()}
    options = _PARTS | {row.argument or key: _flags(key, row)[0] for key, row in rows.items() if row.option != ""}
    return f"{options[name]} {rest}" if name in options and rest.startswith("must") else message


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as those of bad values are."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, by the option's name, and where all are listed; exit with status 2."""
        match = re.fullmatch(r"argument (--\w[\w-]*)\S*: invalid (\w+) value: (.*)", message)
        if match:
            kind = "a number of seconds" if match[1] in ("--ttft", "--tpot") else _KINDS.get(match[2], "a number")
            message = f"{match[1]} must be {kind}, not {match[3]}"
        self.exit(2, f"error: {message} ({self.prog} --help lists what it takes)\n")


_KINDS = {"int": "a whole number", "_promise": "a share of the requests, for example 0.9, or means"}


def unknown(word: str, command: str, known: Sequence[str]) -> str:
    """Return what is wrong with a word that is no option of a command, and which one is like it."""
    near = get_close_matches(word.partition("=")[0], known, n=1)
    hint = f"; did you mean {near[0]}?" if near else f": inference-math {command} --help lists them"
    return f"{word} is no option of {command}{hint}"


def _promise(value: str) -> float | str:
    """Return what limits hold for: a share, or means."""
    return value if value == MEANS else float(value)


def _flags(name: str, row: Option) -> list[str]:
    """Return an option's names on the command line."""
    return [f"--{name.replace('_', '-')}"] if row.option is None else row.option.split()


_TYPES: Mapping[str, Callable[[str], object]] = {"int": int, "float": float, "promise": _promise}
_ACTIONS = {"flag": "store_true", "off": "store_false", "toggle": argparse.BooleanOptionalAction}


def _add(to: argparse._ActionsContainer, name: str, row: Option, command: str, words: Mapping[str, object]) -> None:
    """Add an option, or what stands without one, as its row of the table says."""
    more: dict[str, Any] = {"help": row.help.format_map(words)}
    if row.kind in _ACTIONS:
        more["action"] = _ACTIONS[row.kind]
    else:
        default = row.default.format_map(words) if isinstance(row.default, str) else row.default
        given = {"type": _TYPES.get(row.kind), "default": default, "nargs": row.nargs, "metavar": row.metavar}
        more |= {key: value for key, value in given.items() if value is not None}
    if row.option == "":
        to.add_argument(name, **more)
        return
    required = command in row.required if isinstance(row.required, tuple) else row.required
    to.add_argument(*_flags(name, row), dest=name, required=required, **more)


def parser(asked: str, runs: Mapping[str, Callable[[argparse.Namespace], int]]) -> argparse.ArgumentParser:
    """Return the parser of all commands, with what runs each; of those of the bench only the one that is asked for."""
    top = _Parser(
        prog="inference-math",
        description=DESCRIPTION,
        epilog="exit status: 0; 1 where nothing meets the limits; 2 for bad input; 130 after Ctrl-C; 141 where the "
        "reader has enough",
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = top.add_subparsers(required=True, metavar="command")
    words: dict[str, object] = {
        "precisions": ", ".join(PRECISIONS), "engines": ", ".join(engines()), "tiers": ", ".join(tiers()),
        "lengths": " or ".join(LENGTHS), "mixes": ", ".join(MIXES), "shared": f"{SHARED:g}",
        "accepted": f"{ACCEPTED:g}", "searched": SEARCHED, "most_prompts": MOST_PROMPTS,
    }  # fmt: skip
    for name, (summary, sections) in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        for section in sections:
            to: argparse._ActionsContainer = command
            if section == "sessions":
                to = command.add_argument_group(
                    section, "of which the stored share follows" if name == "plan" else None
                )
            for key, row in fields()[section].items():
                _add(to, key, row, name, words)
        command.set_defaults(run=runs[name])
    for name, summary in BENCH.items():
        if name != asked:  # what it imports takes longer than a plan
            commands.add_parser(name, help=summary)
            continue
        room = entry_points(group=GROUP, name=name)[name].load()
        commands.add_parser(name, parents=[room.parser()], add_help=False, help=summary).set_defaults(run=room.run)
    for command in commands.choices.values():
        command.set_defaults(takes=tuple(re.findall(r"--[a-z][\w-]*", command.format_usage())))
    return top
