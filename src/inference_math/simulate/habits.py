"""An engine whose scheduler delays prompts: what `schedulers.Habits` says, played.

The planner's page does not run it: habits move the time to the first token, hardly what an engine serves.
"""

from __future__ import annotations

from inference_math.simulate.cost import Cost
from inference_math.simulate.engine import Engine, Ledger, Room
from inference_math.simulate.schedulers import Habits, System

__all__ = ["HabitualEngine"]


class HabitualEngine(Engine):
    """An engine with habits."""

    def __init__(self, cost: Cost, record: Ledger, room: Room, system: System, habits: Habits) -> None:
        super().__init__(cost, record, room, system)
        self._habits = habits
        self._looked = 0  # the step after which the engine looked last, or would have
        self._waited = 0  # steps that prompts have been held for

    def computes(self) -> bool:
        """Tell whether the next step computes tokens of a prompt."""
        beside = 0 if self._habits.alone else self.batch.size
        return len(self._prompts) > 0 and beside * self._brings < self._budget and self._held() == 0

    def _held(self) -> int:
        """Return for how many steps prompts are held at most, if nobody comes."""
        batch, habits = self.batch, self._habits
        if batch.size == 0:
            return 0
        if self._progress > self._prompts[0].cached:  # a prompt that was cut goes on
            return 0
        unseen = -(batch.step - self._looked) % habits.looks
        if unseen or self._waited >= habits.wait_steps:
            return unseen
        fresh = sum(request.n_in - request.cached for request in self._prompts)
        enough = fresh + batch.size * self._brings >= habits.wait_tokens
        return 0 if enough else habits.wait_steps - self._waited

    def _decode(self, until: float) -> None:
        if not self._prompts:
            super()._decode(until)
            return
        before = self.batch.step
        self.batch.decode(until, max(1, self._held()))
        self._waited += self.batch.step - before

    def mix(self, decodes: int, context: float) -> None:
        """Compute prompt tokens, beside the decodes unless these stand still."""
        if self._habits.alone:
            decodes, context = 0, 0.0
        super().mix(decodes, context)
        self._looked, self._waited = self.batch.step, 0

    def part(self, left: int, budget: float, taken: int) -> int:
        """Return how many of the tokens that are left of a prompt go into a step with `taken` others."""
        if not self._habits.whole or left <= budget:
            return super().part(left, budget, taken)
        return 0 if taken else left

    def passed(self, seconds: float, decodes: int) -> None:
        """Move the clock over a step with prompts; where decodes stand still, over a pause of theirs."""
        if self._habits.alone:
            self.batch.pause(seconds)
        else:
            super().passed(seconds, decodes)
