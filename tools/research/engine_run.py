"""Write tests/planner/calibrate/vllm_page.txt: the metrics of a vLLM that ran, and first what a client saw.

.venv-lab/bin/python tools/research/engine_run.py     # the laboratory's small model, on this machine; some seconds
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from inference_math_bench.lab.engines import Prompt
from inference_math_bench.lab.shape import OWN, config
from inference_math_bench.lab.vllm_engine import Vllm, prepare

PAGE = Path("tests/planner/calibrate/vllm_page.txt")
USERS, REQUESTS, N_IN, N_OUT = 6, 150, 96, 24
KEPT = ("time_to_first_token", "inter_token_latency", "time_per_output_token")  # whose buckets are read


def main() -> None:
    """Serve users in a closed loop, count as the client does, and write what the engine counted."""
    prepare()
    from prometheus_client import REGISTRY, generate_latest

    with tempfile.TemporaryDirectory() as folder:
        engine = Vllm(config(OWN, 512), Path(folder), 512, disable_log_stats=False, enable_prefix_caching=False)
        seen = served(engine)
        after = page(generate_latest(REGISTRY))
    told = {name: sum(row[name] for row in seen) / len(seen) for name in ("ttft", "tpot", "e2e")}
    told |= {"requests": len(seen), "n_in": N_IN, "n_out": N_OUT, "users": USERS}
    told["version"] = engine.description["version"]
    PAGE.write_text("\n".join([f"# {json.dumps(told)}", *after]) + "\n", encoding="utf-8")
    print(told)


def served(engine: Vllm) -> list[dict[str, float]]:
    """Return the seconds of each request, of users who send the next when the last is answered."""
    open_: dict[int, list[float]] = {}
    seen: list[dict[str, float]] = []
    sent = 0
    while len(seen) < REQUESTS:
        while len(open_) < USERS and sent < REQUESTS:
            open_[engine.submit(Prompt(N_IN), N_OUT)] = [engine.now(), 0.0]
            sent += 1
        step = engine.step()
        assert step is not None  # somebody is always under way
        end = engine.now()
        for one in step.emitted:
            times = open_[one.number]
            times[1] = times[1] or end
            if one.last:
                begun, first = open_.pop(one.number)
                seen.append({"ttft": first - begun, "tpot": (end - first) / (N_OUT - 1), "e2e": end - begun})
    return seen


def page(text: bytes) -> list[str]:
    """Return the engine's lines, of histograms that nobody reads their sums alone."""
    named = re.sub(r'model_name="[^"]*"', 'model_name="lab"', text.decode())  # a folder of the moment
    lines = [line for line in named.splitlines() if "_created" not in line and "vllm:" in line]
    return [line for line in lines if "_bucket" not in line or any(name in line for name in KEPT)]


if __name__ == "__main__":
    main()
