"""Traces as text; what files hold is in test_traces."""

from __future__ import annotations

import pytest

from inference_math.workload.lines import BLOCK_TOKENS, Line, block_count, parsed_lines
from inference_math.workload.traces import read


def parsed(text, objects=False, strict=False, most=1000):
    return parsed_lines(text.splitlines(), objects, "text", strict, BLOCK_TOKENS, most)


def test_lengths_alone_are_a_trace_without_arrivals(tmp_path):
    text = "n_out, n_in\n5,100\n\n6, 200\n7\n"
    found, problems = parsed(text)
    assert found == [Line(None, 100, 5, None), Line(None, 200, 6, None)]
    assert problems == [(5, "1 cells under 2 columns")]
    path = tmp_path / "lengths.csv"
    path.write_text(text)
    assert read(path).trace().arrival is None
    assert read(path).trace().n_in.tolist() == [100, 200]


def test_dates_count_from_the_first():
    header = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    found, _ = parsed(header + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16T18:15:47.5,396,109\n")
    assert [one.arrival for one in found] == [0, pytest.approx(0.81941)]


def test_an_empty_text_and_a_strict_reading_are_refused():
    with pytest.raises(ValueError, match=r"text must have the columns n_in, n_out \(and arrival\), or TIMESTAMP"):
        parsed("")
    with pytest.raises(ValueError, match="text holds no proper request"):
        parsed("", objects=True)
    with pytest.raises(ValueError, match="text, line 2: could not convert"):
        parsed("n_in,n_out\n1_0,5\n", strict=True)


def test_too_many_are_refused():
    assert len(parsed("n_in,n_out\n" + 3 * "1,1\n", most=3)[0]) == 3
    for more in ("1,1\n", "1,x\n"):
        with pytest.raises(ValueError, match="text must have at most 3 requests: take a part"):
            parsed("n_in,n_out\n" + 3 * "1,1\n" + more, most=3)


@pytest.mark.parametrize(("tokens", "blocks"), [(1, 1), (512, 1), (513, 2)])
def test_the_last_block_may_be_partial(tokens, blocks):
    assert block_count(tokens, 512) == blocks
