"""The page of questions: links that the planner understands, and numbers that are those of their links."""

import re
from itertools import chain
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from glued import glued

from inference_math import SLA, Unit, Workload
from inference_math.evidence.numerals import digits
from inference_math_book.extension.planner import Field, Select, inputs
from inference_math_planner import plan

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "book" / "questions.md").read_text(encoding="utf-8")
LINKS = re.findall(r'<a href="planner\.html#plan:([^"]+)">', PAGE)
QUESTIONS = re.findall(r"^### (.+)\n\n(?:```\{index\}.*\n```\n\n)*(.+)$", PAGE, re.M)


@pytest.fixture(scope="module")
def numbers() -> dict[str, str]:
    twin = ROOT / "_build" / "pages" / "questions.ipynb"
    if not twin.exists():
        pytest.skip("no built book: run 'make book'")
    return glued(twin)


def test_there_are_questions_of_every_kind():
    assert len(QUESTIONS) >= 100
    assert len({question for question, _ in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize(("question", "answer"), QUESTIONS, ids=lambda text: text[:40])
def test_each_answer_leads_on(question, answer):
    """To a section or to the planner; and it fits a line or three."""
    assert "](" in answer or "planner.html#plan:" in answer
    assert len(re.sub(r"<[^>]+>|\{[^}]+\}|\([^)]*\)", "", answer).split()) <= 75


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link[:60])
def test_a_link_names_fields_of_the_form_and_what_they_take(link):
    groups = chain.from_iterable(inputs().values())
    fields = {field.name: field for group in groups for field in (*group.fields, *group.more)}
    for name, value in parse_qsl(link, strict_parsing=True):
        field = fields[name]
        if isinstance(field, Field):
            assert field.low <= float(value) <= field.high, name
        elif isinstance(field, Select):
            assert value in field.options, name


def of(link):
    """Return the plan of a link."""
    at = dict(parse_qsl(link))
    unit = Unit.of(at["model"], at["gpu"], int(at["tp"]), at["weights"], at["kv"])
    level = float(at["promise"]) if "promise" in at else None
    sla = SLA(float(at["ttft"]) / 1e3, float(at["tpot"]) / 1e3, level)
    return plan(unit, Workload(float(at["prompt"]), float(at["output"])), sla)


@pytest.mark.parametrize(
    ("key", "answer"),
    [("q_big", "chunk"), ("q_p99", "batch"), ("q_kv16", "tokens_per_gpu"), ("q_mixture", "tokens_per_gpu")],
)
def test_a_number_is_that_of_the_link_beside_it(key, answer, numbers):
    (line,) = (line for line in PAGE.splitlines() if f"`{key}`" in line)
    link = re.findall(r'planner\.html#plan:([^"]+)">', line)[-1]
    assert digits(of(link)[answer]) == numbers[key]


def test_a_flag_is_asked_for_by_its_name():
    """Those of the engines that settings are given by, where an answer or its question has them."""
    flags = """
    --max-num-seqs --max-num-batched-tokens --gpu-memory-utilization --kv-cache-dtype
    --enable-chunked-prefill --prefill-schedule-interval --prefill-decode-interval --chunked-prefill-size
    --max-running-requests --schedule-conservativeness --max_batch_size --max_num_tokens
    """
    said = " ".join(part for both in QUESTIONS for part in both)
    assert [flag for flag in flags.split() if f"`{flag}" not in said] == []


def test_every_number_is_glued(numbers):
    assert set(re.findall(r"\{glue:text\}`(\w+)`", PAGE)) <= set(numbers)
