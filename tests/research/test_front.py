"""What stands before and after the engine."""

from math import exp

from inference_math.evidence import load
from inference_math.unit.front import handover

FRAME = load("handover").frame


def test_a_split_s_own_seconds_are_those_of_all_splits_and_lie_among_those_of_their_parts():
    found = handover()
    (own,) = FRAME[FRAME["factor"] == "all"].to_dict("records")
    assert found == (own["seconds"], own["sd"])
    for _, parts in FRAME[FRAME["factor"] != "all"].groupby("factor"):
        # Each part is a middle of its own: that of all may lie a little below the least of two.
        assert 0.9 * parts["seconds"].min() <= found.seconds < parts["seconds"].max()
        assert (parts["splits"].sum(), parts["rows"].sum()) == (own["splits"], own["rows"])


def test_seconds_do_not_grow_as_prompts_do():
    lengths = FRAME[FRAME["factor"] == "n_in"].assign(tokens=lambda rows: rows["level"].astype(float))
    short, long = lengths.sort_values("tokens")[["tokens", "seconds"]].to_numpy()
    assert long[0] > 7 * short[0]
    assert long[1] < exp(handover().sd) * short[1]
