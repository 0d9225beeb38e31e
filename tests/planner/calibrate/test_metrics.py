"""A running engine's page of metrics, held against the law: what is counted, what is predicted, what moved."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from inference_math import Unit, Workload, simulate
from inference_math.unit.coefficients import COEFFICIENTS
from inference_math_planner.calibrate.from_runs import start_of
from inference_math_planner.calibrate.metrics import Window, watch, window
from inference_math_planner.cli import main

SHIPPED = Unit.of("llama-3-8b", "h100-sxm")
# vLLM's page was written when products were taken to reach this share.
THEN = replace(SHIPPED.calibration.coefficients, bf16=0.7956, attention=0.7956)
UNIT = SHIPPED.calibrated(replace(SHIPPED.calibration, coefficients=THEN))
NAMED = ["--model", "llama-3-8b", "--gpu", "h100-sxm"]
ENDS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, math.inf)


def slowed(name: str, factor: float) -> Unit:
    """Return the unit with one coefficient changed, both shares of attention with BF16."""
    found = UNIT.calibration.coefficients
    names = ("bf16", "attention", "decode_attention") if name == "bf16" else (name,)
    changed = {one: getattr(found, one) * factor for one in names}
    return UNIT.calibrated(replace(UNIT.calibration, coefficients=replace(found, **changed)))


def page(*runs, engine="vllm", cached=0.0, model="llama-3-8b", waiting=2):
    """Return what an engine that served simulated runs would show, written by Prometheus' own client."""
    registry, rows = CollectorRegistry(), pd.concat([run.requests for run in runs])
    kept: dict[str, object] = {"registry": registry, "labelnames": ["model_name"]}

    def counted(name, value):
        Counter(f"{engine}:{name}", name, **kept).labels(model).inc(value)

    def shown(name, value):
        Gauge(f"{engine}:{name}", name, **kept).labels(model).set(value)

    def timed(name, values):
        histogram = Histogram(f"{engine}:{name}", name, buckets=ENDS, **kept).labels(model)
        for value in values:
            histogram.observe(value)

    gaps = np.concatenate([run.every_gap for run in runs])
    timed("time_to_first_token_seconds", rows.first_token - rows.arrival)
    timed("inter_token_latency_seconds", gaps)
    if engine == "vllm":
        timed("request_queue_time_seconds", rows.admitted - rows.arrival)
        timed("request_prefill_time_seconds", rows.first_token - rows.admitted)
        timed("request_prompt_tokens", rows.n_in)
        timed("request_generation_tokens", rows.n_out)
        timed("iteration_tokens_total", np.full(sum(run.steps for run in runs), 1.0))
        counted("prompt_tokens", rows.n_in.sum())
        counted("prompt_tokens_cached", cached * rows.n_in.sum())
        shown("num_requests_running", 7)
        shown("num_requests_waiting", waiting)
        shown("kv_cache_usage_perc", 0.25)
    else:
        timed("queue_time_seconds", rows.admitted - rows.arrival)
        counted("num_requests", len(rows))
        counted("prompt_tokens", rows.n_in.sum())
        counted("generation_tokens", rows.n_out.sum())
        counted("cached_tokens", cached * rows.n_in.sum())
        shown("num_running_reqs", 7)
        shown("num_queue_reqs", waiting)
        shown("token_usage", 0.25)
    return generate_latest(registry).decode()


def served(unit: Unit, rate=6.0, requests=600, seed=1, n_in=1500, n_out=150):
    return simulate.open_loop(
        Workload(n_in, n_out), simulate.Steps(unit), rate=rate, requests=requests, seed=seed, every_gap=True, log=True
    )


COUNTED = {
    "engine": "vllm", "model": "", "requests": 1000, "n_in": 1000.0, "n_out": 200.0, "alpha": 0.0, "running": 0,
    "waiting": 0, "usage": 0.1, "in_flight": 32.0, "ttft": 0.1, "queue": 0.0, "first": 0.1, "tpot": 0.01,
    "preempted": 0, "ttft_counts": {}, "tpot_counts": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def usual():
    return served(UNIT)


@pytest.fixture
def saved(tmp_path):
    def save(text, name="metrics.txt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return save


def test_a_page_is_counted(usual, saved):
    seen, rows = window(saved(page(usual, cached=0.0))), usual.requests
    assert (seen.engine, seen.model, seen.requests) == ("vllm", "llama-3-8b", len(rows))
    assert (seen.n_in, seen.n_out) == (pytest.approx(1500), pytest.approx(150))
    assert (seen.running, seen.waiting, seen.usage) == (7, 2, 0.25)
    assert seen.ttft == pytest.approx(rows.ttft.mean())
    assert seen.queue == pytest.approx((rows.admitted - rows.arrival).mean())
    assert seen.tpot == pytest.approx(usual.every_gap.mean())
    # The mean over the time that steps took, of what the simulator's own log says ran in them.
    log = usual.log
    ran = ((log.decodes + log.prefills) * log.seconds).sum() / log.seconds.sum()
    assert seen.in_flight == pytest.approx(ran, rel=0.1)


def test_a_simulated_run_is_counted_as_its_page_is(usual, saved):
    own, read = Window("vllm", "", **usual.counted()), window(saved(page(usual)))
    for name in ("requests", "n_in", "n_out", "alpha", "ttft", "queue", "first", "tpot"):
        assert getattr(own, name) == pytest.approx(getattr(read, name), rel=2e-3)
    assert own.in_flight == pytest.approx(read.in_flight, rel=0.02)
    for quantity, limit in (("ttft", 0.1), ("tpot", 0.02)):
        (low, high), (mine, _) = read.within(quantity, limit), own.within(quantity, limit)
        assert low - 0.01 <= mine <= high + 0.01


def test_vllm_s_own_page_is_read():
    """Written by vLLM 0.32's own code of a simulated run (engine_page.py): names, labels, buckets."""
    run = simulate.open_loop(Workload(1500, 150), simulate.Steps(UNIT), rate=6.0, requests=300, seed=1)
    own, read = Window("vllm", "", **run.counted()), window(Path(__file__).with_name("vllm_metrics.txt"))
    assert (read.engine, read.model, read.requests) == ("vllm", "llama-3-8b", 300)
    for name in ("n_in", "n_out", "queue", "first"):  # the page is of a fit that differs in its third digit
        assert getattr(read, name) == pytest.approx(getattr(own, name), rel=2e-3)
    # Requests that were under way at the end have first tokens and gaps on the page.
    for name in ("ttft", "tpot", "in_flight"):
        assert getattr(read, name) == pytest.approx(getattr(own, name), rel=0.03)
    assert (read.alpha, read.preempted) == (0.0, 0)
    low, high = read.within("ttft", 0.1)
    assert 0 < low <= (run.requests.ttft <= 0.1).mean() + 0.02
    assert high >= (run.requests.ttft <= 0.1).mean() - 0.02
    assert watch(UNIT, read).as_predicted


def test_the_page_of_a_vllm_that_ran_is_read():
    """Of vLLM 0.32 itself (tools/research/engine_run.py), beside what its client saw: the first line of the file."""
    path = Path(__file__).with_name("vllm_page.txt")
    seen, read = json.loads(path.read_text(encoding="utf-8").partition("\n")[0][2:]), window(path)
    for name in ("requests", "n_in", "n_out"):
        assert getattr(read, name) == seen[name]
    assert (read.ttft, read.tpot) == pytest.approx((seen["ttft"], seen["tpot"]), rel=0.02)
    assert read.queue + read.first == pytest.approx(read.ttft, rel=0.02)
    assert (read.running, read.waiting, read.preempted) == (0, 0, 0)
    # Users with equal answers prompt in the same step, which no gap between tokens shows: they come out too many.
    assert seen["users"] <= read.in_flight < 1.3 * seen["users"]


def test_two_pages_are_the_difference(usual, saved):
    early, late = saved(page(usual), "early.txt"), served(UNIT, seed=2, n_in=700)
    first, second = window(early), window(saved(page(late), "own.txt"))
    both = saved(page(usual, late), "late.txt")
    found = window(both, early)
    assert found.requests == second.requests
    assert found.n_in == pytest.approx(700)
    for name in ("ttft", "tpot", "in_flight"):
        assert getattr(found, name) == pytest.approx(getattr(second, name))
    assert found.within("ttft", 0.1) == pytest.approx(second.within("ttft", 0.1))
    assert window(both).requests == first.requests + second.requests


def test_what_runs_as_calibrated_is_as_predicted(usual, saved):
    found = watch(UNIT, window(saved(page(usual))))
    assert found.as_predicted
    assert found.moved.empty
    assert found.calibration is UNIT.calibration
    assert (abs(np.log(found.table.value / found.table.measured)) < 0.15).all()


@pytest.mark.parametrize(
    ("name", "factor", "not_"), [("bf16", 0.45, "kv"), ("kv", 0.25, "bf16"), ("layer", 3.0, "bf16")]
)
def test_what_moved_is_named(name, factor, not_, saved):
    """Two times of one load tell prefill from decode, not what slows a step from what slows each of its requests."""
    slow = slowed(name, factor)
    rate, lengths = (3.0, {"n_in": 3000, "n_out": 400}) if name == "kv" else (4.0, {})
    seen = window(saved(page(served(slow, rate=rate, requests=300, **lengths))))
    found = watch(UNIT, seen)
    assert not found.as_predicted
    moved = found.moved.set_index("name")
    assert not_ not in moved.index
    row = moved.loc[name]
    assert (row.after < row.before) == (factor < 1)
    assert row.after / row.before == pytest.approx(factor, rel=0.4)
    assert list(abs(moved.widths)) == sorted(abs(moved.widths))
    assert (abs(np.log(watch(UNIT.calibrated(found.calibration), seen).table.eval("value / measured"))) < 0.12).all()


def test_a_prompt_that_is_cached_whole_has_a_token_to_compute():
    assert Window(**COUNTED | {"alpha": 1.0}).work.alpha == 0.999


def test_a_step_is_as_long_as_that_of_what_was_seen_at_the_upper_end_of_the_first_tokens():
    """Beside requests in the middle of their answers, by the calibration as it moved."""
    found = watch(UNIT, Window(**COUNTED | {"n_out": 8000.0, "in_flight": 64.0}))
    own, wide = UNIT.calibrated(found.calibration), found.table.high / found.table.value
    assert wide[0] != pytest.approx(wide[1], rel=0.01)
    assert found.step(512) == pytest.approx(wide[0] * float(own.step_time(64, 5000, 512, 1000)))


def test_what_moved_is_told_in_widths_of_what_was_known():
    """Both of them: the calibration's own, and what a profile lets a coefficient move."""
    slow, work = slowed("bf16", 0.45), Workload(1000, 200)
    times = {"first": float(slow.ttft(work, 32)), "tpot": float(slow.tpot(work, 32))}
    found, (start, widths) = watch(UNIT, Window(**COUNTED | times)), start_of(UNIT.calibration)
    assert not found.moved.empty
    for name, before, after, by in found.moved.to_numpy().tolist():
        place = COEFFICIENTS.index(name)
        known = math.hypot(start.covariance[place, place] ** 0.5, widths[name])
        assert by == pytest.approx(math.log(after / before) / known)


def test_a_limit_lies_between_its_buckets(usual, saved):
    seen, ttft = window(saved(page(usual))), usual.requests.ttft
    for limit in (0.05, 0.07, 0.3):
        low, high = seen.within("ttft", limit)
        assert low <= (ttft <= limit).mean() <= high
    low, high = seen.within("ttft", 0.05)
    assert low == high == pytest.approx((ttft <= 0.05).mean())
    assert seen.within("tpot", 5.0)[1] == 1.0


def test_an_engine_that_counts_no_steps_needs_a_clock(usual, saved):
    path = saved(page(usual, engine="sglang", cached=0.4))
    with pytest.raises(ValueError, match="seconds must be given, those between two pages: sglang"):
        window(path)
    seen = window(path, seconds=usual.seconds)
    assert (seen.engine, seen.requests, seen.alpha) == ("sglang", len(usual.requests), pytest.approx(0.4))
    ran = (usual.requests.finished - usual.requests.admitted).sum() / usual.seconds
    assert seen.in_flight == pytest.approx(ran, rel=0.02)
    with pytest.raises(ValueError, match="engine must be sglang"):
        watch(UNIT, seen)


def test_groups_of_attention_step_together(usual, saved):
    """Each of four groups counts every step: the time is a step's, not four."""
    text = page(usual)
    (steps,) = (line for line in text.splitlines() if line.startswith("vllm:iteration_tokens_total_count"))
    name, _, value = steps.rpartition(" ")
    own = [f'{name[:-1]},engine="{rank}"}} {value}' for rank in range(4)]
    grouped = window(saved(text.replace(steps, "\n".join(own)).replace("_perc{", "_perc{")))
    assert grouped.in_flight == pytest.approx(window(saved(text)).in_flight)


def test_a_mean_of_few_requests_is_sampled(usual, saved):
    seen = window(saved(page(usual)))
    # As wide as the requests' own times say, give or take the buckets.
    own = 1.645 * usual.requests.ttft.std() / len(usual.requests) ** 0.5
    assert own / 1.7 < seen.sampled("ttft") < 1.7 * own
    fewer = replace(seen, requests=seen.requests // 4)
    assert fewer.sampled("ttft") == pytest.approx(2 * seen.sampled("ttft"), rel=0.01)
    assert np.isnan(replace(seen, ttft_counts={}).sampled("ttft"))
    # Half of them up to 1 s, half beyond the last end: ± 1.645 standard deviations of the mean of 100.
    two = replace(seen, requests=100, ttft_counts={1.0: 50.0, 2.0: 50.0, float("inf"): 100.0})
    assert two.sampled("ttft") == pytest.approx(1.645 * (0.75**2 + 0.5 / 12) ** 0.5 / 10)
    # All in one bucket are not all alike.
    one = replace(seen, requests=100, ttft_counts={1.0: 0.0, 2.0: 100.0, float("inf"): 100.0})
    assert one.sampled("ttft") == pytest.approx(1.645 / 12**0.5 / 10)


def test_a_time_that_is_outside_by_less_than_was_sampled_did_not_move(usual, saved):
    seen = window(saved(page(usual)))
    row = watch(UNIT, seen).table.set_index("name").loc["tpot"]
    beyond = replace(seen, tpot=row.high * 1.01)
    wide, narrow = (replace(beyond, requests=many) for many in (100, 10**9))
    assert watch(UNIT, wide).table.set_index("name").loc["tpot", "sampled"] > 0.01 * row.high
    assert watch(UNIT, wide).table.set_index("name").loc["tpot", "inside"]
    assert not watch(UNIT, narrow).table.set_index("name").loc["tpot", "inside"]


def test_a_server_s_own_ttft_has_its_front(usual, saved):
    """SGLang says nothing of its own first token: what lies before may be the front, and no more."""
    seen = window(saved(page(usual, engine="sglang")), seconds=usual.seconds)
    unit = replace(UNIT, engine="sglang")
    row = watch(unit, seen).table.set_index("name").loc["ttft"]
    assert row.high == pytest.approx(unit.predict("ttft", seen.work, seen.in_flight).high + unit.front.seconds)
    own = watch(UNIT, window(saved(page(usual)))).table.set_index("name").loc["ttft"]
    assert own.high == pytest.approx(UNIT.predict("ttft", seen.work, window(saved(page(usual))).in_flight).high)


def test_an_older_page_of_sglang_counts_requests_by_their_latencies_and_tells_no_wait(usual, saved, capsys):
    """It has no counter of requests and no queue: the first token, which holds the wait, is compared with nothing."""
    new = page(usual, engine="sglang")
    gone = ("sglang:num_requests", "sglang:queue_time", "sglang:cached_tokens")
    kept = [line for line in new.splitlines() if not any(name in line for name in gone)]
    own = 'sglang:e2e_request_latency_seconds_{}{{model_name="llama-3-8b"}} {}'
    latencies = usual.requests.finished - usual.requests.arrival
    kept += ["# TYPE sglang:e2e_request_latency_seconds histogram", own.format("sum", latencies.sum())]
    kept += [own.format("count", float(len(latencies)))]
    path = saved("\n".join(kept) + "\n")
    with pytest.raises(ValueError, match="seconds must be given, those between two pages: sglang"):
        window(path)
    seen = window(path, seconds=usual.seconds)
    assert seen.requests == len(usual.requests)
    assert (seen.n_in, seen.n_out) == (pytest.approx(1500), pytest.approx(150))
    assert np.isnan(seen.queue)
    decoding = (usual.requests.finished - usual.requests.first_token).sum() / usual.seconds
    assert seen.in_flight == pytest.approx(decoding, rel=0.02)
    assert watch(replace(UNIT, engine="sglang"), seen).table.name.tolist() == ["tpot"]
    asked = ["watch", str(path), *NAMED, "--engine", "sglang", "--seconds", str(usual.seconds)]
    main(asked)
    assert "not on the page, so no first token is compared" in capsys.readouterr().out
    main([*asked, "--json"])
    assert json.loads(capsys.readouterr().out)["queue"] is None


def test_bad_pages_are_refused(usual, saved, tmp_path):
    text = page(usual)
    with pytest.raises(FileNotFoundError):
        window(tmp_path / "nowhere.txt")
    for broken in ("", "hello\n", '{"a": 1}', "go_goroutines 7\n"):
        with pytest.raises(ValueError, match=r"no page of metrics|no requests of a known engine"):
            window(saved(broken))
    with pytest.raises(ValueError, match="lacks vllm:inter_token_latency_seconds"):
        window(saved("\n".join(line for line in text.splitlines() if "inter_token" not in line) + "\n"))
    with pytest.raises(ValueError, match="must be a later page than"):
        window(saved(page(served(UNIT, requests=200)), "late.txt"), saved(text, "early.txt"))
    with pytest.raises(ValueError, match="must have at least 100 finished requests"):
        window(saved(page(served(UNIT, requests=10))))
    with pytest.raises(ValueError, match="no requests of a known engine"):
        window(saved(text), saved("", "early.txt"))
    with pytest.raises(ValueError, match="must be a page of vllm"):
        window(saved(text), saved(page(usual, engine="sglang"), "early.txt"))
    with pytest.raises(ValueError, match="prompts and answers"):
        window(saved(page(served(UNIT, requests=120, n_out=1))))
    with pytest.raises(ValueError, match="runs must be of llama-3-8b, not of 'qwen3-32b'"):
        watch(UNIT, window(saved(page(usual, model="qwen3-32b"))))
    with pytest.raises(ValueError, match="of one model, not of a, llama-3-8b"):
        window(saved(text + 'vllm:num_requests_swapped{model_name="a"} 1.0\n'))
    with pytest.raises(ValueError, match="seconds must be"):
        window(saved(text), seconds=-1.0)
    with pytest.raises(ValueError, match="calibration must be one of"):
        watch(slowed("kv", 0.2).at_datasheet, window(saved(text)))


def test_the_command_says_it(usual, saved, capsys, tmp_path):
    path, out = saved(page(usual)), tmp_path / "moved.toml"
    asked = ["--ttft", "0.05", "--tpot", "0.02", "--prompt", "1500", "--output", "150", "--alpha", "0"]
    assert main(["watch", str(path), *NAMED, *asked, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Nothing moved that" in said
    assert "planned with" not in said
    assert "Now 7 running, 2 waiting, 25% of the KV cache in use." in said
    assert not out.exists()
    slow = saved(page(served(slowed("bf16", 0.45), rate=4.0, requests=300)), "slow.txt")
    assert main(["watch", str(slow), *NAMED, "--prompt", "900", "--alpha", "0.5", "--out", str(out)]) == 1
    said = capsys.readouterr().out
    assert "! planned with --prompt 900, counted 1,500: plan again" in said
    assert "! planned with --alpha 0.5, counted 0: plan again" in said
    assert "Moved:\n  bf16 from " in said
    assert main(["watch", str(slow), *NAMED, "--calibration", str(out), "--json"]) in (0, 1)
    told = json.loads(capsys.readouterr().out)
    assert told["requests"] == 300
    assert [row["name"] for row in told["times"]] == ["ttft", "tpot"]
    assert main(["watch", "nowhere.txt", *NAMED]) == 2
    assert "nowhere.txt" in capsys.readouterr().err
