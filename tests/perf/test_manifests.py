"""Manifests: YAML that Kubernetes' schemas accept, whose containers run the commands that stand beside it."""

from __future__ import annotations

import argparse
import json
import shlex

import kubernetes_validate
import pytest
import yaml

from inference_math import SLA, Unit, Workload, perf, plan
from inference_math.perf.commands import commands
from inference_math.perf.manifests import FORMS, is_manifest, kubernetes, pods_of
from inference_math.planner.case import Case
from inference_math.planner.deployment import Plan

ENGINES = ("vllm", "sglang", "trtllm")
KUBERNETES = "1.34"  # whose schemas are asked
# What a component of a graph may have, of `Component` in dynamo/profiler/utils/config.py of ai-dynamo 1.6.1, and the
# kinds of its templates.
COMPONENT = {"name", "type", "replicas", "podTemplate"}
KINDS = {"frontend", "worker", "prefill", "decode"}
# What the chart llm-d-modelservice 0.4 reads of a role.
ROLE = {"create", "replicas", "parallelism", "containers", "volumes"}
# Options that Dynamo's workers have besides their engine's, ai-dynamo 1.6.1.
WRAPPED = {
    "vllm": {"--disaggregation-mode"},
    "sglang": set(),
    "trtllm": {
        "--disaggregation-mode", "--tensor-parallel-size", "--expert-parallel-size", "--pipeline-parallel-size",
        "--max-seq-len", "--max-batch-size", "--max-num-tokens", "--extra-engine-args",
    },
}  # fmt: skip


def found(engine, architecture, *, tier="", replicas=1, alpha=0.5, model="deepseek-v3", **layout):
    """Return manifests by their form, the commands beside them, and what the engine is told."""
    unit = Unit.of(model, "h200-sxm", kv="fp8", engine=engine, **({"tp": 8} | layout))
    case = Case(unit, Workload(2000, 200, alpha), SLA(2, 0.1))
    told = perf.settings(case.asked, architecture, Plan.of(case, 0).solved["each"][architecture][0])
    made = dict(commands(case.asked, architecture, told, "fp8", 0.9, tier, replicas, 1))
    forms = {form: list(yaml.safe_load_all(made[title])) for form, title in FORMS.items() if title in made}
    return forms, {title: line for title, line in made.items() if not is_manifest(title)}, told


def validated(document):
    kubernetes_validate.validate(document, KUBERNETES, strict=True)
    return document


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tier", ["", "dram", "local_ssd"])
def test_kubernetes_accepts_both_pools_and_their_router(engine, tier):
    forms, lines, told = found(engine, "disaggregated", tier=tier)
    prefill, first, decode, second, router, front = map(validated, forms["kubernetes"])
    for pods, service, pool in ((prefill, first, "prefill"), (decode, second, "decode")):
        assert pods["spec"]["replicas"] == told[f"{pool} units"]
        (container,) = pods["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
        assert container["args"] == [lines[f"{told[f'{pool} units']} x {pool}"] + " --host 0.0.0.0 --port 8000"]
        env = {one["name"] for one in container["env"]}
        named = {name for name in ("STORE_GB_OF_A_GPU", "STORE_BYTES", "BACKEND") if f"${name}" in container["args"][0]}
        assert {"MODEL", *named} <= env
        assert ("VLLM_NIXL_SIDE_CHANNEL_HOST" in env) == (engine == "vllm")  # or the other pool is sought here
        # Pods whose model loads are found, too: the router waits for them.
        open_ = {"clusterIP": "None", "publishNotReadyAddresses": True}
        assert service["spec"] == {**open_, "selector": {"app": pool}, "ports": [{"port": 8000}]}
        assert pods["spec"]["serviceName"] == service["metadata"]["name"]
    (container,) = router["spec"]["template"]["spec"]["containers"]
    for pool in ("prefill", "decode"):
        many = told[f"{pool} units"]
        assert all(f"{pool}-{at}.{pool}:8000" in container["args"][0] for at in range(many))
        assert f"{pool}-{many}." not in container["args"][0]
    assert front["spec"]["selector"] == router["spec"]["template"]["metadata"]["labels"]


LMCACHE = {
    "LMCACHE_LOCAL_DISK": "file:///store/",
    "LMCACHE_MAX_LOCAL_DISK_SIZE": "of-each-gpu",
    "LMCACHE_USE_LAYERWISE": "True",
    "PYTHONHASHSEED": "0",
}


@pytest.mark.parametrize(
    ("engine", "names"), [("vllm", LMCACHE), ("sglang", {"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": "/store"})]
)
@pytest.mark.parametrize("architecture", ["chunked", "disaggregated"])
def test_pods_name_and_mount_the_place_that_a_connector_loads_from(architecture, engine, names):
    forms, _, _ = found(engine, architecture, tier="local_ssd")
    pods = validated(forms["kubernetes"][0])["spec"]["template"]["spec"]
    env = {one["name"]: one.get("value") for one in pods["containers"][0]["env"]}
    assert names.items() <= env.items()
    assert {"name": "store", "mountPath": "/store"} in pods["containers"][0]["volumeMounts"]
    assert {"name": "store", "emptyDir": {}} in pods["volumes"]
    for tier in ("dram", ""):
        forms, _, _ = found(engine, architecture, tier=tier)
        pods = forms["kubernetes"][0]["spec"]["template"]["spec"]
        assert not names.keys() & {one["name"] for one in pods["containers"][0]["env"]}
        assert [one["name"] for one in pods["volumes"]] == ["shm"]
    if architecture == "disaggregated":  # who decodes loads nothing
        (decode,) = found(engine, architecture, tier="local_ssd")[0]["kubernetes"][2]["spec"]["template"]["spec"][
            "containers"
        ]
        assert not names.keys() & {one["name"] for one in decode["env"]}


@pytest.mark.parametrize("tier", ["local_ssd", "dram"])
@pytest.mark.parametrize("architecture", ["chunked", "disaggregated"])
def test_a_graph_s_workers_mount_what_they_load_from(architecture, tier):
    forms, _, _ = found("vllm", architecture, tier=tier)
    (graph,) = forms["dynamo"]
    pods = {one["name"]: one["podTemplate"]["spec"] for one in graph["spec"]["components"]}
    loads = {"prefill"} if architecture == "disaggregated" else {"engine"}
    for name, pod in pods.items():
        mounts = pod["containers"][0].get("volumeMounts", [])
        if name in loads and tier == "local_ssd":
            assert mounts == [{"name": "store", "mountPath": "/store"}]
            assert pod["volumes"] == [{"name": "store", "emptyDir": {}}]
        else:
            assert not mounts
            assert "volumes" not in pod


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        ({}, 22),  # 2 s to the first token, 200 tokens at 0.1 s
        ({"cv": 1.0}, 102),  # answers of five times the mean
        ({"longest": 2600, "cv": 1.0}, 62),  # of recorded ones the longest
        ({"longest": 2100, "cv": 1.0}, 22),
    ],
)
def test_pods_end_once_their_requests_have(work, seconds):
    asked = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(2000, 200), SLA(2, 0.1)).asked
    asked = {**asked, "work": {**asked["work"], "cv": 0.0, **work}}
    servers = [{"pool": "engine", "units": 1, "line": "serve", "env": []}]
    pods, _ = map(validated, yaml.safe_load_all(kubernetes(asked, servers, 1)))
    spec = pods["spec"]["template"]["spec"]
    assert spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", str(seconds)]
    assert spec["terminationGracePeriodSeconds"] == seconds + 30


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_router_s_parser_takes_its_line(engine):
    """Options as vllm-router 0.1.17 and sglang-router 0.3.2 declare them."""
    forms, _, told = found(engine, "disaggregated")
    line = forms["kubernetes"][4]["spec"]["template"]["spec"]["containers"][0]["args"][0].splitlines()[-1]
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--vllm-pd-disaggregation" if engine == "vllm" else "--pd-disaggregation", action="store_true")
    parser.add_argument("--prefill", nargs="+", action="append")
    parser.add_argument("--decode", nargs=1, action="append")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--worker-startup-timeout-secs", type=int)
    words = shlex.split(line)
    given = parser.parse_args(words[1:] if engine == "vllm" else words[3:])
    assert given.prefill == [[f"http://prefill-{at}.prefill:8000"] for at in range(told["prefill units"])]
    assert given.decode == [[f"http://decode-{at}.decode:8000"] for at in range(told["decode units"])]
    assert (given.host, given.port) == ("0.0.0.0", 8000)


def test_tensorrt_llm_s_router_reads_a_file_of_both_pools():
    forms, _, told = found("trtllm", "disaggregated")
    written = forms["kubernetes"][4]["spec"]["template"]["spec"]["containers"][0]["args"][0]
    file = yaml.safe_load(written.partition("<<EOF\n")[2].partition("\nEOF\n")[0])
    assert file["context_servers"]["num_instances"] == told["prefill units"] == len(file["context_servers"]["urls"])
    assert file["generation_servers"]["urls"] == [f"decode-{at}.decode:8000" for at in range(told["decode units"])]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fleet_of_units_is_one_manifest(engine):
    forms, lines, _ = found(engine, "chunked", replicas=3)
    pods, service, *front = map(validated, forms["kubernetes"])
    assert pods["spec"]["replicas"] == 3
    if engine == "trtllm":  # has no router of its own: one address for all
        assert not front
        assert pods["kind"] == "Deployment"
        assert "clusterIP" not in service["spec"]
    else:
        router, _ = front
        assert pods["kind"] == "StatefulSet"
        assert service["spec"]["clusterIP"] == "None"
        line = router["spec"]["template"]["spec"]["containers"][0]["args"][0].splitlines()[-1]
        assert "--policy cache_aware" in line  # half of the prompts is stored
        assert shlex.split(line)[-9:-6] == [f"http://engine-{at}.engine:8000" for at in range(3)]
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [lines["each unit"] + " --host 0.0.0.0 --port 8000"]
    assert {one["name"] for one in container["env"]} == {"MODEL", "HF_TOKEN"}
    _, graph = forms["dynamo"][0]["spec"]["components"]
    assert (graph["type"], graph["replicas"]) == ("worker", 3)


def test_pools_of_several_replicas_say_that_they_are_one():
    unit = Unit.of("deepseek-v3", "h200-sxm", 8, kv="fp8")
    case = Case(unit, Workload(2000, 200), SLA(2, 0.1))
    told = perf.settings(case.asked, "disaggregated", Plan.of(case, 0).solved["each"]["disaggregated"][0])
    for replicas, words in ((1, "# Both pools and what stands in front of them.\n"), (2, "one of 2 such replicas")):
        made = dict(commands(case.asked, "disaggregated", told, "fp8", 0.9, "", replicas, 1))
        for title in FORMS.values():
            assert words in made[title]
            documents = list(yaml.safe_load_all(made[title]))
            assert str(told["prefill units"]) in made[title]
            assert documents


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("architecture", ["aggregated", "disaggregated"])
def test_a_graph_has_a_frontend_and_each_pool(engine, architecture):
    forms, lines, told = found(engine, architecture, tier="dram")
    (graph,) = forms["dynamo"]
    assert (graph["apiVersion"], graph["kind"]) == ("nvidia.com/v1beta1", "DynamoGraphDeployment")
    front, *workers = graph["spec"]["components"]
    names = ["prefill", "decode"] if architecture == "disaggregated" else ["engine"]
    assert [one["name"] for one in workers] == names
    for one in (front, *workers):
        assert set(one) == COMPONENT
        assert one["type"] in KINDS
        spec = one["podTemplate"]["spec"]
        validated({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec})
        assert [container["name"] for container in spec["containers"]] == ["main"]
    for one in workers:
        assert one["replicas"] == told.get(f"{one['name']} units", 1)
        *_, line = one["podTemplate"]["spec"]["containers"][0]["args"][0].splitlines()
        own = lines.get("each unit") or lines[f"{one['replicas']} x {one['name']}"]
        assert line.startswith(f"python3 -m dynamo.{engine} --model")
        # What is there besides the engine's options is the wrapper's, and nothing of the engine's is lost.
        words, known = shlex.split(line)[3:], shlex.split(own.splitlines()[-1])
        own_options = {word for word in known if word.startswith("--")}
        options = {word for word in words if word.startswith("--")}
        assert options - own_options <= WRAPPED[engine] | {"--host", "--model"}
        options.discard("--model")  # vLLM and TensorRT-LLM name it without an option
        if engine != "trtllm":
            assert own_options <= options
        else:
            assert len(options - {"--disaggregation-mode"}) == len(own_options)
            assert options <= WRAPPED["trtllm"]
        assert ("--disaggregation-mode" in line) == (architecture == "disaggregated")
        assert own.splitlines()[:-1] == one["podTemplate"]["spec"]["containers"][0]["args"][0].splitlines()[:-1]


@pytest.mark.parametrize(("alpha", "mode"), [(0.0, ["least-loaded"]), (0.5, ["kv", "--no-router-kv-events"])])
def test_a_graph_routes_by_prefix_where_something_is_stored(alpha, mode):
    forms, *_ = found("vllm", "chunked", alpha=alpha)
    front, _ = forms["dynamo"][0]["spec"]["components"]
    assert front["podTemplate"]["spec"]["containers"][0]["args"] == ["--router-mode", *mode]


@pytest.mark.parametrize("architecture", ["chunked", "disaggregated"])
def test_values_of_the_chart_place_the_sidecar(architecture):
    forms, lines, told = found("vllm", architecture, tp=2, dp=4, ep=8)
    (values,) = forms["llm-d"]
    pools = architecture == "disaggregated"
    assert values["routing"]["proxy"]["enabled"] is pools
    if not pools:
        assert values["prefill"] == {"create": False}
    for role in ("prefill", "decode") if pools else ("decode",):
        assert set(values[role]) == ROLE
        assert values[role]["replicas"] == told.get(f"{role} units", 1)
        assert values[role]["parallelism"] == {"tensor": 2, "data": 4}
        (container,) = values[role]["containers"]
        port = 8200 if pools and role == "decode" else 8000  # the sidecar takes 8000 there
        own = lines.get("each unit") or lines[f"{values[role]['replicas']} x {role}"]
        assert container["args"] == [f"{own} --host 0.0.0.0 --port {port}"]
        assert container["ports"] == [{"containerPort": port}]
        spec = {"containers": [{key: container[key] for key in ("name", "image", "command", "args", "env", "ports")}]}
        validated({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec})


def test_gpus_of_another_maker_have_none():
    unit = Unit.of("llama-3-8b", "mi300x")
    start = plan(unit, Workload(2000, 200), SLA(2, 0.1), intervals=False).starts["chunked"]
    assert not any(is_manifest(title) for title, _ in start.commands)


def test_a_unit_larger_than_a_node_has_no_pod():
    """Compute trays of NVL72 have four GPUs, boards of other servers eight."""
    for gpu, tp, pods in (("h200-sxm", 8, 3), ("gb200", 8, 0), ("gb200", 4, 3)):
        unit = Unit.of("llama-3-70b", gpu, tp, "fp8")
        assert pods_of(3, unit.gpus, unit.gpu.maker, unit.gpu.node) == pods
        start = plan(unit, Workload(2000, 200), SLA(2, 0.1), intervals=False).starts["chunked"]
        assert any(is_manifest(title) for title, _ in start.commands) == bool(pods)


@pytest.mark.parametrize("engine", ENGINES)
def test_llm_d_is_offered_for_engines_that_it_starts(engine):
    forms, *_ = found(engine, "chunked", model="llama-3-8b", tp=1)
    assert set(forms) == {"kubernetes", "dynamo", *({"llm-d"} if engine == "vllm" else ())}


def test_a_plan_gives_a_manifest_or_says_why_not():
    unit, work = Unit.of("llama-3-8b", "h100-sxm", engine="sglang"), Workload(2000, 200)
    met = plan(unit, work, SLA(2, 0.1), intervals=False)
    assert yaml.safe_load(met.manifest("dynamo"))["kind"] == "DynamoGraphDeployment"
    with pytest.raises(ValueError, match=r"form must be .* kubernetes or dynamo, not llm-d"):
        met.manifest("llm-d")
    with pytest.raises(ValueError, match="form must be"):
        met.manifest("nomad")
    with pytest.raises(ValueError, match="must meet its SLA"):
        plan(unit, work, SLA(0.001, 0.0001), intervals=False).manifest("kubernetes")


def test_a_manifest_is_named_by_its_title():
    assert all(map(is_manifest, FORMS.values()))
    assert not any(map(is_manifest, ("each unit", "in front of them", "3 x prefill", "kubernetes")))
    assert json.dumps(sorted(FORMS)) == '["dynamo", "kubernetes", "llm-d"]'
