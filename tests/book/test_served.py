"""The talks' law on served Llama-3-70B: what the fit finds, how far it is off, and what its intervals hold."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from inference_math import Unit, catalogue, theory
from inference_math_book import served

# Mean errors of rows left out, in per cent: as found, and the bar that they may not pass.
LEFT_OUT = {2: (1.12, 1.5), 4: (2.89, 3.5), 8: (3.60, 4.0)}
DIGITS = 1e-5  # relative: what six digits tell of a fit's number
TRUE = served.Law(0.017, (921.6, 7373.0), (0.087, 0.56), 7.3e-8)


def as_told(law: served.Law) -> pd.DataFrame:
    """Return rows that the law itself has served."""
    grid = served.rows(8).drop(columns="tpot_s")
    return grid.assign(tpot_s=law.tpot(grid.users, grid.n_in, grid.n_out))


SHOWS = (  # how much of a step each of the four numbers is where it counts most
    lambda law: law.t_1,
    lambda law: 63 * law.delta_p(921.6, 921.6),
    lambda law: 63 * law.delta_p(7373, 921.6),
    lambda law: 63 * law.delta_h(921.6, 7373),
)


@given(t_1=st.floats(0.005, 0.05), short=st.floats(0.01, 0.3), long=st.floats(0.1, 2), h=st.floats(1e-8, 2e-7))
@settings(max_examples=50, deadline=None)
def test_the_fit_finds_the_law_that_made_the_rows(t_1, short, long, h):
    law = served.Law(t_1, TRUE.lengths, (short, long), h)
    found = served.fit(as_told(law))
    assert found.lengths == law.lengths
    np.testing.assert_allclose([part(found) for part in SHOWS], [part(law) for part in SHOWS], rtol=DIGITS)


def test_the_law_is_the_formula_of_the_talks():
    users, n_in, n_out = 17, 2200, 170
    parts = {"delta_p": TRUE.delta_p(n_in, n_out), "delta_h": TRUE.delta_h(n_in, n_out)}
    assert TRUE.tpot(users, n_in, n_out) == pytest.approx(theory.expected_tpot(B=users, tpot_1=TRUE.t_1, **parts))
    assert TRUE.tpot(1, n_in, n_out) == TRUE.t_1
    assert TRUE.delta_h(n_in, n_out) == pytest.approx(TRUE.h * theory.mean_context(n_in=n_in, n_out=n_out, cv=0))


@pytest.mark.parametrize("tp", LEFT_OUT)
def test_the_law_holds_for_rows_that_it_has_not_seen(tp):
    rows = served.rows(tp)
    mean = 100 * np.abs(served.left_out(rows)).mean()
    found, bar = LEFT_OUT[tp]
    assert mean == pytest.approx(found, abs=0.02)
    assert mean < bar
    # What was not seen is missed by more than what was.
    assert mean > 100 * np.abs(served.errors(served.fit(rows), rows)).mean()


@pytest.mark.parametrize(("tp", "mean", "signs"), [(2, 1.27, {-1, 1}), (4, 5.11, {-1}), (8, 17.42, {1})])
def test_few_users_foretell_many_on_two_gpus_alone(tp, mean, signs):
    """On four H100 32 and 64 users are slower than the line through 4 to 16, on eight faster (C14)."""
    off = 100 * served.beyond(served.rows(tp), 16)
    assert np.abs(off).mean() == pytest.approx(mean, abs=0.02)
    assert set(np.sign(off)) == signs
    # Rows that the law itself has served are foretold.
    assert served.beyond(as_told(TRUE), 16) == pytest.approx(0, abs=1e-9)


def test_the_bound_rises_with_gpus_in_one_form_and_falls_in_the_other():
    laws = [served.fit(served.rows(tp)) for tp in LEFT_OUT]
    assert [bound(law) for law in laws] == pytest.approx([7.41, 8.66, 10.74], abs=0.005)
    assert [bound(law.even()) for law in laws] == pytest.approx([6.65, 6.01, 5.49], abs=0.005)


def test_a_row_that_is_left_out_does_not_help_its_own_prediction():
    rows = served.rows(2)
    wrong = rows.copy()
    wrong.loc[3, "tpot_s"] *= 2
    expected = (1 + served.left_out(rows)[3]) / 2 - 1
    assert served.left_out(wrong)[3] == pytest.approx(expected)


def test_rows_that_do_not_determine_the_law_are_refused():
    rows = served.rows(2)
    one_long = pd.concat([rows[rows.n_in < 1000], rows[rows.n_in > 1000].head(1)])
    with pytest.raises(ValueError, match="do not determine"):
        served.left_out(one_long)


def test_only_rows_with_a_queue_are_left_out():
    kept, everything = served.rows(2), served.rows(2, queued=True)
    assert (len(kept), len(everything)) == (12, 15)
    out = everything.merge(kept, how="left", indicator=True).query("_merge == 'left_only'")
    assert out.ttft_s.min() > 2 * served.QUEUE > 4 * kept.ttft_s.max()  # nothing lies near the limit
    for tp in (4, 8):
        assert len(served.rows(tp)) == len(served.rows(tp, queued=True)) == 15
    with pytest.raises(ValueError, match="2, 4 or 8"):
        served.rows(1)


def delta_p(law: served.Law) -> float:
    return float(law.delta_p(2200, 170))


def bound(law: served.Law) -> float:
    return 1 + delta_p(law) / float(law.delta_h(2200, 170))


def test_nine_of_ten_intervals_hold_the_truth():
    made, rng = as_told(TRUE), np.random.default_rng(4)
    held = {delta_p: 0, bound: 0}
    for _ in range(400):
        noisy = made.assign(tpot_s=made.tpot_s * (1 + 0.03 * rng.standard_normal(len(made))))
        for what in held:
            low, high = served.interval(noisy, what)
            held[what] += low < what(TRUE) < high
    for hits in held.values():
        assert hits == pytest.approx(360, abs=24)  # four standard deviations


def test_an_interval_is_a_point_without_scatter_and_wider_at_a_higher_level():
    assert served.interval(as_told(TRUE), delta_p) == pytest.approx((delta_p(TRUE),) * 2, rel=DIGITS)
    rows = served.rows(2)
    narrow, wide = (served.interval(rows, bound, level) for level in (0.5, 0.99))
    assert wide[0] < narrow[0] < served.CASE.bound < narrow[1] < wide[1]
    for level in (0, 1):
        with pytest.raises(ValueError, match="level"):
            served.interval(rows, bound, level)
    with pytest.raises(ValueError, match="rows more than 4"):
        served.interval(rows.iloc[[0, 1, 5, 9]], bound)


def test_a_cost_of_each_request_would_not_show_in_the_rows():
    """Three pairs of lengths give three slopes: a constant beside P and h changes no row (chapter 4 says so)."""
    for tp in LEFT_OUT:
        rows = served.rows(tp)
        others = (rows.users - 1).to_numpy()
        columns = [np.ones(len(rows)), *(others / rows.n_out * (rows.n_in == one) for one in np.unique(rows.n_in))]
        columns.append(others * (rows.n_in + rows.n_out / 2))
        assert np.linalg.matrix_rank(np.column_stack([*columns, others])) == len(columns) == 4


def test_latencies_of_whole_requests_find_the_law_that_made_them():
    made = as_told(TRUE)
    prompt = TRUE.prompt(made.n_in)
    told = made.assign(ttft_s=made.tpot_s + prompt)  # the law: a first token takes its prompt more than any other
    found = served.fit(told, whole=True)
    assert found.prompts == pytest.approx(TRUE.prompts, rel=1e-9)
    assert (found.t_1, found.h) == pytest.approx((TRUE.t_1, TRUE.h), rel=1e-9)
    low, high = served.interval(served.rows(2), bound, whole=True)
    assert low < served.CASE.bound < bound(served.fit(served.rows(2), whole=True)) < high


def test_one_user_is_played_as_the_law_says():
    one = pd.DataFrame({"n_in": [921.6], "n_out": [921.6], "users": [1]})
    each = replace(TRUE, each=1e-4)  # the shortest step holds it: it is the read of the weights that is shorter
    for law in (TRUE, each):
        found = served.played(law, one, front=0.03).iloc[0]
        assert found.tpot_s == pytest.approx(law.t_1, rel=1e-3)
        t_w = law.t_1 - law.delta_h(921.6, 921.6)
        assert found.ttft_s == pytest.approx(0.03 + t_w + law.prompt(921.6), rel=0.05)  # lengths scatter
    assert each.tpot(2, 921.6, 921.6) - TRUE.tpot(2, 921.6, 921.6) == pytest.approx(1e-4)


def misses(law: served.Law, tp: int, front: float = 0.0) -> float:
    rows = served.rows(tp)
    return float((served.played(law, rows, front=front).ttft_s / rows.ttft_s - 1).abs().mean())


def test_first_tokens_are_those_of_a_common_start():
    """Chapter 4: of users who have spread the law is far too short; played from the start it is near."""
    rows, law = served.rows(2), served.fit(served.rows(2))
    spread = served.spread(law, rows)
    assert (rows.ttft_s / spread).max() > 3.5
    alone = served.spread(law, rows.assign(users=1))
    assert alone.tolist() == pytest.approx(
        (law.t_1 - law.delta_h(rows.n_in, rows.n_out) + law.prompt(rows.n_in)).tolist()
    )
    assert misses(law, 2) < 0.1


@pytest.mark.parametrize("tp", [4, 8])
def test_first_tokens_want_shorter_prompts_and_a_cost_of_each_decode(tp):
    law = served.fit(served.rows(tp))
    for front in (0.0, 0.03):
        assert misses(law.even(), tp, front) < misses(law, tp, front) / 2
    served_ = served.rows(tp)
    assert np.allclose(*(one.tpot(served_.users, served_.n_in, served_.n_out) for one in (law, law.even())))


def test_a_queue_tells_the_precision_of_the_cache():
    """Chapter 4: rows that nothing was fitted to have the first tokens of an engine with a cache in BF16."""
    rows = served.rows(2, queued=True).query("ttft_s > @served.QUEUE")
    law, model = served.fit(served.rows(2)), catalogue.model("llama-3-70b")
    room = {kv: Unit.of(model, "h100-sxm", tp=2, weights="fp8", kv=kv).kv_capacity for kv in ("bf16", "fp8")}
    found = {kv: served.played(law, rows, kv_tokens=tokens) for kv, tokens in room.items()}
    assert (found["bf16"] / rows[["ttft_s", "tpot_s"]] - 1).abs().max(axis=None) < 0.1
    assert (found["fp8"].ttft_s / rows.ttft_s).max() < 0.3
