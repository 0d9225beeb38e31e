"""The case is worked once: every page that glues its numbers has the same ones, and one winner."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from forms import DEFAULT, case_of

from inference_math import evidence
from inference_math_book import card, case, served
from inference_math_book.extension.planner import defaults, presets
from inference_math_book.plays import stored

TWINS = sorted((Path(__file__).parents[2] / "notebooks").glob("0*.ipynb"))
ELSEWHERE = tomllib.loads(Path(__file__).with_name("case_numbers.toml").read_text(encoding="utf-8"))
REASONS = {"another set-up", "another limit", "another question", "of the talks", "of a formula"}
ROWS = ELSEWHERE.pop("rows")
BETWEEN = (
    r"(?:[,:=\s]|\b(?:is|of|was|are|takes?|took|lasts?|has|then|here|about|only|at most|by|to|the|case|in|an?|"
    r"factor|adds?|it|for|with|from|its|net|gross)\b)*"
)
NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?)(?![.,]?\d)(?! ?[·+/−*])"  # not what a sum or a quotient is made of


def said(twin: Path) -> Iterator[str]:
    """Yield the sentences and lines of a notebook that are read, without exercises and the card itself."""
    exercises = False
    for cell in nbformat.read(twin, as_version=4).cells:
        texts = [cell.source] if cell.cell_type == "markdown" else []
        for data in (output.get("data", {}) for output in cell.get("outputs", ())):
            texts += [data.get("text/markdown") or (data["text/plain"] if "text/html" in data else "")]
        for text in texts:
            for part in re.split(r"^(?=## )", text, flags=re.M) if "| the case |" not in text else ():
                exercises = part.startswith("## Try it") if part.startswith("## ") else exercises
                yield from () if exercises else re.split(r"\n|(?<=[.?!]) ", bare(part))


def bare(text: str) -> str:
    """Return a text without marks and addresses."""
    text = re.sub(r"\]\([^)]*\)", "]", text).replace(r"\Delta ", "Δ").replace("{", "").replace("}", "")
    return re.sub(r"[$*]", "", text)


def numbers(sentence: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers that follow what the card has rows of, with the pattern of its name."""
    for name in ROWS:
        for found in re.finditer(rf"(?<![\w_Δ/])(?:{name})\b{BETWEEN}{NUMBER}", sentence):
            yield name, found[1]


def accounts(name: str, number: str) -> set[str]:
    """Return the columns of the card that have this number in a row of the name, rounded as it is printed."""
    table = stored("case_card").set_index("name").loc[list(ROWS[name])].drop(columns="label")
    half = 0.5 * 10.0 ** -len(number.partition(".")[2]) * (1 + 1e-9)
    near = (table - float(number.replace(",", ""))).abs() <= half
    return {column.partition("_")[0] for column in near.columns[near.any()]}


def test_the_case_of_the_plan_is_that_of_the_companion(root):
    """Model, GPUs, weights, engine, lengths and limits; of the cache `test_served` says what the runs tell."""
    unit, runs = case.UNIT, evidence.load("served").frame
    tried = runs[(runs.tp == unit.tp) & (runs.model == unit.model.name) & (runs.gpu == unit.gpu.name)]
    assert len(tried) == len(served.rows(unit.tp, queued=True))
    assert set(tried.weights) == {unit.weights}
    assert set(tried.engine) == {unit.engine}
    law = served.fit(served.rows(unit.tp))
    assert float(law.delta_p(*case.LENGTHS)) == served.CASE.delta_p
    assert float(law.delta_h(*case.LENGTHS)) == served.CASE.delta_h
    chapter = (root / "book" / "01-what-does-a-token-cost.md").read_text(encoding="utf-8")
    (said,) = (one for one in chapter.split("\n\n") if "We call it **the case**" in one)
    assert re.findall(r"(\d+) ms", said) == [f"{1e3 * limit:.0f}" for limit in (case.LIMITS.ttft, case.LIMITS.tpot)]
    assert re.findall(r"prompt has ([\d,]+) tokens and an answer (\d+)", said) == [("2,200", "170")]
    assert case.LENGTHS == (2200, 170)


def test_the_kernels_are_those_of_the_unit():
    unit, kernels = case.UNIT, case.KERNELS
    assert (kernels.model, kernels.tp, kernels.weights, kernels.kv) == (unit.model, unit.tp, unit.weights, unit.kv)


def test_the_planner_s_page_opens_with_the_case():
    opened = defaults() | {"tp": f"{case.UNIT.tp}"}  # the page searches layouts, and finds this one
    assert defaults()["tp"] == "auto"
    asked = case_of(opened)
    assert (asked.work, asked.sla) == (case.WORK, case.LIMITS)
    for part in ("model", "gpu", "gpus", "tp", "weights", "kv", "engine", "drafts"):
        assert getattr(asked.unit, part) == getattr(case.UNIT, part), part
    assert {name: opened[name] for name in DEFAULT} == DEFAULT
    assert next(iter(presets().values())) == {}  # the page's own values, as of a link that names nothing


def test_a_store_brings_the_architectures_of_the_case_nearer_to_each_other():
    assert case.planned().tie  # open, by what served gains say
    assert case.planned(stored=True).solved.lead < case.planned().solved.lead


def test_pages_that_name_the_case_s_winner_take_it_from_there(root):
    """No page types it: who names 2,200 and 170 beside an architecture that 'serves most' glues it."""
    for path in sorted((root / "book").rglob("*.md")):
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            if "2,200" in paragraph and re.search(r"\*\*(chunked|disaggregated|aggregated)\*\*", paragraph):
                pytest.fail(f"{path.name}: {paragraph[:80]}")


def test_the_card_has_what_the_case_costs():
    assert card.value("delta_p") == pytest.approx(1e3 * served.CASE.delta_p)
    assert card.value("bound") == pytest.approx(served.CASE.bound)
    assert card.value("delta_h", "kernels") == pytest.approx(1e3 * served.summed(*case.LENGTHS).delta_h)
    assert card.value("batch", "planner") == case.planned()["batch"]
    table = stored("case_card").set_index("name")
    for account in ("served", "planner"):
        low, middle, high = (table[f"{account}{end}"].dropna() for end in ("_low", "", "_high"))
        assert ((low <= middle * 1.00001) & (middle <= high * 1.00001)).all()  # a fit's ends have six digits
    for wrong in (("rho", "served"), ("bound", "measured")):
        with pytest.raises(ValueError, match="the card has no"):
            card.value(*wrong)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.stem)
def test_each_number_of_the_case_is_of_a_column_of_the_card(twin):
    """Else it is listed with the reason why it is another number."""
    listed = ELSEWHERE.get(twin.stem[:2], {})
    sentences = list(said(twin))
    assert [words for words in listed if not any(words in sentence for sentence in sentences)] == []
    rest = [sentence for sentence in sentences if not any(words in sentence for words in listed)]
    assert [(found, sentence) for sentence in rest for found in numbers(sentence) if not accounts(*found)] == []


def test_every_reason_is_one_of_a_few():
    assert {reason for chapter in ELSEWHERE.values() for reason in chapter.values()} <= REASONS


@pytest.mark.parametrize(
    ("sentence", "number", "columns"),
    [
        ("So $\\Delta H$ is 0.166 ms.", "0.166", {"served"}), ("So ΔH is 0.266 ms.", "0.266", set()),
        ("a bound of 6.0", "6.0", {"planner"}), ("a bound of 5.0", "5.0", set()), ("e is 32.", "32", {"served"}),
        ("It allows 24 requests", "24", {"kernels"}), ("The weight read takes 19.7 ms", "19.7", set()),
    ],
)  # fmt: skip
def test_a_number_that_is_of_no_column_is_found(sentence, number, columns):
    ((name, found),) = numbers(bare(sentence))
    assert found == number
    assert accounts(name, found) == columns
