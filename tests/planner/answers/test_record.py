"""The record of an answer: its numbers agree with each other, its JSON with its schema, every view prints it."""

from __future__ import annotations

import json
import random
import re

import jsonschema
import pytest
from bs4 import BeautifulSoup
from grids import each
from msgspec.structs import replace

import inference_math_planner as planner
from inference_math import SLA, Unit, Workload
from inference_math.catalogue.tiers import tiers
from inference_math.evidence.numerals import digits
from inference_math_planner import Arrivals, NoFleetError, as_markdown, as_record, capacity, fleet, plan, schema
from inference_math_planner.answers.text import as_html, as_script, as_short, as_text
from inference_math_planner.fleets.mixes import mix

SMALL = Unit.of("llama-3-8b", "h100-sxm")


def written(record):
    """Return what JSON has of a record, by its schema."""
    content = json.loads(record.as_json())
    jsonschema.validate(content, schema())
    return content


def questions(count):
    """Return arguments of `plan`, drawn once with a seed."""
    rng, found = random.Random(11), []
    while len(found) < count:
        model, weights = rng.choice(
            [("llama-3-8b", "bf16"), ("llama-3-70b", "fp8"), ("qwen3-32b", "fp8"), ("gpt-oss-120b", None)]
        )
        alpha = rng.choice([0.0, 0.0, 0.6])
        try:
            unit = Unit.of(
                model, rng.choice(["h100-sxm", "h200-sxm", "b200"]), rng.choice([1, 2, 4]), weights,
                engine=rng.choice(["vllm", "sglang", "trtllm"]), drafts=rng.choice([0, 0, 2]),
            )  # fmt: skip
        except ValueError:
            continue
        work = Workload(rng.choice([300, 2000, 9000]), rng.choice([50, 400]), alpha)
        sla = SLA(rng.choice([0.3, 1, 4]), rng.choice([0.012, 0.03, 0.1]), rng.choice([None, None, 0.9]))
        where = rng.choice(["hbm", "dram", "local_ssd"]) if alpha else None
        found.append((unit, work, sla, {"tier": where, "price": rng.choice([None, 2.0])}))
    return found


@pytest.mark.usefixtures("few_draws")
@each(questions(14), lambda asked: asked[0].name, parts=2)
def test_an_answer_does_not_contradict_itself(asked):
    *of, options = asked
    found = plan(*of, **options)
    content = written(as_record(found))
    answer, rows = content["answer"], content["architectures"]
    assert content["schema"] == "inference-math/plan/1"
    assert bool(content["drafting"]) == bool(found.case.unit.drafts)
    assert sum(row["best_in"] for row in rows) + rows[0]["none_in"] == pytest.approx(1)
    if answer["architecture"] is None:
        assert content["advice"]
        assert not content["feasible"]
        return
    assert answer["tie"] or answer["best_in"] == max(row["best_in"] for row in rows)
    assert answer["loss"] == min(row["loss"] for row in rows)
    for key in ("unit_rate", "ttft", "tpot"):
        assert answer[key]["low"] <= answer[key]["value"] <= answer[key]["high"]
    if found.case.sla.quantile is None:  # means keep their limits in the median of the draws
        assert answer["ttft"]["value"] <= found.case.sla.ttft * (1 + 1e-9)
        assert answer["tpot"]["value"] <= found.case.sla.tpot * (1 + 1e-9)
    gpus, n_out = answer["unit_gpus"], found.case.work.n_out
    assert answer["tokens_per_gpu"] == pytest.approx(answer["unit_rate"]["value"] * n_out / gpus)
    assert (answer["gpus"], answer["rate"]) == (None, None)  # those of fleets
    stores = {row["store"]: row["rate"] for row in content["stores"]}
    assert bool(stores) == (found.case.work.alpha > 0)
    if stores:
        assert set(stores) == {"nowhere", *tiers()}
        assert stores[answer["store"]] == pytest.approx(answer["unit_rate"]["value"], rel=0.01)
    if answer["split"]:
        assert answer["split"]["prefill"] + answer["split"]["decode"] <= found.case.units
        assert answer["link_gb_s"] <= found.case.problem.pool_bw / 1e9 * (1 + 1e-9)
    of_units = {row["architecture"]: row["rate"] for row in content["one_unit"]}
    for row in rows:  # what is impossible is absent; a name means the same of each architecture
        assert (row["unit_rate"] is None) == (not row["commands"])
        assert row["unit_gpus"] == found.case.unit.gpus
        pools = row["architecture"] == "disaggregated"
        assert (row["pools_gpus"] is not None) == pools
        if row["commands"]:
            assert row["unit_rate"]["value"] == of_units[row["architecture"]]
            assert (row["pools_rate"] is not None) == pools
            if pools:
                assert row["pools_rate"]["value"] * row["unit_gpus"] == pytest.approx(
                    row["pools_gpus"] * row["unit_rate"]["value"]
                )
                assert row["pools_gpus"] == row["unit_gpus"] * sum(row["split"].values())


@pytest.mark.long
def test_sixty_answers_are_what_their_tables_have():
    """Under all draws: with few of them leads scatter less than they do."""
    answered = 0
    for *of, options in questions(60):
        record = as_record(plan(*of, **options), stores=False)
        rows = {row.architecture: row for row in record.architectures}
        assert sum(row.best_in for row in rows.values()) + record.answer.none_in == pytest.approx(1)
        if not record.feasible:
            continue
        own, headline = rows[record.answer.architecture], as_short(record)
        assert own.unit_rate == record.answer.unit_rate
        assert record.card.ranged or f"{digits(own.unit_rate.value)} requests/s from each unit" in headline
        answered += 1
    assert answered > 30


@pytest.mark.usefixtures("few_draws")
def test_a_fleet_is_the_answer_where_there_is_traffic():
    found = plan(SMALL, Workload(1000, 100, 0.5), SLA(1, 0.03), units=3, tier="dram", price=2.0)
    many = fleet(found, 30)
    record = as_record(found, many)
    content, answer = written(record), record.answer
    assert (answer.gpus.value, answer.rate.value, answer.promise) == (many.gpus[0], 30, 0.9)
    assert content["answer"]["settings"] == dict(many.plain)
    assert [row.architecture for row in record.architectures] == [one.architecture for one in (many, *many.others)]
    assert {row.store: row.rate for row in record.stores}["dram"] == pytest.approx(30)
    assert [row.architecture for row in record.one_unit] == list(found.order)
    card = content["card"]
    assert card["headline"].endswith("for 30 requests/s")
    assert card["value"] == content["answer"]["gpus"]
    assert [row["name"] for row in card["rows"]] == [row["architecture"] for row in content["architectures"]]
    assert [meter["value"] for meter in card["meters"]] == [content["answer"][name] for name in ("ttft", "tpot")]
    assert card["sure"] in ("sure", "likely") or answer.tie
    for view in (as_short, as_markdown, as_text):
        assert all(card[part][1:] in view(record) for part in ("headline", "what", "why"))
        assert (many.how[1:] in view(record)) == (view is not as_short)  # which is the card alone
        assert f"output tokens cost {digits(many.usd_per_million)} USD" in view(record)
    assert as_markdown(record).index(card["headline"][1:]) < as_markdown(record).index("## One unit at full load")
    assert all(one[1:] in str(many) for one in (card["headline"], card["what"], many.how))
    owned = as_record(found, capacity(found, 4, quantile=None, architecture="aggregated")).answer
    assert owned.promise == "means"
    assert owned.served.low <= owned.rate.value <= owned.served.high


@pytest.mark.usefixtures("few_draws")
def test_a_record_without_a_fleet_has_no_number_of_one():
    """Whatever a unit does at full load: an answer to a question that has none is none."""
    come = Arrivals(mix=mix("azure-code"))
    found = plan(SMALL, Workload.from_trace(come.mix), SLA(0.2, 0.05))
    assert found.feasible
    with pytest.raises(NoFleetError, match="no architecture keeps 100%") as none:
        fleet(found, 5, quantile=0.999, arrivals=come)
    record = as_record(found, short=none.value, warnings=["late"])
    content = written(record)
    assert not content["feasible"]
    assert content["warnings"] == ["late"]
    assert content["architectures"] == []
    assert all(content["answer"][key] is None for key in ("architecture", "gpus", "rate", "unit_rate", "ttft", "tpot"))
    why, nearest = content["advice"]
    assert why.startswith("with queues, no architecture keeps 100%")
    share = float(re.search(r"--quantile (\S+) with", nearest)[1])
    assert fleet(found, 0.01, quantile=share, arrivals=come).gpus[0] >= 1  # it can be kept
    for view in (as_short, as_text, as_markdown, as_html):
        assert "o fleet keeps the promise" in view(record)
        assert why[1:] in view(record)
        assert "vllm serve" not in view(record)


def test_every_view_prints_the_record():
    found = plan(SMALL, Workload(1000, 100, 0.5), SLA(1, 0.03), tier="dram", price=2.0, intervals=False)
    record, first = as_record(found, runner_up=True), found.starts[found.best]
    text, page, document = (view(record) for view in (as_text, as_html, as_markdown))
    assert (text, page) == (str(found), found._repr_html_())
    said = BeautifulSoup(page, "html.parser").get_text(" ", strip=True)
    for words in (
        found.card.headline[1:],
        found.card.why,
        found.runner_up[1:],
        *found.cautions,
        found.answers["rate"].title,
        "local_ssd",
    ):
        assert all(words[1:] in view for view in (text, said, document))
    for _, line in first.commands:
        assert all(line in view for view in (text, said, document, as_script(record)))
    assert page.count("<table") == document.count("| --- |\n") == 3
    assert len(as_short(record).splitlines()) <= 9


def test_what_a_page_shows_is_escaped():
    record = as_record(plan(SMALL, Workload(1000, 100), SLA(1, 0.03), intervals=False))
    page = as_html(replace(record, unit="<b>&", cautions=["<script>"]))
    assert "<b>" not in page
    assert "<script>" not in page
    assert "&lt;b&gt;&amp;" in page


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"unit": "llama-3-8b"}, "unit must be of the type Unit, not 'llama-3-8b'"),
        ({"work": (100, 10)}, "work must be of the type Workload"),
        ({"sla": None}, "sla must be of the type SLA, not None"),
        ({"tier": 3}, "tier must be a Tier or the name of one, not 3"),
        ({"link": 3}, "link must be a Link or the name of one, not 3"),
    ],
)
def test_what_is_no_question_is_refused_by_name(given, words):
    asked = {"unit": Unit.of("llama-3-8b", "h100-sxm"), "work": Workload(100, 10), "sla": SLA(1, 0.1)} | given
    with pytest.raises(TypeError, match=words):
        planner.plan(asked.pop("unit"), asked.pop("work"), asked.pop("sla"), **asked)


def test_hbm_is_no_store_for_sessions_that_it_cannot_hold():
    unit, work, sla = Unit.of("llama-3-8b", "h100-sxm"), Workload(60_000, 300, 0.9), SLA(5, 0.05)
    found = plan(unit, work, sla, intervals=False)
    room = unit.places(work)
    assert any(one.startswith(f"HBM has room for {room} requests") for one in found.cautions)
    with pytest.raises(ValueError, match=f"sessions must be at most {room} where what is stored lies in HBM"):
        plan(unit, work, sla, sessions=room + 1)
    stored = plan(unit, work, sla, sessions=room + 1, tier="dram", intervals=False)
    size = (room + 1) * unit.model.kv_bytes(60_300, unit.kv) / 1e9
    assert any(f"take {digits(size)} GB of store" in one for one in stored.cautions)
