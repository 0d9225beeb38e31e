"""Traces are read without dropping a line in silence, and the one-pass curve is what an LRU cache does."""

import json
from collections import OrderedDict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math_planner.fleets import traces
from inference_math_planner.fleets.traces import length_quantiles, read, reusable, reuse_curve

BLOCK = 4


def as_blocks(texts):
    """Name each block of a text by all that it ends, as a hash of the prefix would."""
    return [[text[: end + BLOCK] for end in range(0, len(text), BLOCK)] for text in texts]


# Few letters and runs of them, so that prompts begin alike and part at any place of a block.
texts = st.lists(
    st.lists(st.sampled_from(["aaaa", "bbbb", "ab", "b"]), min_size=1, max_size=6).map("".join), min_size=1, max_size=25
)


def simulated(blocks, n_in, slots):
    """Tokens and blocks of each prompt that an LRU cache of `slots` blocks holds on its arrival."""
    cache, tokens, found = OrderedDict(), [], []
    for prompt, length in zip(blocks, n_in, strict=True):
        held = [block in cache for block in prompt]
        leading = held.index(False) if False in held else len(held)
        assert sum(held) == leading, "what is stored of a prompt is a prefix"
        tokens.append(min(leading * BLOCK, length - 1))
        found.append(leading)
        for block in reversed(prompt):
            cache[block] = None
            cache.move_to_end(block)
            while len(cache) > slots:
                cache.popitem(last=False)
    return np.array(tokens), np.array(found)


@given(texts=texts, slots=st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_the_curve_is_what_an_lru_cache_of_each_size_finds(texts, slots):
    blocks, n_in = as_blocks(texts), np.array([len(text) for text in texts])
    capacity = np.array(slots) * BLOCK + np.arange(len(slots)) % BLOCK  # a part of a block holds nothing
    curve = reuse_curve(blocks, n_in, BLOCK, capacity)
    assert curve.capacity.tolist() == capacity.tolist()
    for row, size in zip(curve.itertuples(), slots, strict=True):
        tokens, found = simulated(blocks, n_in, size)
        assert row.block_share == pytest.approx(found.sum() / sum(map(len, blocks)))
        assert row.token_share == pytest.approx(tokens.sum() / n_in.sum())
        assert row.mean_alpha == pytest.approx((tokens / n_in).mean())
    # One block less than a step's capacity finds as little as the step before.
    for before, row in pairwise(reuse_curve(blocks, n_in, BLOCK).itertuples()):
        assert reuse_curve(blocks, n_in, BLOCK, row.capacity - BLOCK).block_share.item() == before.block_share


@given(texts=texts)
def test_without_a_limit_the_curve_ends_at_the_prefixes_seen_before(texts):
    blocks, n_in = as_blocks(texts), np.array([len(text) for text in texts])
    alpha = reusable(blocks, n_in, BLOCK)
    expected = [
        max((min(shared(text, old), len(text) - 1) for old in texts[:i]), default=0) / len(text)
        for i, text in enumerate(texts)
    ]
    assert alpha == pytest.approx(expected)
    curve = reuse_curve(blocks, n_in, BLOCK)
    last = curve.iloc[-1]
    assert last.mean_alpha == pytest.approx(alpha.mean())
    assert last.token_share == pytest.approx(alpha @ n_in / n_in.sum())
    assert curve.iloc[0].tolist() == [0, 0, 0, 0]
    assert (curve.block_share.diff().dropna() > 0).all()
    assert (curve[["token_share", "mean_alpha"]].diff().dropna() >= 0).all(axis=None)
    # A cache of all blocks is as good as one without a limit.
    stored = len({block for prompt in blocks for block in prompt})
    assert reuse_curve(blocks, n_in, BLOCK, stored * BLOCK).token_share[0] == last.token_share


def shared(text, old):
    """Tokens of the blocks with which both texts begin; a partial block is shared if it is the same one."""
    both = [a == b for a, b in zip(*as_blocks([text, old]), strict=False)]
    return min((both.index(False) if False in both else len(both)) * BLOCK, len(text))


@pytest.mark.parametrize(
    ("blocks", "n_in", "words"),
    [
        ([], [], "n_in must be a list of whole numbers"),
        ([[1]], [1, 2], "must have the same length, not 1 and 2"),
        ([[1], [1, 2]], [512, 512], "request 1 has 2 for 512 tokens, 512 in a block"),
        ([[1, 2], [3, 2]], [600, 600], "in request 1, 2 follows another block than before"),
        ([[1, 2], [2]], [600, 60], "in request 1, 2 follows another block than before"),
    ],
)
@pytest.mark.parametrize("function", [reusable, reuse_curve])
def test_blocks_that_name_no_prefixes_are_refused(function, blocks, n_in, words):
    with pytest.raises(ValueError, match=words):
        function(blocks, n_in)
    with pytest.raises(ValueError, match="capacity must be a finite number >= 0"):
        reuse_curve([[1]], [5], capacity=[512, -512])


def test_quantiles_are_recorded_lengths():
    table = length_quantiles(range(1, 201), [7] * 200)
    for name, value in {"count": 200, "mean": 100.5, "p0": 1, "p1": 2, "p50": 100, "p95": 190, "p100": 200}.items():
        assert table.loc["n_in", name] == value
    assert table.loc["n_in", "std"] == pytest.approx(np.std(np.arange(1, 201)))
    assert table.loc["n_out", "std"] == 0
    with pytest.raises(ValueError, match="n_out must be a finite number >= 1"):
        length_quantiles([1], [0])


def line(timestamp=0, input_length=600, output_length=5, **more):
    return json.dumps({"timestamp": timestamp, "input_length": input_length, "output_length": output_length, **more})


@pytest.fixture
def write(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_bytes(b"".join((one if isinstance(one, bytes) else one.encode()) + b"\n" for one in lines))
        return path

    return write


@pytest.mark.parametrize("strict", [False, True])
def test_mooncake_s_lines_are_read(write, strict):
    lines = line(0, hash_ids=[0, 1]), "", line(1500, 1024, 9, hash_ids=[0, 2]), line(1500, 10, 1)
    got = read(write("t.jsonl", *lines), strict=strict)
    assert got.requests.drop(columns="blocks").to_numpy().tolist() == [[0, 600, 5], [1.5, 1024, 9], [1.5, 10, 1]]
    assert got.requests.blocks.tolist() == [[0, 1], [0, 2], None]
    assert got.problems.empty
    assert got.trace().arrival.tolist() == [0, 1.5, 1.5]
    assert got.trace().alpha.tolist() == [0, 0.5, 0]


def test_azure_s_lines_are_read_and_their_dates_must_be_dates_and_in_order(write):
    header = "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r"
    rows = ["2023-11-16 18:15:46.6805900,374,44\r", "yesterday,1,1", "2023-11-16T18:15:50.9951690+00:00,396,109\r"]
    got = read(write("t.csv", header, *rows, "2023-11-16 18:15:49,1,1"))
    assert got.problems.line.tolist() == [3, 5]
    assert got.requests.drop(columns="blocks").to_numpy().tolist() == [[0, 374, 44], [4.314579, 396, 109]]
    assert got.requests.blocks.tolist() == [None, None]
    assert got.trace().alpha.tolist() == [0, 0]


def test_own_columns_may_stand_in_any_order_and_without_arrivals(write):
    found = read(write("t.csv", "user,n_out, n_in", '"b, c",5,100', "", "a,6, 200", "7"))
    assert found.problems.to_numpy().tolist() == [[5, "1 cells under 3 columns"]]
    assert found.trace().arrival is None
    assert found.trace().n_in.tolist() == [100, 200]
    assert found.trace().n_out.tolist() == [5, 6]


BAD_JSON = [
    ("{", "Expecting property name"),
    ("[" * 100_000, "recursion"),
    ("[1, 2]", "a request must be a JSON object"),
    (line(output_length=None), "output_length missing"),
    (line(input_length=0), "the prompt length must be a whole number >= 1, not 0"),
    (line(input_length=10**30), "at most 2^53"),
    (line(input_length="600"), "the prompt length must be a whole number, not '600'"),
    (line(output_length=True), "the output length must be a whole number, not True"),
    (line(timestamp=float("nan")), "timestamp must be a finite number >= 0, not nan"),
    (line(timestamp="0"), "timestamp must be a number"),
    (line(timestamp=10**400), "hundreds of digits"),
    (line(timestamp=999), "goes back from 1 to 0.999 s"),
    (line(1000, hash_ids=[0]), "600 tokens are 2 blocks of 512, not 1"),
    (line(1000, hash_ids=[0, True]), "the block ids must be a list of whole numbers or strings"),
    (b"\xff\xfe", "Expecting value"),
]
BAD_CSV = [
    ("1,1_0,3", "could not convert string to float: '1_0'"),
    ("1,nan,3", "the prompt length must be a whole number >= 1, not nan"),
    ("-1,2,3", "the time of arrival must be a finite number >= 0, not -1"),
    ("0.5,2,3", "goes back from 1 to 0.5 s"),
    ('1,"' + "2" * 200_000 + '",3', "field larger than field limit"),
]


@pytest.mark.parametrize(
    ("name", "start", "bad", "words"),
    [("t.jsonl", [line(), line(1000)], *case) for case in BAD_JSON]
    + [("t.csv", ["arrival,n_in,n_out", "1,20,3"], *case) for case in BAD_CSV],
    ids=str,
)
def test_a_malformed_line_is_listed_with_its_number_and_reason(write, name, start, bad, words):
    path = write(name, *start, bad, "", start[-1], bad)
    got = read(path)
    assert got.problems.line.tolist() == [3, 6]
    assert words in got.problems.reason[0]
    assert len(got.requests) == (3 if name == "t.jsonl" else 2)
    with pytest.raises(ValueError, match=f"^{name}, line 3: ") as caught:
        read(path, strict=True)
    assert words in str(caught.value)


def test_other_block_sizes_are_told_to_the_reader(write):
    path = write("t.jsonl", line(0, 20, 1, hash_ids=[1, 2]), line(0, 17, 1, hash_ids=["x", "y"]))
    assert read(path, strict=True, block_tokens=16).block_tokens == 16
    with pytest.raises(ValueError, match=r"t.jsonl holds no proper request \(line 1: 20 tokens are 1 blocks of 512"):
        read(path)
    with pytest.raises(ValueError, match="block_tokens must be a whole number >= 1"):
        read(path, block_tokens=0)


@pytest.mark.parametrize(
    ("name", "lines", "words"),
    [
        ("t.jsonl", [], "t.jsonl holds no proper request$"),
        ("t.csv", [], "t.csv must have the columns n_in, n_out"),
        ("t.csv", ["a,b"], r"or TIMESTAMP, ContextTokens, GeneratedTokens, not \['a', 'b'\]"),
        ("t.csv", ["arrival,n_in,n_out", "0,0,0"], r"t.csv holds no proper request \(line 2: the prompt length"),
        ("t.txt", [], r"the suffix of t.txt must be one of .jsonl, .csv, not '.txt'"),
    ],
)
def test_a_file_without_requests_is_refused(write, name, lines, words):
    with pytest.raises(ValueError, match=words):
        read(write(name, *lines))


def test_a_file_of_far_too_many_lines_is_refused_before_they_are_read_and_empty_ones_do_not_count(write, monkeypatch):
    monkeypatch.setattr(traces, "_MOST", 10)
    assert len(read(write("airy.csv", "n_in,n_out", *["5,5\n\n"] * 10)).requests) == 10
    monkeypatch.setattr(traces, "_parsed_lines", lambda *_: pytest.fail("lines were read"))
    with pytest.raises(ValueError, match=r"long\.csv must have at most 10 requests"):
        read(write("long.csv", "n_in,n_out", *["5,5"] * 11))
