"""The servers of a plan as manifests: for Kubernetes itself, for Dynamo's operator, for llm-d's chart.

A container runs the command line that a plan prints, from a shell, so that an option is written in one place. What a
plan does not know is a variable of the pod's environment. Forms: Kubernetes' own; `DynamoGraphDeployment` as ai-dynamo
1.6.1 has it in its templates; values of the chart llm-d-modelservice 0.4.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from inference_math.perf.types import Asked, Server
from inference_math.perf.words import CALIBRATED

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord

__all__ = ["ALONE", "FORMS", "balanced", "is_manifest", "manifests", "pods_of"]

FORMS = {"kubernetes": "as a Kubernetes manifest", "dynamo": "as a Dynamo graph", "llm-d": "as values of llm-d's chart"}
ALONE = "engine"  # the name of servers that are no pool
OPEN = "--host 0.0.0.0 --port "  # a pod is reached from outside of itself
LONG = 5  # mean answers: of geometric ones one in 150 is longer
STOPS = 30  # seconds that an engine may take to stop, as Kubernetes grants by itself
BEHIND = 8200  # where llm-d's sidecar looks for a decode server
STORES = ["STORE_GB_OF_A_GPU", "STORE_GB", "STORE_BYTES", "BACKEND"]  # a longer name first
UNKNOWN_SIZE = "of-each-pod"
UNKNOWN_PART = "of-each-gpu"
FOLDER = "/store"  # where a pod mounts what a connector loads from
SHARED_MOUNT = "- {name: shm, mountPath: /dev/shm}"
SHARED_VOLUME = "- {name: shm, emptyDir: {medium: Memory}}"

SERVERS = """apiVersion: apps/v1
kind: KIND
metadata:
  name: POOL
spec:
  replicas: REPLICAS
KNOWN  selector:
    matchLabels: {app: POOL}
  template:
    metadata:
      labels: {app: POOL}
    spec:
      terminationGracePeriodSeconds: GRACE
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
            timeoutSeconds: 30
          lifecycle:
            preStop: {exec: {command: [sleep, "DRAIN"]}}  # requests under way end; none comes any more
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
FRONT  selector: {app: POOL}
  ports:
    - port: 8000
"""
NAMED = "  serviceName: POOL\n  podManagementPolicy: Parallel\n"
# A name for each pod, which the router asks for, while its model loads, too.
HEADLESS = "  clusterIP: None\n  publishNotReadyAddresses: true\n"
ROUTER = """---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: router
spec:
  selector:
    matchLabels: {app: router}
  template:
    metadata:
      labels: {app: router}
    spec:
      containers:
        - name: router
          image: IMAGE
          command: [/bin/sh, -c]
          args:
            - |-
              COMMAND
          ports:
            - containerPort: 8000
          readinessProbe:
            tcpSocket: {port: 8000}
---
apiVersion: v1
kind: Service
metadata:
  name: router
spec:
  selector: {app: router}
  ports:
    - port: 8000
"""
FRONTEND = """apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata:
  name: served
spec:
  components:
    - name: Frontend
      type: frontend
      replicas: 1
      podTemplate:
        spec:
          containers:
            - name: main
              image: IMAGE
              command: [python3, -m, dynamo.frontend]
              args: [ROUTING]
              env:
                ENV
"""
COMPONENT = """    - name: POOL
      type: KIND
      replicas: REPLICAS
      podTemplate:
        spec:
          containers:
            - name: main
              image: IMAGE
              command: [/bin/sh, -c]
              args:
                - |-
                  COMMAND
              env:
                ENV
              resources:
                limits: {nvidia.com/gpu: "GPUS"}
"""
# What the operator mounts besides is its own, shared memory too.
STORED_COMPONENT = """              volumeMounts:
                - {name: store, mountPath: FOLDER}
          volumes:
            - {name: store, emptyDir: {}}  # or a claim
"""
MODEL_SERVICE = """modelArtifacts:
  name: your-checkpoint  # as in the requests
  uri: hf://your-checkpoint
  labels: {llm-d.ai/model: your-checkpoint}
routing:
  servicePort: 8000
  proxy:
    enabled: PROXY
"""
ROLE = """POOL:
  create: true
  replicas: REPLICAS
  parallelism: {tensor: TP, data: DP}
  containers:
    - name: vllm
      image: IMAGE
      modelCommand: custom
      command: [/bin/sh, -c]
      args:
        - |-
          COMMAND
      env:
        ENV
      ports:
        - containerPort: PORT
      readinessProbe:
        httpGet: {path: /health, port: PORT}
        timeoutSeconds: 30
      resources:
        limits: {nvidia.com/gpu: "GPUS"}
      mountModelVolume: false
      volumeMounts:
        - {name: shm, mountPath: /dev/shm}
  volumes:
    - {name: shm, emptyDir: {medium: Memory}}
"""


ENV = [
    '- {name: MODEL, value: "your-checkpoint"}',
    "- {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf-token, key: HF_TOKEN, optional: true}}}",
]


def is_manifest(title: str) -> bool:
    """Tell whether what has this title among a plan's commands is a manifest, in YAML."""
    return len([form for form in FORMS if FORMS[form] == title]) > 0


def pods_of(replicas: int, gpus: float, maker: str, node: float) -> int:
    """Return how many replicas manifests start; 0 where there is none.

    No image or resource of other makers is known here, and pods of a unit that is larger than a node must be placed
    together, which needs more than these say.
    """
    return replicas if maker == CALIBRATED and gpus <= node else 0


def manifests(asked: Asked, servers: list[Server], replicas: int) -> list[list[str]]:
    """Return (title, YAML) of each manifest that starts the servers of an architecture, and what stands before pools.

    None for no `replicas`; see `pods_of`.
    """
    engine = asked["engine"]
    if replicas < 1:
        return []
    note = whole(servers, replicas)
    found = [[FORMS["kubernetes"], note + kubernetes(asked, servers, replicas)]]
    if engine["dynamo"]["program"] != "":
        found.append([FORMS["dynamo"], note + graph(asked, servers, replicas)])
    if engine["llm_d"] != "":
        front = "# Gateway and endpoint picker are charts of llm-d's own.\n"
        found.append([FORMS["llm-d"], note + front + chart(asked, servers, replicas)])
    return [[title, said.strip()] for title, said in found]


def whole(servers: list[Server], replicas: int) -> str:
    """Return the line that says how much of a deployment a manifest holds."""
    if len(servers) == 1:
        return "# " + str(replicas) + (" units, a pod each.\n" if replicas > 1 else " unit.\n")
    said = "# Both pools and what stands in front of them"
    return said + (", one of " + str(replicas) + " such replicas: a namespace for each.\n" if replicas > 1 else ".\n")


def many(servers: list[Server], server: Server, replicas: int) -> str:
    """Return how many servers of a kind a manifest starts: all of one kind, or those of a replica's pool."""
    return str(server["units"] * replicas if len(servers) == 1 else server["units"])


def kubernetes(asked: Asked, servers: list[Server], replicas: int) -> str:
    """Return sets of pods with a service each, and a router in front of several, which knows each pod by its name.

    Where an engine has none for units without pools, their service sends to any.
    """
    engine, parts, pools = asked["engine"], [], len(servers) > 1
    router = pools or (replicas > 1 and engine["balancer"].find("#") != 0)
    for one in servers:
        said = SERVERS.replace("KIND", "StatefulSet" if router else "Deployment")
        said = said.replace("KNOWN", NAMED if router else "").replace("FRONT", HEADLESS if router else "")
        said = said.replace("REPLICAS", many(servers, one, replicas)).replace("IMAGE", engine["image"])
        said = said.replace("GRACE", str(under_way(asked) + STOPS)).replace("DRAIN", str(under_way(asked)))
        parts.append(filled(said, asked, one, one["line"] + " " + OPEN + "8000"))
    if not router:
        return parts[0] if replicas < 2 else balanced(asked) + "\n" + parts[0]
    image = engine["image"] if engine["router_image"] == "" else engine["router_image"]
    front = ROUTER.replace("IMAGE", image)
    line = routed(engine, servers) if pools else in_front(asked, replicas)
    return "---\n".join(parts) + front.replace("COMMAND", indented(line, front, "COMMAND"))


def under_way(asked: Asked) -> int:
    """Return the seconds in which nearly every request that has begun ends within the limits."""
    work = asked["work"]
    longest = work["n_out"] * (LONG if work["cv"] > 0 else 1)
    if work["longest"] > 0:
        longest = work["longest"] - work["n_in"] if work["longest"] - work["n_in"] > work["n_out"] else work["n_out"]
    return ceil(asked["ttft"] + longest * asked["tpot"])


def balanced(asked: Asked) -> str:
    """Return what stands in front of units without pools: it looks at requests, or where caches are stored at these."""
    engine = asked["engine"]
    return engine["balancer"].replace("POLICY", engine["policies"][1 if asked["work"]["alpha"] > 0 else 0])


def in_front(asked: Asked, replicas: int) -> str:
    """Return the command of one router for so many units, with the address of each pod."""
    urls = ["http://" + ALONE + "-" + str(at) + "." + ALONE + ":8000" for at in range(replicas)]
    engine = asked["engine"]
    line = balanced(asked).replace("$UNIT_URLS", " ".join(urls))
    return engine["router_setup"] + line + engine["router_open"]


def routed(engine: EngineRecord, servers: list[Server]) -> str:
    """Return the command of what stands in front of pools, with the address of each of their pods."""
    line = engine["router_setup"] + engine["router"] + engine["router_open"]
    for one in servers:
        pool, options, listed = one["pool"], [], []
        for at in range(one["units"]):
            address = pool + "-" + str(at) + "." + pool + ":8000"
            options.append(engine["router_each"].replace("POOL", pool).replace("ADDRESS", address))
            listed.append('"' + address + '"')
        line = line.replace("--" + pool + " $" + pool.upper() + "_URL", " ".join(options))
        line = line.replace(pool.upper() + "_LIST", ", ".join(listed))
        line = line.replace(pool.upper() + "_COUNT", str(one["units"]))
    return line


def graph(asked: Asked, servers: list[Server], replicas: int) -> str:
    """Return the same servers as components of Dynamo, whose frontend finds them and routes by prefix where it pays."""
    engine = asked["engine"]
    stored = asked["work"]["alpha"] > 0  # by what the frontend sent where, without events of the workers
    routing = "--router-mode, kv, --no-router-kv-events" if stored else "--router-mode, least-loaded"
    front = FRONTEND.replace("IMAGE", engine["dynamo"]["image"]).replace("ROUTING", routing)
    parts = [front.replace("ENV", indented("\n".join(ENV), front, "ENV"))]
    for one in servers:
        kind = "worker" if len(servers) == 1 else one["pool"]
        form = COMPONENT if len(one["env"]) == 0 else COMPONENT + STORED_COMPONENT.replace("FOLDER", FOLDER)
        said = form.replace("KIND", kind).replace("REPLICAS", many(servers, one, replicas))
        line = one["line"].replace(engine["program"], engine["dynamo"]["program"])
        for word in engine["dynamo_words"]:
            line = line.replace(word, engine["dynamo_words"][word])
        if len(servers) > 1:
            line = line + " " + engine["dynamo"]["pool"].replace("POOL", one["pool"])
        parts.append(filled(said.replace("IMAGE", engine["dynamo"]["image"]), asked, one, line))
    return "".join(parts)


def chart(asked: Asked, servers: list[Server], replicas: int) -> str:
    """Return values of llm-d's chart, whose decode pods have a sidecar that asks the prefill pods first."""
    layout, pools = asked["unit"]["layout"], len(servers) > 1
    said = MODEL_SERVICE.replace("PROXY", "true" if pools else "false")
    said = said + ("    connector: " + asked["engine"]["llm_d"] + "\n" if pools else "prefill:\n  create: false\n")
    for one in servers:
        port = str(BEHIND if one["pool"] == "decode" else 8000)
        role = ROLE.replace("REPLICAS", many(servers, one, replicas)).replace("PORT", port)
        role = role.replace("TP", str(layout["tp"] * layout["pp"])).replace("DP", str(layout["dp"]))
        role = role.replace("POOL", one["pool"] if pools else "decode").replace("IMAGE", asked["engine"]["image"])
        said = said + filled(role, asked, one, one["line"] + " " + OPEN + port)
    return said


def filled(said: str, asked: Asked, server: Server, line: str) -> str:
    """Return a form with a server's name, GPUs, environment and command."""
    env: list[str] = []
    env.extend(ENV)
    rest = line
    for name in STORES:
        if "$" + name in rest:
            rest = rest.replace("$" + name, "")
            env.append("- {name: " + name + ', value: "' + UNKNOWN_SIZE + '"}')
    for one in server["env"]:
        env.append(one.replace("FOLDER", FOLDER).replace("$STORE_GB_OF_A_GPU", UNKNOWN_PART))
    if asked["engine"]["pod_env"] != "" and server["pool"] != ALONE:
        env.append(asked["engine"]["pod_env"])
    form = said if len(server["env"]) == 0 else mounted(said)
    told = form.replace("ENV", indented("\n".join(env), said, "ENV")).replace("POOL", server["pool"])
    return told.replace("GPUS", str(asked["unit"]["gpus"])).replace("COMMAND", indented(line, said, "COMMAND"))


def mounted(said: str) -> str:
    """Return a form that mounts a folder for what is stored, where it mounts anything."""
    mount, volume = "\n- {name: store, mountPath: " + FOLDER + "}", "\n- {name: store, emptyDir: {}}  # or a claim"
    told = said.replace(SHARED_MOUNT, SHARED_MOUNT + indented(mount, said, SHARED_MOUNT))
    return told.replace(SHARED_VOLUME, SHARED_VOLUME + indented(volume, said, SHARED_VOLUME))


def indented(line: str, said: str, mark: str) -> str:
    """Return lines as they stand where a form has a mark: each begins as deep as the mark does."""
    before = said[: said.find(mark)]
    return line.replace("\n", "\n" + before[before.rfind("\n") + 1 :])
