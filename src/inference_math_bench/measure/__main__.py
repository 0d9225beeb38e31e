"""`inference-math measure`: what a model's steps cost on the GPU at hand; see `inference_math_bench.measure`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from inference_math import catalogue
from inference_math.catalogue import Model
from inference_math.catalogue.precisions import as_kv_precision
from inference_math.evidence.checks import ANY_POSITIVE, as_number
from inference_math.workload.points import Point, points
from inference_math_bench.measure.record import Record, Row, Setup
from inference_math_bench.measure.room import Room, room, toy
from inference_math_bench.measure.timing import rounds, sample

if TYPE_CHECKING:
    from inference_math_bench.measure.bench import Bench, Device

__all__ = ["main", "measure", "parser", "run"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    return run(parser().parse_args(arguments))


def run(options: argparse.Namespace) -> int:
    """Measure; return 0, 2 for bad input and for what cannot be measured here, 130 when stopped."""
    try:
        _run(options)
    except (ValueError, TypeError, OSError, MemoryError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nstopped; run the same again and it goes on with {options.out}", file=sys.stderr)
        return 130
    return 0


def measure(
    bench: Bench, device: Device, chosen: Sequence[Point], record: Record, until: float, progress: Any
) -> dict[Point, str]:
    """Time points round by round until the clock is at `until`, each row written at once.

    `progress` is a bar of seconds. Return the points that did not fit, with the reason.
    """
    left_out: dict[Point, str] = {}
    started, before, done = device.now(), progress.n, record.done
    # Another order after each interruption, so that none can be met again and again at the same point.
    seed = record.setup.seed + 7919 * len(done)
    for number, point in rounds(chosen, done, left_out, device, until, seed):
        progress.set_postfix_str(f"round {number}, {point.what}")
        try:
            record.add(_timed(bench, device, number, point))
        except (MemoryError, RuntimeError) as error:
            left_out[point] = (str(error).splitlines() or [type(error).__name__])[0]
            device.settle()
        progress.update(min(before + device.now() - started, progress.total) - progress.n)
    return left_out


def _timed(bench: Bench, device: Device, number: int, point: Point) -> Row:
    """Time one point; what it holds on the device is free again when this returns."""
    work = bench.work(point)
    return Row(number, point, sample(device, work.run), work.bytes, work.flop)


def _run(options: argparse.Namespace) -> None:
    try:
        import torch
    except ImportError:
        needed = 'PyTorch, in a checkout: pip install "./src/inference_math_bench[measure]"'
        raise ValueError(f"measuring needs {needed}") from None
    from inference_math_bench.measure.bench import Bench
    from inference_math_bench.measure.decoder import Decoder, Kernels
    from inference_math_bench.measure.device import Cuda, Host

    weights, minutes = as_kv_precision("weights", options.weights), as_number("minutes", options.minutes, ANY_POSITIVE)
    model = catalogue.model(options.model)
    model.gemm_shapes()  # refuses what the decoder is not
    fp8 = weights == "fp8"
    device: Any = Host() if options.toy else Cuda(fp8)
    begun, earlier = device.now(), Setup.of(options.out)
    model, space = _room(options, model, weights, device, earlier)
    _say(f"{model.name}: {space.layers} of {model.n_layers} layers in {weights}, {space.kept:,} tokens of KV cache")
    setup = _setup(options, model, space, weights, device, earlier)
    Record.check(options.out, setup)
    try:
        decoder = Decoder(
            model,
            space.layers,
            space.kept,
            fp8=fp8,
            random=torch.Generator(device.type).manual_seed(options.seed),
            kernels=Kernels(**setup.machine["attention"]),
        )
    except torch.OutOfMemoryError:
        reason = f"{space.layers} layers do not fit beside what else runs there: ask for fewer, --layers"
        raise MemoryError(reason) from None
    chosen, record = points(space.kept, space.fresh, fp8=fp8, shrink=space.shrink), Record(options.out, setup)
    spent, looks = min(device.now() - begun, 60 * minutes), "{l_bar}{bar}| {n:.0f}/{total:.0f} s{postfix}"
    with tqdm(total=60 * minutes, initial=spent, unit="s", bar_format=looks) as bar:
        left_out = measure(Bench(decoder, device), device, chosen, record, begun + 60 * minutes, bar)
    _summarise(record, len(chosen), left_out, options.out)


def _room(
    options: argparse.Namespace, model: Model, weights: str, device: Any, earlier: Setup | None
) -> tuple[Model, Room]:
    """Return the model and what of it fits, as earlier where a file is gone on with."""
    if options.toy:
        _say("A toy on a CPU: this shows the output and is NO MEASUREMENT.")
        return toy(model)
    if earlier and options.layers is None:
        return model, room(model, device.free, weights, earlier.layers, earlier.kept)
    return model, room(model, device.free, weights, options.layers)


def _setup(
    options: argparse.Namespace, model: Model, space: Room, weights: str, device: Any, earlier: Setup | None
) -> Setup:
    """Return what is measured, with attention kernels chosen, as earlier where a file is gone on with, and checked."""
    from inference_math_bench.measure.bench import fastest
    from inference_math_bench.measure.decoder import Kernels
    from inference_math_bench.measure.device import catalogue_name
    from inference_math_bench.measure.reference import LIMITS, errors

    kernels = Kernels(**earlier.machine["attention"]) if earlier else fastest(model, device, _typical(space.shrink))
    for precision in ("bf16", "fp8") if weights == "fp8" else ("bf16",):
        _refuse_wrong(errors(model, device, fp8=precision == "fp8", kernels=kernels), LIMITS[precision], precision)
    machine = {**device.description, "attention": asdict(kernels)}
    gpu = catalogue_name(machine["device"])
    return Setup(model.name, space.layers, space.kept, weights, "bf16", gpu, options.seed, options.toy, machine)


def _typical(shrink: int) -> dict[str, tuple[Point, ...]]:
    """Return points for each use of attention: few and long, many and short."""

    def chunk(tokens: int, cached: int = 0) -> Point:
        return Point("attention", prompts=1, tokens=tokens // shrink, cached=cached // shrink)

    decodes = ((1, 8192), (16, 2048), (128, 1024))
    return {
        "decode": tuple(Point("attention", b, context // shrink) for b, context in decodes),
        "prompt": (chunk(512), chunk(4096)),
        "chunk": (chunk(128, 2048), chunk(512, 512), chunk(1024, 8192)),
    }


def _refuse_wrong(found: dict[str, float], limit: float, precision: str) -> None:
    wrong = {name: error for name, error in found.items() if not error <= limit}
    if wrong:
        names = ", ".join(f"{name} by {error:.2g}" for name, error in wrong.items())
        raise ValueError(f"the decoder in {precision} is off on this device, {names}: nothing was timed")


def _summarise(record: Record, count: int, left_out: dict[Point, str], out: str) -> None:
    for reason in dict.fromkeys(left_out.values()):
        kinds = Counter(point.what for point, why in left_out.items() if why == reason)
        _say(f"left out, {', '.join(f'{count} {what}' for what, count in kinds.items())}: {reason}")
    rows = len(record.done)
    measured = len({point for _, point in record.done})
    _say(f"{out}: {rows} rows, {measured} of {count} points")
    if record.setup.toy:
        _say("No measurement: a toy on a CPU.")
    elif measured < count - len(left_out):
        _say("Run the same again: it goes on with what is missing.")
    else:
        _say(f"Next: inference-math calibrate {out} --out mine.toml")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(prog="inference-math measure", description="Measure steps on the GPU at hand.")
    parser.add_argument("--model", required=True, help="dense model of the catalogue, for example llama-3-70b")
    parser.add_argument("--weights", default="bf16", help="bf16 or fp8 (default bf16); the KV cache is in BF16")
    parser.add_argument("--minutes", type=float, default=5, help="time limit, building the model included (default 5)")
    parser.add_argument("--out", required=True, help="CSV file to write, or to go on with; its description goes beside")
    parser.add_argument("--layers", type=int, help="layers of the model (default: as many as fit)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, tokens and order (default 0)")
    parser.add_argument("--toy", action="store_true", help="a toy on the CPU, to see the output; no measurement")
    return parser


if __name__ == "__main__":
    sys.exit(main())
