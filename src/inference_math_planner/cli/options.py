"""What the commands take, and what their arguments are called in an error."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import NoReturn

from inference_math import __version__
from inference_math.catalogue import PRECISIONS
from inference_math.catalogue.engines import engines
from inference_math.catalogue.tiers import tiers
from inference_math.unit.unit import ACCEPTED
from inference_math.workload import LENGTHS
from inference_math_planner.fleets.benchmarks import MOST_PROMPTS
from inference_math_planner.fleets.mixes import MIXES
from inference_math_planner.fleets.traffic import SHARED

__all__ = ["BENCH", "GROUP", "MEANS", "SEARCHED", "flagged", "parser", "unknown"]

DESCRIPTION = "The mathematics of LLM serving: plan a deployment, foresee a benchmark, fit both to your engine or GPU."
# What arguments are called on the command line.
_ALIKE = (
    "alpha ttft tpot quantile units price tp ep dp pp weights kv memory engine model gpu drafts accepted link sessions "
    "seed front burstiness users turns first message answer shared think lifetime cv seconds tier"
)
OPTIONS = {name: f"--{name}" for name in _ALIKE.split()} | {
    "n_in": "--prompt",
    "n_out": "--output",
    "work.n_out": "--output",
    "traffic": "--rate",
    "prompts": "--num-prompts",
    "concurrency": "--max-concurrency",
    "rate": "--request-rate",
    "range_ratio": "--random-range-ratio",
    "budget": "--max-num-batched-tokens",
    "seqs": "--max-num-seqs",
    "expert_imbalance": "--expert-imbalance",
    "async_scheduling": "--async-scheduling",
    "prefill_units": "--pools (for prefill)",
    "decode_units": "--pools (for decode)",
    "pools": "--pools",
}
_BENCHED = {"n_in": "--random-input-len", "n_out": "--random-output-len"}  # what `benchmark` calls them
# Commands that another distribution brings, as entry points of this group: modules with `parser` and `run`.
GROUP = "inference_math.commands"
BENCH = {
    "measure": "measure the steps of a model on the GPU at hand (needs PyTorch)",
    "lab": "try the laws on vLLM, on this machine (needs vLLM)",
}
SEARCHED = 8  # GPUs of a unit among which layouts are tried, where nobody names one
MEANS = "means"


def flagged(message: str, command: str = "") -> str:
    """Return an error by the name of the option of a command that it is about."""
    name, _, rest = message.partition(" ")
    options = OPTIONS | (_BENCHED if command == "benchmark" else {})
    return f"{options[name]} {rest}" if name in options and rest.startswith("must") else message


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as those of bad values are."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, by the option's name, and where all are listed; exit with status 2."""
        found = re.fullmatch(r"argument (--\w[\w-]*)\S*: invalid (\w+) value: (.*)", message)
        if found:
            kind = "a number of seconds" if found[1] in ("--ttft", "--tpot") else _KINDS.get(found[2], "a number")
            message = f"{found[1]} must be {kind}, not {found[3]}"
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


def _add_sessions(command: argparse.ArgumentParser, *, required: bool) -> None:
    """Add what sessions are, and what tiers lie below HBM."""
    asked = command.add_argument_group("sessions", None if required else "of which the stored share follows")
    asked.add_argument("--users", type=float, required=required, help="who have a session under way")
    asked.add_argument("--turns", type=int, required=required, help="of a session")
    asked.add_argument("--first", type=int, required=required, help="tokens of its first prompt")
    asked.add_argument("--message", type=int, required=required, help="tokens that each further prompt brings")
    asked.add_argument("--answer", type=int, required=required, help="tokens of an answer")
    asked.add_argument("--shared", type=int, default=0, help="tokens with which all prompts begin (default 0)")
    asked.add_argument(
        "--think", type=float, default=20.0, help="mean seconds from an answer to the next turn (default 20)"
    )
    asked.add_argument("--cv", type=float, default=1.0, help="of these times: 0 equal, 1 exponential (default)")
    asked.add_argument(
        "--tiers", nargs="*", default=[], metavar="NAME=GB", help="below HBM, fastest first, e.g. dram=2000"
    )
    asked.add_argument("--lifetime", type=float, help="seconds after which what nobody used is dropped (default never)")
    asked.add_argument(
        "--async-loads",
        dest="blocking",
        action="store_false",
        help="steps go on while a tier loads (default: the engine waits, layer by layer)",
    )


def _add_prefill(parser: argparse.ArgumentParser) -> None:
    """Add the layout of a prefill unit, where it is its own."""
    words = {"tp": "GPUs that share each matrix", "dp": "groups of attention", "ep": "groups with whole experts"}
    for size, what in words.items():
        parser.add_argument(f"--prefill-{size}", type=int, help=f"{what} of a prefill unit (default: as all units)")


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
    unit = _Parser(add_help=False)
    unit.add_argument(
        "--model",
        required=True,
        help="a model's name or repository, for example llama-3-70b, or a config.json of Hugging Face",
    )
    unit.add_argument(
        "--gpu", required=True, help="name in the catalogue, for example h100-sxm, or a TOML file of its rates"
    )
    unit.add_argument("--tp", type=int, help="GPUs that share each matrix (default 1; plan: the best layout)")
    unit.add_argument("--ep", type=int, help="groups of GPUs with whole experts (default 1: parts of each)")
    unit.add_argument("--dp", type=int, help="groups of GPUs that share the attention (default 1)")
    unit.add_argument("--pp", type=int, help="pipeline stages (default 1)")
    unit.add_argument("--weights", help=f"one of {', '.join(PRECISIONS)} (default: as the checkpoint has them)")
    unit.add_argument("--memory", type=float, help="share of GPU memory to use (default: as the engine takes)")
    unit.add_argument(
        "--kv",
        help="precision of the KV cache, bf16 or fp8 (default: as the checkpoint says, or the engine has it untold)",
    )
    unit.add_argument("--engine", default="vllm", help=f"one of {', '.join(engines())} (default vllm)")
    unit.add_argument(
        "--async-scheduling",
        dest="async_scheduling",
        action=argparse.BooleanOptionalAction,
        help="whether vllm plans a step while another runs (default: as it does)",
    )
    unit.add_argument(
        "--expert-imbalance",
        dest="imbalance",
        type=float,
        metavar="CV",
        help="of how often experts are chosen, if you counted (default: as fitted)",
    )
    unit.add_argument("--calibration", metavar="FILE", help="of your GPU or engine (default: the nearest)")

    planner = commands.add_parser("plan", parents=[unit], help="answers under an SLA")
    planner.add_argument("--prompt", type=float, help="prompt tokens")
    planner.add_argument("--output", type=float, help="output tokens")
    planner.add_argument("--alpha", type=float, help="share of the prompt that is stored (default 0)")
    planner.add_argument(
        "--tier",
        metavar="NAME[=GB]",
        help=f"where it is stored: {', '.join(tiers())} (default hbm); with a unit's GB no more is found than they "
        "hold of --sessions",
    )
    planner.add_argument(
        "--store",
        type=float,
        metavar="GB/S",
        help="or in a store that moves so much for each GPU, read and written together",
    )
    planner.add_argument(
        "--lengths",
        default="fixed",
        metavar="KIND",
        help=f"output lengths: {' or '.join(LENGTHS)} (default fixed); or for prompts and outputs recorded ones: "
        f"{', '.join(MIXES)}, or a file with the columns n_in and n_out, a trace of Azure's, of Mooncake's",
    )
    planner.add_argument("--ttft", type=float, required=True, help="limit in seconds")
    planner.add_argument("--tpot", type=float, required=True, help="limit in seconds")
    planner.add_argument(
        "--front",
        type=float,
        metavar="SECONDS",
        help="of each TTFT that no step takes, measured with one short request (default: as fitted to served points)",
    )
    planner.add_argument(
        "--quantile",
        "--promise",
        type=_promise,
        metavar="SHARE",
        help="share of the requests that must meet both limits, e.g. 0.9, or means (default: with --rate or --have "
        f"{SHARED:g}; of one unit at full load means)",
    )
    planner.add_argument(
        "--link",
        help="from the prefill to the decode pool: nvlink, rdma, pcie, tcp, or GB/s of each GPU (default rdma)",
    )
    _add_prefill(planner)
    planner.add_argument("--sessions", type=int, help="whose stored part one unit keeps (default: not known)")
    _add_sessions(planner, required=False)
    planner.add_argument("--seed", type=int, default=0, help="of simulated arrivals (default 0)")
    planner.add_argument(
        "--units",
        type=int,
        help="units of a replica, at most: both pools, or behind one router (default 8, and no more than --have has)",
    )
    planner.add_argument("--drafts", type=int, default=0, help="tokens drafted in each step (MTP, EAGLE; default 0)")
    planner.add_argument(
        "--accepted",
        type=float,
        default=ACCEPTED,
        help=f"chance that a draft is accepted whose predecessors were (default {ACCEPTED:g})",
    )
    planner.add_argument("--price", type=float, help="US dollars for a GPU and hour")
    planner.add_argument(
        "--gpus",
        nargs="*",
        metavar="GPU[=USD]",
        help="compare with these at full load, with their price an hour if you like (default: all of the catalogue)",
    )
    planner.add_argument("--rate", type=float, help="requests per second to serve: how many GPUs?")
    planner.add_argument("--have", type=int, metavar="GPUS", help="or the GPUs that there are: how many requests?")
    planner.add_argument(
        "--bursts", type=float, default=1.0, metavar="CV", help="CV of times between arrivals (default 1, at random)"
    )
    planner.add_argument(
        "--search",
        type=int,
        metavar="GPUS",
        help=f"units of how many GPUs to try layouts on (default {SEARCHED}, where no layout is given)",
    )
    planner.add_argument("--full", action="store_true", help="print all numbers and tables")
    planner.add_argument("--json", action="store_true", help="print all as JSON (its schema: planner.schema())")
    planner.add_argument("--commands", metavar="FILE", help="write the commands that start the answer")
    planner.add_argument("--report", metavar="FILE", help="also write the plan as Markdown")
    planner.set_defaults(run=runs["plan"])

    bench = commands.add_parser(
        "benchmark", parents=[unit], help="what vllm bench serve will show, its options named as there"
    )
    bench.add_argument("--random-input-len", dest="input", type=float, help="prompt tokens (default 1024)")
    bench.add_argument("--random-output-len", dest="output", type=float, help="output tokens (default 128)")
    bench.add_argument(
        "--random-range-ratio",
        dest="ratio",
        type=float,
        default=0.0,
        metavar="R",
        help="lengths are uniform from 1 - R to 1 + R of these (default 0: all equal)",
    )
    bench.add_argument(
        "--lengths", metavar="KIND", help=f"or recorded lengths: {', '.join(MIXES)}, or a file, as for plan"
    )
    bench.add_argument("--alpha", type=float, help="share of each prompt that is in the prefix cache (default 0)")
    bench.add_argument(
        "--num-prompts",
        dest="prompts",
        type=int,
        default=1000,
        help=f"requests in all, up to {MOST_PROMPTS} (default 1000)",
    )
    bench.add_argument(
        "--max-concurrency",
        dest="concurrency",
        type=int,
        metavar="USERS",
        help="users who send again when answered, all together at first, or with a rate at most so many at once "
        "(default: as many as prompts)",
    )
    bench.add_argument(
        "--request-rate", dest="rate", type=float, default=float("inf"), help="requests per second (default inf)"
    )
    bench.add_argument("--burstiness", type=float, default=1.0, help="1 at random, less in bursts (default 1)")
    usual = "of each group of attention (default: what the engine takes on the GPU)"
    bench.add_argument("--max-num-batched-tokens", dest="budget", type=int, help=f"of a step {usual}")
    bench.add_argument("--max-num-seqs", dest="seqs", type=int, metavar="SEQS", help=f"requests at once {usual}")
    bench.add_argument(
        "--enable-chunked-prefill",
        dest="chunked",
        action=argparse.BooleanOptionalAction,
        help="whether prompts are cut (default: as the engine does)",
    )
    bench.add_argument(
        "--pools",
        type=int,
        nargs=2,
        metavar=("PREFILL", "DECODE"),
        help="units for prefill and for decode, each of --tp x --dp x --pp GPUs (default: one unit does both)",
    )
    bench.add_argument("--link", help="from the prefill to the decode pool, as for plan")
    _add_prefill(bench)
    bench.add_argument("--enforce-eager", action="store_true", help="refused: it says what to do instead")
    bench.add_argument("--front", type=float, metavar="SECONDS", help="as for plan")
    bench.add_argument("--seed", type=int, default=0, help="of lengths and arrivals (default 0)")
    bench.add_argument(
        "--cadences", action="store_true", help="compare prompts at every step with prompts at every N-th step alone"
    )
    bench.add_argument("--full", action="store_true", help="print the table and all notes, too")
    bench.add_argument("--json", action="store_true", help="print all as JSON")
    bench.set_defaults(run=runs["benchmark"])

    store = commands.add_parser(
        "store", parents=[unit], help="how big a store for sessions, which tier, what it brings"
    )
    _add_sessions(store, required=True)
    store.add_argument("--units", type=int, default=1, help="that serve them and share the store (default 1)")
    store.add_argument("--ttft", type=float, help="limit on its mean in seconds, to count the users that keep it")
    store.add_argument("--tpot", type=float, help="limit on its mean in seconds, with --ttft")
    store.add_argument("--full", action="store_true", help="print the table and all notes, too")
    store.add_argument("--json", action="store_true", help="print all as JSON")
    store.set_defaults(run=runs["store"])

    profile = commands.add_parser("profile", parents=[unit], help="fit coefficients to runs of your engine")
    profile.add_argument(
        "runs",
        nargs="+",
        help="result files: vllm bench serve or sweep, sglang.bench_serving, GuideLLM, AIPerf, genai-perf, CSV",
    )
    profile.add_argument("--anchor", action="store_true", help="also move predictions by the runs of one user")
    profile.add_argument("--out", required=True, metavar="FILE", help="TOML file to write")
    profile.set_defaults(run=runs["profile"])

    watch = commands.add_parser(
        "watch", parents=[unit], help="hold a running engine's /metrics against the prediction, say what moved"
    )
    watch.add_argument("page", help="what curl saved of /metrics of vLLM or SGLang")
    watch.add_argument("--since", metavar="PAGE", help="an earlier page of the same engine (default: since its start)")
    watch.add_argument("--seconds", type=float, help="between the two, for an engine that counts no steps (SGLang)")
    watch.add_argument("--prompt", type=float, help="mean prompt tokens that were planned with")
    watch.add_argument("--output", type=float, help="mean output tokens that were planned with")
    watch.add_argument("--alpha", type=float, help="share of the prompts that was planned to be cached")
    watch.add_argument("--budget", type=int, help="tokens of a step that were planned with (max-num-batched-tokens)")
    watch.add_argument("--drafts", type=int, default=0, help="tokens drafted in each step (MTP, EAGLE; default 0)")
    watch.add_argument(
        "--accepted", type=float, help="chance that was planned with that a draft is accepted whose predecessors were"
    )
    watch.add_argument("--ttft", type=float, help="limit in seconds, to count who keeps it")
    watch.add_argument("--tpot", type=float, help="limit in seconds, to count who keeps it in the mean")
    watch.add_argument("--out", metavar="FILE", help="TOML file for the calibration as it moved, if it did")
    watch.add_argument("--json", action="store_true", help="print all as JSON")
    watch.set_defaults(run=runs["watch"])

    measured = commands.add_parser("calibrate", help="fit coefficients to a measurement of your own GPU")
    measured.add_argument("table", help="CSV file that inference-math measure wrote")
    measured.add_argument("--gpu", help="as above, where the measurement's GPU is not in the catalogue")
    measured.add_argument("--out", required=True, metavar="FILE", help="TOML file to write")
    measured.set_defaults(run=runs["calibrate"])

    for name, summary in BENCH.items():
        if name != asked:  # what it imports takes longer than a plan
            commands.add_parser(name, help=summary)
            continue
        room = entry_points(group=GROUP, name=name)[name].load()
        commands.add_parser(name, parents=[room.parser()], add_help=False, help=summary).set_defaults(run=room.run)
    for command in commands.choices.values():
        command.set_defaults(takes=tuple(re.findall(r"--[a-z][\w-]*", command.format_usage())))
    return top
