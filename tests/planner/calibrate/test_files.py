"""Files are written here with the field names and the nesting of the tools, but numbers of our own."""

import json
import math

import pandas as pd
import pytest

from inference_math_planner import calibrate

NAN = math.nan
COLUMNS = ["source", "n_in", "n_out", "concurrency", "ttft", "tpot", "e2e", "requests", "model", "tp"]


def vllm(**changes):
    """What `vllm bench serve --save-result` writes in version 0.33, of which what is not read is left out."""
    result = {
        "model_id": "mock", "num_prompts": 100, "request_rate": "inf", "max_concurrency": 8, "duration": 40.0,
        "completed": 100, "failed": 0, "total_input_tokens": 51200, "total_output_tokens": 12800,
        "max_concurrent_requests": 8, "mean_ttft_ms": 250.0, "mean_tpot_ms": 20.0, "mean_itl_ms": 19.0,
        "mean_e2el_ms": 3000.0,
    }  # fmt: skip
    return {name: value for name, value in {**result, **changes}.items() if value != "left out"}


def spread(mean, /, **total):
    """A StatusDistributionSummary of GuideLLM."""
    none = {"mean": 0.0, "median": 0.0, "max": 0.0, "count": 0}
    successful = {"mean": mean, "median": mean, "max": mean, "count": 50}
    return {"successful": successful, "errored": none, "incomplete": none, "total": {**successful, **total}}


def guidellm(strategy, old=False, totals=(50, 0, 4), **metrics):
    """One benchmark as GuideLLM 0.8 writes it, or as 0.3 did."""
    counts = dict(zip(("successful", "errored", "incomplete"), totals, strict=True)) | {"total": sum(totals)}
    measured = {
        "request_concurrency": spread(5.5, mean=5.75, max=8.0),
        "request_latency": spread(3.0),
        "prompt_token_count": spread(512.0),
        "output_token_count": spread(128.0),
        "time_to_first_token_ms": spread(250.0),
        "time_per_output_token_ms": spread(23.4375),
        "inter_token_latency_ms": spread(20.0),
        **metrics,
    }
    kept = {"args": {"strategy": strategy}, "metrics": measured, "request_totals": counts}
    new = {"config": {"strategy": strategy}, "metrics": {"request_totals": counts, **measured}}
    return {"type_": "generative_benchmark", "duration": 40.0, **(kept if old else new)}


def report(*benchmarks):
    return {"metadata": {"version": 2, "guidellm_version": "0.8.1"}, "config": {}, "benchmarks": list(benchmarks)}


CONCURRENT = {"type_": "concurrent", "worker_count": 8, "max_concurrency": 8, "streams": 8}
PHASE = {"name": "profiling", "kind": "profiling", "type": "concurrency", "requests": 100, "concurrency": 8}
WARMUP = {"name": "warmup", "kind": "warmup", "type": "concurrency", "requests": 16, "concurrency": 4}


def aiperf(config=None, **changes):
    """What AIPerf 0.13 writes to profile_export_aiperf.json (genai-perf: another input_config, units of counts)."""
    result = {
        "request_throughput": {"unit": "requests/sec", "avg": 2.5},
        "request_latency": {"unit": "ms", "avg": 3000.0},
        "request_count": {"unit": "requests", "avg": 100.0},
        "time_to_first_token": {"unit": "ms", "avg": 250.0},
        "inter_token_latency": {"unit": "ms", "avg": 20.0},
        "output_sequence_length": {"unit": "tokens", "avg": 128.0},
        "input_sequence_length": {"unit": "tokens", "avg": 512.0},
        "input_config": {"phases": [WARMUP, PHASE]} if config is None else config,
        "was_cancelled": False,
        "is_complete": True,
        **changes,
    }
    return {name: value for name, value in result.items() if value != "left out"}


def phased(**changes):
    return {"phases": [{**PHASE, **changes}]}


def sglang(**changes):
    """A line of `sglang.bench_serving` (0.4.6), of which what is not read is left out."""
    result = {
        "backend": "sglang", "request_rate": math.inf, "max_concurrency": 8, "duration": 40.0, "completed": 100,
        "total_input_tokens": 51200, "total_output_tokens": 12800, "total_output_tokens_retokenized": 12790,
        "request_throughput": 2.5, "mean_e2e_latency_ms": 3000.0, "mean_ttft_ms": 250.0, "mean_tpot_ms": 20.0,
        "mean_itl_ms": 19.0, "concurrency": 7.5, "accept_length": None,
    }  # fmt: skip
    return {name: value for name, value in {**result, **changes}.items() if value != "left out"}


def statistics(latency="3,000.00", first="Time to First Token", count="", throughput="requests/sec", rate="2.50"):
    """The CSV file of AIPerf (0.10), or with other names and units that of genai-perf (0.0.8)."""
    return (
        "Metric,avg,min,max,p99\n"
        f"{first} (ms),250.00,75.04,693.93,687.62\n"
        "Inter Token Latency (ms),20.00,7.49,23.31,23.27\n"
        f'Request Latency (ms),"{latency}",399.38,"19,164.49","18,625.45"\n'
        "Output Sequence Length (tokens),128.00,39.00,526.00,472.80\n"
        'Input Sequence Length (tokens),512.00,394.00,"1,554.00","1,667.65"\n'
        "\n"
        "Metric,Value\n"
        f"Request Throughput ({throughput}),{rate}\n"
        f"Request Count{count},100.00\n"
        "\n\nEndpoint,GPU_Index,GPU_Name,GPU_UUID,Metric,avg,min,max\n"
    )


def csv(*rows, header="n_in,n_out,concurrency,ttft,tpot,e2e,requests"):
    return "\n".join([header, *rows]) + "\n"


GOOD_ROW = "512,128,8,0.25,0.02,3,100"


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="a.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return to_file


@pytest.fixture
def row(write):
    """Read the one run of a file, which must be usable."""

    def of(content):
        found = calibrate.read(write(content))
        assert found.unusable.empty, found.unusable.reason.tolist()
        (only,) = found.table.to_dict("records")
        return only

    return of


@pytest.fixture
def reason(write):
    """Read the one run of a file, which must be unusable, and return why."""

    def of(content):
        found = calibrate.read(write(content))
        assert found.table.empty
        (only,) = found.unusable.to_dict("records")
        assert only["source"].startswith("a.json")
        return only["reason"]

    return of


ALL = {
    "vllm": vllm(),
    "vllm 0.10": vllm(failed="left out", max_concurrent_requests="left out"),
    "sglang": sglang(),
    "guidellm": report(guidellm(CONCURRENT)),
    "guidellm 0.3": {"benchmarks": [guidellm({"type_": "concurrent", "streams": 8}, old=True)]},
    "aiperf": aiperf(),
    "aiperf 0.7": aiperf({"loadgen": {"concurrency": 8, "arrival_pattern": "concurrency_burst", "request_count": 100}}),
    "genai-perf 0.0.16": aiperf({"perf_analyzer": {"stimulus": {"concurrency": 8}}, "input": {"num_prefix": 0}}),
    "genai-perf 0.0.11": aiperf({"concurrency": 8, "request_rate": None}),
    "csv": csv(GOOD_ROW),
}


@pytest.mark.parametrize("name", ALL)
def test_every_format_gives_the_numbers_that_were_put_in(name, row):
    found = row(ALL[name])
    assert found.pop("model") == ("mock" if name.startswith("vllm") else None)
    assert math.isnan(found.pop("tp"))
    assert found.pop("source") == ("a.json#2" if name == "csv" else "a.json")
    assert found.pop("requests") == (50 if name.startswith("guidellm") else 100)
    assert found == {"n_in": 512.0, "n_out": 128.0, "concurrency": 8.0, "ttft": 0.25, "tpot": 0.02, "e2e": 3.0}


@pytest.mark.parametrize(
    "content",
    [
        vllm(mean_e2el_ms="left out"),
        report(guidellm(CONCURRENT, request_latency=None)),
        aiperf(request_latency="left out"),
        csv("512,128,8,0.25,0.02,100", header="n_in,n_out,concurrency,ttft,tpot,requests"),
        csv("512,128,8,0.25,0.02,,100"),
        csv("512,128,8,0.25,0.02,NaN,100"),
    ],
)
def test_a_latency_that_is_not_reported_is_worked_out(content, row):
    assert row(content)["e2e"] == 0.25 + 127 * 0.02


@pytest.mark.parametrize(
    "content",
    [
        vllm(mean_ttft_ms=0.0, mean_tpot_ms=0.0),
        vllm(mean_ttft_ms="left out", mean_tpot_ms="left out", mean_itl_ms="left out"),
        report(guidellm(CONCURRENT, time_to_first_token_ms=spread(0.0), inter_token_latency_ms=spread(0.0))),
        aiperf(time_to_first_token="left out", inter_token_latency="left out"),
        # genai-perf without streaming: the whole latency as the time to first token.
        aiperf(time_to_first_token={"unit": "ms", "avg": 3000.0}, inter_token_latency="left out"),
        csv("512,128,8,3,100", header="n_in,n_out,concurrency,e2e,requests"),
        csv("512,128,8,,,3,100"),
    ],
)
def test_without_streaming_the_latency_alone_is_known(content, row):
    found = row(content)
    assert (found["e2e"], found["concurrency"]) == (3.0, 8.0)
    assert math.isnan(found["ttft"])
    assert math.isnan(found["tpot"])


def test_a_time_to_first_token_is_kept_where_the_latency_alone_is_beside_it(row):
    found = row(csv("512,128,8,0.25,,3,100"))
    assert (found["ttft"], found["e2e"]) == (0.25, 3.0)


def test_a_sweep_of_vllm_is_an_array_of_results(write):
    """As `vllm bench sweep` writes summary.json: each run with the settings that were swept."""
    swept = [vllm(run_number=n, max_concurrency=users, duration=320 / users) for n, users in enumerate((4, 8))]
    found = calibrate.read(write(json.dumps(swept, indent=4), "summary.json"))
    assert found.table.concurrency.tolist() == [4, 8]
    assert found.table.source.tolist() == ["summary.json#1", "summary.json#2"]


@pytest.mark.parametrize(
    "content",
    [statistics(), statistics(first="Time To First Token", count=" (count)", throughput="per sec"),
     statistics(count=" (requests)")],
)  # fmt: skip
def test_csv_of_aiperf_and_genai_perf_says_all_but_the_concurrency(content, row):
    """Which is Little's: 2.5 requests/s of 3 s each; thousands have commas."""
    found = row(content)
    assert {name: found[name] for name in ("n_in", "n_out", "ttft", "tpot", "e2e", "requests")} == {
        "n_in": 512.0, "n_out": 128.0, "ttft": 0.25, "tpot": 0.02, "e2e": 3.0, "requests": 100,
    }  # fmt: skip
    assert found["concurrency"] == 7.5
    assert found["source"] == "a.json"


def test_sglang_counts_who_is_there_itself_where_no_loop_is_closed(row):
    assert row(sglang())["concurrency"] == 8
    assert row(sglang(request_rate=2.5))["concurrency"] == 7.5
    assert row(sglang(max_concurrency=None))["concurrency"] == 7.5
    assert row(sglang(request_rate=2.5, concurrency="left out"))["concurrency"] == 2.5 * 3.0


@pytest.mark.parametrize(
    "content",
    [
        vllm(request_rate=2.5),
        vllm(request_rate=2.5, max_concurrency=1000),
        vllm(max_concurrency=None),
        vllm(max_concurrency=16),  # as where a trace is replayed at its own times: the peak is 8
        aiperf(phased(type="poisson", rate=2.5)),
        aiperf(phased(concurrency_ramp={"duration": 10})),
        aiperf({"loadgen": {"request_rate": 2.5, "concurrency": 8}}),
        aiperf({"loadgen": {"user_centric_rate": 2.5, "concurrency": 8}}),
        aiperf({"loadgen": {"concurrency_ramp_duration": 10, "concurrency": 8}}),
        aiperf({"loadgen": {"concurrency": 8}, "input": {"fixed_schedule": True}}),
        aiperf({"perf_analyzer": {"stimulus": {"request_rate": 2.5}}}),
        aiperf({"concurrency": "", "request_rate": 2.5}),
    ],
)
def test_without_a_closed_loop_littles_law_gives_the_concurrency(content, row):
    assert row(content)["concurrency"] == 2.5 * 3.0


@pytest.mark.parametrize("old", [False, True])
def test_guidellm_counts_the_mean_itself_where_no_closed_loop_was_full(old, row):
    def concurrency(strategy, **metrics):
        return row(report(guidellm(strategy, old, **metrics)))["concurrency"]

    assert concurrency({"type_": "poisson", "rate": 2.0, "max_concurrency": 512}) == 5.75
    assert concurrency({"type_": "throughput", "max_concurrency": 8}) == 5.75
    assert concurrency(CONCURRENT, request_concurrency=spread(5.5, mean=5.75, max=7.0)) == 5.75
    assert concurrency({"type_": "synchronous"}, request_concurrency=spread(0.9, max=1.0)) == 1.0


def test_requests_cut_off_at_the_end_were_in_the_system_but_did_not_fail(row):
    strategy = {"type_": "concurrent", "streams": 60}
    full = spread(55.0, max=60.0)
    assert row(report(guidellm(strategy, totals=(20, 0, 40), request_concurrency=full)))["concurrency"] == 60


def test_a_concurrency_phase_of_aiperf_that_names_no_number_keeps_one_request(row):
    slow = {"unit": "requests/sec", "avg": 0.33}
    told = aiperf({"phases": [{"name": "profiling", "type": "concurrency"}]}, request_throughput=slow)
    assert row(told)["concurrency"] == 1


def test_a_warm_up_of_aiperf_is_told_by_its_kind_or_else_by_its_name(row):
    old = [{**WARMUP, "kind": None}, {**PHASE, "kind": None}]
    named = [{**WARMUP, "name": "soak"}, {**PHASE, "name": "base"}]
    assert row(aiperf({"phases": old}))["concurrency"] == row(aiperf({"phases": named}))["concurrency"] == 8


@pytest.mark.parametrize(("unit", "value"), [("ns", 3e9), ("us", 3e6), ("ms", 3e3), ("sec", 3.0), ("s", 3.0)])
def test_units_become_seconds(unit, value, row):
    assert row(aiperf(request_latency={"unit": unit, "avg": value}))["e2e"] == 3.0


@pytest.mark.parametrize("between", ["", "\n\n  "])
def test_results_appended_to_one_file_are_numbered(between, write):
    results = [vllm(), vllm(completed=3, failed=0), vllm(max_concurrency=4, duration=80.0)]
    found = calibrate.read(write("\n " + between.join(map(json.dumps, results)) + "\n"))
    assert found.table.source.tolist() == ["a.json#1", "a.json#3"]
    assert found.table.concurrency.tolist() == [8, 4]
    assert found.unusable.source.tolist() == ["a.json#2"]


def test_benchmarks_of_one_report_are_numbered(write):
    found = calibrate.read(write(report(guidellm({"type_": "synchronous"}), guidellm(CONCURRENT))))
    assert found.table.source.tolist() == ["a.json#1", "a.json#2"]
    assert found.table.concurrency.tolist() == [1, 8]


def test_csv_rows_are_numbered_as_in_a_spreadsheet(write):
    rows = ("", GOOD_ROW, ",,,,,,", "512,128,eight,0.25,0.02,3,100", "512,128,8", ' 64 ,2, "1.5" ,,, 1 ,')
    found = calibrate.read(write("\ufeff\n" + csv(*rows), "b.csv"))
    assert found.table.source.tolist() == ["b.csv#4", "b.csv#8"]
    assert found.table.n_in.tolist() == [512, 64]
    assert found.table.requests.tolist() == [100, pd.NA]
    assert found.unusable.to_dict("records") == [
        {"source": "b.csv#6", "reason": "concurrency is no number: 'eight'"},
        {"source": "b.csv#7", "reason": "3 cells, 7 columns"},
    ]


def test_columns_of_a_csv_file_may_stand_in_any_order_beside_others(row):
    found = row(csv("fast,3,8,128,512,x", header="note,e2e,concurrency,n_out,n_in,"))
    assert (found["n_in"], found["n_out"], found["concurrency"], found["e2e"]) == (512, 128, 8, 3)


def test_files_of_all_formats_go_into_one_table(write):
    paths = [write(content, f"{i}.txt") for i, content in enumerate(ALL.values())]
    found = calibrate.read(*paths[:-1], str(paths[-1]))
    assert found.unusable.empty
    assert found.table.columns.tolist() == COLUMNS
    assert found.table.source.tolist() == [*(f"{i}.txt" for i in range(9)), "9.txt#2"]


def test_files_of_one_name_are_told_apart_by_their_folders(write):
    paths = [write(vllm(), "x/a.json"), write(vllm(completed=1), "y/a.json"), write(vllm(), "z/b.json")]
    found = calibrate.read(*paths)
    assert found.table.source.tolist() == [str(paths[0]), "b.json"]
    assert found.unusable.source.tolist() == [str(paths[1])]


def test_without_a_usable_run_the_table_is_empty_and_keeps_its_types(write):
    found = calibrate.read(write(vllm(completed=0, total_input_tokens=0, total_output_tokens=0)))
    assert found.table.empty
    assert found.table.dtypes.drop("source").astype(str).tolist() == ["float64"] * 6 + ["Int64", "object", "float64"]
    assert found.unusable.columns.tolist() == ["source", "reason"]
    assert calibrate.read(write(vllm())).table.dtypes.equals(calibrate.read(write(vllm(mean_ttft_ms=0))).table.dtypes)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        # Too few, too many lost.
        (vllm(completed=4), "4 requests completed; it takes a whole number, 5 or more"),
        (vllm(completed=99, failed=2), "2 requests failed, 99 completed; at most 1 %"),
        (vllm(completed=98, failed="left out"), "2 requests failed, 98 completed"),
        (vllm(completed=98, failed=None), "2 requests failed, 98 completed"),
        (vllm(failed="left out", num_prompts=60), "100 requests completed of 60 in num_prompts"),
        (vllm(failed="left out", num_prompts="left out"), "num_prompts is missing"),
        (vllm(spec_decode_acceptance_rate=0.7, spec_decode_num_drafts=900), "speculative decoding was on"),
        (vllm(tensor_parallel_size="two"), "tp must be"),
        (report(guidellm(CONCURRENT, totals=(50, 1, 0))), "1 requests failed, 50 completed"),
        (aiperf(error_request_count={"unit": "requests", "avg": 4.0}), "4 requests failed, 100 completed"),
        (aiperf(request_count={"unit": "requests", "avg": 20.5}), "20.5 requests completed; it takes a whole number"),
        # The load is not one number.
        (vllm(max_concurrency=101), "a concurrency of 101 was never reached, with 100 requests"),
        # A hundred requests of 3 s in 40 s are 7.5 at once.
        (vllm(duration=20.0), "are 15 at once, and at most 8 were: duration and latencies contradict each other"),
        (vllm(mean_ttft_ms=2500.0, mean_e2el_ms=5000.0), "are 12.5 at once, and at most 8 were"),
        (vllm(duration=100.0), "3 requests were there on average, not 8: the client was too slow"),
        (vllm(ramp_up_strategy="linear", ramp_up_start_rps=1, ramp_up_end_rps=9), "ramped up"),
        (vllm(max_concurrency=None, duration=0), "no concurrency above zero, and no duration"),
        (vllm(max_concurrency=None, duration=2.0), "a mean concurrency of 150 is impossible with 100 requests"),
        (report(guidellm({"type_": "concurrent", "streams": 55})), "55 was never reached, with 54 requests"),
        (report(guidellm({"type_": "poisson"}, request_concurrency=None)), "no concurrency above zero"),
        (aiperf(phased(adaptive_scale=True)), "the means belong to no one load"),
        (aiperf(phased(type="poisson", rate_series={"points": [[0, 1]]})), "no one load"),
        (aiperf({"phases": [PHASE, {**PHASE, "name": "again"}]}), "no one load"),
        (aiperf({"phases": [WARMUP]}), "no one load"),
        (aiperf({}, request_throughput="left out"), "no concurrency above zero"),
        (csv("512,128,0,0.25,0.02,3,100"), "no concurrency above zero"),
        (csv("512,128,,0.25,0.02,3,100"), "concurrency is missing"),
        (csv("512,128,101,0.25,0.02,3,100"), "a mean concurrency of 101 is impossible with 100 requests"),
        # Cut off.
        (aiperf(was_cancelled=True), "cancelled or is not complete"),
        (aiperf(is_complete=False, incomplete_reason="stalled"), "cancelled or is not complete"),
        # Lengths.
        (vllm(total_input_tokens=0), "n_in is 0, n_out 128"),
        (vllm(total_output_tokens=199), "n_in is 512, n_out 1.99; it takes a prompt and two output tokens"),
        (vllm(total_output_tokens="left out"), "total_output_tokens is missing"),
        (report(guidellm(CONCURRENT, output_token_count={})), "metrics.output_token_count.successful.mean is missing"),
        (aiperf(output_sequence_length={"unit": "tokens"}), "output_sequence_length.avg is missing"),
        (csv("512,,8,0.25,0.02,3,100"), "n_out is missing"),
        # Times.
        (sglang(accept_length=2.4), "speculative decoding was on"),
        (sglang(num_prompts=103), "3 requests failed, 100 completed"),
        (sglang(max_concurrency=8, concurrency=200, duration=20.0), "duration and latencies contradict each other"),
        (statistics(rate="n/a"), "no concurrency above zero"),
        (csv("1000,200,1,0.008,0.05,,50"), "came sooner than a next one: are they swapped? ttft 0.008 s, tpot 0.05 s"),
        (vllm(max_concurrency=1, duration=300.0, mean_ttft_ms=8.0, mean_tpot_ms=23.6), "are they swapped?"),
        (vllm(mean_ttft_ms=0.0, mean_e2el_ms="left out"), "no request latency, nor TTFT and TPOT"),
        (csv("512,128,8,0.25,,,100"), "no request latency, nor TTFT and TPOT"),
        (vllm(mean_e2el_ms=0), "a time is not positive: ttft 0.25, tpot 0.02, e2e 0"),
        (vllm(mean_ttft_ms=NAN), "mean_ttft_ms must be a finite number >= 0, not nan"),
        (vllm(mean_e2el_ms=math.inf), "mean_e2el_ms must be a finite number >= 0, not inf"),
        (vllm(mean_e2el_ms="3 s"), "mean_e2el_ms must be a number"),
        (vllm(duration=10**400), "hundreds of digits"),
        (vllm(mean_ttft_ms=3001.0), "ttft, 3.001 s, exceeds e2e, 3 s"),
        (aiperf(request_latency={"unit": "min", "avg": 0.05}), "request_latency is in 'min'; known units are ns, us"),
        (aiperf(time_to_first_token={"avg": 250.0}), "time_to_first_token is in 'None'"),
        (csv("512,128,8,0,0.02,3,100"), "a time is not positive: ttft 0"),
        (csv("512,128,8,,0,3,100"), "a time is not positive: ttft nan, tpot 0"),
    ],
)
def test_every_reason_for_being_unusable(content, words, reason):
    assert words in reason(content)


def test_what_vllm_says_of_model_and_gpus_is_kept(row):
    found = row(vllm(model_id="Qwen/Qwen3-8B", tensor_parallel_size="2"))  # --metadata writes text
    assert (found["model"], found["tp"]) == ("Qwen/Qwen3-8B", 2)
    assert row(vllm(model_id=None, spec_decode_acceptance_rate=None))["model"] is None


def test_the_limits_themselves_are_usable(row):
    assert row(vllm(completed=99, failed=1))["requests"] == 99
    assert row(vllm(completed=5, max_concurrency=5, max_concurrent_requests=5))["requests"] == 5
    assert row(vllm(completed=99, failed=1, max_concurrency=100, max_concurrent_requests=100))["concurrency"] == 100
    assert row(csv("512,128,8,0.25,0.02,3,8"))["concurrency"] == 8
    assert row(csv("512,128,8,0.01,0.0235,3,100"))["ttft"] == 0.01  # beside others' prompts a step may take longer
    assert row(vllm(total_output_tokens=200))["n_out"] == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty or in no known format"),
        ("hello\nworld\n", "in no known format"),
        ("[1, 2]", "value 1 is no object of a known format"),
        ("[]", "holds no run"),
        ("{}", "object 1 is in no known format"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        (json.dumps(vllm()) + "\n" + json.dumps({"mean_ttft_ms": 3}), "object 2 is in no known format"),
        (json.dumps(vllm()) + "\n7", "value 2 is no object of a known format"),
        (json.dumps(vllm())[:-9], "line 1 column"),
        ({"benchmarks": [{"name": "BM_sort", "cpu_time": 1.0}]}, "object 1 is in no known format"),
        ({"benchmarks": []}, "holds no run"),
        (csv(), "holds no run"),
        (csv("1", header="e2e"), "columns are missing: n_in, n_out, concurrency;"),
        (csv("1,2,3,4", header="n_in,n_out,concurrency,ttft"), "columns are missing: e2e, or ttft and tpot;"),
        (csv("1,2,3,4,5", header="n_in,n_out,n_out,concurrency,e2e"), "columns occur twice: n_out;"),
        ("n_in," + "x" * 200_000, "field larger than field limit"),
    ],
)
def test_a_file_in_no_format_is_refused_by_name(content, words, write):
    path = write(content)
    with pytest.raises(ValueError, match="accepted are JSON of `vllm bench serve`") as caught:
        calibrate.read(path)
    assert str(caught.value).startswith(f"{path}")
    assert words in str(caught.value)


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("n_in,n_out".encode("utf-16"))
    with pytest.raises(ValueError, match=r"a\.csv: .*UTF-8|a\.csv: .*utf-8"):
        calibrate.read(path)


def test_paths_must_be_files_each_given_once(write, tmp_path):
    with pytest.raises(ValueError, match="read needs the path of at least one result file"):
        calibrate.read()
    for missing in (tmp_path / "none.json", tmp_path):
        with pytest.raises(FileNotFoundError, match="is no file; accepted are") as caught:
            calibrate.read(missing)
        assert str(caught.value).startswith(str(missing))
    path = write(vllm())
    with pytest.raises(ValueError, match=r"a\.json is given 2 times"):
        calibrate.read(path, tmp_path / "." / "a.json")
