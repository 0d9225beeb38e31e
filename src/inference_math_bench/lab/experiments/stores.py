"""A store of KV caches of a chosen bandwidth."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from inference_math import theory
from inference_math.simulate import StepCost
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.drive import Observed
from inference_math_bench.lab.engines import Prompt, Step, Stored
from inference_math_bench.lab.experiments.bench import Arm, Bench, Experiment, Found, Values, alone

__all__ = ["Store", "load_and_compute"]


class Store(Experiment):
    """A store of a chosen bandwidth: e tokens load while one is computed."""

    name, claims = "store", ("C01", "C04", "C05", "C06", "C07", "C08", "C09", "C10", "C32")
    n_in = 512
    family = 9

    def arms(self) -> list[Arm]:
        """Accelerations and stored shares, layer by layer and whole first; a load cut at the crossover; writes."""
        shares = [self.scale * tokens for tokens in (128, 256, 384, 448, 480)]
        loads: list[Arm] = [
            {"what": "load", "e": e, "stored": s, "layerwise": w}
            for e in (1, 3, 9)
            for s in shares
            for w in (True, False)
        ]
        capped: list[Arm] = [{"what": "cap", "e": e, "stored": shares[-1], "layerwise": True} for e in (1, 3, 9)]
        return [*loads, *capped, {"what": "write"}]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return the speedup of a prefill, complete and as printed."""
        if arm["what"] == "write":
            return {"ratio": 1.0}
        bandwidth = self._bandwidth(arm, cost, bench)
        loaded = self._tokens(arm, bench)
        whole = cost.t_w + laws.own_time(cost, self.n_in)
        rest = cost.t_w + laws.own_time(cost, self.n_in, loaded)
        load, copy = loaded * bench.kv_bytes / bandwidth, loaded * self._copy(bench)
        seconds = load_and_compute(load, copy, rest, bench.layers if arm["layerwise"] else 1)
        printed = theory.speedup_layerwise if arm["layerwise"] else theory.speedup_whole
        said = {"speedup": whole / seconds, "bandwidth": bandwidth}
        return {**said, "speedup@printed": float(printed(alpha=loaded / self.n_in, e=float(arm["e"])))}

    def _copy(self, bench: Bench) -> float:
        """Return what the engine's own core spends on a loaded token: a load that waits for nothing, less a hit."""
        self._keep(bench)
        tokens = self.n_in // 2
        hit = Prompt(self.n_in, self.family + 2, tokens)
        loaded = Prompt(self.n_in, self.family, self.n_in, Stored(tokens, inf))
        if not bench.copies:
            alone(bench, hit)  # into the engine's cache
        bench.copies.append(alone(bench, loaded).seconds - alone(bench, hit).seconds)
        return max(0.0, float(np.median(bench.copies[-40:]))) / tokens

    def _keep(self, bench: Bench) -> None:
        """Put the prompt of the experiment into the store."""
        if not bench.kept:
            alone(bench, Prompt(self.n_in, self.family, self.n_in, save=True))
            bench.kept = True

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Measure pairs of prefills, with and without."""
        kept = Prompt(self.n_in, self.family, self.n_in, save=True)
        with_store: list[Step] = []
        without: list[Step] = []
        for _ in range(2):
            without.append(alone(bench, Prompt(self.n_in)))
            if arm["what"] == "write":
                with_store.append(alone(bench, Prompt(self.n_in, self.family + 1, 0, save=True)))
            else:
                stored = Stored(self._tokens(arm, bench), said["bandwidth"], arm["layerwise"])
                with_store.append(alone(bench, replace(kept, save=False, stored=stored)))
        plain, other = (float(np.mean([s.seconds for s in steps])) for steps in (without, with_store))
        seen = [Observed(without + with_store, [], without[0].start, with_store[-1].start)]
        if arm["what"] == "write":
            return Found({"ratio": other / plain}, seen)
        return Found({"speedup": plain / other}, seen)

    def _tokens(self, arm: Arm, bench: Bench) -> int:
        """Return the tokens that are loaded: those stored, or up to the crossover."""
        if arm["what"] == "load":
            return int(arm["stored"])
        best = float(theory.crossover(e=float(arm["e"]))) * self.n_in
        return int(min(arm["stored"], best // bench.block * bench.block))

    def _bandwidth(self, arm: Arm, cost: StepCost, bench: Bench) -> float:
        """Return the bytes/s at which `e` tokens load while one of this prompt is computed."""
        return float(arm["e"]) * bench.kv_bytes * self.n_in / laws.own_time(cost, self.n_in)


def load_and_compute(load: float, copy: float, compute: float, layers: int) -> float:
    """Return the seconds of a prefill whose cached part is loaded in `load` seconds and copied in `copy`, by layers.

    A layer is copied when it has come and the layer before is computed; then it is computed. One layer: all first.
    """
    now = 0.0
    for layer in range(1, layers + 1):
        now = max(now + copy / layers, load * layer / layers) + compute / layers
    return now
