"""What a reader clicks: the built pages in headless Chromium, without a network."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from grids import rest_long

from inference_math import catalogue, theory
from inference_math.simulate import StepCost
from inference_math.unit import Unit, costs
from inference_math.unit.operators import Operators
from inference_math.workload import Workload
from inference_math_book.figures import engine
from inference_math_planner.laws import latency

ROOT = Path(__file__).parents[2]
TOC = (ROOT / "_toc.yml").read_text(encoding="utf-8")
# One page of each kind comes first, the others are long.
KINDS = ["prefill/01-cost-of-a-token", "planner", "gallery", "reference/claims", "reference/formulas", "reference/api"]
PAGES = [f"book/{name}.html" for name in KINDS]
PAGES += [name for page in re.findall(r"(?:file|root): (\S+)", TOC) if (name := f"{page}.html") not in PAGES]

pytestmark = pytest.mark.browser


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def values(page, figure: str) -> dict[str, np.ndarray]:
    """Return what the figure drew: by curve, rows of (axis value, value)."""
    rows = page.evaluate(
        """id => {
            const view = document.querySelector(`#${id} .live-figure`).view;
            const names = Object.keys(view.getState({data: () => true, signals: () => false}).data);
            return names.map(n => view.data(n)).flat().filter(r => "curve" in r && "value" in r);
        }""",
        figure,
    )
    axis = next(
        name for name in ("alpha", "k", "n_in", "io_bw", "B", "rho", "sla_tpot", "e", "tokens") if name in rows[0]
    )
    return {
        c: np.unique(np.array([(r[axis], r["value"]) for r in rows if r["curve"] == c and "ms" not in r]), axis=0)
        for c in {r["curve"] for r in rows}
    }


def settle(page, figure: str) -> None:
    """Wait until a figure has drawn what was asked of it."""
    page.evaluate("id => document.querySelector(`#${id} .live-figure`).view.runAsync().then(() => null)", figure)


def set_slider(page, figure: str, name: str, value: float) -> None:
    """Move a slider as a hand would: the input's value, then its event."""
    page.locator(f"#{figure} .vega-bind input[type=range][name={name}]").evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', {bubbles: true})); }", value
    )
    settle(page, figure)


@pytest.mark.parametrize("name", rest_long(PAGES, len(KINDS)))
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pages_load_alone_fit_the_width_and_typeset(open_page, name, width, scheme):
    page = open_page(name, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    formulas = page.locator("span.math, div.math")
    assert page.locator("span.math > math, div.math > math").count() == formulas.count()
    assert page.locator("merror").count() == 0
    assert not any("\\" in text for text in formulas.all_inner_texts())
    for figure in page.locator(".live-figure").all():
        box, drawing = figure.bounding_box(), figure.locator("svg.marks").bounding_box()
        assert drawing["width"] > 200
        assert drawing["x"] + drawing["width"] <= box["x"] + box["width"] + 1
    assert all(
        page.locator("main img:not([loading=lazy])").evaluate_all(
            "all => all.map(i => i.complete && i.naturalWidth > 0)"
        )
    )


@pytest.mark.parametrize(("e", "phi"), [(9, 0.05), (0.5, 0), (30, 1)])
def test_the_speedup_figure_computes_what_python_computes(kept_page, e, phi):
    page = kept_page("book/prefill/02-prefill-acceleration.html")
    set_slider(page, "fig-speedup", "e", e)
    set_slider(page, "fig-speedup", "phi", phi)
    drawn = values(page, "fig-speedup")
    expected = {
        "load all that is stored (talk)": lambda a: theory.speedup_layerwise(alpha=a, e=e),
        "load at most α* (mixed)": lambda a: theory.speedup_mixed(alpha=a, e=e),
        "load all, causal attention": lambda a: theory.speedup_layerwise_causal(alpha=a, e=e, phi=phi),
    }
    assert set(drawn) == set(expected)
    for curve, points in drawn.items():
        assert len(points) == 401
        np.testing.assert_allclose(points[:, 1], expected[curve](np.clip(points[:, 0], 0, 1)), rtol=1e-9)


@pytest.mark.long
def test_the_pipeline_figure_follows_the_number_of_layers(kept_page):
    page = kept_page("book/prefill/02-prefill-acceleration.html")
    set_slider(page, "fig-pipeline", "n_layers", 3)
    points = values(page, "fig-pipeline")["pipeline of L layers"]
    expected = theory.speedup_pipelined(alpha=np.clip(points[:, 0], 0, 1), e=9, n_layers=3)
    np.testing.assert_allclose(points[:, 1], expected, rtol=1e-9)


def test_the_bandwidth_figure_puts_the_formulas_into_each_other(kept_page):
    page = kept_page("book/prefill/02-prefill-acceleration.html")
    set_slider(page, "fig-bandwidth", "alpha", 0.8)
    drawn = values(page, "fig-bandwidth")
    model, gpu = catalogue.model("llama-3-70b"), catalogue.gpu("h100-sxm")
    shape = {"n_params": model.n_params, "n_layers": model.n_layers, "d_att": model.d_att, "n_in": 2048}
    per_token = theory.token_time_causal(**shape, flops=gpu.flops("bf16"))
    bandwidth = drawn["load at most α* (mixed)"][:, 0]
    e = theory.token_acceleration(
        T=per_token, R=theory.kv_load_time(kv_token=model.kv_token("bf16"), io_bw=1e9 * bandwidth)
    )
    phi = theory.attention_share_causal(**shape)
    best = np.minimum(0.8, theory.crossover_causal(e=e, phi=phi))
    for curve, share in (("load at most α* (mixed)", best), ("load all that is stored", 0.8)):
        expected = theory.speedup_layerwise_causal(alpha=share, e=e, phi=phi)
        np.testing.assert_allclose(drawn[curve][:, 1], expected, rtol=1e-6)


def test_choosing_a_model_changes_the_token_time(kept_page):
    page = kept_page("book/prefill/01-cost-of-a-token.html")
    page.locator("#fig-token-time .vega-bind", has_text="model").locator("select").select_option("llama-3-8b")
    page.locator("#fig-token-time .vega-bind", has_text="GPU").locator("select").select_option("h200-sxm")
    settle(page, "fig-token-time")
    points = values(page, "fig-token-time")["T, causal"]
    model, gpu = catalogue.model("llama-3-8b"), catalogue.gpu("h200-sxm")
    expected = theory.token_time_causal(
        n_params=model.n_params, n_layers=model.n_layers, d_att=model.d_att, n_in=points[:, 0], flops=gpu.flops("bf16")
    )
    np.testing.assert_allclose(points[:, 1], 1e6 * expected, rtol=1e-9)


@pytest.mark.long
def test_the_measured_figure_moves_with_the_output(kept_page):
    page = kept_page("book/prefill/03-measured-h100.html")
    set_slider(page, "fig-deltas-live", "n_out", 1000)
    points = values(page, "fig-deltas-live")["ΔP"]
    model, gpu = catalogue.model("llama-3-70b"), catalogue.gpu("h100-sxm")
    per_token = theory.token_time_causal(
        n_params=model.n_params, n_layers=model.n_layers, d_att=model.d_att, n_in=points[:, 0],
        flops=2 * gpu.flops("fp8"),
    )  # fmt: skip
    expected = theory.delta_p(ttft_1=theory.ttft_vanilla(n_in=points[:, 0], T=per_token), n_out=1000)
    np.testing.assert_allclose(points[:, 1], 1e3 * expected, rtol=1e-5)  # the table of units has six digits


@pytest.mark.long
def test_the_means_follow_the_sliders(kept_page):
    page = kept_page("book/interference/02-delta-p-and-delta-h.html")
    set_slider(page, "fig-means", "n_out", 16)
    set_slider(page, "fig-means", "t_w", 0.02)
    drawn = values(page, "fig-means")
    common = {"n_out": 16, "delta_h": 0.00007}
    for curve, formula in {
        "TTFT, complete": lambda B: theory.expected_ttft_full(B=B, ttft_1=0.13, t_w=0.02, **common),
        "TPOT, complete": lambda B: theory.expected_tpot_full(
            B=B, tpot_1=0.02007, delta_p=0.13 / 16, T=1, z=0, **common
        ),
        "TPOT, as printed": lambda B: theory.expected_tpot(B=B, tpot_1=0.02007, delta_p=0.13 / 16, delta_h=0.00007),
    }.items():
        np.testing.assert_allclose(drawn[curve][:, 1], 1e3 * formula(drawn[curve][:, 0]), rtol=1e-9)


@pytest.mark.parametrize(("B", "n_out"), [(32, 170), (1, 170), (192, 8)])
def test_the_gap_figure_draws_the_binomial_law(kept_page, B, n_out):
    page = kept_page("book/interference/02-delta-p-and-delta-h.html")
    set_slider(page, "fig-gap-live", "B", B)
    set_slider(page, "fig-gap-live", "n_out", n_out)
    points = values(page, "fig-gap-live")["tokens"]
    expected = latency.prefills_beside(B, n_out).pmf(points[:, 0])
    np.testing.assert_allclose(points[:, 1], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.long
def test_the_limits_figure_draws_the_floored_limits(kept_page):
    page = kept_page("book/interference/03-meeting-the-sla.html")
    set_slider(page, "fig-limits-live", "n_out", 128)
    set_slider(page, "fig-limits-live", "alpha", 0.9)
    drawn = values(page, "fig-limits-live")
    room = costs.measured(Operators(catalogue.model("llama-3-70b"), weights="fp8", kv="fp8"), 1000, 64).kv_capacity
    n_in = drawn["memory"][:, 0]
    expected = theory.max_batch_memory(kv_capacity=room, n_in=n_in, n_out=128)
    assert (np.abs(drawn["memory"][:, 1] - expected) <= 1).all()  # the capacity has six digits in the page
    assert (drawn["TPOT"][:, 1] % 1 == 0).all()
    assert (np.diff(drawn["TTFT"][:, 1]) <= 0).all()


@pytest.mark.long
def test_the_gain_figure_orders_its_curves(kept_page):
    page = kept_page("book/interference/03-meeting-the-sla.html")
    set_slider(page, "fig-gain-live", "e", 4)
    drawn = values(page, "fig-gain-live")
    shares = np.clip(drawn["engine does not wait"][:, 0], 0, 1)
    expected = theory.batch_gain_async(delta_p=0.0008, delta_h=0.00008, alpha=shares, e=4)
    np.testing.assert_allclose(drawn["engine does not wait"][:, 1], expected, rtol=1e-9)
    waits = drawn["engine waits, at least"][:, 1]
    assert (waits <= expected * (1 + 1e-9)).all()


@pytest.mark.long
def test_the_unit_figure_is_the_formula(kept_page):
    page = kept_page("book/predictions/01-one-unit.html")
    set_slider(page, "fig-step-live", "eff_memory", 0.5)
    set_slider(page, "fig-step-live", "eff_compute", 0.25)
    drawn = values(page, "fig-step-live")
    tokens = drawn["both, in quadrature"][:, 0]
    llama, h100 = catalogue.model("llama-3-70b"), catalogue.gpu("h100-sxm")
    t_w = theory.read_time(step_bytes=llama.weight_bytes("fp8"), hbm_bw=2 * h100.hbm_bw, eff_memory=0.5)
    t_c = theory.matrix_time(n_params=llama.n_params, tokens=tokens, flops=2 * h100.fp8_flops, eff_compute=0.25)
    expected = 1000 * theory.step_time(t_w=t_w, t_c=t_c, t_rest=0)
    np.testing.assert_allclose(drawn["both, in quadrature"][:, 1], expected, rtol=1e-4)


def test_the_plan_figure_is_the_closed_form(kept_page):
    """Rates of a chosen unit, stored prompts among them, as theory.unit_time_* with the unit's own costs."""
    page = kept_page("book/predictions/03-plan-a-deployment.html")
    page.locator("#fig-plan-live .vega-bind", has_text="unit").locator("select").select_option("Qwen3-32B FP8, 1 H100")
    set_slider(page, "fig-plan-live", "prompt", 4000)
    set_slider(page, "fig-plan-live", "output", 300)
    drawn = values(page, "fig-plan-live")["aggregated"]
    costs = Unit.of("qwen3-32b", "h100-sxm", 1, "fp8", "fp8").costs(Workload(4000, 300))
    limits = drawn[drawn[:, 0] > 1.2 * costs.t_w]
    expected = 1 / (300 * theory.unit_time_aggregated(
        delta_p=costs.delta_p, delta_h=costs.delta_h, t_w=costs.t_w, sla_tpot=limits[:, 0]
    ))  # fmt: skip
    assert len(limits) > 50
    np.testing.assert_allclose(limits[:, 1], expected, rtol=0.03)  # the figure has one price a token, and a pair
    set_slider(page, "fig-plan-live", "stored", 0.9)
    assert (values(page, "fig-plan-live")["aggregated"][-50:, 1] > drawn[-50:, 1]).all()


@pytest.mark.long
def test_the_workload_figure_says_the_ratio(kept_page):
    page = kept_page("book/interference/04-short-and-long-prompts.html")
    page.locator("#fig-workload .vega-bind", has_text="model").locator("select").select_option("llama-13b")
    page.locator("#fig-workload .vega-bind", has_text="GPU").locator("select").select_option("a6000")
    page.locator("#fig-workload .vega-bind", has_text="precision").locator("select").select_option("bf16")
    settle(page, "fig-workload")
    (ratio,) = page.evaluate(
        """() => {
            const view = document.querySelector("#fig-workload .live-figure").view;
            const names = Object.keys(view.getState({data: () => true, signals: () => false}).data);
            return [...new Set(names.flatMap(n => view.data(n)).filter(r => "ratio" in r).map(r => r.ratio))];
        }"""
    )
    model, gpu = catalogue.model("llama-13b"), catalogue.gpu("a6000")
    prompt, output = 2**11.103, 2**7.409
    per_token = theory.token_time_causal(**model.shape, n_in=prompt, flops=gpu.bf16_flops)
    delta_p = theory.delta_p(ttft_1=prompt * per_token, n_out=output)
    context = theory.mean_context(n_in=prompt, n_out=output, cv=0)
    delta_h = theory.delta_h(n_in=context, kv_token=model.kv_token("bf16"), hbm_bw=gpu.hbm_bw)
    assert ratio == pytest.approx(delta_p / delta_h, rel=1e-4)


@pytest.mark.long
def test_the_special_gpus_figure_is_the_formula(kept_page):
    page = kept_page("book/architectures/02b-tails-queues-special-gpus.html")
    figure = "fig-pdd-cost"
    set_slider(page, figure, "flop_ratio", 2)
    set_slider(page, figure, "decode_cost", 1.5)
    rho, gain = values(page, figure)["special GPUs, per cost"].T
    expected = theory.pdd_gain_per_cost(
        delta_p=rho * 1e-4, delta_h=1e-4, t_w=0.016, sla_tpot=0.04,
        flop_ratio=2, mbw_ratio=1.5, prefill_cost=1, decode_cost=1.5,
    )  # fmt: skip
    np.testing.assert_allclose(gain, expected, rtol=1e-9)


@pytest.mark.long
def test_the_offloading_gains_meet_at_their_bound(kept_page):
    page = kept_page("book/architectures/03-kv-cache-offloading.html")
    set_slider(page, "fig-offload-gains", "alpha", 0.5)
    drawn = values(page, "fig-offload-gains")
    e = drawn["disaggregated"][:, 0]
    numbers = {"delta_p": 8e-4, "delta_h": 1e-4, "t_w": 0.016, "sla_tpot": 0.04}
    x = theory.speedup_mixed(alpha=0.5, e=e)
    for curve, name in (("disaggregated", "pdd"), ("chunked, full overlap", "chunked")):
        expected = theory.CATALOGUE[f"offload_gain_{name}"](**numbers, x=x)
        np.testing.assert_allclose(drawn[curve][:, 1], expected, rtol=1e-9)
        assert (expected <= theory.gain_bound(delta_p=8e-4, delta_h=1e-4)).all()


@pytest.mark.long
def test_the_rates_keep_their_order_at_every_limit(kept_page):
    page = kept_page("book/architectures/04-everything-together.html")
    set_slider(page, "fig-order", "n_out", 500)
    drawn = values(page, "fig-order")
    names = ["aggregated", "disaggregated", "chunked, serial KV", "chunked, full overlap"]
    rates = np.array([drawn[name][:, 1] for name in names])
    assert (np.diff(rates, axis=0) >= -1e-12).all()
    S = drawn["disaggregated"][:, 0]
    theta = theory.unit_time_disaggregated(delta_p=0.147 / 500, delta_h=1e-4, t_w=0.0165, sla_tpot=S)
    np.testing.assert_allclose(rates[1], 1 / (500 * theta), rtol=1e-9)


ENGINE = "document.querySelector('#fig-play .live-figure')"


def lanes(page):
    """Return the rows of both data sets that the engine's figure draws now."""
    return page.evaluate(f"['rows-0', 'rows-1'].map((name) => {ENGINE}.view.data(name))")


@pytest.mark.parametrize(
    "moved",
    [{"prompt": 1500, "chunk": 512}, {"units": 4, "split": 2, "rate": 40}, {"stored": 0.9, "e": 2.5, "batch": 2}],
)
def test_the_page_plays_the_engine_as_the_package_does(open_page, moved):
    page = open_page("book/interference/01-inside-a-step.html")
    for name, value in moved.items():
        set_slider(page, "fig-play", name, value)
    page.wait_for_function(
        f"""Object.entries({json.dumps(moved)}).every(
            ([name, value]) => JSON.parse({ENGINE}.dataset.played || '{{}}')[name] === value
        )"""
    )
    told = page.evaluate(f"{ENGINE}.view.signal('engine')")
    fields = {field.name: told[field.name] for field in dataclasses.fields(StepCost)}
    bars, tokens = engine.played(StepCost(**fields), **moved)
    drawn, came = lanes(page)
    key = ["architecture", "request", "start", "end"]
    ours, theirs = (frame.sort_values(key).reset_index(drop=True) for frame in (bars, pd.DataFrame(drawn)))
    pd.testing.assert_frame_equal(ours, theirs[list(ours)], check_dtype=False, atol=0.0021)
    for name in ("ttft", "gap"):
        both = [frame[name].dropna().sort_values().to_numpy() for frame in (tokens, pd.DataFrame(came))]
        np.testing.assert_allclose(*both, atol=0.0021)


def test_the_engine_plays_pauses_and_steps(kept_page):
    page = kept_page("book/interference/01-inside-a-step.html")
    figure = page.locator("#fig-play")
    figure.scroll_into_view_if_needed()
    figure.get_by_role("button", name="Play").click()
    page.wait_for_function(f"{ENGINE}.view.signal('played') > 15 && {ENGINE}.view.signal('played') < 90")
    figure.get_by_role("button", name="Pause").click()
    before = page.evaluate(f"{ENGINE}.view.signal('now')")
    ends = [row["end"] for row in lanes(page)[0]]
    following = min(end for end in ends if end > before + 0.004 * max(ends))
    figure.get_by_role("button", name="Step").click()
    page.wait_for_function(f"{ENGINE}.view.signal('now') > {before}")
    assert page.evaluate(f"{ENGINE}.view.signal('now')") == pytest.approx(following)
    assert "plain (ms): TTFT" in figure.locator("svg.marks").text_content()


def test_a_slider_moves_by_keyboard(open_page):
    page = open_page("book/prefill/02-prefill-acceleration.html")
    slider = page.locator("#fig-speedup .vega-bind input[type=range][name=e]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert float(slider.input_value()) == 9.25
    page.wait_for_function("document.querySelector('#fig-speedup .live-figure').view.signal('e') === 9.25")


def test_the_theme_can_change_and_the_slider_keeps_its_value(kept_page):
    page = kept_page("book/prefill/02-prefill-acceleration.html")
    set_slider(page, "fig-speedup", "e", 20)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(
        "document.querySelector('#fig-speedup .vega-bind input') && "
        "document.querySelector('#fig-speedup .live-figure').view.signal('e') === 20"
    )
    label = page.locator("#fig-speedup svg.marks .role-axis-title text").first
    assert label.get_attribute("fill") == "#e6e6e6"


def test_the_csv_button_saves_the_drawn_numbers(kept_page):
    import pandas as pd

    page = kept_page("book/prefill/02-prefill-acceleration.html")
    with page.expect_download() as download:
        page.locator("#fig-speedup .live-csv").click()
    frame = pd.read_csv(download.value.path())
    assert download.value.suggested_filename == "fig-speedup.csv"
    assert set(frame.curve) == {
        "load all that is stored (talk)", "load at most α* (mixed)", "load all, causal attention"
    }  # fmt: skip
    assert len(frame) == 3 * 401


@pytest.mark.parametrize(
    ("words", "first"),
    rest_long([
        ("prefix caching", "glossary.html#term-prefix-caching"), ("crossover", "glossary.html#term-crossover"),
        ("MoE", "glossary.html#term-MoE"),
        ("NVMe", "glossary.html#term-NVMe"),
        ("C27", "claims.html#c27"), ("goodput", "glossary.html#term-goodput"),
    ]),
)  # fmt: skip
def test_search_finds_a_word(browser, site, words, first):
    """Search fetches pages for its excerpts, which browsers allow from a server only: as `make serve` does."""
    handler = partial(Quiet, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/search.html?q={words}")
        page.wait_for_selector("#search-results li a")
        found = page.locator("#search-results li a").first.get_attribute("href")
        page.close()
        server.shutdown()
    assert found.endswith(first)
