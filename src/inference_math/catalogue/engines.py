"""Engines: one record each, in `data/engines.toml`; nothing else knows an engine by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import field

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
    but: list[str] = field(default_factory=list)


class Graphs(Record):
    """Requests of the largest CUDA graph on GPUs with at least `gib` GiB, of units of few GPUs and of many."""

    gib: int
    few: int
    many: int


class EngineScheduler(Record):
    """How an engine makes steps: what its limits count, what it cuts and mixes."""

    counts_stored: bool = False
    counts_decodes: bool = True
    counts_together: bool = False
    mixes_drafts: bool = True
    page: int = 1
    page_latent: int = 1
    page_blackwell: int = 1
    whole: bool = False
    alone: bool = False
    ahead: bool = True
    since: bool = False
    usual: list[Usual] = field(default_factory=lambda: [Usual(gib=0, tokens=8192, seqs=1024)])


class EngineMemory(Record):
    """What of a GPU's memory an engine takes, and for what."""

    kv_grows: bool = True
    workspace: float = 0.0
    sampled: float = 0.0
    windows: float = 0.0
    single: float = 0.0
    takes: float = 0.9
    of_rest: bool = False
    reserves: dict[str, float] = field(default_factory=dict)
    graphs: list[Graphs] = field(default_factory=list)
    kv_sparse: list[str] = field(default_factory=list)  # generations


class EngineCli(Record):
    """What an engine is told, in its own words; "" for what it has no option for."""

    program: str
    seqs: str
    tokens: str
    longest: str
    tp: str
    dp: str = ""
    ep: str = ""
    pp: str = ""
    planning: list[str] = field(default_factory=list)  # not to plan a step ahead, and to
    kv_fp8: dict[str, str] = field(default_factory=lambda: {"option": "", "value": "", "plain": ""})
    eight_bits: str = ""
    share: str = ""
    cadence: str = ""
    router: str = "# no router of its own for pools"
    balancer: str = "# no router of its own: any that sends a request to the unit {policy}"  # in front of units
    policies: list[str] = field(default_factory=lambda: ["with the fewest", "that has its past"])
    file: str = ""
    store: str = ""
    store_note: str = ""
    away: str = ""
    away_note: str = ""
    pool: str = ""
    pool_store: str = ""
    pool_away: str = ""
    prefill_pool: str = ""
    rope: str = ""
    drafting: list[str] = field(default_factory=list)
    drafter: str = "# its options for drafts"
    whole_prompts: dict[str, object] = field(default_factory=dict)
    in_chunks: dict[str, object] = field(default_factory=dict)


class EngineRecord(Record):
    """What is known of an engine; `data/engines.toml` says what each key means."""

    title: str
    cli: EngineCli
    like: str = ""
    makers: list[str] = field(default_factory=lambda: ["NVIDIA"])
    kernels: bool = False
    older: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    sources: list[str] = field(default_factory=list)
    scheduler: EngineScheduler = field(default_factory=EngineScheduler)
    memory: EngineMemory = field(default_factory=EngineMemory)
    metrics: dict[str, list[str]] = field(default_factory=dict)


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
    >>> engine("sglang").cli.tokens
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
    rows = engine(name).scheduler.usual
    return [row for row in rows if gib >= row.gib and not any(part in called for part in row.but)][-1]


def parsed(text: str) -> Mapping[str, EngineRecord]:
    """Return the records of a file's text.

    Raises
    ------
    ValueError
        For a record that lacks something, has something unknown, or another type than it should.
    """
    records: dict[str, EngineRecord] = {}
    for name, keys in tomllib.loads(text).items():
        try:
            record = records[name] = msgspec.convert(keys, EngineRecord)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name} must be an engine's record: {error}") from None
        usual = record.scheduler.usual
        if [row.gib for row in usual[:1]] != [0]:
            raise ValueError(f"{name}.scheduler.usual must be rows, the first from 0 GiB on, not {usual!r:.80}")
    return MappingProxyType(records)
