"""Two engines, a core each: both for everything, or one for prefills and one for decodes, with the store between them.

Each engine lives in a process of its own (`_Worker`), pinned to a core where the system can. A request goes from the
prefill engine to the decode engine over a pipe, its KV cache through a folder; when its answer ends, its user's next
one comes back the same way.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from inference_math import simulate
from inference_math.lab import costs as laws
from inference_math.lab.drive import Loop, Observed, bare_steps, drawn, of_context, under_way
from inference_math.lab.engines import ALL_AT_ONCE, Engine, Prompt, Stored
from inference_math.lab.experiments import Arm, Bench, Values, calibration
from inference_math.simulate import StepCost
from inference_math.workload import Workload

__all__ = ["Two", "arms", "decode_role", "predict", "prefill_role"]

N_IN = 128
_PATIENCE = 600.0  # seconds that an answer of a worker may take
_NAP = 0.0005  # seconds that an idle engine listens


def arms() -> list[Arm]:
    """Return users and lengths of answers, for both ways to use two engines."""
    return [
        {"pools": pools, "users": users, "n_out": n_out}
        for n_out, numbers in ((8, (4, 8, 16)), (24, (8, 16, 32)), (64, (16, 32, 48)))
        for users in numbers
        for pools in (False, True)
    ]


def predict(arm: Arm, cost: StepCost, join: float) -> Values:
    """Play both ways with the cost of a step, whole prompts and nothing overlapping.

    `join` is what a request that comes with its KV cache adds to a step of the decode engine, in seconds.
    """
    scheduler = simulate.Disaggregated(1, 1) if arm["pools"] else simulate.Aggregated()
    users = arm["users"] if arm["pools"] else arm["users"] // 2
    source = Workload(N_IN, arm["n_out"], lengths="geometric")
    run = simulate.closed_loop(source, cost, concurrency=users, requests=2000, warmup=200, scheduler=scheduler, seed=1)
    units = 1 if arm["pools"] else 2
    said = {"rate": units * run.request_rate, "tpot": run.gaps.mean, "ttft": float(run.requests.ttft.mean())}
    if arm["pools"]:
        # A decode step of s seconds has rate · s joins, each of which makes it longer.
        said |= {"tpot": said["tpot"] / (1 - said["rate"] * join), "tpot@free": said["tpot"]}
        # By Little's law requests stand to each other as the times that they spend.
        said["in_prefill"] = run.request_rate * said["ttft"] / users
    return said


def prefill_role(
    engine: Engine, peer: Connection, users: int, n_out: int, begin: float, until: float, seed: int
) -> Observed:
    """Compute prompts one after the other for whoever asks over `peer`, which gets user and answer of each."""
    loop, coming = Loop(engine), drawn(Workload(N_IN, n_out, lengths="geometric"), np.random.default_rng(seed))
    user_of: dict[int, tuple[int, int]] = {}
    engine.budget = N_IN

    def ask(user: int) -> None:
        n_in, length, _ = next(coming)
        prompt = Prompt(n_in, user, 0, save=True)
        user_of[loop.send(prompt, 1, engine.now())] = (user, length)

    for user in range(users):
        if peer.recv() == user:  # its answer is not under way
            ask(user)
    while engine.now() < until:
        while peer.poll(0 if loop.waiting else _NAP):
            ask(peer.recv())
        for number in loop.step() if loop.waiting else []:
            peer.send((*user_of.pop(number), engine.now()))
        if not loop.measured and engine.now() >= begin:
            loop.begin()
    peer.send(None)
    _drain(peer)  # answers that ended since: the next trial begins with an empty pipe
    engine.budget = ALL_AT_ONCE
    return loop.observed()


def decode_role(
    engine: Engine, peer: Connection, users: int, n_out: int, begin: float, until: float, seed: int
) -> Observed:
    """Decode the answers of prompts that come over `peer`, which is told when a user's answer has ended.

    At the start answers are under way, as if the two had run for ever.
    """
    loop, rng = Loop(engine), np.random.default_rng(seed)
    source, user_of = Workload(N_IN, n_out, lengths="geometric"), {}
    for user in range(users):
        n_in, length, _, done = under_way(source, rng)
        if done:
            number = loop.send(of_context(user, n_in + done), length - done, engine.now(), under_way=True)
            user_of[number] = user
        peer.send(-1 if done else user)
    open_ = True
    while open_:
        while open_ and peer.poll(0 if loop.waiting else _NAP):
            came = peer.recv()
            if came is None:
                open_ = False
            elif came[1] == 1:
                peer.send(came[0])
            else:
                user, length, first = came
                prompt = Prompt(N_IN + 1, user, 0, stored=Stored(N_IN, float("inf"), True))
                user_of[loop.send(prompt, length - 1, first)] = user
        for number in loop.step() if loop.waiting else []:
            peer.send(user_of.pop(number))
        if not loop.measured and engine.now() >= begin:
            loop.begin()
    peer.send(None)
    return loop.observed()


def _drain(peer: Connection) -> None:
    """Read what is left in the pipe, to the end that the other side marks."""
    while peer.recv() is not None:
        pass


def _worker(
    make: Callable[[Path], Engine], main: Connection, peer: Connection, core: int | None, folder: str, seed: int
) -> None:
    """Serve commands of `main` until it hangs up."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    bench = Bench(make(Path(folder)), np.random.default_rng(seed))
    main.send("ready")
    while True:
        try:
            name, asked = main.recv()
        except EOFError:
            return
        if name == "calibrate":
            main.send(calibration(bench))
        elif name == "join":
            main.send(_join(bench))
        elif name == "closed":
            source = Workload(N_IN, asked["n_out"], lengths="geometric")
            bench.seconds = asked["seconds"]
            main.send(bench.loop(source, asked["users"], warmup=asked["warmup"]))
        else:
            role = prefill_role if name == "prefill" else decode_role
            now = bench.engine.now()
            begin = now + asked["warmup"]
            more = {"begin": begin, "until": begin + asked["seconds"], "seed": asked["seed"]}
            main.send(role(bench.engine, peer, asked["users"], asked["n_out"], **more))


def _join(bench: Bench) -> float:
    """Return what it adds to a step of decodes that a request comes with its KV cache from the store, in seconds."""
    key = os.getpid()  # the other engine keeps one, too
    bench.engine.submit(Prompt(N_IN, key, 0, save=True), 1)
    bench.engine.step()
    arrived = Prompt(N_IN + 1, key, stored=Stored(N_IN, float("inf")))
    pairs = bare_steps(bench.engine, decodes=8, context=N_IN, prompts=[arrived], repeats=3 * bench.repeats)
    return float(np.mean([beside.seconds - alone.seconds for alone, beside in pairs]))


@dataclass
class Two:
    """Two engines in processes of their own; `make` builds one, given the folder of the store."""

    make: Callable[[Path], Engine]
    cores: tuple[int | None, int | None] = (None, None)
    seed: int = 0

    def __enter__(self) -> Two:
        """Start both."""
        context = multiprocessing.get_context("spawn")
        memory = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        peers = context.Pipe()
        self._mains, self._processes = [], []
        for number, (peer, core) in enumerate(zip(peers, self.cores, strict=True)):
            here, there = context.Pipe()
            arguments = (self.make, there, peer, core, self._folder.name, self.seed + number)
            process = context.Process(target=_worker, args=arguments, daemon=True)
            process.start()
            self._mains.append(here)
            self._processes.append(process)
        self._answers()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop both."""
        for main in self._mains:
            main.close()
        for process in self._processes:
            process.join(5)
            process.terminate()
        self._folder.cleanup()

    def calibrate(self) -> tuple[StepCost, float]:
        """Return the cost of a step, and that of a request that joins, while the other engine works, too."""
        found = []
        for name in ("calibrate", "join"):
            for main in self._mains:
                main.send((name, {}))
            found.append(self._answers())
        return laws.fit([step for steps in found[0] for step in steps]), float(np.mean(found[1]))

    def run(self, arm: Arm, seconds: float, warmup: float, seed: int) -> tuple[Values, list[Observed]]:
        """Use them as the arm says; return what was seen."""
        asked = {"n_out": arm["n_out"], "seconds": seconds, "warmup": warmup, "seed": seed, "users": arm["users"]}
        if arm["pools"]:
            for main, name in zip(self._mains, ("prefill", "decode"), strict=True):
                main.send((name, asked))
            prefill, decode = self._answers()
            return _seen_pools(prefill, decode, arm), [prefill, decode]
        for main in self._mains:
            main.send(("closed", {**asked, "users": arm["users"] // 2}))
        both = self._answers()
        return _seen_aggregated(both), both

    def _answers(self) -> list[Any]:
        found = []
        for main in self._mains:
            if not main.poll(_PATIENCE):
                raise RuntimeError(f"an engine did not answer within {_PATIENCE:g} s")
            try:
                found.append(main.recv())
            except EOFError:
                raise RuntimeError("an engine ended; is there memory for three of them?") from None
        return found


def _seen_aggregated(both: list[Observed]) -> Values:
    rate = sum(sum(e.last for s in one.steps for e in s.emitted) / (one.end - one.start) for one in both)
    gaps, ttfts = (np.concatenate([getattr(one, name) for one in both]) for name in ("gaps", "ttfts"))
    return {"rate": rate, "tpot": float(gaps.mean()), "ttft": float(ttfts.mean())}


def _seen_pools(prefill: Observed, decode: Observed, arm: Arm) -> Values:
    seconds = decode.end - decode.start
    rate = sum(e.last for s in decode.steps for e in s.emitted) / seconds
    waiting = sum((s.queue + np.ceil(s.prefills)) * s.seconds for s in prefill.steps) / (prefill.end - prefill.start)
    # Answers of one token end in the prefill pool.
    rate /= 1 - 1 / arm["n_out"]
    return {
        "rate": rate,
        "tpot": float(decode.gaps.mean()),
        "ttft": float(prefill.ttfts.mean()),
        "in_prefill": float(waiting / arm["users"]),
    }
