"""Who sends when: random arrivals, users, and the store that requests wait for."""

from itertools import islice

import numpy as np
import pytest
from scipy import stats

from inference_math.simulate import Aggregated, StepCost, closed_loop
from inference_math.simulate.users import arrivals, lengths
from inference_math.workload import Requests, Workload

COST = StepCost(t_w=0.02, T=1e-4)


@pytest.mark.parametrize("cv", [0.5, 1, 2])  # 1: a Poisson process
def test_bursts_are_gamma_distributed_independent_and_keep_the_rate(cv):
    times = np.array(list(islice(arrivals(5.0, np.random.default_rng(2), cv), 20_000)))
    gaps = np.diff(times, prepend=0.0)
    assert stats.kstest(gaps, "gamma", args=(1 / cv**2, 0, cv**2 / 5)).pvalue > 0.01
    assert abs(stats.pearsonr(gaps[1:], gaps[:-1]).statistic) < 3 / np.sqrt(gaps.size)
    assert np.std(gaps) * 5 == pytest.approx(cv, rel=0.05)
    assert times[-1] == pytest.approx(20_000 / 5, rel=3 * cv / np.sqrt(20_000))


def test_lengths_come_in_the_order_in_which_they_are_drawn():
    users = Workload(10, 30, alpha=0.5, lengths="geometric")
    found = list(islice(lengths(users, np.random.default_rng(3)), 5000))
    rng = np.random.default_rng(3)
    drawn = [np.column_stack(users.draw(4096, rng)) for _ in range(2)]
    assert (np.array(found) == np.concatenate(drawn)[:5000]).all()


class Drawn:
    """A source of somebody else's."""

    def __init__(self, n_in, n_out, cached):
        self.requests = Requests(*(np.array(column) for column in (n_in, n_out, cached)))

    def draw(self, count, rng):
        return self.requests


@pytest.mark.parametrize(
    ("columns"),
    [([], [], []), ([0], [5], [0]), ([10], [0], [0]), ([10], [5], [10]), ([10], [5], [-1]), ([10.5], [5], [0]),
     ([10], [float("nan")], [0]), (["a"], [5], [0])],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("start", ["together", "steady"])
def test_a_source_that_draws_no_requests_is_refused(columns, start):
    with pytest.raises(ValueError, match="source must draw requests of whole numbers n_in >= 1"):
        closed_loop(Drawn(*columns), COST, requests=5, concurrency=2, start=start)


def test_a_request_may_fill_the_cache_and_not_more():
    users, setting = Workload(100, 20), {"concurrency": 1, "requests": 1}
    assert len(closed_loop(users, COST, **setting, scheduler=Aggregated(kv_capacity=120)).requests) == 1
    with pytest.raises(ValueError, match="kv_capacity must hold the longest request, 120 tokens, not 119"):
        closed_loop(users, COST, **setting, scheduler=Aggregated(kv_capacity=119))
