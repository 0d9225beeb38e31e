"""What the chapters' figures draw: each gives its points, and they are found again by formulas and in the raw tables.

A curve of half its height is noticed so, and so are dots of another column.
"""

import io
import re
from functools import cache

import nbformat
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from inference_math import catalogue, evidence, theory
from inference_math_book import own_file, served
from inference_math_book.notebook import CAPTION, VEGA_LITE
from inference_math_planner.calibrate import schedules

CASE, FEW, TWO = served.CASE, np.array([1, 4, 8, 16, 32]), served.fit(served.rows(2))
T_W = CASE.t_1 - CASE.delta_h
GROSS = (CASE.prompt + T_W) / CASE.n_out
H100 = [own for own in own_file.ours() if own.unit.gpu.name == "h100-sxm"]


@pytest.fixture(scope="session")
def figures(root):
    """Return what each figure of the chapters tells: its badge, its numbers, and whether it is live."""
    found = {}
    for path in sorted((root / "notebooks").glob("0*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            bundles = [output.data for output in cell.get("outputs", ()) if "data" in output]
            live = any(VEGA_LITE in data for data in bundles)
            found |= {data[CAPTION]["name"]: data[CAPTION] | {"live": live} for data in bundles if CAPTION in data}
    return found


def numbers(figures, name):
    return pd.read_csv(io.StringIO(figures[name]["csv"]))


def test_every_figure_gives_its_numbers(figures):
    """A live one has them in itself, and a drawing that shows an idea has none."""
    without = [told for told in figures.values() if not told["csv"] and not told["live"]]
    assert len(figures) > 50
    assert {told["badge"] for told in without} == {"schematic"}


def count(text):
    return int(text.replace(",", ""))


def by(keys, values):
    """Return a function that looks numbers up by others, of which a download has six digits."""
    table = dict(zip(np.ravel(keys), np.ravel(values), strict=True))
    return lambda x: np.array([table[min(table, key=lambda key, near=near: abs(key - near))] for near in x])


@cache
def loaded(panel):
    """Return our prompts with a loaded part, by their share: `schedules.loads`, with the load's time and the rest's."""
    (own,) = (o for o in H100 if o.unit.model.name == panel.split(",")[0] and o.unit.weights == "bf16")
    rows = schedules.loads(own.times, own.unit.model.n_layers)
    return rows.assign(
        load=rows.alpha / rows.e, rest=1 / rows.parts_first - rows.alpha / rows.e, both=1 / rows.layerwise
    )


def of_loads(column):
    return lambda x, panel: by(loaded(panel).alpha, loaded(panel)[column])(x)


@cache
def bare(near=True):
    """Return vLLM's steps on an H100, ms by context, decodes and tokens of a prompt."""
    rows = evidence.load("lab_gpu_steps").frame.query("offloading == 0 and prompts <= 1")
    rows = rows.assign(context=rows.context.round(-2) if near else rows.context)
    return rows.groupby(["context", "decodes", "tokens"]).step_ms.median()


def steps(x, panel, tokens="0", near=True):
    """Return what steps with so many decodes took; P18 has those of one context alone."""
    context = (500 if near else 519) if "8,200" not in panel else 8200
    return np.array([bare(near)[context, int(many), count(tokens)] for many in x])


def once(near=True):
    """Return vLLM's weight read, ms: where the line of its decodes begins."""
    return np.polyfit(FEW, steps(FEW, "", near=near), 1)[1]


def gain_of_mixed(x, panel, of):
    """Return what mixed steps gain over their parts: of kernels in turn, of vLLM, or if only its weight read hides."""
    if of == "kernels in turn":
        each = [
            schedules.overlaps(o.times).merge(o.times.query("what == 'decode'")[["decodes", "context", "seconds"]])
            for o in H100
        ]
        rows = pd.concat(each)
        return by(rows.none / rows.seconds - 1, rows.none / rows.measured)(x)
    kinds = [
        (bare()[0, 0, n], bare()[context, many, 0], took) for (context, many, n), took in bare().items() if many and n
    ]
    assert len(x) == len(kinds)
    chunk, decoding, both = np.array(kinds).T
    return by(chunk / decoding, (chunk + decoding) / (both if of == "vLLM" else chunk + decoding - once()))(x)


def served_rows(tp, label):
    """Return served rows of two lengths, and these lengths."""
    a, b = (count(number) for number in re.findall(r"[\d,]+(?= in| out)", label))
    return (
        (rows := served.rows(tp, queued=True)[lambda t: (t.n_in.round() == a) & (t.n_out.round() == b)]),
        rows.n_in.iloc[0],
        rows.n_out.iloc[0],
    )


def p06(x, panel, law, label):
    rows, n_in, n_out = served_rows(int(panel[0]), label)
    return 1e3 * (
        served.fit(served.rows(int(panel[0]))).tpot(x, n_in, n_out) if law else by(rows.users, rows.tpot_s)(x)
    )


def trade(x, n_in, n_out, faster=1):
    """Return the tokens of a GPU by those of a user: the law of two H100."""
    dp, dh = TWO.delta_p(n_in, n_out) / faster, TWO.delta_h(n_in, n_out)
    users = 1 + (1 / x - TWO.t_1) / (dp + dh)
    return users / (TWO.t_1 - dh + users * (dp + (1 - 1 / n_out) * dh)) / 2


def p01(x, panel, law, label):
    rows, n_in, n_out = served_rows(2, label)
    seen = rows.users * n_out / (rows.ttft_s + (n_out - 1) * rows.tpot_s) / 2
    return trade(x, n_in, n_out) if law else by(1 / rows.tpot_s, seen)(x)


def percentile(x, panel, percent):
    prompts = stats.binom(x - 1, 1 / CASE.n_out).ppf(float(percent) / 100)
    return 1e3 * (CASE.t_1 + prompts * CASE.prompt + (x - 1 - prompts) * CASE.delta_h)


def arms(quantity, column="found", scale=1e3):
    rows = evidence.load("lab_gpu_arms").frame.query("experiment == 'interference' and quantity == @quantity")
    rows = rows[rows.arm.str.endswith("geometric")]
    return lambda x, *_: by(rows.arm.str.extract(r"(\d+)")[0].astype(int), scale * rows[column])(x)


def burst(x, panel, lengths, column):
    """Return the mean TTFT of sixteen users who begin together, by their prompts."""
    room = panel.removeprefix("a step has room for ").removesuffix(" prompts")
    rows = evidence.load("lab_gpu_arms").frame.query("experiment == 'cold'").set_index(["arm", "quantity"])[column]
    at = 1e3 * rows[f"lengths {lengths}, together {room}"]
    return (
        (16 * at.burst + (x - 16) * at.later) / x if column == "predicted" else by([16, 160], at[["burst", "ttft"]])(x)
    )


def sarathi(x, panel, of):
    frame, model = evidence.load("sarathi").frame, catalogue.model("llama-13b")
    table = frame.set_index(["quantity", "step"]).value
    weights, token = table["linear_time", "decode"], table["step_time", "prefill"] / 1024
    costs, speeds = frame[frame.quantity == "decode_over_prefill_cost"], frame.query("place == 'Figure 7'")
    work, size = 2 * model.n_params * x, model.weight_bytes("bf16")
    return {
        "from the step times": (weights / x + table["attention_time", "decode"] / 4) / token,
        "weight read, then compute": x / np.maximum(weights, x * token),
        "published": (
            by(costs.batch, costs.value) if panel == "1" else by(speeds.tokens, speeds.tokens / speeds.value)
        )(x),
        "products alone": work / size,
        "decodes with KV reads": work / (size + x * 1024 * model.kv_token("bf16")),
    }[of]


def layerwise(x, panel, e):
    return theory.speedup_layerwise(alpha=x, e=float(e))


def first(x, panel, e):
    return 1 / (1 - x + x / float(e))


def e_of(panel):
    return loaded(panel).e.median()


LINES = {
    "compute": lambda b: b * GROSS,
    "memory": lambda b: T_W + b * CASE.delta_h,
    "sum: whole prompts": lambda b: T_W + b * (GROSS + CASE.delta_h),
    "weight read hides": lambda b: np.maximum(T_W, b * GROSS) + b * CASE.delta_h,
    "maximum: full overlap": lambda b: np.maximum(T_W + b * CASE.delta_h, b * GROSS),
}
# By figure: which series, and what is drawn at x. None: not a formula's, nor in a table.
DRAWN = {
    "fig-two-times": {"compute: .*": lambda x, p: 1 - x, "load: .*": lambda x, p: x / 9},
    "fig-speedup-by-e": {r"e = (\d+)": layerwise, r"peak, e = (\d+)": lambda x, p, e: 1 + int(e) + 0 * x},
    "fig-whole": {r"layer by layer, e = (\d+)": layerwise, r"everything first, e = (\d+)": first},
    "fig-load-and-rest": {
        "compute: .*": lambda x, p: 1 - x, "load: .*": lambda x, p: x / loaded(p).e.iloc[-1],
        "the load alone": of_loads("load"), "the rest alone": of_loads("rest"), "both, .*": of_loads("both"),
    },
    "fig-loads": {
        "layer by layer": of_loads("layerwise"), "formula, layer by layer": lambda x, p: layerwise(x, p, e_of(p)),
        "everything first": of_loads("first"), "formula, everything first": lambda x, p: first(x, p, e_of(p)),
        "by the parts, layer by layer": of_loads("parts_layerwise"),
        "by the parts, everything first": of_loads("parts_first"), "with weight read.*": None,
    },
    "fig-gaps": {
        r"P(\d+)": percentile, "simulated, .*": None,
        "mean": lambda x, p: 1e3 * (CASE.t_1 + (x - 1) * (CASE.delta_p + (1 - 1 / CASE.n_out) * CASE.delta_h)),
    },
    "fig-h100-counts": {"binomial law": lambda x, p: (15 / 16) ** (x - 1), "measured": arms("undisturbed", scale=1)},
    "fig-h100-times": {
        r"mean (\w+)": lambda x, p, name: arms(name.lower())(x), "median gap": arms("gap_p50"),
        r"predicted, mean (\w+)": lambda x, p, name: arms(name.lower(), "predicted")(x),
        "P99 of the gap": arms("gap_p99"), "predicted, median gap": arms("gap_p50", "predicted"),
        "predicted, P99 of the gap": arms("gap_p99", "predicted"),
    },
    "fig-h100-burst": {
        "(.*) answers, law": lambda x, p, lengths: burst(x, p, lengths, "predicted"),
        "(.*), measured": lambda x, p, lengths: burst(x, p, lengths, "found"),
    },
    "fig-one-prompt": {
        "decodes alone": lambda x, p: steps(x, "", near=False),
        r"\+ (.*) tokens": lambda x, p, n: steps(x, "", n, near=False),
        r"predicted, \+ (.*) tokens": lambda x, p, n: steps(x, "", near=False) + bare()[0, 0, count(n)] - once(False),
    },
    "fig-served": {
        "(law, )?(?:queued, )?(.* out)": p06,
        r"(\d) H100": lambda x, p, tp: 100 * served.left_out(served.rows(int(tp))),
    },
    "fig-efficiency-served": {"(law, )?(.* out)": p01},
    "fig-efficiency": {
        "10 times faster, (.*) tokens in": lambda x, p, n: trade(x, count(n), 64, 10),
        "(.*) tokens in": lambda x, p, n: trade(x, count(n), 64),
    },
    "fig-bound": {
        "(.*) tokens in": lambda x, p, n: 1 + TWO.delta_p(count(n), x) / TWO.delta_h(count(n), x),
        "the case": lambda x, p: 1 + CASE.delta_p / CASE.delta_h + 0 * x,
    },
    "fig-lines": {"(.*)": lambda x, p, name: 1e3 * LINES[name](x)},
    "fig-mixed": {
        "if everything overlaps": lambda x, p: (1 + x) / np.maximum(1, x),
        "(?:measured, )?(kernels in turn|vLLM|if only the weight read hides)": gain_of_mixed,
    },
    "fig-h100-lines": {
        "decodes alone": steps, r"\+ (.*), measured": steps,
        r"\+ (.*), added up": lambda x, p, n: steps(x, p) + bare()[0, 0, count(n)] - once(),
        r"\+ (.*), full overlap": lambda x, p, n: np.maximum(steps(x, p), bare()[0, 0, count(n)]),
    },
    "fig-sarathi-costs": {"(.*)": sarathi},
    "fig-reuse": {
        "shared": lambda x, p: theory.reuse_conversation(turns=x),
        r"(\d+) units": lambda x, p, units: theory.reuse_local(turns=x, units=int(units)),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_each_line_and_dot_is_the_formula_s_or_the_table_s(name, figures):
    for (panel, series), points in numbers(figures, name).groupby(["panel", "series"], sort=False):
        rules = [(found, rule) for pattern, rule in DRAWN[name].items() if (found := re.fullmatch(pattern, series))]
        assert rules, series
        found, rule = rules[0]
        x, y = points.dropna(axis=1).iloc[:, -2:].to_numpy().T
        expected = y if rule is None else rule(x, str(panel), *found.groups())
        np.testing.assert_allclose(y, expected, rtol=1e-3, err_msg=f"{panel}: {series}")


def test_a_timeline_of_layers_is_the_pipeline_of_its_parts(figures):
    whole = (
        1e3 * next(o.times for o in H100).query("what == 'prefill' and cached == 0 and tokens == 8192").seconds.max()
    )
    kinds = [(1, (0.8 / e, 0.2, 0.2 / e), rows) for e, rows in numbers(figures, "fig-timeline").groupby("e")]
    for share, rows in numbers(figures, "fig-h100-layers").groupby("stored"):
        load, rest, both = (
            by(loaded("llama-3-8b").alpha, loaded("llama-3-8b")[name])([share])[0] for name in ("load", "rest", "both")
        )
        kinds.append((whole, (load, rest, load * (1 - share) / share), rows))
        assert rows.measured_end.iloc[0] == pytest.approx(whole * both, rel=1e-4)
        assert rows.measured_end.iloc[0] == pytest.approx(rows[rows.what == "compute"].end.max(), rel=0.02)
    for scale, parts, rows in kinds:
        took, layers = (rows.end - rows.begin).groupby(rows.what).sum(), (rows.what == "load").sum()
        assert took[["load", "compute", "write"]].to_numpy() == pytest.approx(np.array(parts) * scale, rel=1e-3)
        end = (sum(parts[:2]) + (layers - 1) * max(parts[:2])) / layers
        assert rows[rows.what == "compute"].end.max() == pytest.approx(end * scale, rel=1e-3)


def test_bubbles_and_the_gap_of_two_costs_are_what_was_timed_and_fitted(figures):
    rows = numbers(figures, "fig-h100-bubbles")
    bars = rows.dropna(subset="users")
    np.testing.assert_allclose(bars.bare_ms, steps(bars.users, ""), rtol=1e-3)
    np.testing.assert_allclose(bars.mean_ms, arms("tpot")(bars.users), rtol=1e-4)
    lengths = 1e3 * (rows.end - rows.start).groupby([rows.request, rows.kind]).max()
    for size in ("256", "1,024", "2,048"):
        both = lengths[f"one of 8, beside {size} tokens"].sum(), lengths[f"prompt of {size} tokens", "prefill"]
        assert both == pytest.approx((steps([8], "", size)[0],) * 2, rel=1e-3)
    gap = numbers(figures, "fig-gap").groupby("what")
    for name, of in (("ΔP", TWO.delta_p), ("ΔH", TWO.delta_h)):
        drawn = gap.get_group(name)
        np.testing.assert_allclose(drawn.ms, 1e3 * of(drawn.n_in.to_numpy(), 170), rtol=1e-3)
        assert ((drawn.low_ms < drawn.ms) & (drawn.ms < drawn.high_ms)).all()
