"""Write tests/planner/calibrate/vllm_metrics.txt: the page of metrics that vLLM's own code makes of a simulated run.

    python tools/research/engine_page.py     # where vLLM and this package are installed; needs no GPU, runs no engine

What is served is simulated, so that the page's times are known; names, labels, buckets and what counts when are vLLM's.
"""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

from inference_math import Unit, Workload, simulate

PAGE = Path("tests/planner/calibrate/vllm_metrics.txt")
WORK = Workload(1500, 150)


def main() -> None:
    """Serve, count, write."""
    from prometheus_client import REGISTRY, generate_latest
    from vllm.v1.engine import FinishReason
    from vllm.v1.metrics.loggers import PrometheusStatLogger
    from vllm.v1.metrics.stats import FinishedRequestStats, IterationStats, SchedulerStats

    config = MagicMock()
    config.model_config.served_model_name, config.model_config.max_model_len = "llama-3-8b", 8192
    for name in ("speculative_config", "lora_config", "kv_transfer_config", "ec_transfer_config", "kv_events_config"):
        setattr(config, name, None)
    config.observability_config.configure_mock(
        show_hidden_metrics=False, kv_cache_metrics=False, custom_histogram_buckets=None, enable_mfu_metrics=False
    )
    logger = PrometheusStatLogger(config, [0])
    unit = Unit.of("llama-3-8b", "h100-sxm")
    run = simulate.open_loop(WORK, simulate.Steps(unit), rate=6.0, requests=300, seed=1, log=True)
    rows = run.requests.sort_values("finished")
    assert run.log is not None
    for step in run.log.to_dict("records"):
        start, end = step["start"] + 1e-9, step["start"] + step["seconds"] + 1e-9
        begun, done = (rows[rows[name].between(start, end, inclusive="right")] for name in ("first_token", "finished"))
        stats = IterationStats()
        stats.num_generation_tokens = int(step["decodes"]) + len(begun)
        stats.prompt_token_stats.computed = stats.prompt_token_stats.total = int(begun["n_in"].sum())
        stats.time_to_first_tokens_iter = begun["ttft"].tolist()
        stats.inter_token_latencies_iter = [step["seconds"]] * int(step["decodes"])
        for one in done.to_dict("records"):
            decode = one["finished"] - one["first_token"]
            stats.finished_requests.append(
                FinishedRequestStats(
                    FinishReason.LENGTH, e2e_latency=one["latency"], num_prompt_tokens=int(one["n_in"]),
                    num_generation_tokens=int(one["n_out"]), max_tokens_param=int(one["n_out"]),
                    queued_time=one["admitted"] - one["arrival"], prefill_time=one["first_token"] - one["admitted"],
                    inference_time=one["finished"] - one["admitted"], decode_time=decode,
                    mean_time_per_output_token=one["tpot"],
                )
            )  # fmt: skip
        logger.record(SchedulerStats(num_running_reqs=int(step["decodes"]), kv_cache_usage=0.05), stats, engine_idx=0)
    text = generate_latest(REGISTRY).decode()
    kept = [line for line in text.splitlines() if "_created" not in line and ("vllm:" in line)]
    PAGE.write_text("\n".join(kept) + "\n", encoding="utf-8")
    print(f"{PAGE}: {len(kept)} lines of {len(rows)} requests")


if __name__ == "__main__":
    main()
