"""Live figures: Vega-Lite specifications whose curves the browser computes from the formulas.

On the published page a specification is plain data beside a small boot script. JupyterLab draws it itself.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

import altair as alt
import sympy as sp

from inference_math.evidence import load
from inference_math.evidence.checks import as_one_of, as_whole
from inference_math.theory.formula import Formula, to_numpy, to_vega
from inference_math.theory.notation import QUANTITIES
from inference_math_book.colours import COLOURS, colours_of
from inference_math_book.explore.theme import EVERYWHERE, PAGE

__all__ = [
    "COLOURS",
    "IN_VIEW",
    "Live",
    "choice",
    "colours_of",
    "computed",
    "curves",
    "log_scale",
    "named_slider",
    "on_page",
    "rule",
    "slider",
    "table",
    "with_source",
]

IN_VIEW = 3  # controls of a figure, at most; the others open
PYTHON = "in_python"  # the parameter that holds a figure's curves as Python code
_LETTERS = {
    "Delta": "Δ",
    "alpha": "α",
    "rho": "ρ",
    "varphi": "φ",
    "eta": "η",
    "pi": "π",
    "ell": "ℓ",
    "lambda": "λ",
    "tau": "τ",
}
_HEIGHT = 320  # pixels of a figure
# Beside a colour, for whoever does not see it.
_DASHES = ([1, 0], [8, 4], [2, 2], [8, 3, 2, 3], [4, 4], [12, 3])


@dataclass(frozen=True)
class Live:
    """A live figure: an Altair `chart` and the sentence that stands for it where it cannot be seen.

    `question` is what its controls answer. `presets` names settings of them, by parameter; what one leaves out goes
    back to its first value. The first `shown` controls are in view, the others open under *more*. `again` draws the
    chart anew where Python must compute it: it takes the controls' values by name, of the controls that `computes`
    names.

    Raises
    ------
    ValueError
        For a preset of what is no control of the chart, and for more controls in view than `IN_VIEW`.
    """

    chart: Any
    alt_text: str
    question: str = ""
    presets: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    shown: int = IN_VIEW
    again: Callable[..., Any] | None = None
    computes: Sequence[str] = ()

    def spec(self) -> dict[str, Any]:
        """Return the Vega-Lite specification; numbers rounded so that all machines print the same."""
        spec: dict[str, Any] = self.chart.to_dict()
        # Altair names a data set by a hash of its unrounded numbers, which differ between machines.
        names = {name: f"rows-{i}" for i, name in enumerate(spec.get("datasets", ()))}
        spec = _portable(spec, names)
        spec["description"] = self.alt_text
        spec["config"] = dict(EVERYWHERE)
        told: dict[str, Any] = {"question": self.question} if self.question else {}
        as_whole("shown", self.shown, 0, IN_VIEW)
        controls = [name for param in spec.get("params", ()) if "bind" in param for name in _controls(param)]
        if len(controls) > self.shown:
            told["shown"] = self.shown
        if self.presets:
            for preset in self.presets.values():
                for name in preset:
                    as_one_of("presets", name, controls)
            # Pairs, for the order of a mapping is not kept.
            told["presets"] = [[name, _portable(dict(preset), {})] for name, preset in self.presets.items()]
        if told:
            spec["usermeta"] = told
        return spec

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": on_page(self.spec()), "text/plain": f"Live figure: {self.alt_text}"}


def _controls(param: Mapping[str, Any]) -> list[str]:
    """Return the names of a bound parameter's controls: of a place that readers click, one for each of its fields."""
    fields = param.get("select", {}).get("fields", ())
    return [f"{param['name']}_{field}" for field in fields] or [param["name"]]


def on_page(spec: Mapping[str, Any]) -> str:
    """Return a live figure's place on a page: its specification, and its description until it is drawn."""
    spec = {
        **spec,
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "config": dict(PAGE),
    }
    binds = spec.get("usermeta", {}).get("binds", {})  # of controls that a notebook has beside its chart
    spec["params"] = [
        one | {"bind": binds[one["name"]]} if one["name"] in binds else one for one in spec.get("params", [])
    ]
    # "</" would end the script element early; "<\\/" is the same string to JSON.
    text = json.dumps(spec, ensure_ascii=False, sort_keys=True).replace("</", "<\\/")
    question = spec.get("usermeta", {}).get("question", "")
    asked = f'<p class="live-question">{html.escape(question)}</p>' if question else ""
    return (
        f'<div class="live-figure">{asked}<script type="application/json">{text}</script>'
        f'<div class="live-view"><p>{html.escape(spec["description"])}</p></div></div>'
    )


def slider(symbol: sp.Symbol, value: float, low: float, high: float, step: float) -> Any:
    """Return a parameter for `symbol`, bound to a slider that says its meaning and unit, and a symbol of one letter."""
    bind = alt.binding_range(min=low, max=high, step=step, name=f"{_label(symbol)} ")
    return alt.param(name=symbol.name, value=value, bind=bind)


def named_slider(name: str, label: str, value: float, low: float, high: float, step: float) -> Any:
    """Return a parameter bound to a slider, of a quantity that is no symbol of the book's notation."""
    return alt.param(name=name, value=value, bind=alt.binding_range(min=low, max=high, step=step, name=f"{label} "))


def choice(name: str, label: str, options: Sequence[str], value: str) -> Any:
    """Return a parameter bound to a drop-down list."""
    return alt.param(name=name, value=value, bind=alt.binding_select(options=list(options), name=f"{label} "))


def computed(symbol: sp.Symbol, expression: sp.Expr | str) -> Any:
    """Return a parameter that the browser computes, from a SymPy expression or in Vega's language."""
    text = expression if isinstance(expression, str) else to_vega(expression)
    return alt.param(name=symbol.name, expr=text)


def table(name: str, rows: Mapping[str, Mapping[str, float]]) -> Any:
    """Return a parameter that holds a table, read in Vega as ``name[row].column``."""
    return alt.param(name=name, value={row: dict(columns) for row, columns in rows.items()})


def log_scale(low: float, high: float, base: float = 10) -> Any:
    """Return a logarithmic axis from `low` to `high`."""
    return alt.Scale(type="log", base=base, domain=[low, high], nice=False)


def with_source(chart: Any, table: str) -> Any:
    """Return `chart` with a column `source` for its tooltip: where the rows of a table of `evidence` come from."""
    found = load(table)
    return chart.transform_calculate(source=json.dumps(f"{found.source}; {found.hardware}"))


def rule(position: Formula | sp.Expr, axis: sp.Symbol, left: str, right: str) -> Any:
    """Return a vertical line that the browser puts at `position`, and the names of the regions on either side.

    Names stand above the ends of the axis, where none is cut off or crossed. Layer it over `curves`.
    """
    expr = position.expr if isinstance(position, Formula) else position
    base = (
        alt.Chart(alt.sequence(0, 1, 1, as_="i"))
        .transform_calculate(**{axis.name: to_vega(expr)})
        .encode(x=alt.X(axis.name, type="quantitative"))
    )
    above = alt.Chart(alt.sequence(0, 1, 1, as_="i")).encode(y=alt.value(-8))
    before = above.mark_text(text=f"◂ {left}", align="left", fontSize=12).encode(x=alt.value(0))
    after = above.mark_text(text=f"{right} ▸", align="right", fontSize=12).encode(x=alt.value("width"))
    return alt.layer(base.mark_rule(strokeDash=[4, 3]), before, after)


def curves(
    formulas: Mapping[str, Formula | sp.Expr],
    axis: sp.Symbol,
    ticks: tuple[float, float, float],
    *,
    params: Sequence[Any],
    y_title: str,
    x_title: str | None = None,
    y_scale: Any = alt.Undefined,
    x_scale: Any = alt.Undefined,
    x_expression: str | None = None,
    height: int = _HEIGHT,
    counts: str = "",
) -> Any:
    """Return a chart with one curve for each of `formulas` over `axis`.

    Parameters
    ----------
    formulas
        Legend label to formula (or SymPy expression); their symbols are `axis` and `params`.
    axis, ticks
        The symbol of the horizontal axis and (start, stop, step) of the points computed on it.
    params
        What `slider`, `choice` and `computed` return, in the order in which they are shown.
    x_title
        What the axis says, where it is not the symbol's meaning.
    x_expression
        Where the points are not the axis values themselves: Vega expression of ``datum.i``, for
        example ``"pow(2, datum.i)"`` for an axis of powers of two.
    counts
        "highest" or "lowest": a strip at the foot has everywhere the colour of the curve that counts.
    """
    start, stop, step = ticks
    column = axis.name if x_expression is None else "i"
    # Half a step more, so that rounding never loses the last point.
    chart = alt.Chart(alt.sequence(start, stop + step / 2, step, as_=column))
    if x_expression is not None:
        chart = chart.transform_calculate(**{axis.name: x_expression})
    printed = {
        label: to_vega(f.expr if isinstance(f, Formula) else f, datum={axis.name}) for label, f in formulas.items()
    }
    x_words = x_title or _label(axis)
    labels: list[Any] = list(printed)
    dashes = [_DASHES[i] for i in range(len(labels))]
    legend = alt.Legend(title=None, orient="top", columns=1, labelLimit=0, symbolSize=400)
    folded = chart.transform_calculate(**printed).transform_fold(labels, as_=["curve", "value"])
    lines = (
        folded.mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=alt.X(axis.name, type="quantitative", scale=x_scale, **_shown(x_words, labelSeparation=6)),
            # Room for the widest labels: a slider may bring them.
            y=alt.Y("value:Q", scale=y_scale, **_shown(y_title, minExtent=46)),
            color=alt.Color("curve:N", legend=legend, scale=alt.Scale(domain=labels, range=colours_of(labels))),
            strokeDash=alt.StrokeDash("curve:N", legend=legend, scale=alt.Scale(domain=labels, range=dashes)),
            tooltip=[
                alt.Tooltip("curve:N", title="curve"),
                alt.Tooltip(axis.name, type="quantitative", title=x_words, format=".4~g"),
                alt.Tooltip("value:Q", title=y_title, format=".4~g"),
            ],
        )
        .add_params(*params, alt.param(name=PYTHON, value=_as_python(formulas, axis, ticks, x_expression)))
        .properties(width="container", height=height)
    )
    return alt.layer(lines, _strip(folded, axis, counts, height)) if counts else lines


def _shown(title: str, **axis: Any) -> dict[str, Any]:
    """Return title and axis of an encoding: seconds stand in milliseconds there, as they do beside a slider."""
    if title.endswith("(s)"):
        title = title.removesuffix("(s)") + "(ms)"
        axis |= {"labelExpr": "datum.label && format(1000 * datum.value, ',.10~r')"}  # some ticks have no label
    return {"title": title if len(title) < 45 else wrap(title, 44), "axis": alt.Axis(**axis)}


def _strip(folded: Any, axis: sp.Symbol, counts: str, height: int) -> Any:
    """Return squares along the foot of a figure in the colour of the highest or the lowest curve."""
    largest = as_one_of("counts", counts, ("highest", "lowest")) == "highest"
    return (
        folded.transform_filter("isFinite(datum.value)")
        .transform_joinaggregate(best=f"{'max' if largest else 'min'}(value)", groupby=[axis.name])
        .transform_filter("datum.value == datum.best" + (" && datum.best > 0" if largest else ""))
        .mark_square(size=36, opacity=1, clip=True)
        .encode(
            x=alt.X(axis.name, type="quantitative"),
            y=alt.value(height - 3),
            color=alt.Color("curve:N"),
            tooltip=alt.Tooltip("curve:N", title=counts),
        )
    )


def _as_python(
    formulas: Mapping[str, Formula | sp.Expr],
    axis: sp.Symbol,
    ticks: tuple[float, float, float],
    x_expression: str | None,
) -> dict[str, Any]:
    """Return what the page needs to write the figure as Python: the axis, the names set on the page, the curves."""
    start, stop, step = ticks
    places = f"numpy.arange({start:g}, {stop + step / 2:.6g}, {step:g})"
    if x_expression is not None:
        places = x_expression.replace("pow(", "numpy.power(").replace("datum.i", places)
    named: set[str] = set()
    code = {}
    for label, formula in formulas.items():
        if isinstance(formula, Formula):
            named |= {symbol.name for symbol in formula.arguments}
            arguments = ", ".join(f"{symbol.name}={symbol.name}" for symbol in formula.arguments)
            code[label] = f"{formula.room}.{formula.name}({arguments})"
        else:
            named |= {symbol.name for symbol in formula.free_symbols}
            code[label] = to_numpy(formula)
    return {"axis": axis.name, "places": places, "names": sorted(named - {axis.name}), "curves": code}


def _label(symbol: sp.Symbol) -> str:
    quantity = QUANTITIES[symbol.name]
    unit = "" if quantity.unit == "1" else f" ({quantity.unit})"
    symbol = f"{_in_text(quantity.latex)}: "
    return f"{'' if '_' in symbol else symbol}{quantity.meaning}{unit}"  # plain text has no subscripts


def _in_text(latex: str) -> str:
    """Return a symbol as plain text has it: ΔH, t_w."""
    plain = re.sub(r"\\(?:mathrm|text)\{([^}]*)\}", r"\1", latex)
    for name, letter in _LETTERS.items():
        plain = plain.replace(f"\\{name} ", letter).replace(f"\\{name}", letter)
    return re.sub(r"[{}\\]|lvert|rvert", "", plain)


def _portable(value: Any, names: Mapping[str, str]) -> Any:
    """Round all numbers to six digits and replace the data sets' names."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {names.get(k, k): _portable(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_portable(v, names) for v in value]
    return names.get(value, value) if isinstance(value, str) else value
