"""What `plan --json` prints: one answer, whose numbers agree with each other, by the schema that ships."""

from __future__ import annotations

import json
import random
from importlib.resources import files

import jsonschema
import pytest
from grids import each

from inference_math import SLA, Unit, Workload, plan, planner
from inference_math.catalogue.tiers import tiers
from inference_math.checks.numerals import digits
from inference_math.planner import Case, fleet, search
from inference_math.planner.record import SCHEMA

FORM = json.loads(files("inference_math.planner").joinpath("answer.schema.json").read_text(encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(FORM)


def engine_args(found, many=None, tried=None):
    content = json.loads(json.dumps(planner.as_record(found, many, tried), allow_nan=False))
    jsonschema.validate(content, FORM)
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


@each(questions(14), lambda asked: asked[0].name, parts=4)
def test_an_answer_does_not_contradict_itself(asked):
    *of, options = asked
    found = plan(*of, **options)
    content = engine_args(found)
    answer, rows = content["answer"], content["architectures"]
    assert content["schema"] == SCHEMA
    assert bool(content["drafting"]) == bool(found.case.unit.drafts)
    assert sum(row["best_in"] for row in rows) + rows[0]["none_in"] == pytest.approx(1)
    if answer["architecture"] is None:
        assert content["advice"]
        assert not content["feasible"]
        return
    assert answer["tie"] or answer["best_in"] == max(row["best_in"] for row in rows)
    assert answer["expected_loss"] == min(row["expected_loss"] for row in rows)
    for key in ("rate", "ttft", "tpot"):
        assert answer[key]["low"] <= answer[key]["value"] <= answer[key]["high"]
    if found.case.sla.quantile is None:  # means keep their limits in the median of the draws
        assert answer["ttft"]["value"] <= found.case.sla.ttft * (1 + 1e-9)
        assert answer["tpot"]["value"] <= found.case.sla.tpot * (1 + 1e-9)
    gpus, n_out = answer["gpus"]["value"], found.case.work.n_out
    assert answer["tokens_per_gpu"] == pytest.approx(answer["rate"]["value"] * n_out / gpus)
    stores = {row["store"]: row["rate"] for row in content["stores"]}
    assert bool(stores) == (found.case.work.alpha > 0)
    if stores:
        assert set(stores) == {"nowhere", *tiers()}
        assert stores[answer["store"]] == pytest.approx(answer["rate"]["value"], rel=0.01)
    if answer["split"]:
        assert answer["split"]["prefill"] + answer["split"]["decode"] == found.case.units
        assert answer["link_gb_s"] <= found.case.pool_bw / 1e9 * (1 + 1e-9)
    for row in rows:  # what is impossible is absent
        assert (row["rate"] is None) == (not row["commands"])


@pytest.mark.usefixtures("few_draws")
def test_a_fleet_is_the_answer_where_there_is_traffic():
    found = plan(Unit.of("llama-3-8b", "h100-sxm"), Workload(1000, 100, 0.5), SLA(1, 0.03), units=3, tier="dram")
    many = fleet(found, 30)
    content = engine_args(found, many)
    answer = content["answer"]
    assert answer["gpus"]["value"] == many.gpus[0]
    assert answer["rate"]["value"] == 30
    assert answer["promise"] == 0.9
    assert answer["settings"] == dict(many.plain)
    assert {row["architecture"] for row in content["architectures"]} == {
        one.architecture for one in (many, *many.others)
    }
    assert {row["store"]: row["rate"] for row in content["stores"]}["dram"] == pytest.approx(30)
    assert [row["architecture"] for row in content["one_unit"]] == list(found.order)
    means = engine_args(found, fleet(found, 30, quantile=None, architecture="aggregated"))
    assert means["answer"]["promise"] == "means"


def test_the_best_layout_is_the_answer_s():
    found, tried = search(Case(Unit.of("qwen3-30b-a3b", "h100-sxm"), Workload(1000, 300), SLA(1.0, 0.04)), 4)
    content = engine_args(found, None, tried)
    first = max(content["layouts"], key=lambda row: row["tokens_per_gpu"])
    assert {name: first[name] for name in ("tp", "ep", "dp", "pp")} == content["answer"]["layout"]
    assert content["answer"]["pools"] is None or content["answer"]["pools"]["decode"] == content["answer"]["layout"]


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
