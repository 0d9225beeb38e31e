"""What starts an engine as a plan says: whole command lines, as the engines' own documentation has them.

Options are those of vLLM 0.32 with vllm-router 0.1, SGLang 0.5.23 with sglang-router 0.3, and TensorRT-LLM 1.2. What a
plan does not know stands as a variable of the shell: `$MODEL`, the checkpoint; `$LONGEST`, the tokens of the longest
request; `$STORE_GB`, the size of a store.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from inference_math.perf.asked import brought, store_bytes
from inference_math.perf.steps import longest_request
from inference_math.perf.types import Asked

__all__ = ["MANIFEST", "commands"]

PROGRAM = {
    "vllm": "vllm serve $MODEL",
    "sglang": "python -m sglang.launch_server --model-path $MODEL",
    "trtllm": "trtllm-serve $MODEL",
}
LONGEST = {"vllm": "--max-model-len", "sglang": "--context-length", "trtllm": "--max_seq_len"}
SHARE = {"vllm": "--gpu-memory-utilization", "sglang": "--mem-fraction-static"}
# TensorRT-LLM reads what it has no option for from a file; such lines begin with this mark.
FILED = "# "
EIGHT_BITS = {
    "vllm": "--kv-cache-dtype fp8", "sglang": "--kv-cache-dtype fp8_e4m3", "trtllm": "# kv_cache_config.dtype: fp8",
}  # fmt: skip
STORE = {
    "vllm": "--kv-offloading-size $STORE_GB",
    "sglang": "--enable-hierarchical-cache --hicache-size $STORE_GB_OF_A_GPU",
    "trtllm": "# kv_cache_config.host_cache_size: $STORE_BYTES",
}  # fmt: skip
NIXL = '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
# vLLM takes one connector; this one stands for several.
BOTH = (
    '{"kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"connectors": ['
    '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}, {"kv_connector": "OffloadingConnector", '
    '"kv_role": "kv_both", "kv_connector_extra_config": {"cpu_bytes_to_use": \'"$STORE_BYTES"\'}}]}}'
)
# From another tier than host memory a connector loads, whose own settings name the place.
ELSEWHERE = {
    "vllm": "# LMCache loads it: LMCACHE_CONFIG_FILE names the place",
    "sglang": "# $BACKEND is file for a folder, SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR, else mooncake, hf3fs or nixl",
    "trtllm": "# a connector loads it: see kv_connector_config of options.yaml",
}
LMCACHE = '{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'
AWAY = {
    "vllm": "--kv-transfer-config '" + LMCACHE + "'",
    "sglang": "--enable-hierarchical-cache --hicache-size $STORE_GB_OF_A_GPU --hicache-storage-backend $BACKEND",
    "trtllm": "",
}
BOTH_AWAY = (
    '{"kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"connectors": ['
    '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}, ' + LMCACHE + "]}}"
)
# Requests longer than a model was made for take a stretched rotation of positions; TensorRT-LLM has it in config.json.
YARN = '{"rope_scaling": {"rope_type": "yarn", "factor": FACTOR, "original_max_position_embeddings": CONTEXT}}'
ROPE = {
    "vllm": "--hf-overrides '" + YARN + "'", "sglang": "--json-model-override-args '" + YARN + "'", "trtllm": "",
}  # fmt: skip
# A model that drafts by itself (multi-token prediction) needs no other; what another needs is said beside it.
DRAFTING = {
    "vllm": ['--speculative-config \'{"method": "mtp", "num_speculative_tokens": DRAFTS}\''],
    "sglang": [
        "--speculative-algorithm EAGLE --speculative-num-steps DRAFTS --speculative-eagle-topk 1",
        "--speculative-num-draft-tokens BROUGHT",
    ],
    "trtllm": ["# speculative_config.decoding_type: MTP", "# speculative_config.num_nextn_predict_layers: DRAFTS"],
}
DRAFTER = {
    "vllm": '# MTP, for a model that has it; else "method": "eagle3", "model": "$DRAFTER" in --speculative-config',
    "sglang": "# MTP, for a model that has it; else EAGLE3, with --speculative-draft-model-path $DRAFTER",
    "trtllm": "# MTP, for a model that has it; else decoding_type: Eagle in speculative_config, with its drafter",
}
MANIFEST = "as a Kubernetes manifest, one replica"
NODE = 8  # GPUs: a pod has those of one node
IMAGE = {
    "vllm": "vllm/vllm-openai:v0.32.0", "sglang": "lmsysorg/sglang:latest  # of 0.5",
    "trtllm": "nvcr.io/nvidia/tensorrt-llm/release:1.2.0",
}  # fmt: skip
OPEN = "--host 0.0.0.0 --port 8000"  # a pod is reached from outside of itself
STORES = ["STORE_GB_OF_A_GPU", "STORE_GB", "STORE_BYTES", "BACKEND"]  # a longer name first
SET = '            - {name: NAME, value: "VALUE"}'
# vLLM tells the other pool where to find it; left alone, localhost.
SIDE_CHANNEL = "            - {name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}"
INDENT = "              "
TEMPLATE = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: POOL
spec:
  replicas: REPLICAS
  selector:
    matchLabels: {app: POOL}
  template:
    metadata:
      labels: {app: POOL}
    spec:
      containers:
        - name: POOL
          image: IMAGE
          command: [/bin/sh, -c]
          args:
            - |-
              COMMAND
          env:
ENV
          ports:
            - containerPort: 8000
          readinessProbe:
            httpGet: {path: /health, port: 8000}
          resources:
            limits: {nvidia.com/gpu: GPUS}
          volumeMounts:
            - {name: shm, mountPath: /dev/shm}
      volumes:
        - {name: shm, emptyDir: {medium: Memory}}
---
apiVersion: v1
kind: Service
metadata:
  name: POOL
spec:
  clusterIP: None  # a name for each pod, which routers ask for
  selector: {app: POOL}
  ports:
    - port: 8000
"""
ROUTER = {
    "vllm": "vllm-router --vllm-pd-disaggregation --prefill $PREFILL_URL --decode $DECODE_URL",
    "sglang": "python -m sglang_router.launch_router --pd-disaggregation --prefill $PREFILL_URL --decode $DECODE_URL",
    "trtllm": "trtllm-serve disaggregated -c disaggregated.yaml  # which lists the servers of both pools",
}


def commands(
    asked: Asked, name: str, told: dict[str, Any], kv: str, memory: float, tier: str
) -> list[list[str]]:  # fmt: skip
    """Return (title, command) for each kind of server of an architecture, and for what stands in front of its pools.

    Pools have a Kubernetes manifest, too, where a unit fits into a node.

    `told` is what `settings` returns, `kv` the precision of the KV cache, `memory` the share of the GPUs' that the
    engine takes. Stored KV caches lie in the `tier`: "" where none are, "dram" for host memory, which engines load
    from by themselves; what loads from any other is named in a line of its own. Where sessions are counted, the size of
    the store stands in the command, else a variable.
    """
    found = []
    if tier != "" and tier != "dram":
        found.append(["what is stored", ELSEWHERE[asked["engine"]]])
    if asked["unit"]["drafts"] > 0:
        found.append(["what drafts", DRAFTER[asked["engine"]]])
    if name != "disaggregated":
        found.append(["each unit", command(asked, told, kv, memory, tier, "")])
        return found
    for pool in ["prefill", "decode"]:
        own: dict[str, Any] = {}
        for key in told:
            if key.startswith(pool + " ") and key != pool + " units":
                own[key.replace(pool + " ", "")] = told[key]
        title = str(told[pool + " units"]) + " x " + pool
        found.append([title, command(asked, own, kv, memory, tier if pool == "prefill" else "", pool)])
    found.append(["in front of them", ROUTER[asked["engine"]]])
    if asked["unit"]["gpus"] <= NODE:
        pods = [pod(asked, pool, told[pool + " units"], found) for pool in ["prefill", "decode"]]
        found.append([MANIFEST, "---\n".join(pods)])
    return found


def store_sized(asked: Asked, option: str) -> str:
    """Return an option of a store with the size that its sessions take, in place of the variable, if they are known."""
    size = store_bytes(asked)
    if not size > 0:
        return option
    each = str(ceil(size / asked["unit"]["gpus"] / 1e9))
    told = option.replace("$STORE_GB_OF_A_GPU", each).replace("$STORE_GB", str(ceil(size / 1e9)))
    return told.replace("$STORE_BYTES", str(ceil(size)))


def pod(asked: Asked, pool: str, many: float, lines: list[list[str]]) -> str:
    """Return the Kubernetes deployment of a pool and the service in front of it, as YAML."""
    (line,) = [one[1] for one in lines if one[0] == str(many) + " x " + pool]
    said = TEMPLATE.replace("POOL", pool).replace("REPLICAS", str(many)).replace("IMAGE", IMAGE[asked["engine"]])
    env = [SET.replace("NAME", "MODEL").replace("VALUE", "name or path of your checkpoint")]
    rest = line
    for name in STORES:
        if "$" + name in rest:
            rest = rest.replace("$" + name, "")
            env.append(SET.replace("NAME", name).replace("VALUE", "of each pod"))
    if asked["engine"] == "vllm":
        env.append(SIDE_CHANNEL)
    said = said.replace("ENV", "\n".join(env))
    return said.replace("GPUS", str(asked["unit"]["gpus"])).replace(
        "COMMAND", (line + " " + OPEN).replace("\n", "\n" + INDENT)
    )


def command(asked: Asked, told: dict[str, Any], kv: str, memory: float, tier: str, pool: str) -> str:
    """Return the command line of one server, and in a line below it what TensorRT-LLM reads from its file."""
    given = divided(asked)
    given.extend(foreseen(asked))
    given.extend(remembered(asked, kv, memory, tier, pool))
    for key in told:
        value = str(told[key])
        option = key
        if not key.startswith("--"):
            option = "--" + key if key.startswith("max") else FILED + key + ":"
        given.append(option + " " + value if value != "" else option)
    if pool != "":
        given.append(store_sized(asked, joined(asked["engine"], tier, pool)))
    if pool == "prefill" and asked["engine"] == "trtllm":
        given.append(FILED + "disable_overlap_scheduler: true")
    said = [one for one in given if not one.startswith(FILED)]
    filed = [one.replace(FILED, "") for one in given if one.startswith(FILED)]
    line = PROGRAM[asked["engine"]] + " " + " ".join(said)
    if len(filed) > 0:
        return written(filed) + "\n" + line + " --extra_llm_api_options options.yaml"
    return line


def written(filed: list[str]) -> str:
    """Return the lines that write TensorRT-LLM's file; what stands before a dot holds what stands behind it."""
    lines, above = [], ""
    for one in filed:
        at = one.find(".")
        holder = one[:at] if at > 0 else ""
        if holder != "" and holder != above:
            lines.append(holder + ":")
        lines.append("  " + one[at + 1 :] if holder != "" else one)
        above = holder
    return "cat > options.yaml <<EOF\n" + "\n".join(lines) + "\nEOF"


def divided(asked: Asked) -> list[str]:
    """Return how the GPUs of a unit divide the model.

    vLLM counts the GPUs that share a matrix; the others all that share the experts, and attention's groups out of them.
    """
    layout, engine = asked["unit"]["layout"], asked["engine"]
    tp, dp, ep, pp = layout["tp"], layout["dp"], layout["ep"], layout["pp"]
    given = []
    if engine == "vllm":
        given.append("--tensor-parallel-size " + str(tp))
        if dp > 1:
            given.append("--data-parallel-size " + str(dp))
        if ep > 1:
            given.append("--enable-expert-parallel")
        if pp > 1:
            given.append("--pipeline-parallel-size " + str(pp))
        return given
    size = "-size " if engine == "sglang" else "_size "
    given.append("--tp" + size + str(tp * dp))
    if dp > 1 and engine == "sglang":
        given.append("--dp-size " + str(dp) + " --enable-dp-attention")
    if dp > 1 and engine == "trtllm":
        given.append(FILED + "enable_attention_dp: true")
    if ep > 1:
        given.append("--ep" + size + str(ep))
    if pp > 1:
        given.append("--pp" + size + str(pp))
    return given


def foreseen(asked: Asked) -> list[str]:
    """Return what makes requests draft tokens, where they do."""
    drafts = asked["unit"]["drafts"]
    if not drafts > 0:
        return []
    lines: list[str] = DRAFTING[asked["engine"]]
    return [line.replace("DRAFTS", str(drafts)).replace("BROUGHT", str(brought(asked))) for line in lines]


def remembered(asked: Asked, kv: str, memory: float, tier: str, pool: str) -> list[str]:
    """Return what the server keeps: its share of the memory, the precision of its KV cache, a store, the longest."""
    engine, work, given = asked["engine"], asked["work"], []
    if engine != "trtllm":  # whose own share is of what the weights leave
        given.append(SHARE[engine] + " " + str(memory))
    if kv == "fp8":
        given.append(EIGHT_BITS[engine])
    if tier != "" and not (engine == "vllm" and pool != ""):
        option = STORE[engine] if tier == "dram" else AWAY[engine]
        if option != "":
            given.append(store_sized(asked, option))
    longest, made_for = ceil(longest_request(work)), asked["context"]
    given.append(LONGEST[engine] + " ${LONGEST:-" + str(longest) + "}")
    if longest > made_for > 0 and ROPE[engine] != "":
        factor = ceil(10 * longest / made_for) / 10
        given.append(ROPE[engine].replace("FACTOR", str(factor)).replace("CONTEXT", str(made_for)))
    return given


def joined(engine: str, tier: str, pool: str) -> str:
    """Return what makes a server one of a pool."""
    if engine == "vllm":
        stored = NIXL if tier == "" else (BOTH if tier == "dram" else BOTH_AWAY)
        return "--kv-transfer-config '" + stored + "'"
    if engine == "sglang":
        return "--disaggregation-mode " + pool + " --disaggregation-transfer-backend nixl"
    return FILED + "cache_transceiver_config.backend: DEFAULT"
