"""Engines: one record each, in `data/engines.toml`; nothing else knows an engine by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from inference_math.evidence import data_dir
from inference_math.evidence.checks import as_one_of
from inference_math.evidence.records import Record

if TYPE_CHECKING:
    from inference_math.catalogue.models import Gpu

__all__ = ["EngineRecord", "Graphs", "Usual", "engine", "engines", "parsed", "usual_limits"]


class Usual(Record):
    """What an engine takes where nobody says: tokens of a step, requests at once.

    On GPUs with at least `gib` GiB whose name has nothing of `but` in it.
    """

    gib: int
    tokens: int
    seqs: int
    but: list[str]


class Graphs(Record):
    """Requests of the largest CUDA graph on GPUs with at least `gib` GiB, of units of few GPUs and of many."""

    gib: int
    few: int
    many: int


class EngineRecord(Record):
    """What is known of an engine; `data/engines.toml` says what each key means."""

    title: str
    like: str
    makers: list[str]
    kernels: bool
    older: dict[str, Any]
    version: str
    sources: list[str]
    kv_grows: bool
    counts_stored: bool
    counts_decodes: bool
    counts_together: bool
    mixes_drafts: bool
    page: int
    page_latent: int
    page_blackwell: int
    whole: bool
    alone: bool
    ahead: bool
    planning: list[str]  # not to plan a step ahead, and to
    since: bool
    seqs: str
    tokens: str
    usual: list[Usual]
    workspace: float
    sampled: float
    windows: float
    single: float
    takes: float
    of_rest: bool
    reserves: dict[str, float]
    graphs: list[Graphs]
    kv_fp8: dict[str, str]
    kv_sparse: list[str]  # generations
    cadence: str
    program: str
    router: str
    balancer: str  # in front of units without pools
    policies: list[str]  # by requests, by what is stored
    metrics: dict[str, list[str]]
    longest: str
    share: str
    eight_bits: str
    tp: str
    dp: str
    ep: str
    pp: str
    file: str
    store: str
    away: str
    away_note: str
    store_note: str
    pool: str
    pool_store: str
    pool_away: str
    prefill_pool: str
    rope: str
    drafting: list[str]
    drafter: str
    whole_prompts: dict[str, object]
    in_chunks: dict[str, object]


@lru_cache
def engines() -> Mapping[str, EngineRecord]:
    """Return the records by name, the usual engine first.

    >>> [record.title for record in engines().values()]
    ['vLLM', 'TensorRT-LLM', 'SGLang']
    """
    return parsed((data_dir() / "engines.toml").read_text(encoding="utf-8"))


def engine(name: str) -> EngineRecord:
    """Return the record of an engine.

    Raises
    ------
    ValueError
        For an unknown name.

    Examples
    --------
    >>> engine("sglang").tokens
    '--chunked-prefill-size'
    """
    return engines()[as_one_of("engine", name, engines())]


def usual_limits(name: str, gpu: Gpu) -> Usual:
    """Return the tokens of a step, and the requests at once, that an engine takes on a GPU unless it is told otherwise.

    Raises
    ------
    ValueError
        For an unknown engine.

    Examples
    --------
    >>> from inference_math import catalogue
    >>> [usual_limits("vllm", catalogue.gpu(name)).tokens for name in ("a100-80gb", "h100-sxm")]
    [2048, 8192]
    """
    called, gib = f"{gpu.name} {gpu.title}".casefold(), (gpu.driver_bytes or gpu.hbm_bytes) / 2**30
    rows = engine(name).usual
    return [row for row in rows if gib >= row.gib and not any(part in called for part in row.but)][-1]


def parsed(text: str) -> Mapping[str, EngineRecord]:
    """Return the records of a file's text.

    Raises
    ------
    ValueError
        For a record that lacks something, has something unknown, or another type than it should.
    """
    records: dict[str, EngineRecord] = {}
    for name, told in tomllib.loads(text).items():
        try:
            record = records[name] = msgspec.convert(_unended(told), EngineRecord)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name} must be an engine's record: {error}") from None
        if [row.gib for row in record.usual[:1]] != [0]:
            raise ValueError(f"{name}.usual must be rows, the first from 0 GiB on, not {record.usual!r:.80}")
    return MappingProxyType(records)


def _unended(value: Any) -> Any:
    """Return texts without the space that stands behind a literal that ends with a quote."""
    if isinstance(value, str):
        return value.removesuffix(" ")
    if isinstance(value, list):
        return [_unended(inner) for inner in value]
    return {name: _unended(inner) for name, inner in value.items()} if isinstance(value, dict) else value
