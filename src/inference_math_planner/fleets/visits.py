"""Users in a closed loop with stores: what they find, how fast it goes, and how one makes the other [E05, E07, E09].

Turns in flight hold their tokens. What they leave of a store keeps those who think, so the longer turns take, the less
is found; and the less is found, the longer they take. The loop is closed here. Plain Python, but for a function of
SciPy that the page has of its own: the book prints it as JavaScript.
"""

from __future__ import annotations

from math import floor, inf

from msgspec.structs import replace
from scipy.special import gammainc

from inference_math.simulate.types import StepTimes
from inference_math_planner.fleets.sessions import found_by, found_within, needed_tokens, prompt_of, root, session_of
from inference_math_planner.fleets.types import SessionHabits, SessionNumbers, TurnNumbers, Visit

ROUNDS = 400
HALFWAY = 0.5  # of the way to what a round says
SETTLED = 1e-7
RARE = 1e-12  # times the likeliest chance: it does not count
LOOKED_AT = 32  # numbers of decodes, for one that keeps up
NOT_YET: list[list[float]] = []
NO_END = 1e12  # seconds, or users: what a root finder takes for infinite


def calm(turns: TurnNumbers, wait: float) -> TurnNumbers:
    """Return turns of users who wait for so long beside their thinking: meanwhile they hold nothing."""
    think = turns.think + wait
    return replace(turns, think=think, cv=turns.cv * turns.think / max(think, 1e-12))


def turns_held(one: SessionNumbers, hbm: float) -> float:
    """Return the turns that HBM has room for; what all prompts share, they hold together."""
    return max(1.0, (hbm - one.shared) / (one.again + one.brought))


def tiers_find(
    turns: TurnNumbers, users: float, times: list[float], sizes: list[float], lifetime: float
) -> list[float]:
    """Return the share of all prompt tokens that each tier finds, whose turns wait and hold for such times."""
    law = session_of(calm(turns, times[0]), times[1])
    shares, above, together = [], 0.0, 0.0
    for size in sizes:
        together += size
        here = found_by(law, users, together, lifetime)
        shares.append(here - above)
        above = here
    return shares


def visits(
    turns: TurnNumbers, users: float, cost: StepTimes, tokens: list[float], loads: list[float], habits: SessionHabits
) -> Visit:
    """Return what users in a closed loop see of one engine with chunked prefill and a ladder of stores.

    HBM has the first of the `tokens`, whose load is 0: seconds that a token takes to come.
    """
    groups, served = habits.groups, Served(turns, cost, habits, tokens[0])
    parts = max(1.0, min(groups, users))  # a user has all of a group's part, and others stay empty
    sizes = [size / groups for size in tokens]
    seen = served.seen(users, [0.0 for _ in tokens], loads)
    times = [seen.waits, seen.holds]
    for _ in range(ROUNDS):
        shares = tiers_find(turns, users / parts, times, sizes, habits.lifetime)
        if unlike(shares, seen.found):  # a store that holds all, or nothing, finds the same in each round
            seen = served.seen(users, shares, loads)
        moved = [seen.waits - times[0], seen.holds - times[1]]
        if abs(moved[0]) + abs(moved[1]) <= SETTLED * (seen.waits + seen.holds):
            break
        times = [times[0] + HALFWAY * moved[0], times[1] + HALFWAY * moved[1]]
    return seen


def unlike(shares: list[float], before: list[float]) -> bool:
    """Tell whether any tier finds another share than before."""
    moved = 0.0
    for k in range(len(shares)):
        moved += abs(shares[k] - before[k])
    return moved > 0


def store_for(
    turns: TurnNumbers, users: float, cost: StepTimes, share: float, hbm: float, habits: SessionHabits
) -> float:
    """Return the tokens of HBM and stores that find a share of what can be found, with loads that nobody waits for.

    Of them HBM has `hbm`, which turns in flight take. Where stores drop what is old, it is what can be found by turns
    that do not wait for room.
    """
    groups, lifetime = habits.groups, habits.lifetime
    each = users / max(1.0, min(groups, users))
    share_found = share * found_within(session_of(turns, 1.0), each, lifetime)
    seen = Served(turns, cost, habits, hbm).seen(users, [share_found], [0.0])
    law = session_of(calm(turns, seen.waits) if lifetime == inf else turns, seen.holds)
    return groups * needed_tokens(law, each, share, lifetime)


class Served:
    """One engine, its sessions' prompts, and what a loop of users around it sees at given hits.

    Of its HBM, so many tokens, turns in flight take what they need.
    """

    def __init__(self, turns: TurnNumbers, cost: StepTimes, habits: SessionHabits, hbm: float) -> None:
        self._turns = turns
        self._cost = cost
        self._habits = habits
        self._whole = session_of(turns, 1.0)
        self._prompt = prompt_of(self._whole)
        self._most = habits.groups * turns_held(self._whole, hbm / habits.groups)
        self._context = self._prompt + turns.answer / 2
        self._steps = max(turns.answer - 1, 1) / habits.accepted_per_step
        # What steps take beside so many decodes: at every rate the same, so that a search for one asks again and again.
        self._known: dict[float, list[list[float]]] = {}

    def seen(self, users: float, shares: list[float], loads: list[float]) -> Visit:
        """Return what users see, and how long a turn waits for room, and holds it."""
        most, think = self._most, self._turns.think
        self._known = {}
        kinds, placed = self._kinds(shares, loads), min(users, self._most)
        groups = self._habits.groups
        own = users / groups  # of a group, whose room others do not take; who is alone there does not wait

        def around(rate: float) -> float:
            """Return how many users keep up a rate."""
            holds = self._holds(self._pulse(rate, placed, kinds))
            return rate * (think + holds + room_wait(own, most / groups, think, holds)) if holds < NO_END else NO_END

        top = 1.0
        while around(top) < users:
            top = 2 * top
        rate = root(lambda each: around(each) - users, 0.0, top, 1e-12)
        at = self._pulse(rate, placed, kinds)
        served = self._holds(at)
        wait = room_wait(own, most / groups, think, served)
        # Where no more decodes keep up, who is too many waits for the first token, in HBM as far as it has room.
        more = max(users / rate - think - served - wait, 0.0)
        holds = min(served + more, most / rate)
        return Visit(
            found=shares,
            rate=rate,
            ttft=at.first + wait + more,
            tpot=at.gap / self._habits.accepted_per_step,
            in_flight=rate * holds,
            full=rate * (served + wait + more) > most,
            prompts=at.busy,
            waits=served + wait + more - holds,
            holds=holds,
        )

    def _holds(self, at: Pulse) -> float:
        """Return how long a turn holds its room; infinite where its rate is not kept up."""
        return at.first + self._steps * at.gap if at.first < inf else inf

    def _pulse(self, rate: float, users: float, kinds: list[PromptKind]) -> Pulse:
        """Return the times at a rate, infinite where it is not kept up, and the prompts' share of the time."""
        decodes = self._decodes(rate, kinds, users)
        if decodes == inf:
            return Pulse(inf, inf, inf)
        own = users / self._habits.groups
        others = max(own - 1, 0.0) / own  # of a group's turns, those of others
        gap = self._gap(rate, decodes, kinds)
        first = self._first(rate, others, decodes, kinds, gap)
        if not self._habits.blocking:
            line, fetched = queue_of(rate / self._habits.groups, [[kind.share, kind.load] for kind in kinds])
            loaded = 0.0
            for kind in kinds:
                loaded += kind.share if kind.load > 0 else 0.0
            first += fetched + others * line * loaded
        if first == inf:
            return Pulse(inf, inf, inf)
        return Pulse(first, gap, 1 - self._step(decodes, 0.0, 0.0, 0.0) / gap if gap > 0 else 0.0)

    def _kinds(self, shares: list[float], loads: list[float]) -> list[PromptKind]:
        """Return a session's first prompts, later ones whose past was found, and those whose past was not."""
        turns, again, prompt = self._turns, self._whole.again, self._prompt
        first, begins = turns.shared + turns.first, 1 / turns.turns
        together, waited = 0.0, 0.0
        for k in range(len(shares)):
            together += shares[k]
            waited += shares[k] * loads[k]
        if turns.turns == 1:
            return [PromptKind(1.0, first, first - min(turns.shared, together * first), 0.0)]
        later = (prompt - begins * first) / (1 - begins)
        common = min(turns.shared, together * prompt)
        back = min(max(0.0, (together * prompt - common) / again), 1.0)
        kinds = [PromptKind(begins, first, first - common, 0.0)]
        if back > 0:
            share = (1 - begins) * back
            kinds.append(PromptKind(share, later, max(turns.message, 1), prompt * waited / share))
        if back < 1:
            kinds.append(PromptKind((1 - begins) * (1 - back), later, later - common, 0.0))
        return kinds

    def _taken(self, kind: PromptKind, decodes: float, bare: float) -> list[float]:
        """Return its steps, what one takes beside what it takes without the prompt, and what its load takes more.

        A step is as long as the group with the most prompt tokens takes, and costs as if all had so many.
        """
        groups = self._habits.groups
        needs = max(1.0, kind.fresh / self._room(decodes))
        pairs = (kind.n_in**2 - (kind.n_in - kind.fresh) ** 2) / 2
        prompts = 1 / needs if groups == 1 else groups  # as the engine counts them: a group's chunk is a prompt
        step = self._step(decodes, prompts, groups * kind.fresh / needs, groups * pairs / needs)
        return [needs, step - bare, max(0.0, kind.load - (step - bare)) if self._habits.blocking else 0.0]

    def _all_taken(self, kinds: list[PromptKind], decodes: float) -> list[list[float]]:
        """Return the seconds of a step without prompts, alone in a list, then `_taken` of each kind of prompt."""
        known = self._known.get(decodes, NOT_YET)
        if len(known) == 0:
            bare = self._step(decodes, 0.0, 0.0, 0.0)
            known = [[bare]]
            for kind in kinds:
                known.append(self._taken(kind, decodes, bare))
            self._known[decodes] = known
        return known

    def _gap(self, rate: float, decodes: float, kinds: list[PromptKind]) -> float:
        """Return the mean seconds of a step at so many turns per second; infinite where it does not keep up.

        Of several groups a step is longer by a chunk if any computes one, each by chance, and by as many as they have
        where that is more: a little too long where chunks of several bunch, which they do after long steps.
        """
        each_takes = self._all_taken(kinds, decodes)
        bare, beside, needs, fresh = each_takes[0][0], 0.0, 0.0, 0.0
        loads: list[list[float]] = []  # share of the prompts, and by how much what they load outlasts their first chunk
        longest = 0.0
        for k in range(len(kinds)):
            kind, taken = kinds[k], each_takes[k + 1]
            beside += kind.share * taken[0] * taken[1]
            needs += kind.share * taken[0]
            fresh += kind.share * kind.fresh
            if taken[2] > 0:
                loads.append([kind.share, taken[2]])
                longest += kind.share * taken[2]
        groups = self._habits.groups
        each, most = rate / groups, rate * (beside + longest) / groups
        if most >= 1:
            return inf
        if groups == 1 and longest == 0:
            return bare / (1 - most)

        def more(seconds: float) -> float:
            own = beside
            for share, outlasts in loads:
                own += share * waits_of(outlasts, bare, each * share * seconds)
            if groups == 1:
                return bare + rate * own * seconds - seconds
            chunks = each * needs * seconds  # of a group
            return bare + own / needs * (max(1.0, chunks) - max(0.0, 1 - chunks) ** groups) - seconds

        end = max(bare + (beside + longest) / needs, bare / (1 - most)) * (1 + SETTLED)
        gap = root(more, 0.0, end, 1e-15) if bare > 0 else 0.0
        return gap if groups == 1 or each * fresh * gap < self._room(decodes) else inf

    def _first(self, rate: float, others: float, decodes: float, kinds: list[PromptKind], gap: float) -> float:
        """Return the mean seconds to a first token, of a rate that is kept up; infinite where prompts wait for ever."""
        each_takes, groups = self._all_taken(kinds, decodes), self._habits.groups
        bare = each_takes[0][0]
        wholes: list[list[float]] = []
        for k in range(len(kinds)):  # all of its time, but for its last step
            kind = kinds[k]
            needs, longer, outlasts = each_takes[k + 1]
            waits = waits_of(outlasts, bare, rate / groups * kind.share * gap) if outlasts > 0 and gap < inf else 0.0
            wholes.append([kind.share, needs * longer + waits + (needs - 1) * bare])
        wait, busy = queue_of(rate / groups, wholes)
        step = bare if groups == 1 else gap  # of which others' chunks make a part longer
        return others * wait + busy + bare + (others if groups == 1 else 1.0) * step / 2

    def _room(self, decodes: float) -> float:
        """Return the prompt tokens that a group's step has room for beside so many decodes of all."""
        return max(self._habits.budget - self._habits.verified_per_step * decodes / self._habits.groups, 1.0)

    def _step(self, decodes: float, prefills: float, tokens: float, pairs: float) -> float:
        """Return the mean seconds of a step, of a mean number of decodes."""
        low = floor(decodes)
        here, above = self._whole_step(low, prefills, tokens, pairs), self._whole_step(low + 1, prefills, tokens, pairs)
        return here + (decodes - low) * (above - here)

    def _whole_step(self, decodes: int, prefills: float, tokens: float, pairs: float) -> float:
        context = decodes * self._context
        if tokens == 0:
            return self._cost.bare(decodes, context)
        return self._cost.seconds(decodes, context, prefills, max(floor(tokens + 0.5), 1), pairs)

    def _decodes(self, rate: float, kinds: list[PromptKind], most: float) -> float:
        """Return the requests that decode at once, by Little's law; infinite where no number of them keeps up."""

        def short(decodes: float) -> float:
            return decodes - rate * self._steps * min(self._gap(rate, decodes, kinds), NO_END)

        # Steps grow faster than decodes where prompts fill the engine: the fewest that keep up count.
        low, high = 0.0, most
        if short(most) <= 0:
            high = 0.0
            for k in range(LOOKED_AT):
                at = most * (k + 1) / LOOKED_AT
                if short(at) > 0:
                    high = at
                    break
                low = at
        return inf if high == 0 else root(short, low, high, 1e-9)


class PromptKind:
    """A kind of prompt: its share of all, its tokens, those of them that are computed, and what it waits for tiers."""

    def __init__(self, share: float, n_in: float, fresh: float, load: float) -> None:
        self.share = share
        self.n_in = n_in
        self.fresh = fresh
        self.load = load


class Pulse:
    """Seconds to a first token and of a step, and the prompts' share of the time."""

    def __init__(self, first: float, gap: float, busy: float) -> None:
        self.first = first
        self.gap = gap
        self.busy = busy


def room_wait(users: float, places: float, think: float, holds: float) -> float:
    """Return the mean wait for room of users who think, ask for one of so many places, and hold it for so long.

    The queue of a finite source (machine repair, M/M/c//N): who waits does not ask again. Places are of equal size; how
    holding times vary hardly counts. Sessions of unlike sizes wait longer, first come, first served, for a large one
    keeps room free that smaller ones behind it could use. Those that grow ninefold wait 1.5 times as long where most
    wait anyway, and 2.5 to 4.5 times where few do (simulated). A fraction of a user is interpolated.
    """
    if users <= places or not holds > 0 or holds == inf:
        return 0.0
    low = floor(users)
    here, above = queued(low, places, think, holds), queued(low + 1, places, think, holds)
    return here + (users - low) * (above - here)


def queued(users: int, places: float, think: float, holds: float) -> float:
    """Return `room_wait` of whole users: summed over how many ask or hold, from the likeliest number outwards."""
    if users <= places:
        return 0.0
    all_held = users * holds / places - holds - think  # where all places are held all the time
    if think < SETTLED * holds:
        return max(all_held, 0.0)
    likely = users - places * think / holds if all_held > 0 else users * holds / (think + holds)
    start = min(max(floor(likely), 0), users)
    waiting, held, chance, k = 0.0, 0.0, 1.0, start
    while k <= users and chance > RARE:
        waiting += chance * max(k - places, 0.0)
        held += chance * min(k, places)
        chance *= (users - k) / think * holds / min(k + 1, places)
        k += 1
    chance, k = 1.0, start
    while k > 0:
        chance *= min(k, places) / holds * think / (users - k + 1)
        if chance <= RARE:
            break
        k -= 1
        waiting += chance * max(k - places, 0.0)
        held += chance * min(k, places)
    return waiting / held * holds if held > 0 else 0.0


def waits_of(outlasts: float, hidden: float, begun: float) -> float:
    """Return what a prompt waits in the mean whose load outlasts its own computing, beside others that do.

    So many begin in the mean step, at random: the excess of the sum of their loads over what is `hidden` under the
    step, over their number. Few hide all of theirs that they can; many share it.
    """
    if begun < SETTLED:
        return max(0.0, outlasts - hidden)
    border = hidden / outlasts
    least = floor(border) + 1  # as many do not hide
    others = 1.0 if least == 1 else float(gammainc(least - 1, begun))  # chance that one fewer begin
    waits: float = outlasts * (others - border * float(gammainc(least, begun)) / begun)
    return max(0.0, waits)


def queue_of(rate: float, jobs: list[list[float]]) -> tuple[float, float]:
    """Return the mean wait, and the mean length, of jobs that come at random, served in turn: (share, seconds)."""
    length, square = 0.0, 0.0
    for share, seconds in jobs:
        length += share * seconds
        square += share * seconds**2
    return (rate * square / 2 / (1 - rate * length) if rate * length < 1 else inf), length
