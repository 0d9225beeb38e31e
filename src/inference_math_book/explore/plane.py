"""The map of the three ways to serve: which serves most, by the decodes that fit the limit and by the prompt.

All in decodes: seconds over ΔH. `b_S` decodes fit the limit per token, (S − t_w)/ΔH; a prompt is `b_P` of them, P/ΔH;
the weight read is `b_r` of them, t_w/ΔH. The share `sigma` of the weight read hides under the prompts of its step.
Chapter 9 derives what is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import sympy as sp

from inference_math import theory
from inference_math.theory.formula import to_vega
from inference_math.theory.notation import delta_h, delta_p, n_out, sla_tpot, t_w
from inference_math_book.colours import colours_of
from inference_math_book.explore.live import computed, log_scale, named_slider

__all__ = ["ACROSS", "BORDERS", "BOUND", "IN_DECODES", "TIMES", "UP", "b_P", "b_S", "b_r", "chart", "sigma"]

b_S, b_P, b_r = sp.symbols("b_S b_P b_r", positive=True)  # noqa: N816  as they are printed
sigma = sp.Symbol("sigma", nonnegative=True)
IN_DECODES = {delta_p: b_P * delta_h / n_out, t_w: b_r * delta_h, sla_tpot: (b_S + b_r) * delta_h}
"""What stands for the quantities of a formula."""

_later = n_out - 1
_whole = b_P + sigma * b_r  # all compute of a prompt
_meet = sigma * (b_S + b_r)


def _request(formula: Any) -> sp.Expr:
    """Return the seconds of a unit for a request, in decodes, by a formula of an output token."""
    return sp.simplify(n_out * formula.expr.subs(IN_DECODES) / delta_h)


_apart = _request(theory.unit_time_aggregated_full)  # prompts meet by chance, and each hides its part of a read
# Where all steps have prompts, each hides its part of one read, however many they are.
_together = _apart.subs({b_S: b_S + sigma * b_r, b_P: _whole, b_r: (1 - sigma) * b_r}, simultaneous=True)
TIMES: Mapping[str, sp.Expr] = {
    "aggregated": sp.Max(_apart, _together),
    "chunked": sp.Max((_whole + _later) * (b_S + b_r) / (b_S + sigma * b_r), _later * (b_S + b_r) / b_S),
    "disaggregated": _request(theory.unit_time_disaggregated_same),
}
"""Seconds of a unit for a request, in decodes, at the limit. Aggregated, as if prompts met only where they must."""

BOUND: sp.Expr = sp.Max(_whole + _later + (1 - sigma) * _later * b_r / b_S, _later * (b_S + b_r) / b_S)
"""The same, of which no schedule needs less."""

_linear = _later * _meet - n_out * (1 - sigma)
_root = _linear + sp.sqrt(_linear**2 + 4 * n_out * (1 - sigma) * _meet * (n_out - b_S))
BORDERS: Mapping[tuple[str, str], list[sp.Expr]] = {
    ("aggregated", "disaggregated"): [1 + b_S * n_out / _later],
    ("chunked", "disaggregated"): [b_S + sigma / (1 - sigma) * _later * (1 + b_r / b_S)],
    ("aggregated", "chunked"): [1 + n_out * 2 * _meet * (b_S - n_out) / _root, 1 + _root / (2 * (1 - sigma))],
}
"""The prompts, in decodes, at which two ways serve equally much."""

ACROSS, UP = "decodes that fit the limit per token", "a prompt, in decodes"
"""What the axes say."""

_X, _Y = (0, 11), (3, 14)  # powers of two that the map shows
_EACH = 0.25  # of a cell
_SITE = "https://inference-math.github.io/inference-math/book/planner.html"


def chart(w_0: float, n_out_0: float, sigma_0: float, ring: tuple[float, float], costs: tuple[float, float]) -> Any:
    """Return the map, opened on these values, with a ring that readers move, and what each way reaches under it.

    Parameters
    ----------
    ring
        The b_S and the b_P on which it opens.
    costs
        Seconds of a decode, ΔH, and of a prompt's token, T: for the link that opens the ring's case in the planner.
    """
    start = {"log_x": round(float(sp.log(ring[0], 2)), 2), "log_y": round(float(sp.log(ring[1], 2)), 2)}
    binds: Any = {  # Vega puts the last one first
        "log_y": _power(UP, _Y),
        "log_x": _power(ACROSS, _X),
    }
    moved = alt.selection_point(
        name="ring", fields=list(binds), bind=binds, value=[start], toggle=False, clear=False,
        on="pointerdown, [pointerdown, pointerup] > pointermove",
    )  # fmt: skip
    sliders = [
        named_slider("sigma", "share of the weight read that hides under a prompt", sigma_0, 0, 1, 0.01),
        named_slider("n_out", "tokens of an answer", n_out_0, 2, 2000, 1),
        named_slider("b_r", "the weight read, in decodes", w_0, 1, 400, 1),
    ]
    places = [computed(b_S, "pow(2, ring_log_x)"), computed(b_P, "pow(2, ring_log_y)")]
    reached = [computed(sp.Symbol(name), expr) for name, expr in {**TIMES, "bound": BOUND}.items()]
    map_ = _cells().add_params(moved, *sliders, *places, *reached)
    layers = [map_, *(_border(pair, line) for pair, lines in BORDERS.items() for line in lines), _ring()]
    return alt.layer(*layers, *_told(), _link(*costs)).properties(width="container", height=400)


def _power(words: str, ends: tuple[int, int]) -> Any:
    return alt.binding_range(min=ends[0], max=ends[1], step=0.05, name=f"{words}, as a power of two ")


def _timed(rows: Any) -> Any:
    """Return rows of b_S and b_P with the time of each way and the least of them."""
    printed = {name: to_vega(time, datum={"b_S", "b_P"}) for name, time in TIMES.items()}
    least = ", ".join(f"datum.{name}" for name in TIMES)
    return rows.transform_calculate(**printed).transform_calculate(least=f"min({least})")


def _cells() -> Any:
    columns, rows = (round((high - low) / _EACH) for low, high in (_X, _Y))
    places = alt.Chart(alt.sequence(0, columns * rows, 1, as_="cell")).transform_calculate(
        log_x=f"{_X[0]} + {_EACH} * (datum.cell % {columns} + 0.5)",
        log_y=f"{_Y[0]} + {_EACH} * (floor(datum.cell / {columns}) + 0.5)",
    )
    corners = {
        "b_S": "pow(2, datum.log_x)",
        "b_P": "pow(2, datum.log_y)",
        "left": f"pow(2, datum.log_x - {_EACH / 2})",
        "right": f"pow(2, datum.log_x + {_EACH / 2})",
        "low": f"pow(2, datum.log_y - {_EACH / 2})",
        "high": f"pow(2, datum.log_y + {_EACH / 2})",
    }
    columns_of = [f"datum.{name}" for name in TIMES]
    ways, all_three = ", ".join(columns_of), " + ".join(columns_of)
    told = {
        "curve": " : ".join(f"datum.{name} < datum.least * 1.000001 ? '{name}'" for name in TIMES) + " : ''",
        "lead": f"({all_three} - datum.least - max({ways})) / datum.least",
        "value": f"({to_vega(BOUND, datum={'b_S', 'b_P'})}) / datum.least",
    }
    across, up = (log_scale(*_ends(powers), 2) for powers in (_X, _Y))
    hues = alt.Scale(domain=list(TIMES), range=colours_of(TIMES))
    strong = alt.Scale(domain=[1, 1.5], range=[0.25, 0.85], clamp=True)
    return (
        _timed(places.transform_calculate(**corners))
        .transform_calculate(**told)
        .mark_rect(strokeWidth=0)
        .encode(
            x=alt.X("left:Q", title=ACROSS, scale=across, axis=alt.Axis(labelSeparation=6)),
            x2="right:Q",
            y=alt.Y("low:Q", title=UP, scale=up, axis=alt.Axis(minExtent=46, tickCount=8)),
            y2="high:Q",
            color=alt.Color("curve:N", legend=None, scale=hues),
            opacity=alt.Opacity("lead:Q", legend=None, scale=strong),
            tooltip=[
                alt.Tooltip("curve:N", title="serves most"),
                alt.Tooltip("lead:Q", title="times the second", format=".2f"),
                alt.Tooltip("value:Q", title="of the bound", format=".0%"),
            ],
        )
    )


def _ends(powers: tuple[int, int]) -> tuple[int, int]:
    return 2 ** powers[0], 2 ** powers[1]


def _border(pair: tuple[str, str], line: sp.Expr) -> Any:
    """Return the line on which two ways serve equally much, where the third one serves less."""
    rows = alt.Chart(alt.sequence(_X[0], _X[1] + 0.01, 0.05, as_="log_x"))
    rows = rows.transform_calculate(b_S="pow(2, datum.log_x)")
    low, high = _ends(_Y)
    placed = _timed(rows.transform_calculate(b_P=to_vega(line, datum={"b_S"})))
    here = f"datum.b_P >= {low} && datum.b_P <= {high} && datum.{pair[0]} <= datum.least * 1.000001"
    there = placed.transform_filter(here).encode(x="b_S:Q", y="b_P:Q")
    return alt.layer(there.mark_line(color="white", strokeWidth=4), there.mark_line(color="black", strokeWidth=1.5))


def _one(**columns: str) -> Any:
    return alt.Chart(alt.sequence(0, 1, 1, as_="i")).transform_calculate(**columns)


def _ring() -> Any:
    place = _one(b_S="b_S", b_P="b_P").encode(x="b_S:Q", y="b_P:Q")
    halo = place.mark_point(size=280, filled=False, color="white", strokeWidth=6, opacity=1)
    return alt.layer(halo, place.mark_point(size=280, filled=False, color="black", strokeWidth=2.5, opacity=1))


def _told() -> list[Any]:
    """Return a line above the map for each way: how near it comes to the bound in the ring's case."""
    lines = []
    for row, (name, colour) in enumerate(zip(TIMES, colours_of(TIMES), strict=True)):
        text = f"'{name}: ' + format(bound / {name}, '.0%') + ' of the bound'"
        height = alt.value(18 * row - 68)
        base = _one(text=text).encode(y=height)
        square = base.mark_square(size=120, color=colour, opacity=1).encode(x=alt.value(8))
        lines += [square, base.mark_text(align="left", fontSize=13).encode(x=alt.value(20), text="text:N")]
    return lines


def _link(decode: float, token: float) -> Any:
    """Return a link that opens the ring's case in the planner, as far as Llama-3-70B on two H100 has such a case."""
    asked = "model=llama-3-70b&gpu=h100-sxm&tp=2&weights=fp8&kv=bf16&ttft=10000&goal=unit"
    href = (
        f"'{_SITE}#plan:{asked}&output=' + n_out + '&prompt=' + round(b_P * {decode / token:.6g})"
        f" + '&tpot=' + format((b_S + b_r) * {1e3 * decode:.6g}, '.1f')"
    )
    return (
        _one(href=href, text="'▸ open the ring in the planner'")
        .mark_text(align="left", fontSize=13, cursor="pointer")
        .encode(x=alt.value(3), y=alt.value(-13), text="text:N", href="href:N", tooltip="text:N")
    )
