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
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from inference_math import simulate
from inference_math.simulate import StepCost
from inference_math.workload import Workload
from inference_math_bench.lab import costs as laws, machine
from inference_math_bench.lab.drive import Loop, Observed, bare_steps, drawn, of_context, under_way
from inference_math_bench.lab.engines import ALL_AT_ONCE, Engine, Prompt, Stored
from inference_math_bench.lab.experiments.bench import Arm, Bench, Values, alone, calibration

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


def predict(arm: Arm, cost: StepCost, join: float, save: float) -> Values:
    """Play both ways with the cost of a step, whole prompts and nothing overlapping.

    Split, a prompt takes `save` seconds more, which put its KV cache into the store, and a request that comes with one
    adds `join` seconds to a step of the decode engine.
    """
    scheduler = simulate.Disaggregated(1, 1) if arm["pools"] else simulate.Aggregated()
    users = arm["users"] if arm["pools"] else arm["users"] // 2
    source = Workload(N_IN, arm["n_out"], lengths="geometric")
    asked = {"concurrency": users, "requests": 2000, "warmup": 200, "scheduler": scheduler, "seed": 1}
    run = simulate.closed_loop(source, cost, **asked)
    said = {"rate": run.request_rate, "tpot": run.gaps.mean, "ttft": float(run.requests.ttft.mean())}
    if not arm["pools"]:
        return {**said, "rate": 2 * said["rate"]}
    free = {f"{name}@free": value for name, value in said.items()}
    run = simulate.closed_loop(source, _Joined(replace(cost, prompt=cost.prompt + save), join, arm["n_out"]), **asked)
    said = {"rate": run.request_rate, "tpot": run.gaps.mean, "ttft": float(run.requests.ttft.mean())}
    # By Little's law requests stand to each other as the times that they spend.
    return {**said, "in_prefill": said["rate"] * said["ttft"] / users, **free}


@dataclass(frozen=True)
class _Joined:
    """The cost of a step of two pools: as many requests join a decode step as end in it, each of which lengthens it."""

    cost: StepCost
    join: float
    n_out: int

    def __call__(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float) -> float:
        """Return seconds."""
        # An answer's first token comes from the prefill pool: the others are n_out − 1 on average.
        return self.cost(decodes, context, prefills, tokens, pairs) + self.join * decodes / (self.n_out - 1)


def prefill_role(
    engine: Engine, peer: Connection, users: int, n_out: int, begin: float, until: float, seed: int
) -> Observed:
    """Compute prompts one after the other for whoever asks over `peer`, which gets user and answer of each."""
    loop, coming = Loop(engine), drawn(Workload(N_IN, n_out, lengths="geometric"), np.random.default_rng(seed))
    user_of: dict[int, tuple[int, int]] = {}
    engine.budget = N_IN

    def ask(user: int, arrival: float) -> None:
        n_in, length, _ = next(coming)
        user_of[loop.send(Prompt(n_in, user, 0, save=True), 1, arrival)] = (user, length)

    for user in range(users):
        if peer.recv() == user:  # its answer is not under way
            ask(user, engine.now())
    while engine.now() < until:
        while peer.poll(0 if loop.waiting else _NAP):
            ask(*peer.recv())
        for number in loop.step() if loop.waiting else []:
            peer.send((*user_of.pop(number), engine.now()))
        if not loop.measured and engine.now() >= begin:
            loop.begin()
    found = loop.observed()
    peer.send(None)
    while peer.recv() is not None:
        pass  # answers that ended since: the next trial begins with an empty pipe
    engine.budget = ALL_AT_ONCE
    return found


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
                peer.send((came[0], came[2]))
            else:
                user, length, first = came
                prompt = Prompt(N_IN + 1, user, 0, stored=Stored(N_IN, float("inf"), True))
                user_of[loop.send(prompt, length - 1, first)] = user
        for number in loop.step() if loop.waiting else []:
            peer.send((user_of.pop(number), engine.now()))
        if not loop.measured and engine.now() >= begin:
            loop.begin()
    peer.send(None)
    return loop.observed()


def _worker(
    make: Callable[[Path], Engine], main: Connection, peer: Connection, core: int | None, folder: str, seed: int
) -> None:
    """Serve commands of `main` until it hangs up."""
    if core is not None:
        machine.one_core(core)
    bench = Bench(make(Path(folder)), np.random.default_rng(seed))
    main.send("ready")
    while True:
        try:
            name, asked = main.recv()
        except EOFError:
            return
        if name == "calibrate":
            main.send(calibration(bench))
        elif name == "moves":
            main.send(_moves(bench))
        elif name == "used":
            main.send(sum(os.times()[:2]))
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


def _moves(bench: Bench) -> tuple[float, float]:
    """Return what it adds to a step that a request joins with its KV cache, and that one is saved, in seconds."""
    key = os.getpid()  # the other engine keeps one, too
    bench.engine.submit(Prompt(N_IN, key, 0, save=True), 1)
    bench.engine.step()
    arrived = Prompt(N_IN + 1, key, stored=Stored(N_IN, float("inf")))
    pairs = bare_steps(bench.engine, decodes=8, context=N_IN, prompts=[arrived], repeats=3 * bench.repeats)
    join = np.mean([beside.seconds - without.seconds for without, beside in pairs])
    ways = [alone(bench, Prompt(N_IN, key, 0, save=i % 2 == 0)).seconds for i in range(6 * bench.repeats)]
    return float(join), float(np.mean(ways[::2]) - np.mean(ways[1::2]))


@dataclass
class Two:
    """Two engines in processes of their own; `make` builds one, given the folder of the store."""

    make: Callable[[Path], Engine]
    cores: tuple[int | None, int | None] = (None, None)
    seed: int = 0

    def __enter__(self) -> Two:
        """Start both."""
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory(dir=machine.memory())
        peers = context.Pipe()
        self._mains, self._processes = [], []
        for number, (peer, core) in enumerate(zip(peers, self.cores, strict=True)):
            here, there = context.Pipe()
            arguments = (self.make, there, peer, core, self._folder.name, self.seed + number)
            process = context.Process(target=_worker, args=arguments, daemon=True)
            process.start()
            there.close()  # ours: with it open, an end that died would not be noticed
            peer.close()
            self._mains.append(here)
            self._processes.append(process)
        try:
            self._answers()
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop both."""
        for main in self._mains:
            main.close()
        for process in self._processes:
            process.join(5)
            process.terminate()
        self._folder.cleanup()

    def calibrate(self) -> tuple[StepCost, dict[str, float]]:
        """Return the cost of a step, and of a join and of a save in seconds, while the other engine works, too."""
        steps, moves = self._both("calibrate"), self._both("moves")
        join, save = np.maximum(np.mean(moves, axis=0), 0.0).tolist()
        return laws.fit([step for each in steps for step in each]), {"join": join, "save": save}

    def used(self) -> float:
        """Return the processor seconds that the two engines have used."""
        return float(sum(self._both("used")))

    def _both(self, name: str) -> list[Any]:
        for main in self._mains:
            main.send((name, {}))
        return self._answers()

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
    # A first token that has not come is NaN, which `fmin` passes over.
    stays = [np.fmin(r.first_token, prefill.end) - max(r.arrival, prefill.start) for r in prefill.requests]
    waiting = sum(max(0.0, stay) for stay in stays) / (prefill.end - prefill.start)
    # The first gap of an answer is between the engines: its request came when it had its first token.
    gaps = np.concatenate([decode.gaps, decode.ttfts])
    # Answers of one token end in the prefill pool.
    rate /= 1 - 1 / arm["n_out"]
    return {
        "rate": rate,
        "tpot": float(gaps.mean()),
        "ttft": float(prefill.ttfts.mean()),
        "in_prefill": float(waiting / arm["users"]),
    }
