"""The ledger of claims: complete, and strict about what it accepts; and claims that no other test states alone."""

import datetime
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math import Workload, catalogue, evidence, simulate, theory
from inference_math.catalogue.tiers import tier
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math.unit.rates import acceleration
from inference_math_book import served
from inference_math_book.claims import SEEDS, Answer, load_claims, load_slides

LEDGER = evidence.data_dir() / "claims.toml"
times = st.floats(1e-5, 1.0)


OWN = [f"E{number:02}" for number in range(1, 13)]


def test_all_claims_are_there_in_order():
    assert [claim.id for claim in load_claims()] == [*(f"C{number:02}" for number in range(1, 61)), *OWN]


def test_every_entry_reads_as_the_page_shows_it():
    """What else it must, reading it asks."""
    for claim in load_claims():
        assert len(set(claim.checks)) == len(claim.checks), claim.id
        # These are completed by the page to sentences, or listed.
        for words in (claim.condition, claim.title, *claim.assumptions):
            assert not words.endswith("."), (claim.id, words)
    assert [claim.id for claim in load_claims() if not claim.seeds] == ["C07", *OWN]


def test_every_formula_stands_with_its_claim():
    """A new formula of a claim belongs into the ledger."""
    listed = {name for claim in load_claims() for name in claim.formulas}
    assert sorted(set(theory.CATALOGUE) - listed) == []


def test_every_printed_formula_is_quoted_from_where_the_catalogue_says():
    """The sources of a claim's formulas are among the claim's own."""
    for claim in load_claims():
        printed = {SEEDS[letter] for letter in claim.seeds}
        for name in claim.formulas:
            for source in theory.CATALOGUE[name].source.split("; "):
                assert source == theory.BOOK or source in printed, (claim.id, name, source)


FIRST = LEDGER.read_text(encoding="utf-8").partition("[[claim]]\n")[2].partition("\n[[claim]]")[0]
QUOTE = re.search(r'quote = ".*"', FIRST)[0]
CHECKS = re.search(r"checks = \[.*?\]\n", FIRST, re.S)[0]
ERRATUM = 'erratum = { change = "formula", printed = "a", derived = "b", where = "c" }'
ITEM = re.search(r"\{ kind = .* \}", FIRST)[0]


EMPTY = "must be a (text|table|list of texts|date like 2026-11-27) with something in it, not"
ANSWER = 'answer = { text = "Not so.", who = "E. Hillel" }'
OURS = "paper and answer are about what a source printed"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('id = "C01"', 'id = "C02"', "id must be 'C01' here, not 'C02'"),
        ("verdict =", "verdikt =", "C01: a key must be one of id, title, .*, not 'verdikt'; did you mean"),
        ('verdict = "holds"', "", "C01: missing verdict"),
        ('verdict = "holds"', 'verdict = "true"', "C01: verdict must be one of holds, .*, not 'true'"),
        ('verdict = "holds"', "verdict = 1", f"C01: verdict {EMPTY} 1"),
        ('verdict = "holds"', 'verdict = "holds if"', "C01: condition goes with the verdict 'holds if'"),
        ('verdict = "holds"', 'verdict = "holds"\ncondition = "a"', "C01: condition goes with the verdict"),
        ('verdict = "holds"', 'verdict = "holds if"\ncondition = "it is so"', "C01: 'holds if' needs erratum"),
        ('verdict = "holds"', 'verdict = "off by one"', "C01: 'off by one' needs corrected"),
        (QUOTE, f'quote = "{"word " * 26}"', "C01: quote must have at most 25 words, not 26"),
        (QUOTE, "", "C01: seeds and quote go together"),
        ("seeds = { B =", "seeds = { F =", "C01: seeds must be one of A, B, C, D, E, not 'F'"),
        ("seeds = {", "seeds = 3 # {", f"C01: seeds {EMPTY} 3"),
        ("seeds = { B = ", "seeds = { B = 1, A = ", f"C01: seeds {EMPTY} 1"),
        ('"kv_load_time"', '"kv_lod_time"', "C01: formulas must be one of .*'kv_lod_time'; did you mean"),
        ('"kv_load_time"', '"crossover"', "C01: formulas must state this claim, but crossover states C06"),
        ("formulas = [", "formulas = 1 # [", f"C01: formulas {EMPTY} 1"),
        ("assumptions = [", 'assumptions = ["",', f"C01: assumptions {EMPTY} ''"),
        (CHECKS, "", "C01: a claim without evidence cannot say 'holds': it lacks checks"),
        ("derivation =", "# ", "C01: a claim without evidence cannot say 'holds': it lacks derivation"),
        ("test_tokens.py::", "test_tokens.py:", "C01: checks must be like tests/file.py::test_name, not"),
        ('"book/01-', '"01-', "C01: pages must be like book/part/page#anchor, not 01-"),
        ("formulas =", f"{ERRATUM}\nformulas =", "C01: erratum: change must be remark, not 'formula'"),
        (ITEM, '{ kind = "exact" }', "C01: evidence: must be a table with kind, page, says"),
        (ITEM, ITEM.replace("exact", "seen"), "C01: evidence: kind must be one of .*, not 'seen'"),
        (ITEM, ITEM.replace('"book/', '"'), "C01: pages must be like book/part/page#anchor"),
        (QUOTE, f"{QUOTE}\npaper = 7", f"C01: paper {EMPTY} 7"),
        (
            QUOTE,
            f"{QUOTE}\n{ANSWER.replace('who', 'by')}",
            r"C01: answer: must be a table with text, who, date \(or not\)",
        ),
        (QUOTE, f"{QUOTE}\n{ANSWER.replace('}', ', date = 2026 }')}", f"C01: answer: date {EMPTY} 2026"),
        (QUOTE, f"{QUOTE}\n{ANSWER.replace('Not so.', '')}", f"C01: answer: text {EMPTY} ''"),
        ("id =", "id ", r"claims\.toml cannot be read"),
        (f"[[claim]]\n{FIRST}", "", r"must have 60 tables \[\[claim\]\], C01 to C60, not 59"),
    ],
)
def test_what_is_not_accepted_is_named(tmp_path, old, new, words):
    text = LEDGER.read_text(encoding="utf-8")
    assert old in f"[[claim]]\n{FIRST}"
    head, start, rest = text.partition("[[claim]]\n")
    broken = written(tmp_path, head + (start + rest).replace(old, new, 1))
    with pytest.raises(TypeError if EMPTY in words or "a table with" in words else ValueError, match=words):
        load_claims(broken)


def written(folder, text):
    (folder / "claims.toml").write_text(text, encoding="utf-8")
    return folder / "claims.toml"


def test_an_author_s_answer_and_the_paper_s_equation_are_read(tmp_path):
    dated = ANSWER.replace("}", ", date = 2026-12-01 }")
    for answer, on in ((ANSWER, None), (dated, datetime.date(2026, 12, 1))):
        text = LEDGER.read_text(encoding="utf-8").replace(QUOTE, f'{QUOTE}\npaper = "(7)"\n{answer}', 1)
        first, second, *_ = load_claims(written(tmp_path, text))
        assert (first.paper, first.answer) == ("(7)", Answer("Not so.", "E. Hillel", on))
        assert (second.paper, second.answer) == ("", None)


@pytest.mark.parametrize("line", ['paper = "(7)"', ANSWER])
def test_nobody_but_us_answers_for_a_claim_of_our_own(tmp_path, line):
    text = LEDGER.read_text(encoding="utf-8").replace('id = "C07"\n', f'id = "C07"\n{line}\n')
    with pytest.raises(ValueError, match=f"C07: {OURS}"):
        load_claims(written(tmp_path, text))


def test_every_slide_of_a_claim_has_its_place_in_the_order():
    slides = load_slides()
    assert list(slides) == list(SEEDS)
    for letter, names in slides.items():
        assert len(set(names)) == len(names)
        assert set(names) == {slide for claim in load_claims() for slide in claim.slides(letter)}


@pytest.mark.parametrize(
    ("old", "new", "kind", "words"),
    [
        ('A = [\n  "LLM App', 'F = [\n  "LLM App', ValueError, "slides: a source must be .*, not 'F'"),
        ('  "SARATHI",\n', "", ValueError, "C35: a slide of D must be one of DistServe, .*, not 'SARATHI'"),
        ('  "SARATHI",\n', '  "SARATHI",\n  "SARA",\n', ValueError, "slides: D must be one of .*, not 'SARA'"),
        ('  "SARATHI",\n', '  "SARATHI",\n  3,\n', TypeError, f"slides: D {EMPTY} 3"),
        ("\n[slides]", "\n[slide]", TypeError, f"slides {EMPTY} None"),
    ],
)  # fmt: skip
def test_an_order_of_slides_that_does_not_fit_is_refused(tmp_path, old, new, kind, words):
    text = LEDGER.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(kind, match=words):
        load_slides(written(tmp_path, text.replace(old, new, 1)))


def test_what_is_not_checkable_needs_neither_derivation_nor_test(tmp_path):
    entry = FIRST.replace(CHECKS, "").replace("derivation =", "# ").replace('"holds"', '"not checkable"')
    ledger = LEDGER.read_text(encoding="utf-8").replace(FIRST, entry)
    assert load_claims(written(tmp_path, ledger))[0].verdict == "not checkable"


# From here on: claims, each by itself.


@given(n_in=st.floats(1, 1e6))
def test_c02_a_causal_mask_halves_the_attention_part(n_in):
    shape = catalogue.model("llama-3-70b").shape
    at = {**shape, "n_in": n_in, "flops": 1e15}
    matrices = theory.token_time(**shape, n_in=1e-9, flops=1e15)
    seen, causal = theory.token_time(**at) - matrices, theory.token_time_causal(**at) - matrices
    assert causal == pytest.approx(seen / 2, rel=1e-6, abs=1e-12 * matrices)


def test_c03_kernels_meet_before_the_border():
    """Carried on from the longest measured prompt, attention in proportion to it."""
    model = catalogue.model("llama-3-70b")
    border = theory.attention_threshold_causal(**model.shape)
    for precision, share in (("bf16", 0.84), ("fp8", 0.47)):
        longest = Operators(model, tp=2, weights=precision, kv=precision).prefills().iloc[-1]
        assert longest.n_in == 16384
        assert longest.n_in * longest.gemm / longest.attention / border == pytest.approx(share, abs=0.005)


def test_c11_single_requests_repeat_99_percent_and_whole_traces_far_less():
    traces = evidence.load("traces_alpha").frame.set_index("trace")
    for name in ("mooncake-conversation", "mooncake-synthetic"):
        assert traces["share_0.99"][name] > 0  # of the requests
        assert traces["share_0.99"][name] < 0.2
        assert traces.token_share[name] < 0.7  # of all prompt tokens


def test_c15_a_simulated_unit_has_room_for_one_more_than_printed():
    """Limits between two batches; random answers, so that the users stay out of phase."""
    t_w, prompt, read, n_out = 0.016, 0.08, 0.0004, 100
    cost = simulate.StepCost(t_w=t_w, prompt=prompt, delta_h=read)
    law = {"tpot_1": t_w + read, "delta_p": prompt / n_out, "delta_h": read}
    sla = law["tpot_1"] + 20.5 * (law["delta_p"] + read)
    printed, batch = (f(sla_tpot=sla, **law) for f in (theory.max_batch_printed, theory.max_batch))
    assert (printed, batch) == (20, 21)

    def mean_gap(users):
        work = Workload(1000, n_out, lengths="geometric")
        return simulate.closed_loop(work, cost, concurrency=users, requests=8000, warmup=1000, seed=1).gaps.mean

    assert mean_gap(int(batch)) < sla < mean_gap(int(batch) + 1)


@given(tpot_1=times, room=times, delta_p=times, delta_h=times, x=st.floats(1, 1e4))
def test_c16_the_gain_is_exact_for_the_requests_beside_the_first(tpot_1, room, delta_p, delta_h, x):
    """Both batches, as real numbers, just meet the limit."""
    gain = theory.batch_gain(delta_p=delta_p, delta_h=delta_h, x=x)
    beside = room / (delta_p + delta_h)
    for batch, added in ((1 + beside, delta_p), (1 + gain * beside, delta_p / x)):
        tpot = theory.expected_tpot(B=batch, tpot_1=tpot_1, delta_p=added, delta_h=delta_h)
        assert tpot == pytest.approx(tpot_1 + room)
    assert (1 + gain * beside) / (1 + beside) <= gain * (1 + 1e-12)


@given(delta_p=times, delta_h=times, x=st.floats(1, 1e4))
def test_c17_the_bound_is_the_limit_of_the_gain(delta_p, delta_h, x):
    bound = theory.gain_bound(delta_p=delta_p, delta_h=delta_h)
    assert theory.batch_gain(delta_p=delta_p, delta_h=delta_h, x=x) <= bound * (1 + 1e-12)
    assert theory.batch_gain(delta_p=delta_p, delta_h=delta_h, x=1e15) == pytest.approx(bound)


def apart(cost, prefill_units, decode_units, batch, n_out, prompt):
    """Return what pools finish per second and unit, and the run."""
    pools = simulate.Disaggregated(prefill_units, decode_units, max_batch=batch)
    run = simulate.closed_loop(
        Workload(prompt, n_out), cost, concurrency=decode_units * batch + 4 * prefill_units,
        requests=20 * decode_units * batch, warmup=10 * decode_units * batch, scheduler=pools,
    )  # fmt: skip
    return run.request_rate / (prefill_units + decode_units), run


def test_c17_under_a_limit_on_p99_pools_gain_more_than_the_bound():
    """A prompt alone takes longer than the limit, so P99 admits as many whole prompts as it does not see."""
    t_w, prompt, read, n_out, sla = 0.016, 0.120, 0.0004, 512, 0.040
    cost = simulate.StepCost(t_w=t_w, prompt=prompt, delta_h=read)

    def together(users):
        work = Workload(1000, n_out, lengths="geometric")
        return simulate.closed_loop(work, cost, concurrency=users, requests=6000, warmup=600, seed=1)

    few = int(theory.max_batch_undisturbed(q=0.99, n_out=n_out))
    assert together(few).gaps.quantile(0.99) <= sla < together(few + 1).gaps.quantile(0.99)
    rate, run = apart(cost, 1, 3, 60, n_out, 1000)
    assert run.gaps.quantile(0.99) <= sla * (1 + 1e-9)
    bound = theory.gain_bound(delta_p=prompt / n_out, delta_h=read)
    assert rate / together(few).request_rate > 1.5 * bound


def test_c17_on_the_core_only_users_of_one_prefix_gain_more_than_the_bound():
    """By what one more user adds to a step, over the ΔH of the bound: below 1 the gain is beyond it."""
    bound = evidence.load("lab_laws").frame.query("experiment == 'reuse' and law == 'bound'")
    one = bound.arm.str.endswith("prefixes 1")
    assert (one.sum(), len(bound)) == (1, 6)
    assert bound.ratio[one].item() < 1 < bound.ratio[~one].min()


def test_c18_on_kernels_the_ratio_of_short_prompts_grows():
    """Llama-3-70B, FP8, two H100s: what a measured prefill adds, over the measured read of its cache."""
    unit = Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="fp8")
    reads = unit.kv_reads().set_index("context").cache_read
    short, long = (costs.measured(unit, n_in, 1000).ttft_1 / reads[n_in] for n_in in (512, 8192))
    assert long / short == pytest.approx(2.6, abs=0.05)


@given(n_in=st.floats(1, 1e6), wider=st.floats(1.5, 10))
def test_c19_a_wider_model_has_the_same_ratio_and_the_transcribed_form_another(n_in, wider):
    """Heads of the same size and groups of the same size: the attention grows as the cache does."""
    model, gpu = catalogue.model("llama-13b"), catalogue.gpu("h100-sxm")
    at = {"hbm_bw": gpu.hbm_bw, "flops": gpu.bf16_flops, "n_in": n_in, "n_out": 100}
    kv_token = model.kv_token("bf16")

    def changes_by(formula, size):
        return formula(**size(wider), **at) / formula(**size(1.0), **at)

    def attention(k):
        return {"n_layers": model.n_layers, "d_att": k * model.d_att, "kv_token": k * kv_token}

    def model_and_cache(k):
        return {"n_params": k**2 * model.n_params, "kv_token": k * kv_token}

    assert changes_by(theory.cost_ratio_long, attention) == pytest.approx(1)
    assert changes_by(theory.cost_ratio_long_printed, model_and_cache) == pytest.approx(wider**0.5)


@given(n_in=st.floats(100, 20_000), n_out=st.floats(1, 1000))
def test_c20_the_difference_doubles_with_the_prompt_and_the_ratio_hardly_moves(n_in, n_out):
    """At datasheet rates, and answers short enough for ΔP to be the larger; the threshold is above 100,000 tokens."""
    model, gpu = catalogue.model("llama-3-70b"), catalogue.gpu("h100-sxm")

    def deltas(prompt):
        prefill = prompt * theory.token_time_causal(**model.shape, n_in=prompt, flops=gpu.flops("fp8"))
        return theory.delta_p(ttft_1=prefill, n_out=n_out), theory.cache_read(
            n_in=prompt, kv_token=model.kv_token("fp8"), hbm_bw=gpu.hbm_bw
        )

    (p, h), (p_double, h_double) = deltas(n_in), deltas(2 * n_in)
    moved = (p_double / h_double) / (p / h)
    assert 1 <= moved <= 1 + n_in / theory.attention_threshold_causal(**model.shape)
    assert (p_double - h_double) / (p - h) >= 2 * (1 - 1e-9)


def test_c21_a_request_decodes_while_the_unit_prefills():
    """Llama-3-70B, FP8, two H100s, 2,048 in, 170 out, 32 requests: from measured operators."""
    unit = Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="fp8")
    numbers, batch = costs.measured(unit, 2048, 170), 32
    decode = 169 * numbers.tpot(batch)
    assert decode / (decode + numbers.ttft(batch)) > 0.9
    rates = {"t_w": numbers.t_w, "delta_p": numbers.delta_p, "delta_h": numbers.delta_h}
    assert theory.prefill_share(B=batch, n_out=170, **rates) > 0.5
    assert theory.prefill_share(B=1, n_out=170, **rates) < 0.1


def test_c24_the_projected_peak_hangs_on_the_chunk():
    """Llama-3-70B on two H100s, 32 decodes, 3K tokens: peaks with measured products, and SARATHI's gain at 3K."""
    step = Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="bf16").kernels

    def gain(budget, ratio):
        n_in, n_out = 3072 * ratio / (1 + ratio), 3072 / (1 + ratio)
        chunk, context = budget - 32, n_in + n_out / 2
        whole = step(32, 32 * context) + 32 * step(0, 0, 1, n_in, n_in**2 / 2) / n_out
        share = 32 * ratio / chunk
        mixed = step(32, 32 * context, chunk / n_in, chunk, chunk * n_in / 2)
        return whole / (share * mixed + (1 - share) * step(32, 32 * context))

    peaks = [gain(budget, (budget - 32) / 32) for budget in (256, 512, 1024)]
    assert np.round(peaks, 1).tolist() == [1.4, 1.3, 1.2]
    n_in, ratio = 3072 * 7 / 8, 7
    read = {"T": step(0, 0, 1, 3072, 3072**2 / 2) / 3072, "t_w": step(1, 0), "delta_h": step.kv_read * (n_in + 192)}
    full = theory.chunked_gain_offbalance(b=32, chunk=224, pd_ratio=ratio, **read)
    assert full == pytest.approx(1.79, abs=0.02)
    published = evidence.load("sarathi").frame.query("place == 'Figure 11a' and context == 3072").value
    assert published.item() == pytest.approx(1.23)


@pytest.mark.parametrize(("prompt", "n_p", "n_d"), [(0.120, 3, 1), (0.008, 5, 9)])
def test_c27_on_equal_terms_simulated_pools_gain_with_long_prompts_and_lose_with_short_ones(prompt, n_p, n_d):
    """Both systems pay the same for the same step; a prompt is longer and shorter than the limit on TPOT."""
    t_w, read, n_out, sla = 0.016, 0.0004, 65, 0.040
    cost = simulate.StepCost(t_w=t_w, prompt=prompt, delta_h=read)
    users = int(1 + (sla - t_w - read) / (prompt / n_out + (1 - 1 / n_out) * read))
    work = Workload(1000, n_out, lengths="geometric")
    together = simulate.closed_loop(work, cost, concurrency=users, requests=8000, warmup=800, seed=1)
    rate, run = apart(cost, n_p, n_d, int((sla - t_w) / read), n_out, 1000)
    assert max(together.gaps.mean, run.gaps.mean) <= sla * 1.01
    gain = rate / together.request_rate
    assert (gain > 1.1) == (sla - t_w < (1 - 1 / n_out) * (prompt - read))
    assert (gain < 0.9) == (sla - t_w > (1 - 1 / n_out) * (prompt - read))
    law = {"delta_p": prompt / n_out, "delta_h": read, "t_w": t_w, "n_out": n_out}
    assert theory.pdd_gain_same(**law, sla_tpot=sla) == pytest.approx(gain, rel=0.04)


def test_c32_an_ssd_is_fast_enough_for_a_large_model_and_leaves_something_with_a_small_one():
    """By the prefill time that a recorded trace saves, of what a store without limits would save."""
    saving = evidence.load("traces_saving").frame.query("trace == 'mooncake-conversation'")
    saved = {}
    for name, tp, kv in (("llama-3-70b", 2, "fp8"), ("llama-3-70b", 2, "bf16"), ("llama-3-8b", 1, "fp8")):
        model = catalogue.model(name)
        prompt = Operators(model, tp=tp, weights="fp8", kv=kv).prefills().set_index("n_in").loc[8192]
        e = {t: acceleration(tier(t), prompt.total / 8192, model.kv_token(kv), tp) for t in ("local_ssd", "dram")}
        # Compute-bound with the SSD: then host memory brings nothing, and beyond it does.
        below, above = (theory.crossover(e=e["local_ssd"]) * factor for factor in (0.99, 1.01))
        for alpha, faster in ((below, False), (above, True)):
            ssd, dram = (theory.speedup_layerwise(alpha=alpha, e=value) for value in (e["local_ssd"], e["dram"]))
            assert (dram > ssd * (1 + 1e-9)) == faster
        found = np.interp(np.log(e["local_ssd"]), np.log(saving.e), saving.saved_mixed)
        saved[name, kv] = found / saving.saved_mixed.iloc[-1]
    assert saved["llama-3-70b", "fp8"] > 0.95
    assert saved["llama-3-70b", "bf16"] == pytest.approx(0.91, abs=0.01)
    assert saved["llama-3-8b", "fp8"] < 0.9


def test_c34_three_gpus_serve_twice_as_much_per_gpu():
    table = evidence.load("distserve").frame
    rate = table[table.quantity == "rate_per_gpu"].set_index("serves").value
    per_gpu = min(2 * rate["prefill"], rate["decode"]) / 3
    assert per_gpu / rate["colocated"] == pytest.approx(2.1, abs=0.05)


def test_c37_communication_is_small_in_decode_steps_and_large_in_prefills():
    """Shares of all-reduce in a step of 32 decodes and in a prefill, at 2,048 tokens."""
    step, prefill = {}, {}
    for tp in (2, 4, 8):
        unit = Operators(catalogue.model("llama-3-70b"), tp=tp, weights="fp8", kv="fp8")
        decode = unit.steps().query("batch == 32 and context == 2048").iloc[0]
        prompt = unit.prefills().set_index("n_in").loc[2048]
        step[tp], prefill[tp] = decode.allreduce / decode.total, prompt.allreduce / prompt.total
    assert step[2] < 0.06
    assert prefill[2] > 0.1
    assert prefill[8] > 0.4
    assert all(prefill[tp] > step[tp] for tp in step)
    assert np.all(np.diff(list(prefill.values())) > 0)


SARATHI = {"t_w": 44.28, "read": 5.68 / 4, "prefill": 234.8, "products": 224.8}  # ms, of Table 2; prompts of 1,024


def test_c39_a_prompt_of_512_tokens_is_nearly_at_full_speed():
    """By weight read and products in quadrature; and by measured products of four models."""
    products = SARATHI["products"] / 2
    assert products / np.hypot(SARATHI["t_w"], products) > 0.93
    full = (SARATHI["prefill"] / 2) / (np.hypot(SARATHI["t_w"], products) - products + SARATHI["prefill"] / 2)
    assert full == pytest.approx(0.96, abs=0.03)
    for precision in ("bf16", "fp8"):
        for name in ("llama-3-8b", "qwen3-14b", "qwen3-32b", "llama-3-70b"):
            assert speed(name, precision, 512) > 0.84


def speed(name, precision, tokens):
    """Return the speed per token of the measured products of a prompt, over the best of all lengths."""
    prompts = Operators(catalogue.model(name), tp=1, weights=precision, kv=precision).prefills().set_index("n_in")
    each = prompts.gemm / prompts.index
    return each.min() / each[tokens]


def test_c40_a_layer_computes_180_tokens_in_a_millisecond():
    layers = catalogue.model("llama-13b").n_layers
    assert layers == 40
    assert 1024 / SARATHI["prefill"] == pytest.approx(4.4, abs=0.05)
    assert layers * 1024 / SARATHI["prefill"] == pytest.approx(180, rel=0.04)


def test_c41_at_256_decodes_the_matrices_are_compute_bound_and_the_step_is_not():
    model, ridge = catalogue.model("llama-13b"), catalogue.gpu("a6000").ridge("bf16")
    products, weights = 2 * model.n_params, model.n_params * 2
    attention, cache = 4 * model.n_layers * model.d_att * 1024, 1024 * model.kv_token("bf16")
    assert 18 * products / weights < ridge < 256 * products / weights
    for batch in (18, 256, 1e6):
        assert batch * (products + attention) / (weights + batch * cache) < 32 < ridge

    def throughput(batch):
        return batch / (np.hypot(SARATHI["t_w"], batch * SARATHI["products"] / 1024) + batch * SARATHI["read"])

    assert throughput(256) / throughput(1e9) == pytest.approx(0.96, abs=0.01)


def test_c42_memory_holds_18_requests_with_a_share_of_0_86():
    model, gpu = catalogue.model("llama-13b"), catalogue.gpu("a6000")

    def batch(share):
        room = gpu.room(share) - model.weight_bytes("bf16")
        return theory.max_batch_memory(kv_capacity=room / model.kv_token("bf16"), n_in=1023, n_out=1)

    assert (batch(0.86), batch(0.9)) == (18, 20)


def test_c44_tight_limits_ask_for_parallel_operators_and_loose_ones_for_a_pipeline():
    """Mean times of prompts that arrive at random at two GPUs; measured operators give the speedup of the first."""
    units = {tp: Operators(catalogue.model("llama-3-70b"), tp=tp, weights="fp8", kv="fp8") for tp in (1, 2, 4, 8)}
    whole = {tp: unit.prefills().set_index("n_in").total[2048] for tp, unit in units.items()}
    faster = {tp: whole[1] / seconds for tp, seconds in whole.items()}
    assert [round(faster[tp], 1) for tp in (2, 4, 8)] == [1.6, 2.5, 3.5]

    def within(rate):
        return whole[2] + theory.prefill_wait(load=rate * whole[2], ttft_alone=whole[2], cv_in=0)

    def between(rate):  # a prompt passes two stages, and waits before the first
        return whole[1] + theory.prefill_wait(load=rate * whole[1] / 2, ttft_alone=whole[1] / 2, cv_in=0)

    rates = np.linspace(0.05, 0.99 / whole[2], 200)
    ahead = np.array([within(rate) < between(rate) for rate in rates])
    assert ahead[0]
    assert not ahead[-1]
    assert (np.diff(ahead.astype(int)) <= 0).all()  # one limit parts the two
    assert 2 / whole[1] > 1 / whole[2]  # and the pipeline serves more in the end


def test_c44_served_prompts_get_shorter_with_gpus_by_as_much_as_operators_or_more():
    """A prompt of 7,373 tokens in the fit to served rows, in both forms, on four and eight GPUs against two."""
    laws_of = {tp: served.fit(served.rows(tp)) for tp in (2, 4, 8)}
    assert [round(1e3 * laws_of[tp].prompts[1]) for tp in laws_of] == [562, 320, 198]
    units = {tp: Operators(catalogue.model("llama-3-70b"), tp=tp, weights="fp8", kv="fp8") for tp in laws_of}
    summed = {tp: unit.prefills().set_index("n_in").total[2048] for tp, unit in units.items()}
    forms = [laws_of, {tp: law.even() for tp, law in laws_of.items()}]
    shorter = [[form[2].prompts[1] / form[tp].prompts[1] for tp in (4, 8)] for form in forms]
    operators = [summed[2] / summed[tp] for tp in (4, 8)]
    assert np.round(shorter, 1).tolist() == [[1.8, 2.8], [1.7, 2.5]]
    assert np.round(operators, 1).tolist() == [1.5, 2.2]


def test_c46_ten_prompts_a_second_take_little_of_the_links_that_are_named():
    moved = theory.transfer_bandwidth(rate=10, n_in=512, kv_token=catalogue.model("opt-66b").kv_token("bf16"))
    assert 8 * moved / 800e9 == pytest.approx(0.12, abs=0.005)
    assert moved / 600e9 == pytest.approx(0.02, abs=0.002)


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_c47_short_prompts_of_larger_models_are_nearer_to_full_speed(precision):
    small, *between, large = (speed(n, precision, 256) for n in ("llama-3-8b", "qwen3-14b", "qwen3-32b", "llama-3-70b"))
    assert small < min(between) <= max(between) < large
    if precision == "fp8":
        assert (round(small, 2), round(large, 2)) == (0.61, 0.72)


def test_c48_the_share_of_memory_decides_whether_reuse_lifts_the_batch():
    llama = Operators(catalogue.model("llama-3-70b"), tp=1, weights="fp8", kv="fp8")
    found = {}
    for share, alpha in itertools.product((0.9, 0.95), (0, 0.9)):
        computed = costs.measured(llama, 2000, 64, memory=share).additive
        stored = computed.with_prefill(theory.speedup_layerwise(alpha=alpha, e=9))
        (row,) = stored.batch_limits(0.04, 0.4).to_dict("records")
        found[share, alpha] = row["batch"], row["binding"]
    assert found[0.9, 0] == found[0.9, 0.9] == (3, "memory")
    assert (found[0.95, 0], found[0.95, 0.9]) == ((4, "TPOT"), (16, "memory"))
