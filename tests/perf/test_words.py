"""What a plan says in words."""

from __future__ import annotations

import pytest

from inference_math.perf.words import checked, idle, short, sized, sized_how

ROWS = [
    dict(zip(("kind", "engine", "maker", "source", "points", "error", "inside"), row, strict=True))
    for row in [
        ("dense", "atom", "AMD", "recipes", 6, 0.4, 0.8),
        ("dense", "sglang", "NVIDIA", "book", 9, 0.2, 0.7),
        ("dense", "vllm", "NVIDIA", "set aside", 4, 0.3, 1),
        ("dense", "trtllm", "NVIDIA", "book", 3, 0.6, 0),
        ("dense", "trtllm", "NVIDIA", "set aside", 140, 0.1, 0.5),
    ]
]


@pytest.mark.parametrize(
    ("kind", "engine", "maker", "said"),
    [
        (
            "dense", "trtllm", "NVIDIA",
            "on 140 served points that were set aside, predictions of dense under trtllm were 10% off in the mean, and "
            "50% lay within the 90 % interval; on 3 points of book they were 60% off in the mean, and 0% lay within "
            "the 90 % interval",
        ),
        (
            "dense", "sglang", "NVIDIA",
            "no served points of dense under sglang were set aside to check predictions; on 9 points of book they were "
            "20% off in the mean, and 70% lay within the 90 % interval; under other engines the mean was up to 30% off",
        ),
        (
            "dense", "vllm", "AMD",
            "no served points of dense under vllm on GPUs of AMD were set aside to check predictions; on 6 points of "
            "recipes under atom they were 40% off in the mean, and 80% lay within the 90 % interval",
        ),
        (
            "hybrid", "sglang", "NVIDIA",
            "no served points of hybrid under sglang were set aside to check predictions",
        ),
    ],
)  # fmt: skip
def test_what_was_checked_is_said_by_engine_and_maker(kind, engine, maker, said):
    assert checked(kind, engine, maker, ROWS) == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("chunked", 3, 1, 6, 40, "", 0, False, "chunked"),
            "6 GPUs for 40 requests/s: chunked, 3 replicas of one unit; no other",
        ),
        (
            ("chunked", 1, 8, 16, 9.5, "aggregated", 7.25, True, "chunked"),
            "9.5 requests/s on 16 GPUs: chunked, 1 replica of 8",
        ),
    ],
)
def test_a_fleet_in_a_sentence(arguments, said):
    assert sized(*arguments).startswith(said)
    assert sized(*arguments).endswith("next aggregated, 7.25 requests/s" if arguments[-2] else "gets there")
    assert sized(*arguments[:-1], "split").endswith(". At full load, without queues, split would be first")
    assert "; " not in sized(*arguments[:-1], "")  # asked for by name
    assert "at random, equal prompts" in sized_how(0.9, 1, "", 8)
    assert "a CV of 4 at each replica, lengths as recorded, pools of 6 units" in sized_how(0.9, 4, "mix", 6)
    assert "arrivals and lengths as recorded" in sized_how(0.9, 4, "trace", 8)


def test_what_a_replica_keeps_that_has_nothing_to_do():
    said = short(0.9, [idle("chunked", 0.5), idle("aggregated", 0.123)])
    assert said.startswith(
        "with queues, no architecture keeps both limits for 90% of the requests, not even on a replica"
    )
    assert said.endswith("nothing to do: chunked keeps them for 50%; aggregated keeps them for 12%; loosen a limit")
