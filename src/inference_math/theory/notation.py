"""The symbols: each one once, with its unit, its meaning and the numbers it accepts.

A symbol is a SymPy symbol whose name is the ASCII argument name used everywhere in the package
(`alpha`, `n_in`, …). It prints as the book writes it. `QUANTITIES` maps the name to its entry; the
notation page of the book is generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import sympy as sp

from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ONE, AT_LEAST_ZERO, EFFICIENCY, SHARE, Interval

__all__ = ["QUANTITIES", "NotationSymbol", "Quantity"]


class NotationSymbol(sp.Symbol):  # type: ignore[misc]  # SymPy has no type information
    """A SymPy symbol that prints as the notation page says."""

    def _latex(self, printer: object) -> str:
        return QUANTITIES[self.name].latex


@dataclass(frozen=True)
class Quantity:
    """One entry of the notation: ASCII `name`, `latex`, `unit` ("1" for a pure number), `meaning`."""

    name: str
    latex: str
    unit: str
    meaning: str
    accepted: Interval

    @property
    def symbol(self) -> NotationSymbol:
        """The SymPy symbol, positive or non-negative as `accepted` says."""
        sign = {"positive": True} if self.accepted.open_low else {"nonnegative": True}
        if self.accepted.low < 0:
            sign = {"real": True}
        return NotationSymbol(self.name, **sign)


_entries: dict[str, Quantity] = {}
QUANTITIES: Mapping[str, Quantity] = MappingProxyType(_entries)


def _define(name: str, latex: str, unit: str, accepted: Interval, meaning: str) -> NotationSymbol:
    entry = _entries[name] = Quantity(name, latex, unit, meaning, accepted)
    return entry.symbol


# The model
n_params = _define(
    "n_params",
    r"\lvert\mathrm{model}\rvert",
    "1",
    ANY_POSITIVE,
    "parameters of the layers' matrices, without embeddings and LM head; the active ones for a mixture of experts",
)
d_model = _define("d_model", "d", "1", ANY_POSITIVE, "hidden size")
n_layers = _define("n_layers", "L", "1", ANY_POSITIVE, "layers")
d_att = _define(
    "d_att",
    r"d_{\mathrm{att}}",
    "1",
    ANY_POSITIVE,
    "query heads × head size; for MLA the mean of query and value widths",
)
kv_token = _define(
    "kv_token",
    r"\lvert\mathrm{KV_{token}}\rvert",
    "byte/token",
    ANY_POSITIVE,
    "KV-cache bytes of one token, all layers",
)

# The inference unit
hbm_bytes = _define("hbm_bytes", r"\mathrm{HBM}", "byte", ANY_POSITIVE, "HBM capacity of one inference unit")
hbm_share = _define("hbm_share", r"s_{\mathrm{HBM}}", "1", SHARE, "share of the HBM that the engine takes")
workspace = _define(
    "workspace",
    r"\mathrm{own}",
    "byte",
    AT_LEAST_ZERO,
    "HBM that the engine needs for itself, beside weights and KV caches",
)
weight_bytes = _define("weight_bytes", r"\mathrm{weights}", "byte", ANY_POSITIVE, "bytes of all weights")
kv_capacity = _define(
    "kv_capacity", r"C_{\mathrm{KV}}", "token", AT_LEAST_ZERO, "tokens whose KV cache fits beside the weights"
)
flops = _define("flops", "F", "FLOP/s", ANY_POSITIVE, "compute rate of one inference unit")
hbm_bw = _define("hbm_bw", r"\mathrm{BW}", "byte/s", ANY_POSITIVE, "HBM bandwidth of one inference unit")
io_bw = _define(
    "io_bw", r"\mathrm{BW_{io}}", "byte/s", ANY_POSITIVE, "bandwidth at which one inference unit reads the KV store"
)

# WorkloadCosts of one token
T = _define("T", "T", "s/token", ANY_POSITIVE, "prefill compute time of one token")
R = _define("R", "R", "s/token", ANY_POSITIVE, "time to load the KV cache of one token")
W = _define("W", "W", "s/token", AT_LEAST_ZERO, "time to write the KV cache of one token")
e = _define("e", "e", "1", ANY_POSITIVE, "token acceleration of loading over computing, T/R")

# Reuse
alpha = _define("alpha", r"\alpha", "1", SHARE, "share of the prompt whose KV cache is stored")
alpha_star = _define(
    "alpha_star", r"\alpha^{*}", "1", SHARE, "crossover: the share at which loading and computing take equally long"
)
beside = _define(
    "beside",
    r"\kappa",
    "1",
    AT_LEAST_ZERO,
    "what a step takes beside a prompt, over the prompt's compute: for a prompt alone t_w/(N_in T)",
)
phi = _define("phi", r"\varphi", "1", SHARE, "share of attention in the prefill time of the full prompt")
x = _define("x", "x", "1", ANY_POSITIVE, "prefill speedup")

# The workload
n_in = _define("n_in", r"N_{\mathrm{in}}", "token", ANY_POSITIVE, "prompt tokens of a request")
n_out = _define("n_out", r"N_{\mathrm{out}}", "token", ANY_POSITIVE, "output tokens of a request")
cv = _define(
    "cv",
    r"c_{v}",
    "1",
    AT_LEAST_ZERO,
    "coefficient of variation of the output lengths: 0 for equal ones, nearly 1 for geometric ones",
)
pd_ratio = _define("pd_ratio", r"\pi", "1", ANY_POSITIVE, "prompt tokens per output token, P:D")
rate = _define("rate", r"\lambda", "1/s", AT_LEAST_ZERO, "arrival rate of requests")
latency = _define("latency", r"\tau", "s", AT_LEAST_ZERO, "time of a request in the system")
load = _define("load", r"\ell", "1", SHARE, "share of its time that a prefill unit works")
cv_in = _define(
    "cv_in", r"c_{\mathrm{in}}", "1", AT_LEAST_ZERO, "coefficient of variation of the prefill times; 0 for equal ones"
)
cv_arrivals = _define(
    "cv_arrivals",
    r"c_{\mathrm{a}}",
    "1",
    AT_LEAST_ZERO,
    "coefficient of variation of the times between arrivals: 1 for arrivals at random, more for bursts",
)
part = _define("part", "p", "1", SHARE, "share of all requests that come, by chance, to one of several replicas")
p_wait = _define("p_wait", r"P_{\mathrm{wait}}", "1", SHARE, "share of the prompts that find all prefill units busy")
mean_wait = _define("mean_wait", r"\overline{w}", "s", AT_LEAST_ZERO, "mean wait of a prompt for a prefill unit")
turns = _define("turns", "K", "1", AT_LEAST_ONE, "turns of a conversation")
users = _define("users", "U", "1", AT_LEAST_ZERO, "users who each have a conversation under way")
turn_gap = _define(
    "turn_gap", r"t_{\mathrm{turn}}", "s", ANY_POSITIVE, "mean time from a user's prompt to that user's next one"
)
again = _define(
    "again", r"N_{\mathrm{again}}", "token", AT_LEAST_ZERO, "tokens that a turn reads again, of the turns before it"
)
brought = _define(
    "brought", r"N_{\mathrm{new}}", "token", ANY_POSITIVE, "tokens that a turn brings, its answer included"
)
kept = _define("kept", r"t_{\mathrm{kept}}", "s", AT_LEAST_ZERO, "time for which a store keeps what nobody uses")
think = _define("think", r"t_{\mathrm{think}}", "s", ANY_POSITIVE, "mean time from an answer to its user's next prompt")
served = _define(
    "served",
    r"t_{\mathrm{served}}",
    "s",
    AT_LEAST_ZERO,
    "time for which a turn holds its tokens, from prompt to answer",
)
turn_away = _define(
    "turn_away",
    r"t_{\mathrm{away}}",
    "s",
    ANY_POSITIVE,
    "time of a turn in which it does not decode: thinking, and its prompt",
)
turn_busy = _define(
    "turn_busy",
    r"t_{\mathrm{busy}}",
    "s",
    ANY_POSITIVE,
    "time that a turn takes of the engine beside weight reads: its prompt, and the read of its cache in each step",
)
prompt_share = _define(
    "prompt_share", r"\psi", "1", SHARE, "share of an engine's time that prompts take, beside its steps without them"
)
left = _define("left", r"r", "1", AT_LEAST_ZERO, "time that prompts take with a store over that without it")
missed = _define("missed", r"\mu", "1", SHARE, "share of the prompt tokens that are computed")
missed_without = _define(
    "missed_without", r"\mu_0", "1", Interval(0, 1, open_low=True), "share of them that is computed without the store"
)
loaded = _define("loaded", r"\mu_{\mathrm{load}}", "1", SHARE, "share of the prompt tokens that is loaded from a store")
write = _define("write", r"\omega", "1", AT_LEAST_ZERO, "time to store a token over the time to compute it")

# Serving
B = _define("B", "B", "1", ANY_POSITIVE, "concurrent requests")
b = _define("b", "b", "1", ANY_POSITIVE, "decodes in one step")
chunk = _define("chunk", r"N_{c}", "token", ANY_POSITIVE, "prefill tokens in one step")
ttft_1 = _define(
    "ttft_1", "P", "s", ANY_POSITIVE, "what a prompt adds to a step that runs anyway: its time net of the weight read"
)
ttft_alone = _define(
    "ttft_alone",
    r"\mathrm{TTFT}(1)",
    "s",
    ANY_POSITIVE,
    "time to first token of a request alone, the weight read in it: P + t_w where the parts of a step add",
)
tpot_1 = _define("tpot_1", r"\mathrm{TPOT}(1)", "s", ANY_POSITIVE, "time per output token of a request alone")
delta_p = _define(
    "delta_p", r"\Delta P", "s", AT_LEAST_ZERO, "what one more request adds to the mean step through its prefill"
)
delta_p_gross = _define(
    "delta_p_gross",
    r"\Delta P_{g}",
    "s",
    AT_LEAST_ZERO,
    "time of a prompt alone, spread over the steps of its decode: what a prefill unit pays",
)
delta_h = _define(
    "delta_h",
    r"\Delta H",
    "s",
    AT_LEAST_ZERO,
    "increment: what one more request adds to every step through its decode, all that the engine does for it counted",
)
cache_read = _define(
    "cache_read",
    r"h_{\mathrm{KV}}",
    "s",
    AT_LEAST_ZERO,
    "KV read: the time to read the KV cache of one request, the part of ΔH that the talks count",
)
decode_read = _define(
    "decode_read",
    r"h_{d}",
    "s",
    AT_LEAST_ZERO,
    "read of a decode with its rows: KV read, matrix rows and all-reduce, the part of ΔH that kernels show",
)
rho = _define("rho", r"\rho", "1", AT_LEAST_ZERO, "ΔP/ΔH")
z = _define(
    "z",
    "z",
    "1",
    AT_LEAST_ZERO,
    "share of a decode's own compute time T that lengthens the step: 0 if hidden under the weight read",
)
q = _define("q", "q", "1", SHARE, "quantile: 0.99 for P99")
t_w = _define(
    "t_w", "t_{w}", "s", AT_LEAST_ZERO, "what a step costs however little it does: mostly the read of the weights"
)
sla_tpot = _define("sla_tpot", "S", "s", ANY_POSITIVE, "limit on TPOT")
sla_ttft = _define("sla_ttft", r"S_{\mathrm{TTFT}}", "s", ANY_POSITIVE, "limit on TTFT")
u = _define("u", "u", "1", SHARE, "share of the TPOT limit left after the weights are read, 1 − t_w/S")

# A benchmark
front = _define(
    "front",
    r"t_{f}",
    "s",
    AT_LEAST_ZERO,
    "what a first token takes beside the engine's steps: front end, launch, packet",
)
rounds = _define("rounds", r"n_{r}", "1", AT_LEAST_ONE, "requests that each user sends, one after the other")
together = _define("together", r"k_{\max}", "1", AT_LEAST_ONE, "prompts for which the token budget of a step has room")
wave = _define("wave", "j", "1", AT_LEAST_ONE, "answers that each user has had")
burst = _define("burst", r"\mathrm{TTFT}_{\mathrm{burst}}", "s", ANY_POSITIVE, "mean TTFT of prompts sent at once")
steady = _define(
    "steady", r"\mathrm{TTFT}_{\infty}", "s", ANY_POSITIVE, "mean TTFT of a closed loop that has run for long"
)
met = _define(
    "met", r"M_{+}", "1", Interval(-1e9, 1e9), "prompts that a user meets beside the own ones, less a closed loop's"
)
filled = _define(
    "filled",
    r"\ell_{e}",
    "1",
    SHARE,
    "request rate of an engine over the one at which its steps would grow without end",
)
alone_step = _define(
    "alone_step",
    r"t_{1}",
    "s",
    ANY_POSITIVE,
    "mean step of a request alone, its prompt spread over its answer: t_w + ΔP + ΔH",
)
on_prompts = _define("on_prompts", r"\ell_{p}", "1", SHARE, "share of its time that an engine spends on prompts")
share_off = _define(
    "share_off",
    r"\varepsilon",
    "1",
    EFFICIENCY,
    "share by which a benchmark's mean TTFT may differ from the steady one",
)

# When prompts are let in
every = _define("every", "N", "1", AT_LEAST_ONE, "steps from one that lets prompts in to the next one")
ranks = _define("ranks", "D", "1", AT_LEAST_ONE, "ranks of attention data parallelism, which step together")
let_in = _define("let_in", r"\pi_{N}", "1", SHARE, "chance that a place gets a prompt when prompts are let in")
free = _define("free", "p_{0}", "1", SHARE, "chance that a step which lets prompts in has none")
clean = _define("clean", "t_{d}", "s", AT_LEAST_ZERO, "a step of decodes alone")

# One step of a real unit
tp = _define("tp", "g", "1", AT_LEAST_ONE, "GPUs that share the model")
tokens = _define("tokens", "n", "token", AT_LEAST_ZERO, "tokens that go through the matrices in a step")
cached = _define("cached", r"N_{\mathrm{cached}}", "token", AT_LEAST_ZERO, "prompt tokens whose KV cache is in HBM")
step_bytes = _define("step_bytes", r"\mathrm{bytes}", "byte", AT_LEAST_ZERO, "bytes that a step reads from HBM once")
sum_bytes = _define(
    "sum_bytes", r"\mathrm{sums}", "byte", AT_LEAST_ZERO, "bytes of partial results that the GPUs add up in a step"
)
link_bw = _define("link_bw", r"\mathrm{BW_{link}}", "byte/s", ANY_POSITIVE, "bandwidth between GPUs, one direction")
eff_memory = _define("eff_memory", r"\eta_{M}", "1", EFFICIENCY, "share of the HBM bandwidth that reading reaches")
eff_compute = _define(
    "eff_compute", r"\eta_{F}", "1", EFFICIENCY, "share of the compute rate that matrix products reach"
)
t_c = _define("t_c", "t_{c}", "s", AT_LEAST_ZERO, "compute of the matrix products of a step")
t_read = _define("t_read", r"t_{\mathrm{KV}}", "s", AT_LEAST_ZERO, "KV-cache reads of the decodes of a step")
t_att = _define("t_att", r"t_{\mathrm{att}}", "s", AT_LEAST_ZERO, "attention of the prompts in a step")
t_rest = _define("t_rest", r"t_{\mathrm{rest}}", "s", AT_LEAST_ZERO, "all of a step but the matrix products")

# Pools
prefill_units = _define("prefill_units", r"n_{p}", "1", ANY_POSITIVE, "inference units of the prefill pool")
decode_units = _define("decode_units", r"n_{d}", "1", ANY_POSITIVE, "inference units of the decode pool")
units = _define("units", r"w", "1", AT_LEAST_ONE, "inference units that each keep a KV store of their own")
gpu_time = _define(
    "gpu_time",
    r"w_{a}",
    "s",
    ANY_POSITIVE,
    "GPU-seconds of an output token with its share of a prompt, aggregated, at the limit on TPOT",
)
gpu_time_prefill = _define(
    "gpu_time_prefill", r"w_{p}", "s", ANY_POSITIVE, "GPU-seconds of a token's share of a prompt in a prefill pool"
)
gpu_time_decode = _define(
    "gpu_time_decode", r"w_{d}", "s", ANY_POSITIVE, "GPU-seconds of a token in a decode pool, at the limit on TPOT"
)
prefill_gpus = _define("prefill_gpus", r"s_{p}", "1", SHARE, "share of a split's GPUs that are in its prefill pool")

# Specialised hardware
flop_ratio = _define("flop_ratio", "f", "1", ANY_POSITIVE, "FLOP/s of the prefill GPU over the baseline's")
mbw_ratio = _define("mbw_ratio", "m", "1", ANY_POSITIVE, "HBM bandwidth of the decode GPU over the baseline's")
prefill_cost = _define(
    "prefill_cost", r"c_{p}", "1", ANY_POSITIVE, "price or power of the prefill GPU over the baseline's"
)
decode_cost = _define(
    "decode_cost", r"c_{d}", "1", ANY_POSITIVE, "price or power of the decode GPU over the baseline's"
)
