"""Stores that are played, block by block: what the laws of `sessions` and `returns` are held against."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Container, Hashable, Iterable, Sequence
from math import inf

from inference_math.evidence.checks import ANY_POSITIVE, as_number, as_whole

__all__ = ["Stores", "as_lifetime", "clairvoyant", "play"]


def as_lifetime(lifetime: float | None) -> float:
    """Return the seconds after which a store drops what nobody used; None: never."""
    return inf if lifetime is None else as_number("lifetime", lifetime, ANY_POSITIVE)


class Stores:
    """Tiers, each of which drops what was not used for longest to the one below it, and the last one for good.

    No block lies in two of them. `sizes` in blocks may change; `written` counts what came into each from above. What
    was not used for its `lifetime` in seconds is not found any more; it is also what goes first.
    """

    def __init__(self, sizes: Sequence[int], lifetime: float = inf) -> None:
        self.sizes = list(sizes)
        self.written = [0] * len(self.sizes)
        self._lifetime = lifetime
        self._kept: list[OrderedDict[Hashable, float]] = [OrderedDict() for _ in self.sizes]  # since when

    def place(self, block: Hashable, now: float = 0.0) -> int:
        """Return the tier that has a block, 0 for the first; -1 where none has it."""
        for k, kept in enumerate(self._kept):
            if block in kept:
                return k if now - kept[block] <= self._lifetime else -1
        return -1

    def found(self, blocks: Iterable[Hashable], now: float = 0.0, held: Container[Hashable] = ()) -> list[int]:
        """Return the tiers of the blocks that a prompt begins with, up to the first that no tier has.

        What requests in flight have `held` lies in the first tier.
        """
        places = []
        for block in blocks:
            place = 0 if block in held else self.place(block, now)
            if place < 0:
                break
            places.append(place)
        return places

    def take(self, block: Hashable) -> None:
        """Take a block out, wherever it is."""
        for kept in self._kept:
            if kept.pop(block, None) is not None:
                return

    def put(self, block: Hashable, now: float = 0.0) -> None:
        """Put a block into the first tier, as the one that was used last."""
        self.take(block)
        self._kept[0][block] = now

    def settle(self, now: float = 0.0) -> None:
        """Move what a tier has no room for to the next one, the longest unused first, unless its time is over."""
        for k, (size, kept) in enumerate(zip(self.sizes, self._kept, strict=True)):
            while len(kept) > size:
                block, since = kept.popitem(last=False)
                if k + 1 < len(self.sizes) and now - since <= self._lifetime:
                    self._kept[k + 1][block] = since
                    self.written[k + 1] += 1


def play(
    requests: Iterable[tuple[float, int, Sequence[Hashable]]],
    tiers: Sequence[int],
    skip: int = 0,
    lifetime: float | None = None,
) -> list[float]:
    """Return the share of prompt tokens that each tier of a ladder finds, from empty, not counting `skip` requests.

    Each tier drops what was not used for longest, to the one below it; sizes are in blocks of one token. What nobody
    used for a `lifetime` in seconds is lost. Of a prompt its beginning is found, up to the first block that no tier
    has; all blocks of a request are then used, the last first.

    Raises
    ------
    TypeError, ValueError
        For sizes that are no whole numbers, or no request that counts.
    """
    stores = Stores([as_whole("tiers", size, 0) for size in tiers], as_lifetime(lifetime))
    hits, asked = [0] * len(stores.sizes), 0
    for number, (now, n_in, blocks) in enumerate(requests):
        if number >= skip:
            asked += n_in
            for place in stores.found(blocks[:n_in], now):
                hits[place] += 1
        for block in reversed(blocks):
            stores.put(block, now)
        stores.settle(now)
    if not asked:
        raise ValueError(f"skip must leave a request that counts, not {skip}")
    return [hit / asked for hit in hits]


def clairvoyant(prompts: Sequence[Sequence[Hashable]], size: int) -> list[int]:
    """Return how many blocks of each prompt a store of so many blocks finds that knows what will come.

    It keeps what is used again soonest, and takes in nothing that is used later than all it has (Belady, 1966). No rule
    finds more, for here a block counts wherever in a prompt it stands.

    Raises
    ------
    TypeError, ValueError
        For a size that is no whole number.

    Examples
    --------
    >>> from inference_math_planner.fleets.caches import clairvoyant, play
    >>> prompts = ["ab", "cd", "ef"] * 4  # least recently used, each goes just before it comes again
    >>> sum(clairvoyant(prompts, 4)) / 24, play([(0.0, 2, prompt) for prompt in prompts], [4])
    (0.5, [0.0])
    """
    room, never = as_whole("size", size, 0), sum(map(len, prompts))
    uses = [block for prompt in prompts for block in prompt]
    following, last = [never] * len(uses), dict[Hashable, int]()
    for place in range(len(uses) - 1, -1, -1):
        following[place] = last.get(uses[place], never)
        last[uses[place]] = place
    kept: dict[Hashable, int] = {}  # when each is used next
    latest: list[tuple[int, int]] = []  # the same, the latest first, and places where they were used; some are outdated
    hits_of_prompts, place = [], 0
    for prompt in prompts:
        hits = 0
        for block in prompt:
            hits += block in kept
            kept[block] = following[place]
            heapq.heappush(latest, (-following[place], place))
            while len(kept) > room:
                when, where = heapq.heappop(latest)
                if kept.get(uses[where]) == -when:
                    del kept[uses[where]]
            place += 1
        hits_of_prompts.append(hits)
    return hits_of_prompts
