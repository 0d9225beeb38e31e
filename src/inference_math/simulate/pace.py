"""The seconds of an engine's steps of any mix, as fast as a simulation needs them."""

from __future__ import annotations

from math import inf

from inference_math.unit.max_load import expected_max_load
from inference_math.unit.steps import (
    busiest_prompts,
    floor_computed,
    floor_read,
    floor_spans,
    floor_step,
    spans_of,
    step_beside,
)
from inference_math.unit.types import FloorTerms, Terms

JUST_BEFORE = 1 - 1e-12  # times a kink: on its other side
UNASKED = (-1.0, -1.0, 0.0, 0.0)  # a line that nobody has asked for
EVENLY = -1.0  # a share that nobody has counted: prompts divide as steps without ranks have it


class Pace:
    """What a step takes under some terms, and never less than the floor.

    A step is `factor` times as long, what prompts add to it `prompt_factor` times: the error of a draw. Its decodes
    together see `farthest` tokens at most.
    """

    def __init__(self, terms: Terms, floor: FloorTerms, factor: float, prompt_factor: float, farthest: float) -> None:
        self._terms = terms
        self._floor = floor
        self._factor = factor
        self._prompt_factor = prompt_factor
        # Coefficients themselves are never faster than the datasheet; a draw's error, or an anchor, may be.
        self._slow = factor >= 1 and prompt_factor >= 1 and terms.fixed >= 0
        self._farthest = farthest
        # Where layers that see so many tokens have seen enough, a line has a kink; lines by segment and decodes.
        self._kinks: list[float] = []
        for cache in terms.caches:
            if cache.reach < inf:
                self._kinks.append(cache.reach)
        self._kinks.sort(key=lambda reach: reach)
        self._lines: list[list[tuple[float, float, float, float]]] = []
        self._floors: list[list[tuple[float, float, float, float]]] = []  # both lines of the floor, by the same
        for _ in range(len(self._kinks) + 1):
            self._lines.append([])
            self._floors.append([])
        # What prompts add to a step does not hang on the context of its decodes.
        self._mixes: dict[tuple[int, float, int, float, float], float] = {}
        # Prefill units compute equal prompts over and over.
        self._alone = UNASKED  # prompts, tokens, pairs, seconds

    def seconds(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float) -> float:
        """Return the seconds of a step; see `simulate.Cost` for the arguments."""
        if decodes > 0:
            return self._seconds(decodes, context, prefills, tokens, pairs, EVENLY)
        known = self._alone
        if known[0] != prefills or known[1] != tokens or known[2] != pairs:
            known = (prefills, 1.0 * tokens, pairs, self._seconds(decodes, context, prefills, tokens, pairs, EVENLY))
            self._alone = known
        return known[3]

    def uneven(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float, share: float) -> float:
        """Return the seconds of a step of ranks; see `types.StepTimes.uneven`."""
        return self._seconds(decodes, context, prefills, tokens, pairs, share)

    def bare(self, decodes: int, context: float) -> float:
        """Return the seconds of a step without prompts."""
        return self.seconds(decodes, context, 0.0, 0, 0.0)

    def _seconds(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float, share: float) -> float:
        bare = self._bare(decodes, context)
        if tokens == 0 and self._slow:
            return bare
        key = (decodes, prefills, tokens, pairs, share)
        added = self._mixes.get(key, -1.0)
        if added >= 0:
            return bare + added
        added = 0.0
        if tokens > 0:
            mixed = self._factor * self._sum(decodes, context, prefills, tokens, pairs, share)
            added = self._prompt_factor / self._factor * (mixed - bare)
        if self._slow or self._above_floor(key, added):
            if added >= 0:
                self._mixes[key] = added
            return bare + added
        return max(bare + added, self._least(decodes, context, prefills, tokens, pairs, share))

    def _above_floor(self, key: tuple[int, float, int, float, float], added: float) -> bool:
        """Tell whether a step to which prompts add so much is never below the floor, whatever its decodes see.

        The floor is the larger of two lines of that, between two kinks, so a look at the ends is enough.
        """
        decodes, prefills, tokens, pairs, share = key
        ends = [0.0, self._farthest]
        for reach in self._kinks:
            ends.append(reach * decodes)
            ends.append(reach * decodes * JUST_BEFORE)
        for context in ends:
            if self._bare(decodes, context) + added < self._least(decodes, context, prefills, tokens, pairs, share):
                return False
        return True

    def line(self, decodes: int, context: float) -> tuple[float, float, float, float]:
        """Return (fixed, per token of context) of a step that only decodes, and from where to where that holds.

        A step is the longest of three: its own line, what the floor reads, what it computes.
        """
        line = self._straight(decodes, context)
        if self._slow:
            return line
        read, read_slope, computed, computed_slope = self._floored(decodes, context)
        fixed, slope, low, high = line
        for other, steeper in [(read, read_slope), (computed, computed_slope)]:
            ahead = other + steeper * context - fixed - slope * context
            if ahead > 0 or (ahead == 0 and steeper > slope):
                fixed, slope = other, steeper
        for other, steeper in [(line[0], line[1]), (read, read_slope), (computed, computed_slope)]:
            if steeper > slope:
                high = min(high, max((fixed - other) / (steeper - slope), context))
            elif steeper < slope:
                low = max(low, min((other - fixed) / (slope - steeper), context))
        return fixed, slope, low, high

    def _floored(self, decodes: int, context: float) -> tuple[float, float, float, float]:
        """Return (fixed, per token of context) of what the floor reads, and of what it computes; each once."""
        floors = self._floors[self._segment(decodes, context)]
        while len(floors) <= decodes:
            floors.append(UNASKED)
        if floors[decodes] is UNASKED:
            _, _, low, high = self._straight(decodes, context)
            width = min(high - low, max(self._farthest, 1.0 * decodes)) / 3  # within, for some layers forget at an end
            near, far = [
                floor_spans(self._floor, mean, mean, 0.0, 0.0, min)
                for mean in [(low + width) / decodes, (low + 2 * width) / decodes]
            ]
            read = floor_read(self._floor, near, 1.0, 1.0, decodes, 0.0, 0.0)
            computed = floor_computed(self._floor, near, decodes, decodes, decodes, 0.0, 0.0)
            more = (floor_read(self._floor, far, 1.0, 1.0, decodes, 0.0, 0.0) - read) / width
            longer = (floor_computed(self._floor, far, decodes, decodes, decodes, 0.0, 0.0) - computed) / width
            at = low + width
            floors[decodes] = (read - more * at, more, computed - longer * at, longer)
        return floors[decodes]

    def _least(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float, share: float) -> float:
        each, fresh, cached = prompts_of(prefills, tokens, pairs)
        mean = context / decodes if decodes > 0 else 0.0
        return floor_step(self._floor, decodes, mean, fresh, cached, each * share if share > 0 else each)

    def _straight(self, decodes: int, context: float) -> tuple[float, float, float, float]:
        """Return the same without a look at the floor; each line is composed once."""
        segment = self._segment(decodes, context)
        lines = self._lines[segment]
        while len(lines) <= decodes:
            lines.append(UNASKED)
        if lines[decodes] is UNASKED:
            lines[decodes] = self._composed(decodes, segment)
        return lines[decodes]

    def _segment(self, decodes: int, context: float) -> int:
        segment = 0
        while segment < len(self._kinks) and self._kinks[segment] * decodes <= context:
            segment += 1
        return segment

    def _composed(self, decodes: int, segment: int) -> tuple[float, float, float, float]:
        low = self._kinks[segment - 1] if segment > 0 else 0.0
        high = self._kinks[segment] * decodes if segment < len(self._kinks) else inf
        read = 0.0
        for cache in self._terms.caches:
            if cache.reach > low:
                read += cache.read / self._terms.ranks
        slope = self._factor * read * self._terms.longer
        fixed = self._factor * self._sum(decodes, low * decodes, 0.0, 0, 0.0, EVENLY)
        return fixed - slope * low * decodes, slope, low * decodes, high

    def _bare(self, decodes: int, context: float) -> float:
        """Return the seconds of a step without prompts."""
        line = self._straight(decodes, context)
        return line[0] + line[1] * context

    def _sum(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float, share: float) -> float:
        mean = context / decodes if decodes > 0 else 0.0
        each, fresh, cached = prompts_of(prefills, tokens, pairs)
        spans = spans_of(self._terms, mean, fresh, cached, min)
        if share > 0:  # a group of several stages splits its prompts over them
            return step_beside(self._terms, spans, decodes, each * share, max(each / self._terms.ranks, 1.0))
        busy = busiest_prompts(self._terms, decodes, each, max, min, expected_max_load)
        return step_beside(self._terms, spans, decodes, each, busy)


def prompts_of(prefills: float, tokens: int, pairs: float) -> tuple[float, float, float]:
    """Return (prompts, tokens of each, tokens that each finds in its cache) from what a step's prompts sum up to.

    Pairs are tokens times what each sees: what is cached, and half of its own prompt, or of its chunk.
    """
    if tokens <= 0:
        return 0.0, 0.0, 0.0
    each = max(prefills, 1.0)
    fresh = tokens / each
    return each, fresh, max(pairs / tokens - fresh / 2, 0.0)
