"""Whole prompts and pools of the same hardware, played with answers of any length: no formula of the package is used.

Each token of an answer is its last one with probability 1/n_out. Times are in seconds.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Hardware"]

_ANSWERS = 60_000  # of which the number scatters by 0.4 %


@dataclass(frozen=True)
class Hardware:
    """A step takes `t_w`, `prompt` for each prompt in it and `read` for each decode; an answer has `n_out` tokens."""

    n_out: float
    prompt: float
    read: float
    t_w: float

    def together(self, users: int, seed: int = 0) -> tuple[float, float]:
        """Return the requests/s of a unit whose users ask again at once, and the mean time between their tokens."""
        steps = round(_ANSWERS * self.n_out / users)
        begins = np.random.default_rng(seed).binomial(users, 1 / self.n_out, steps)
        times = self.t_w + self.prompt * begins + self.read * (users - begins)
        return begins.sum() / times.sum(), (times * (users - begins)).sum() / (users - begins).sum()

    def apart(self, limit: float, seed: int = 1) -> float:
        """Return the requests/s of a unit of pools that are both busy, at a mean time between tokens.

        Prompts are computed one by one. A decode unit holds one of two whole numbers of requests, each in so many
        steps that the mean of all tokens is the limit.
        """
        few = int((limit - self.t_w) / self.read + 1e-9)
        each = np.array([few, few + 1])
        late = each * (self.t_w + self.read * each - limit)  # of all tokens of a step
        held = each @ (late[1], -late[0]) / (late[1] - late[0])
        steps = round(_ANSWERS * self.n_out / held)
        rng = np.random.default_rng(seed)
        answers = rng.binomial(round(steps * held), 1 / self.n_out)  # each token may be the last
        answers += rng.negative_binomial(answers, 1 - 1 / self.n_out)  # those of one token are never decoded
        decoding = steps * (self.t_w + self.read * held)
        return answers / (decoding + answers * (self.t_w + self.prompt))
