"""The commands: each asks the package one question, and prints the answer."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import entry_points
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from tqdm import tqdm

from inference_math import catalogue
from inference_math.catalogue import Gpu, Model
from inference_math.catalogue.files import writable, write
from inference_math.catalogue.links import Link, joined, link
from inference_math.catalogue.tiers import Tier, as_tier, tiers
from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, Interval, as_number, as_one_of, as_whole
from inference_math.evidence.numerals import digits
from inference_math.evidence.sentences import render
from inference_math.unit import Unit
from inference_math.unit.coefficients import COEFFICIENTS, Calibration
from inference_math.unit.deployed import units_within
from inference_math.unit.scope import too_long
from inference_math.unit.steps import kv_sent
from inference_math.unit.types import Message
from inference_math.unit.unit import ACCEPTED, TOO_SMALL, UnfitError
from inference_math.workload import LENGTHS, SLA, Trace, Workload
from inference_math_planner import (
    Benchmark,
    Case,
    NoFleetError,
    Plan,
    Record,
    Sized,
    across,
    as_record,
    cadences,
    capacity,
    fleet,
    foresee,
    search,
    size,
)
from inference_math_planner.answers import text
from inference_math_planner.answers.deployment import planned
from inference_math_planner.cli import brief, ways
from inference_math_planner.cli.options import BENCH, GROUP, MEANS, SEARCHED, flagged, parser, unknown
from inference_math_planner.fleets import traces
from inference_math_planner.fleets.gpus import first_said
from inference_math_planner.fleets.layouts import groups, meets
from inference_math_planner.fleets.mixes import MIXES, mix
from inference_math_planner.fleets.traffic import RATES, SHARED, Arrivals

if TYPE_CHECKING:
    from inference_math_planner import Foreseen, Ladder

__all__ = ["main"]

# Options of `plan` that change nothing where none of some others is given, and what they are then.
_IDLE: dict[tuple[str, ...], dict[str, object]] = {
    ("turns",): {
        "users": None, "first": None, "message": None, "answer": None, "shared": 0, "think": 20.0, "cv": 1.0,
        "tiers": [], "lifetime": None, "blocking": True,
    },
    ("rate", "have"): {"bursts": 1.0, "seed": 0},
    ("drafts",): {"accepted": ACCEPTED},
}  # fmt: skip
_MENDED = (TOO_SMALL, "unfit.precision")  # errors of units that other set-ups mend
_PLACES = ("page", "runs", "table")  # files that are named without an option
_WRITTEN = ("report", "commands", "out")  # options that name a file to write
_GB_PER_S = Interval(1e-3, 1e6)  # that a GPU moves
_MESSAGE = 2000  # characters of an error: whatever is longer repeats the input
_LINES = 5  # of a trace that are named where they are left out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status; see `inference_math_planner.cli.main`."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the program runs
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal in ASCII gets \xb1 for ±, not an error
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given and given[0] in BENCH and not entry_points(group=GROUP, name=given[0]):
        needed = "inference-math-bench, in a checkout: pip install ./src/inference_math_bench"
        print(f"error: {given[0]} needs {needed}", file=sys.stderr)
        return 2
    options, strange = parser(given[0] if given else "", RUNS).parse_known_args(given)
    options.noted = []
    try:
        if strange:
            raise ValueError(unknown(strange[0], given[0], options.takes))
        if given[0] in RUNS:
            _look_where_to_write(options)
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read, head perhaps, has enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # what a shell says of a program that SIGPIPE ended
    except (ValueError, TypeError, OSError, ImportError) as error:
        message = _of_a_file(error, options) if isinstance(error, OSError) else flagged(str(error), given[0])
        print(f"error: {_short(message)}", file=sys.stderr)
        return 2
    return status


def _look_where_to_write(options: argparse.Namespace) -> None:
    """Refuse, before anything is computed, where nothing can be written, and a file that is read.

    A measurement cannot be had again.
    """
    outs = {name: str(value) for name in _WRITTEN if (value := getattr(options, name, None)) is not None}
    inputs = [one for name, value in vars(options).items() if name not in outs for one in _texts(value)]
    inputs += [str(Path(table).with_suffix(".json")) for table in _texts(getattr(options, "table", None))]
    for name, out in outs.items():
        try:
            writable(out)
        except ValueError as error:
            raise ValueError(f"--{name} {error}") from None
        if any(os.path.exists(one) and os.path.exists(out) and os.path.samefile(one, out) for one in inputs):
            raise ValueError(f"--{name} must not be a file that is read: {out}")


def _texts(value: object) -> list[str]:
    """Return the texts of an option: none, one, or those of a list."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _of_a_file(error: OSError, options: argparse.Namespace) -> str:
    """Return an error of the system by the option that names its file; what is written first goes beside it."""
    at = Path(str(error.filename))
    for name, value in vars(options).items():
        for one in _texts(value):
            own = Path(one)
            beside = name in _WRITTEN and at.name.startswith(f".{own.name}.")
            if at in (own, own.resolve()) or beside:
                return f"{one if name in _PLACES else f'--{name} {one}'}: {error.strerror or error}"
    return str(error)


def _short(message: str) -> str:
    half = _MESSAGE // 2
    return message if len(message) <= _MESSAGE else f"{message[:half]} … {message[-half:]}"


def _plan(options: argparse.Namespace) -> int:
    if options.rate is not None and options.have is not None:
        raise ValueError("--have must be left out where --rate asks how many GPUs it takes")
    if options.rate is not None:
        as_number("--rate", options.rate, RATES)
    if options.have is not None:
        as_whole("--have", options.have, 1, 1_000_000)
    as_number("--bursts", options.bursts, Interval(0, 10))
    if options.search is not None:
        as_whole("--search", options.search, 1, 512)
    _refuse_idle(options)
    long = [name for name, most in ways.LONGEST_LIMITS.items() if getattr(options, name) > most]
    if len(long) == len(ways.LONGEST_LIMITS):
        said = f"--ttft {options.ttft:g} and --tpot {options.tpot:g} look like milliseconds"
        meant = f"--ttft {options.ttft / 1000:g} --tpot {options.tpot / 1000:g}"
        raise ValueError(f"limits must be in seconds: {said}, which are {meant}")
    if options.turns is not None:
        _put_sessions(options)
    _hold_what_fits(options)
    work, mixed = _work(options)
    try:
        sized = _sized_by(options, work, mixed)
    except _NoRoomError as none:
        advice = _ways(options, work, mixed, none.weights, none.fixes) if none.weights else []
        raise ValueError("; ".join([str(none), *advice])) from None
    planned, tried, many = sized.plan, sized.tried, sized.fleet
    for name in long:
        _note(options, f"limits are in seconds; --{name} {getattr(options, name):g} s is long")
    others = None if options.gpus is None else _others(options.gpus, planned)
    full = options.full or options.report is not None
    asked: dict[str, Any] = {"short": sized.short, "warnings": options.noted, "runner_up": full}
    asked["ways"] = None if planned.feasible else _ways(options, work, mixed, planned.case.unit.weights)
    record = as_record(planned, many, tried, others, stores=full or options.json, **asked)
    if options.report is not None:
        write(options.report, text.as_markdown(record))
    if options.commands is not None and record.feasible:
        write(options.commands, text.as_script(record))
    print(record.as_json() if options.json else "\n".join(_lines(record, others, options.full)))
    return 0 if record.feasible else 1


def _note(options: argparse.Namespace, said: str) -> None:
    """Say something beside the answer, and keep it for its JSON."""
    options.noted.append(said)
    print(f"note: {said}", file=sys.stderr)


def _refuse_idle(options: argparse.Namespace) -> None:
    """Refuse options that would change nothing."""
    if options.turns is not None and options.sessions is not None:
        raise ValueError("--sessions must be left out: it follows from --users and --turns")
    given = {name for names in _IDLE for name in names if getattr(options, name) is not None}
    given -= set() if options.drafts else {"drafts"}  # which is 0 where none are named
    for needed, usual in _IDLE.items():
        if given & set(needed):
            continue
        for name, value in usual.items():
            if getattr(options, name) != value:
                option = {"blocking": "async-loads"}.get(name, name)
                raise ValueError(f"--{option} must be left out: it changes nothing without --{' or --'.join(needed)}")
    sizes = [f"--{name}" for name in ("tp", "ep", "dp", "pp") if getattr(options, name) is not None]
    if options.search is not None and sizes:
        raise ValueError(f"--search must be left out where {sizes[0]} names a layout: it tries all")


def _lines(record: Record, others: pd.DataFrame | None, full: bool) -> Iterator[str]:
    """Yield the short answer, how other GPUs compare where that was asked, and if it shall be full, everything."""
    yield text.as_short(record)
    if others is not None:
        yield "\nThe same on other GPUs, at full load:"
        yield from (*text.lines_of(text.gpus_table(record)), first_said(others))
    if full and record.layouts:
        yield from ("\nLayouts at full load:", *text.lines_of(text.layouts_table(record)))
    if full:
        yield f"\n{text.as_text(record, card=False)}"


def _others(named: Sequence[str], planned: Plan) -> pd.DataFrame:
    """Return what other GPUs do, named as GPU or GPU=USD."""
    asked = [(_gpu(name), sign, price) for name, sign, price in (one.partition("=") for one in named)]
    try:
        prices = {gpu.name: as_number("--gpus", float(price), ANY_POSITIVE) for gpu, sign, price in asked if sign}
    except ValueError:
        raise ValueError(f"--gpus must be names, or GPU=USD, for example b200=5, not {' '.join(named)!r:.80}") from None
    return across(planned, [gpu for gpu, _, _ in asked] or None, prices)


def _put_sessions(options: argparse.Namespace) -> None:
    """Put what sessions come to in the place of lengths, of the stored share and of its tier."""
    given = [name for name in ("prompt", "output", "alpha", "tier", "store") if getattr(options, name) is not None]
    if given:
        raise ValueError(f"--{given[0]} must be left out: it follows from sessions")
    if options.users is None:
        raise ValueError("--users must be given with --turns")
    unit, _ = _laid_out(options)
    units = _units(options, unit)
    ladder = _sessions(options, unit, units)
    options.prompt, options.output, options.alpha = ladder.prompt, options.answer, ladder.tiers["together"].iloc[-1]
    if (tier := brief.tier_of(ladder)) is not None:
        options.tier = tier
        options.sessions = ceil(options.users / units)
    who = f"{digits(options.users)} users of {units} units of {unit.gpus} GPUs"
    said = f"{who} find {options.alpha:.0%} of their prompts of {digits(ladder.prompt)} tokens"
    where = f", most of that in {options.tier or 'HBM'}" if options.alpha else ""
    _note(options, f"{said}{where} (inference-math store)")


def _hold_what_fits(options: argparse.Namespace) -> None:
    """Put in the place of the stored share what a store finds whose size was named: `--tier NAME=GB` of a unit.

    Of sessions that come back in any order as much is found as fits of what they take.
    """
    if options.tier is None or "=" not in options.tier:
        return
    options.tier, size = _in_gb("--tier", options.tier)
    if options.tier == "hbm":
        raise ValueError("--tier hbm must have no size: --memory says how much there is")
    if not options.sessions or not options.alpha or options.prompt is None:
        raise ValueError("--sessions must be given with a size of --tier, and --alpha, --prompt: what a unit keeps")
    unit, _ = _laid_out(options)
    needs = options.sessions * kv_sent(unit.numbers, options.prompt + (options.output or 0))
    held = min(size / needs, 1.0)
    if held < 1:
        share = held * options.alpha
        said = f"{size / 1e9:g} GB hold {held:.0%} of what {options.sessions} sessions of a unit take"
        _note(options, f"{said}: {share:.0%} of each prompt is found there, not {options.alpha:.0%}")
        options.alpha = share


def _sessions(options: argparse.Namespace, unit: Unit, units: int, sla: SLA | None = None) -> Ladder:
    """Return what tiers find for the sessions of the options."""
    # SciPy's optimiser takes longer to load than most plans do without it.
    from inference_math_planner.fleets.loops import Habit
    from inference_math_planner.fleets.stores import size_store
    from inference_math_planner.fleets.turns import Turns

    names = ("turns", "first", "message", "answer", "think", "cv", "shared")
    missing = [name for name in names if getattr(options, name) is None]
    if missing:
        raise ValueError(f"--{missing[0]} must be given with --turns")
    if not (options.blocking or options.tiers):
        raise ValueError("--async-loads must be left out: it changes nothing without --tiers")
    turns = Turns(**{name: getattr(options, name) for name in names})
    sizes = dict(_in_gb("--tiers", named) for named in options.tiers)
    habit = Habit(blocking=options.blocking, lifetime=options.lifetime)
    return size_store(unit, turns, options.users, sizes, units, sla=sla, habit=habit)


class _NoRoomError(ValueError):
    """Weights do not fit a unit, or are not to be had on its GPU: changes of options (`fixes`) that may mend it."""

    def __init__(self, why: str, weights: str, fixes: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(why)
        self.weights, self.fixes = weights, list(fixes)


def _ways(
    options: argparse.Namespace, work: Workload, mixed: Trace | None, weights: str, fixes: list[Any] | None = None
) -> list[str]:
    """Return in a sentence which options added to the command would do; `fixes` are first where weights do not fit."""
    fleets = options.rate is not None or options.have is not None

    def works(one: argparse.Namespace) -> bool:
        with suppress(ValueError):
            case, most = _case(one, work, mixed)
            return meets(case, most)
        return False

    def answers(one: argparse.Namespace) -> bool:
        return not fleets or _sized_by(one, work, mixed).fleet is not None

    return [render(ways.would(options, ways.Tries(works, answers), weights, fixes))]


def _case(options: argparse.Namespace, work: Workload, mixed: Trace | None) -> tuple[Case, int]:
    """Return what is asked of one unit, and on up to how many GPUs layouts are tried; 0 where one is named."""
    if options.tier is not None and options.store is not None:
        raise ValueError("--store must be left out where --tier names one")
    if (options.tier is not None or options.store is not None) and not work.alpha:
        raise ValueError("--tier and --store need --alpha above 0: without it, nothing is stored there")
    if options.sessions is not None and not work.alpha:  # of the options, or of a file
        raise ValueError("--sessions must be left out: it changes nothing without --alpha")
    own = None if options.store is None else Tier.of_bandwidth(1e9 * as_number("--store", options.store, _GB_PER_S))
    place = own if options.tier is None else as_tier("tier", options.tier)
    try:
        unit, named = _laid_out(options)
    except UnfitError as error:
        if error.key not in _MENDED:
            raise
        raise _NoRoomError(flagged(str(error), "plan"), options.weights or _model(options.model).stored) from None
    if options.drafts or options.accepted != ACCEPTED:
        unit = unit.resized(drafts=options.drafts, accepted=options.accepted)
    if mixed is None and options.turns is None:
        long = too_long(unit.model.name, unit.model.context, work.n_in + work.n_out)
        if long:
            raise ValueError(f"--prompt must be smaller: {render(long)}")
    # With queues a promise is of the requests that are played; settings and layouts are chosen by means.
    alone = options.rate is None and options.have is None
    share = options.quantile if alone and isinstance(options.quantile, float) else None
    sla = SLA(options.ttft, options.tpot, share)
    asked: dict[str, Any] = {
        "units": _units(options, unit),
        "tier": place,
        "price": options.price,
        "link": _link(options.link),
    }
    asked["sessions"] = 0 if options.sessions is None else as_whole("--sessions", options.sessions)
    asked["front"] = None if options.front is None else as_number("--front", options.front, AT_LEAST_ZERO)
    first = _prefill(options, unit)
    if named and options.search is None:
        return Case(unit, work, sla, prefill=first, **asked), 0
    if first is not None:
        raise ValueError("--tp must be given with --prefill-tp, --prefill-dp or --prefill-ep")
    have = options.have or inf
    most = options.search or int(min(have, max(SEARCHED, unit.gpus)))  # whole nodes, where no one holds the model
    if unit.gpus > most:
        _refuse_few(unit, most, "search" if options.search else "have")
    asked["units"] = options.units or asked["units"]
    return Case(unit, work, sla, **asked), most


def _sized_by(options: argparse.Namespace, work: Workload, mixed: Trace | None) -> Sized:
    """Return the plan, of the best layout where none is named, the layouts that were tried, and a fleet if asked."""
    case, most = _case(options, work, mixed)
    if options.rate is None and options.have is None:
        if not most:
            return Sized(planned(case), None)
        answer, table = search(case, most)
        return Sized(answer, None, table)
    more: dict[str, Any] = {
        "quantile": None if options.quantile == MEANS else options.quantile or SHARED,
        "arrivals": Arrivals(options.bursts, mixed, options.seed),
        "workers": min(os.cpu_count() or 1, 3),
        "shown": _shown,
    }
    if most:
        return size(case, most, rate=options.rate, have=options.have, **more)
    answer = planned(case)
    if not answer.feasible:
        return Sized(answer, None)
    try:
        return Sized(
            answer,
            fleet(answer, options.rate, **more) if options.have is None else capacity(answer, options.have, **more),
        )
    except NoFleetError as none:
        return Sized(answer, None, short=none)


def _shown(tried: Iterable[Any]) -> Iterable[Any]:
    """Return what is tried as it is, with a bar on a terminal where it takes more than a second."""
    bar: Iterable[Any] = tqdm(tried, "queues", leave=False, delay=1, disable=None, file=sys.stderr)
    return bar


def _laid_out(options: argparse.Namespace) -> tuple[Unit, bool]:
    """Return the unit as it was named, or on the fewest GPUs that hold it, and whether somebody named a layout."""
    sizes = [options.tp, options.ep, options.dp, options.pp]
    if any(size is not None for size in sizes) and options.search is None:
        return _unit(options), True
    refused = []
    for tp, stages in groups(_gpu(options.gpu)):
        try:
            return _unit(options, tp=tp, pp=stages), False
        except ValueError as error:  # too few GPUs, or what no number of them mends
            refused.append(error)
    raise next((one for one in refused if not _is_small(one)), refused[0])


def _is_small(error: ValueError) -> bool:
    """Tell whether an error is of too few GPUs for the weights."""
    return isinstance(error, UnfitError) and error.key == TOO_SMALL


def _prefill(options: argparse.Namespace, unit: Unit) -> Unit | None:
    """Return a unit of the prefill pool, where its layout was named; what was not is as in a unit of its TP alone."""
    sizes = {name: getattr(options, f"prefill_{name}") for name in ("tp", "dp", "ep")}
    if all(size is None for size in sizes.values()):
        return None
    return unit.resized(**{name: size or 1 for name, size in sizes.items()}, pp=1)


def _refuse_few(unit: Unit, most: int, option: str) -> None:
    """Raise an error where so many GPUs do not hold a unit's weights: what does not fit, and how many would hold it."""
    model, weights = unit.model, unit.weights
    needed, room = model.loaded_bytes(weights), most * unit.gpu.room(unit.share)
    whose: Message = {"key": "ways.no_room", "model": model.name, "weights": weights, "needed": needed / 1e9}
    said = render({**whose, "gpus": most, "gpu": unit.gpu.name, "room": room / 1e9, "memory": unit.share})
    raise _NoRoomError(said, weights, [{option: unit.gpus}])


def _link(name: str | None) -> Link | None:
    if name is None:
        return None
    try:
        speed = float(name)
    except ValueError:
        return link(name)
    return Link.of_bandwidth(1e9 * as_number("--link", speed, _GB_PER_S))


def _units(options: argparse.Namespace, unit: Unit) -> int:
    """Return the units that a disaggregated replica may have: no more than there are, where GPUs are given."""
    return units_within(8 if options.units is None else int(options.units), options.have or 0, unit.gpus)


def _work(options: argparse.Namespace) -> tuple[Workload, Trace | None]:
    """Return what requests are on average, and those whose lengths they have, if `--lengths` names some."""
    named, alpha = options.lengths, options.alpha
    if named in LENGTHS:
        if options.prompt is None or options.output is None:
            raise ValueError("--prompt and --output must be given, unless --lengths names a mix or a file")
        return Workload(options.prompt, options.output, alpha or 0.0, named), None
    if options.prompt is not None or options.output is not None:
        raise ValueError(f"--prompt and --output must be left out: --lengths {named} has them")
    mixed = _recorded(options, named)
    return Workload.from_trace(mixed), mixed


def _recorded(options: argparse.Namespace, named: str) -> Trace:
    """Return the requests that `--lengths` names: a mix, or a file, whose lines that are left out are noted."""
    if Path(named).suffix not in traces.KINDS:
        try:
            as_one_of("--lengths", named, [*LENGTHS, *MIXES])
        except ValueError as error:
            raise ValueError(f"{error}; or a file of recorded ones, {' or '.join(traces.KINDS)}") from None
        return mix(named, options.alpha or 0.0)
    read = traces.read(named)
    if len(read.problems):
        lines = ", ".join(map(str, read.problems["line"].head(_LINES))) + (", …" if len(read.problems) > _LINES else "")
        _note(options, f"{len(read.problems)} of {named} left out, line {lines}: {read.problems['reason'][0]}")
    return read.trace() if options.alpha is None else replace(read.trace(), alpha=options.alpha)


def _benchmark(options: argparse.Namespace) -> int:
    if options.burstiness != 1 and options.rate == inf:
        raise ValueError("--burstiness must be left out: it changes nothing without --request-rate")
    if options.enforce_eager:
        # A step of one user, eager over graphs: 1.3 (arXiv 2605.30571, H100), 1.8 and 4.3 (vllm-omni issue 7960), 2
        # (vllm issue 20469), 7 (Akamas), 0.8 (tonyd2wild's GLM-5.3-Flash, pull request 2).
        raise ValueError(
            "--enforce-eager must be left out: no calibration here ran without CUDA graphs. The host launches each "
            "kernel then, so the host sets the pace: for one user published steps took 0.8 to 7 times as long, too far "
            "apart to predict. Fit runs of such an engine (inference-math profile), and give --calibration instead"
        )
    run = _asked_benchmark(options)
    unit = _unit(options)
    if options.cadences:
        rows = cadences(unit, run, front=options.front)
        lines, more = brief.cadence_lines(rows, unit, run)
        plain = rows.astype(object).where(rows.notna(), None)
        said = [*lines, "", *more] if options.full else lines
        print(json.dumps(plain.to_dict("records"), indent=2) if options.json else "\n".join(said))
        return 0
    foreseen = foresee(unit, run, front=options.front, prefill=_prefill(options, unit))
    _print(foreseen, brief.bench_lines(foreseen), options)
    return 0


def _print(found: Foreseen | Ladder, lines: Sequence[str], options: argparse.Namespace) -> None:
    """Print an answer as JSON, or in a few lines and if it shall be full, its table and all notes."""
    if options.json:
        print(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    print("\n".join(lines))
    if options.full:
        print(f"\n{found}")


def _asked_benchmark(options: argparse.Namespace) -> Benchmark:
    """Return the benchmark that is asked for, of random lengths or of recorded ones."""
    names = ("prompts", "concurrency", "rate", "burstiness", "budget", "seed", "seqs", "chunked")
    asked: dict[str, Any] = {name: getattr(options, name) for name in names}
    if options.link is not None and options.pools is None:
        raise ValueError("--link must be left out: it changes nothing without --pools")
    asked |= {"pools": options.pools and tuple(options.pools), "link": _link(options.link)}
    if options.lengths is None:
        n_in, n_out = (usual if one is None else one for one, usual in ((options.input, 1024), (options.output, 128)))
        return Benchmark(n_in, n_out, range_ratio=options.ratio, alpha=options.alpha or 0.0, **asked)
    if options.input is not None or options.output is not None or options.ratio:
        raise ValueError(f"--random-… must be left out: --lengths {options.lengths} has the lengths")
    if options.lengths in LENGTHS:
        raise ValueError(f"--lengths must be one of {', '.join(MIXES)}, or a file, not {options.lengths!r}")
    return Benchmark.like(_recorded(options, options.lengths), **asked)


def _store(options: argparse.Namespace) -> int:
    if (options.ttft is None) != (options.tpot is None):
        raise ValueError("--ttft and --tpot must be given together")
    sla = None if options.ttft is None else SLA(options.ttft, options.tpot)
    ladder = _sessions(options, _unit(options), options.units, sla)
    _print(ladder, brief.store_lines(ladder, options), options)
    return 0


def _in_gb(option: str, named: str) -> tuple[str, float]:
    """Return a tier's name and bytes from NAME=GB."""
    name, _, size = named.partition("=")
    if size:
        as_one_of(option, name, tiers())
    try:
        return name, 1e9 * as_number(option, float(size), ANY_POSITIVE)
    except ValueError:
        raise ValueError(f"{option} must be NAME=GB, for example dram=2000, not {named!r:.80}") from None


def _profile(options: argparse.Namespace) -> int:
    # SciPy's optimiser takes a second to load.
    from inference_math_planner import calibrate

    unit = _unit(options)
    measured = calibrate.read(*options.runs)
    fitted = calibrate.fit((unit, measured))
    calibrated = calibrate.anchored(unit.calibrated(fitted.calibration), measured) if options.anchor else None
    calibration = calibrated.calibration if calibrated else fitted.calibration
    calibration.save(options.out)
    _print_coefficients(calibration, fitted.asked, fitted.kept, "the runs")
    for one in calibration.anchors:
        print(f"{'anchor':23} {1e3 * one.seconds:+.3g} ms a token at {one.n_in:g} in, {one.n_out:g} out")
    print(f"mean error on {len(fitted.table)} runs: {fitted.mape:.1%}; written to {options.out}")
    if measured.table["tp"].isna().any():
        print(f"taken on trust: runs do not say how many GPUs shared the model; TP {unit.tp} was assumed")
    if unit.tp * unit.dp > joined(unit.gpu):
        print(
            "taken on trust: the GPUs lie on several nodes, whose links the fit counts as a node's: it holds for them"
        )
    for row in fitted.unusable.to_dict("records"):
        print(f"not used: {row['source']}: {row['reason']}")
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    from inference_math import evidence
    from inference_math_planner.calibrate import from_kernels, schedules

    table = evidence.read(options.table)
    unit = from_kernels.unit(table, None if options.gpu is None else _gpu(options.gpu))
    times = from_kernels.times(table)
    profile = from_kernels.fit(times, unit)
    profile.calibration.save(options.out)
    _print_coefficients(profile.calibration, COEFFICIENTS, (*profile.kept, "per_sequence_overhead"), "the points")
    print(f"mean error on {len(profile.table)} points: {profile.mape:.1%}; written to {options.out}")
    for row in profile.unusable.to_dict("records"):
        print(f"not used: {row['source']}: {row['reason']}")
    mixed = schedules.overlaps(times)
    if len(mixed):
        off, hidden = (mixed["serial_kv"] / mixed["measured"] - 1).abs().mean(), schedules.hidden(mixed)
        print(
            f"mixed steps: the sum of their parts is {off:.1%} off; of what can hide, "
            f"{hidden['attention']:.0%} does with attention beside attention, "
            f"{hidden['steps']:.0%} with step beside step"
        )
    return 0


def _watch(options: argparse.Namespace) -> int:
    from inference_math_planner.calibrate import metrics
    from inference_math_planner.cli import watching

    unit = _unit(options)
    if options.drafts:
        unit = unit.resized(drafts=options.drafts)  # which of them were accepted the page says
    watched = metrics.watch(unit, metrics.window(options.page, options.since, options.seconds))
    plain = json.dumps(watching.as_plain(watched), indent=2, allow_nan=False) if options.json else ""
    print(plain or watching.as_text(watched, options))
    if options.out is not None and not watched.as_predicted:
        watched.calibration.save(options.out)
    return 0 if watched.as_predicted else 1


def _print_coefficients(calibration: Calibration, names: Sequence[str], kept: Sequence[str], by: str) -> None:
    for name in names:
        note = f" (kept: {by} do not tell)" if name in kept else ""
        scale, unit_of = (1e6, " µs") if name in ("layer", "collective_latency", "per_sequence_overhead") else (1, "")
        value, sd = scale * getattr(calibration.coefficients, name), scale * calibration.sd(name)
        print(f"{name:23} {value:.3g} ± {sd:.2g}{unit_of}{note}")


def _unit(options: argparse.Namespace, **layout: int) -> Unit:
    """Return the unit of the options in the layout that they name, or in another."""
    calibration = None if options.calibration is None else Calibration.load(options.calibration)
    named = {name: size for name in ("tp", "ep", "dp", "pp") if (size := getattr(options, name)) is not None}
    return Unit.of(
        _model(options.model),
        _gpu(options.gpu),
        weights=options.weights,
        kv=options.kv,
        engine=options.engine,
        calibration=calibration,
        memory=options.memory,
        expert_imbalance=options.imbalance,
        async_scheduling=options.async_scheduling,
        **(layout or named),
    )


def _model(name: str) -> Model:
    if name.endswith(".json"):
        return Model.from_config(name, Path(name).stem)
    try:
        return catalogue.model(name)
    except ValueError as error:
        raise ValueError(f"{error}; of any other model its config.json does: --model config.json") from None


def _gpu(name: str) -> Gpu:
    if name.endswith(".toml"):
        return Gpu.from_toml(name)
    try:
        return catalogue.gpu(name)
    except ValueError as error:
        *rest, last = Gpu.required()
        way = f"of any other GPU a file with its {', '.join(rest)} and {last} does: --gpu mine.toml"
        raise ValueError(f"{error}; {way}") from None


RUNS = {
    "plan": _plan,
    "benchmark": _benchmark,
    "store": _store,
    "profile": _profile,
    "watch": _watch,
    "calibrate": _calibrate,
}
