"""One engine: requests that decode together, prompts that are computed beside them, step after step.

The planner's page runs it, too: the book prints it as JavaScript.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import ceil, floor, inf, nan, sqrt
from typing import Protocol

from inference_math.simulate.chance import PRIME
from inference_math.simulate.types import StepTimes, System

UNKNOWN = (-1.0, -1.0, 1.0, 0.0)  # a line that nobody has asked for: it holds nowhere
EVER = 10**15  # more steps than anybody runs
UNSEEN = (0, 0.0, 0.0)  # nobody has looked ahead since something changed
TINY = 1e-6  # tokens: what rounding may add up to where a step gives parts of them


class Request:
    """One request: a running number, when its user sent it, prompt, output and stored prompt tokens.

    `accepted_per_step` are the tokens that a step gives it, where requests draft and differ in that; 0: the system's.
    `rank` is where its engine has put it, `load` what that waits for its stored tokens besides (s). Of one that was
    preempted, `kept` are the tokens that its user has: they are computed again with the prompt; `admitted`, `first` and
    `left` are when it was first admitted, had its first token, and its last one.
    """

    def __init__(self, number: int, arrival: float, n_in: int, n_out: int, cached: int) -> None:
        self.number = number
        self.arrival = arrival
        self.n_in = n_in
        self.n_out = n_out
        self.cached = cached
        self.accepted_per_step = 0.0
        self.load = 0.0
        self.rank = 0
        self.kept = 0
        self.admitted = 0.0
        self.first = 0.0
        self.left = 0.0

    def length(self) -> int:
        """Return the tokens to compute, stored ones included, before it decodes."""
        return self.n_in + self.kept


class Ledger(Protocol):
    """Who notes what happens: `record.Record`, which keeps everything, or `goodput.Tally`."""

    logs: bool
    notes: bool  # whether steps and gaps are noted at all
    measured: int
    preempted: int

    def run(self, first: float, rise: float, steps: int, decodes: int) -> None:
        """Note `steps` steps in a row: the first takes `first` seconds, each one after it `rise` more."""

    def gap(self, seconds: float) -> None:
        """Note one gap that is no step of its engine."""

    def request(self, request: Request, admitted: float, first_token: float, finished: float) -> None:
        """Note a request that has finished."""

    def step(
        self, engine: int, start: float, seconds: float, decodes: int, context: float, prefills: float, tokens: int
    ) -> None:
        """Note one step in the log."""


class Room:
    """Places and tokens of KV cache that are free.

    A request reserves all its tokens when it is admitted; where caches grow, only its prompt and first token, and what
    its answer adds is taken as it comes (`Batch` tells).
    """

    def __init__(self, places: float, tokens: float, grows: bool) -> None:
        self.places = places
        self.tokens = tokens
        self.grows = grows

    def fits(self, request: Request, beside: float) -> bool:
        """Tell whether there is room for `request` now, and for so many tokens `beside` that others will add."""
        return self.places >= 1 and self.tokens + TINY >= self._first(request) + (beside if self.grows else 0)

    def holds(self, requests: deque[Request], beside: float) -> int:
        """Return how many of some requests there is room for together, the first of them first; `beside` as in `fits`.

        A place that somebody leaves later is no room.
        """
        grows = self.grows
        places, tokens, count = self.places, self.tokens + TINY - (beside if grows else 0), 0
        for request in requests:
            places -= 1
            tokens -= request.n_in + (request.kept + 1 if grows else request.n_out)
            if places < 0 or tokens < 0:
                break
            count += 1
        return count

    def take(self, request: Request) -> None:
        """Reserve the room of `request`."""
        self.places -= 1
        self.tokens -= self._first(request)

    def grow(self, tokens: float) -> None:
        """Take what the answers of a step add, where caches grow."""
        if self.grows:
            self.tokens -= tokens

    def give_back(self, request: Request, beyond: float) -> None:
        """Free the room of `request`, whose answer is complete; it grew by so many tokens `beyond` the answer's."""
        self.places += 1
        self.tokens += request.n_in + request.n_out + (beyond if self.grows else 0)

    def drop(self, tokens: float) -> None:
        """Free the room of a request that holds so many tokens, and does not go on."""
        self.places += 1
        self.tokens += tokens

    def untake(self, request: Request) -> None:
        """Free the room of a request that has been admitted and has not decoded since."""
        self.drop(self._first(request))

    def _first(self, request: Request) -> int:
        return request.length() + 1 if self.grows else request.n_in + request.n_out


class Batch:
    """The decoding requests of one engine, and its clock.

    A request that decodes its j-th token reads the KV cache of n_in + j − 1 tokens. A step gives it one token, or where
    requests draft some more, as many as `accepted_per_step` in each: their mean, or its own.
    """

    def __init__(self, cost: StepTimes, record: Ledger, room: Room, number: int, accepted_per_step: float) -> None:
        self.cost = cost
        self.record = record
        self.room = room
        self.number = number
        self.now = 0.0
        self.step = 0
        self.size = 0
        self.context: float = 0
        self._accepted = accepted_per_step
        self._giving: float = 0  # tokens that a step gives all of them
        # (last step, number, admitted, first token, request, tokens beyond its answer): the next to finish is on top.
        self._ends: list[tuple[int, int, float, float, Request, float]] = []
        # First tokens of those who come from elsewhere: their next gap began before they joined.
        self._fresh: list[float] = []
        self._decoded = 0.0  # when all of them had a token last
        self._lines: list[tuple[float, float, float, float] | None] = []  # by the number of decodes
        self._coming = UNSEEN  # what `_ahead` found, until something changes

    def join(self, request: Request, admitted: float, first_token: float, done: int) -> None:
        """Let `request`, which has `done` tokens, decode from the next step on."""
        accepted_per_step = self._given(request)
        steps = ceil((request.n_out - done) / accepted_per_step)
        beyond = done + steps * accepted_per_step - request.n_out  # of the last step some drafts may be too many
        heappush(self._ends, (self.step + steps, request.number, admitted, first_token, request, beyond))
        self.size += 1
        self._giving += accepted_per_step
        self.context += request.n_in + done
        if first_token < self.now and self.record.notes:
            self._fresh.append(first_token)
        request.left = self.now
        self._coming = UNSEEN

    def join_computed(self, request: Request, admitted: float) -> None:
        """Let `request` decode, of which a step has computed all: it has its next token now, after a preemption too."""
        if request.kept > 0:
            admitted = request.admitted
            if self.record.notes:
                self.record.gap(self.now - request.left)
        self.join(request, admitted, self.now, request.kept + 1)

    def _given(self, request: Request) -> float:
        return request.accepted_per_step if request.accepted_per_step > 0 else self._accepted

    def after(self, seconds: float, decodes: int) -> None:
        """Move the clock over one step in which `decodes` requests decoded: all of them."""
        if self.record.notes:
            self._note(seconds, 0.0, 1, decodes)
        self.now += seconds
        self.step += 1
        self._decoded = self.now
        self.context += self._giving
        self._coming = UNSEEN
        self.room.grow(self._giving)

    def pause(self, seconds: float) -> None:
        """Move the clock over a step in which no request decodes: the next gap of each is longer by it."""
        while len(self._fresh) < self.size and self.record.notes:
            self._fresh.append(self.now)
        self.now += seconds
        self._coming = UNSEEN
        if self.record.notes:
            self.record.run(seconds, 0.0, 1, 0)

    def until_event(self, most: int) -> float:
        """Return where `decode` gets to: the next finish, or the end of a step after which there is more to see.

        In at `most` so many steps.
        """
        steps, first, rise = self._ahead()
        steps = min(steps, most)
        return self.now + steps * first + rise * steps * (steps - 1) / 2

    def calm_until(self) -> float:
        """Return up to when the same requests decode: where the step begins after which there is more to see."""
        if self.size == 0:
            return inf
        steps, first, rise = self._ahead()
        return self.now + (steps - 1) * first + rise * (steps - 1) * (steps - 2) / 2

    def decode(self, until: float, most: int) -> None:
        """Run steps without prefills to the next finish, or to the end of the step that `until` falls in.

        At `most` so many steps.
        """
        steps, first, rise = self._ahead()
        if until < inf and steps > 1:
            steps = max(1, min(steps, _steps_to(until - self.now, first, rise)))
        if steps > most:
            steps = most
        if self.record.logs:
            self._log(steps, first, rise)
        if self.record.notes:
            self._note(first, rise, steps, self.size)
        self.room.grow(steps * self._giving)
        self.now += steps * first + rise * steps * (steps - 1) / 2
        self.step += steps
        self._decoded = self.now
        self.context += steps * self._giving
        self._coming = UNSEEN

    def _note(self, first: float, rise: float, steps: int, decodes: int) -> None:
        """Note steps in a row, and the gaps of those whose last token is older than the step before."""
        self.record.run(first, rise, steps, decodes - len(self._fresh))
        for since in self._fresh:
            self.record.gap(self.now + first - since)
        if len(self._fresh) > 0:
            self._fresh = []

    def finished(self) -> list[Request]:
        """Take the requests whose last token is out out of the batch, and return them."""
        done: list[Request] = []
        ends = self._ends
        while len(ends) > 0 and ends[0][0] <= self.step:
            _, _, admitted, first_token, request, beyond = heappop(ends)
            self.size -= 1
            self._giving = self._giving - self._given(request) if self.size > 0 else 0  # nothing is left of rounding
            self.context -= request.n_in + request.n_out + beyond
            self.record.request(request, admitted, request.first if request.kept > 0 else first_token, self.now)
            self.room.give_back(request, beyond)
            done.append(request)
            self._coming = UNSEEN
        return done

    def short(self) -> bool:
        """Tell whether the next step's tokens have no room."""
        return self.room.grows and self.size > 0 and self.room.tokens + TINY < self._giving

    def newest(self) -> int:
        """Return the number of who came last of those that decode."""
        number = self._ends[0][1]
        for end in self._ends:
            number = max(number, end[1])
        return number

    def preempt(self, number: int) -> Request:
        """Take a request out that does not go on now; it keeps the tokens that its user has."""
        others = self._ends
        self._ends = []
        chosen = others[0]
        for end in others:
            if end[1] == number:
                chosen = end
            else:
                heappush(self._ends, end)
        last, _, admitted, first_token, request, beyond = chosen
        done = request.n_out + beyond - (last - self.step) * self._given(request)
        if request.kept == 0:
            request.admitted, request.first = admitted, first_token
        # Its last token: of the last step in which all decoded, or of its prompt. Those who stood still since have
        # their gap still to come; it has its own later.
        request.left = max(request.left, self._decoded)
        still = self._fresh
        self._fresh = []
        gone = False
        for since in still:
            if since == request.left and not gone:
                gone = True
            else:
                self._fresh.append(since)
        request.kept = floor(done + TINY)
        self.size -= 1
        self._giving = self._giving - self._given(request) if self.size > 0 else 0
        self.context -= request.n_in + done
        self.room.drop(request.n_in + done)
        self._coming = UNSEEN
        return request

    def fits(self, request: Request) -> bool:
        """Tell whether there is room for a request beside what the next step adds."""
        return self.room.fits(request, self._giving)

    def holds(self, requests: deque[Request]) -> int:
        """Return how many of some requests there is room for together beside what the next step adds."""
        return self.room.holds(requests, self._giving)

    def fits_at_once(self, request: Request) -> bool:
        """Tell the same of a request that decodes from the next step on: alone it may always."""
        return self.room.fits(request, self._giving + self._given(request) if self.size > 0 else 0.0)

    def _ahead(self) -> tuple[int, float, float]:
        """Return the steps to the next event, the seconds of the first, and by how much each next is longer."""
        if self._coming[0] == 0:
            self._coming = self._looked_ahead()
        return self._coming

    def _looked_ahead(self) -> tuple[int, float, float]:
        size = self.size
        while len(self._lines) <= size:
            self._lines.append(UNKNOWN)
        line = self._lines[size]
        if line is not None and not line[2] <= self.context <= line[3]:
            line = self.cost.line(size, self.context)
            self._lines[size] = line
        if line is None:
            return 1, self.cost.seconds(size, self.context, 0.0, 0, 0.0), 0.0
        fixed, per_token, _, high = line
        steps = 1 if len(self._fresh) > 0 else self._ends[0][0] - self.step
        if high < inf:
            steps = min(steps, floor((high - self.context) / self._giving) + 1)
        room = self.room.tokens + TINY
        if self.room.grows and self._giving <= room < steps * self._giving:
            steps = floor(room / self._giving)  # then somebody is preempted
        return steps, fixed + per_token * self.context, per_token * self._giving

    def _log(self, steps: int, first: float, rise: float) -> None:
        start, context = self.now, self.context
        for i in range(steps):
            seconds = first + rise * i
            self.record.step(self.number, start, seconds, self.size, context, 0.0, 0)
            start += seconds
            context += self._giving


class Rank:
    """The prompts of one rank of an engine: those whose computing has begun or is next, in the order of arrival."""

    def __init__(self) -> None:
        self.prompts: deque[Request] = deque()
        self.progress = 0  # tokens of the first of them that are there
        self.started = 0.0  # when its first own step began
        self.requests = 0  # that are admitted and not done


class Engine:
    """A batch with a queue before it: who is admitted, and which prompt tokens the next step computes.

    Prompts are computed in the order of arrival, beside the decodes, at most the `budget` of tokens of both in a step.
    Where caches grow and the next step's tokens have no room, who came last is preempted, be it a prompt: it waits
    before all others, and is computed again, with what it has of its answer. (An engine may find some of that in its
    prefix cache; here nothing is found.) A request is admitted when a place and room for its KV cache are free, to the
    rank that has the fewest; all ranks step together. The `load` of the system is what the engine waits for a stored
    token, in seconds, while it computes others; `policy` is how it lets prompts into its steps, see
    `schedulers.SchedulerPolicy`.
    """

    def __init__(self, cost: StepTimes, record: Ledger, room: Room, system: System) -> None:
        self.batch = Batch(cost, record, room, 0, system.accepted_per_step)
        self.waiting: deque[Request] = deque()
        self._cost = cost
        self._record = record
        self._budget = system.budget / system.ranks
        self._verified = system.verified_per_step
        self._load = system.load
        self._ranks = [Rank() for _ in range(system.ranks)]
        self._by_chance = system.by_chance
        self._chance = 1
        self._prompts = 0  # admitted, and not yet computed
        self._policy = system.policy
        # Whether prompts are never held.
        self._eager = system.policy.every <= 1 and system.policy.looks <= 1
        self._eager = self._eager and system.policy.wait_steps <= 0
        self._looked = 0  # the step after which the engine looked last, or would have
        self._waited = 0  # steps that prompts have been held for
        self._paused = 0  # steps in which nobody decoded: a cadence counts them, too
        self._begun = -EVER  # the step with which prompts were let in last
        self._drained = True  # whether it took all that waited
        self._planned = 0  # of those who wait, who had room when the last step began, where steps are planned ahead

    def idle(self) -> bool:
        """Tell whether there is nothing to do."""
        return self.batch.size + self._prompts + len(self.waiting) == 0

    def load(self) -> int:
        """Return the number of requests here, waiting ones too."""
        return self.batch.size + self._prompts + len(self.waiting)

    def calm_until(self) -> float:
        """Return up to when nothing happens here but the same decodes, if nobody comes."""
        return self.batch.now if self._prompts + len(self.waiting) > 0 else self.batch.calm_until()

    def advance(self, until: float) -> list[Request]:
        """Run to the next event, at latest to the end of the step that `until` falls in; return who finished."""
        waiting, batch = self.waiting, self.batch
        away = self._preempt() if batch.room.grows and batch.short() else 0
        if len(waiting) > 0:
            ahead = self._policy.ahead
            # Without a step to run and one that is planned, the next one is planned now.
            busy = batch.size + self._prompts + self._planned > 0
            planned = self._planned if ahead and busy else len(waiting)
            while planned > 0 and away == 0 and batch.fits(waiting[0]):
                self._admit(waiting.popleft())
                planned -= 1
            self._planned = batch.holds(waiting) if ahead else 0
        if self._prompts > 0 and self.computes():
            self.mix()
        else:
            self._decode(until)
        done = batch.finished()
        for request in done:
            self._ranks[request.rank].requests -= 1
        return done

    def _preempt(self) -> int:
        """Send who came last back to wait until the next step's tokens fit; return how many."""
        away = 0
        if self._policy.alone and self.computes():
            return away  # decodes stand still
        while self.batch.short() and self.batch.size + self._prompts > 1:
            last = self._ranks[0]
            for rank in self._ranks:
                if len(rank.prompts) > 0 and (len(last.prompts) == 0 or _number(rank.prompts) > _number(last.prompts)):
                    last = rank
            newest = self.batch.newest()
            if len(last.prompts) > 0 and _number(last.prompts) > newest:
                request = self._put_off(last)
            else:
                request = self.batch.preempt(newest)
            self._ranks[request.rank].requests -= 1
            self.waiting.appendleft(request)
            self._record.preempted += 1
            away += 1
        return away

    def _put_off(self, rank: Rank) -> Request:
        """Take the last prompt of a rank back, and what is there of it."""
        request = rank.prompts.pop()
        self._prompts -= 1
        self.batch.room.untake(request)
        return request

    def computes(self) -> bool:
        """Tell whether the next step computes tokens of a prompt."""
        if self._prompts == 0:
            return False
        beside = 0 if self._policy.alone else self.batch.size / len(self._ranks)
        return beside * self._verified < self._budget and (self._eager or self._held() == 0)

    def _held(self) -> int:
        """Return for how many steps prompts are held at most, if nobody comes."""
        batch, policy = self.batch, self._policy
        if batch.size == 0:
            return 0
        every: int = policy.every
        if every > 1:
            if policy.guard and not self._drained:
                return 0
            step = batch.step + self._paused
            passed = min(step - self._begun, every) if policy.since else step % every
            return (every - passed) % every
        for rank in self._ranks:
            if len(rank.prompts) > 0 and rank.progress > rank.prompts[0].cached:  # a prompt that was cut goes on
                return 0
        if policy.balanced:
            return self._unbalanced(policy.wait_steps)
        looks: int = policy.looks
        unseen = (looks - (batch.step - self._looked) % looks) % looks
        if unseen > 0 or self._waited >= policy.wait_steps:
            return unseen
        fresh = 0
        for rank in self._ranks:
            for request in rank.prompts:
                fresh += request.length() - request.cached
        enough = fresh + batch.size * self._verified >= policy.wait_tokens
        return 0 if enough else policy.wait_steps - self._waited

    def _unbalanced(self, round_of: int) -> int:
        """Return how many steps of a round are left, where some rank has no prompt; none where one has nothing else.

        A rank without requests decodes a dummy.
        """
        some = False
        for rank in self._ranks:
            if len(rank.prompts) == 0:
                some = True
            elif rank.requests == len(rank.prompts):
                return 0
        return round_of - 1 - (self.batch.step - self._looked) % round_of if some and round_of > 0 else 0

    def resume(self, request: Request, done: int) -> None:
        """Put in a request that is already under way, with `done` tokens: a start in the steady state."""
        self.batch.room.take(request)
        self.batch.room.grow(done - 1)
        self._place(request)
        self.batch.join(request, nan, nan, done)

    def _place(self, request: Request) -> Rank:
        """Give a request to the rank that has the fewest, or to any."""
        least = 0
        if self._by_chance:
            self._chance = self._chance * 16807 % PRIME
            least = floor(self._chance * len(self._ranks) / PRIME)
        else:
            for number in range(1, len(self._ranks)):
                if self._ranks[number].requests < self._ranks[least].requests:
                    least = number
        request.rank = least
        self._ranks[least].requests += 1
        return self._ranks[least]

    def _admit(self, request: Request) -> None:
        self.batch.room.take(request)
        self._line_up(request)

    def _line_up(self, request: Request) -> None:
        rank = self._place(request)
        if len(rank.prompts) == 0:
            rank.progress = request.cached
        rank.prompts.append(request)
        self._prompts += 1

    def _decode(self, until: float) -> None:
        batch = self.batch
        if self._prompts > 0:  # they are held, or decodes fill the budget
            before, held = batch.step, self._held()
            batch.decode(until, held if held > 0 else EVER)
            self._waited += batch.step - before
            return
        if len(self.waiting) > 0 and batch.fits(self.waiting[0]):
            batch.decode(until, 1)  # the next step has them
            return
        # Who comes while there is no place will not start before somebody finishes.
        batch.decode(inf if len(self.waiting) > 0 or batch.room.places < 1 else until, EVER)

    def mix(self) -> None:
        """Compute prompt tokens, beside the decodes unless these stand still.

        A prompt that is complete has its first token at the end. The step is as long as the rank with the most prompt
        tokens takes.
        """
        batch, alone, many = self.batch, self._policy.alone, len(self._ranks)
        decodes, context = (0, 0.0) if alone else (batch.size, batch.context)
        complete: list[tuple[Request, float]] = []
        most, pairs, prefills, load, together = 0, 0.0, 0.0, 0.0, 0
        if self._drained or not self._policy.guard:
            self._begun = batch.step + self._paused
        for rank in self._ranks:
            own = 0 if alone else rank.requests - len(rank.prompts)  # that decode
            taken = self._fill(rank, self._budget - own * self._verified, complete)
            load = max(load, taken[3])
            together += taken[0]
            if taken[0] > most or (taken[0] == most and taken[1] > pairs):
                most, pairs, prefills = taken[0], taken[1], taken[2]
        if many > 1 and most > 0:  # a rank's chunk is a prompt of its own
            prefills, share = many * max(prefills, 1.0), together / (many * most)
            seconds = self._cost.uneven(decodes, context, prefills, many * most, many * pairs, share)
        else:
            seconds = self._cost.seconds(decodes, context, prefills, many * most, many * pairs)
        seconds = max(seconds, load)  # layers come while the step computes those before them, to each rank its own
        if self._record.logs:
            self._record.step(0, batch.now, seconds, decodes, context, prefills, many * most)
        if alone:
            batch.pause(seconds)
            self._paused += 1
        else:
            batch.after(seconds, decodes)
        for request, admitted in complete:
            batch.join_computed(request, admitted)
        self._looked = batch.step
        self._waited = 0
        self._drained = self._prompts == 0

    def _fill(
        self, rank: Rank, budget: float, complete: list[tuple[Request, float]]
    ) -> tuple[int, float, float, float]:
        """Compute what a rank's budget has room for; return tokens, pairs, prompts, seconds of what is loaded."""
        tokens, pairs, prefills, load = 0, 0.0, 0.0, 0.0
        prompts = rank.prompts
        while len(prompts) > 0 and budget >= 1:
            request = prompts[0]
            start, length = rank.progress, request.length()
            end = start + self._part(length - start, budget, tokens)
            if end == start:
                break
            if start == request.cached:
                rank.started = self.batch.now
                load += self._load * request.cached + request.load
            budget -= end - start
            tokens += end - start
            pairs += (end * end - start * start) / 2
            prefills += (end - start) / (length - request.cached)
            rank.progress = end
            if end == length:
                complete.append((prompts.popleft(), rank.started))
                self._prompts -= 1
                rank.progress = prompts[0].cached if len(prompts) > 0 else 0
        return tokens, pairs, prefills, load

    def _part(self, left: int, budget: float, taken: int) -> int:
        """Return how many of the tokens that are left of a prompt go into a step with `taken` others."""
        if left <= budget:
            return left
        if self._policy.whole:
            return 0 if taken > 0 else left
        return floor(budget)


def _number(prompts: deque[Request]) -> int:
    """Return the number of the last of some prompts."""
    return prompts[len(prompts) - 1].number


def _steps_to(seconds: float, first: float, rise: float) -> int:
    """Return how many steps, each `rise` longer than the last, it takes to last `seconds`."""
    # k·first + rise·k(k−1)/2 = seconds, solved without a difference of large numbers
    half = first - rise / 2
    return ceil(2 * seconds / (half + sqrt(half * half + 2 * rise * seconds)))
