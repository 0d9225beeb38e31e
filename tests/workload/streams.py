"""Streams of requests for stores, drawn: sessions of users who come back, pools of prefixes."""

from __future__ import annotations

import heapq

import numpy as np


def sessions(turns, first, message, answer, gap, cv, users, seconds, seed=0, shared=0):
    """Return (arrivals, tokens, blocks) of sessions; a block has one token, an answer is stored with its turn."""
    rng = np.random.default_rng(seed)
    due = [(float(rng.uniform(0, gap)), user, user, int(rng.integers(turns))) for user in range(users)]
    heapq.heapify(due)
    number, found = users, []
    while due[0][0] < seconds:
        now, user, session, turn = heapq.heappop(due)
        prompt = first + turn * (message + answer)
        own = [(session, block) for block in range(prompt + answer)]
        found.append((now, shared + prompt, [(-1, block) for block in range(shared)] + own))
        if turn + 1 == turns:
            session, number = number, number + 1
        wait = gap if cv == 0 else float(rng.gamma(cv**-2, gap * cv**2))
        heapq.heappush(due, (now + wait, user, session, (turn + 1) % turns))
    return tuple(list(column) for column in zip(*found, strict=True))


def found_by_lru(blocks, prompts, capacities, skip):
    """Return the shares of prompt tokens that stores of some sizes find after `skip` requests, by playing them."""
    from collections import OrderedDict

    shares = []
    for capacity in capacities:
        store, hits, asked = OrderedDict(), 0, 0
        for number, (own, prompt) in enumerate(zip(blocks, prompts, strict=True)):
            known = next((k for k, block in enumerate(own) if block not in store), len(own))
            if number >= skip:
                hits, asked = hits + min(known, prompt), asked + prompt
            for block in reversed(own):
                store.pop(block, None)
                store[block] = None
            while len(store) > capacity:
                store.popitem(last=False)
        shares.append(hits / asked)
    return shares
