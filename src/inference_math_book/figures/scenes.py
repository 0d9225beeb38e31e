"""Where ΔP and ΔH come from: the steps of one answer while another request comes, scene by scene."""

from __future__ import annotations

from itertools import pairwise

import altair as alt

from inference_math import theory
from inference_math.theory.formula import to_vega
from inference_math_book import explore
from inference_math_book.served import Case

__all__ = ["CHUNKS", "MEAN", "SCENES", "opening"]

CHUNKS = 5  # of 512 tokens at most, for a prompt of the case
MEAN = 4  # the scene in which both parts are spread: a figure opens on it
_DELTA_P = to_vega(theory.delta_p.expr)
_DELTA_H = "delta_h * (1 - 1 / n_out)"  # on average: a place does not decode in its prefill step
_ALONE, _CHUNK = "(t_w + delta_h)", f"ttft_1 / {CHUNKS}"
_PLACE = "datum.step - 2 * floor(n_out / 5)"  # of a step, counted from the one that the prompt joins


def _ms(seconds: str, digits: int) -> str:
    return f"format(1000 * ({seconds}), '.{digits}f') + ' ms"


SCENES = {
    "Each step gives each request a token": f"'weight read + ΔH = ' + {_ms(_ALONE, 1)}'",
    "One more request: its prompt joins a step": f"'P = ' + {_ms('ttft_1', 0)}, and all others wait'",
    "Spread over the steps of its answer": f"'ΔP = ' + {_ms('ttft_1', 0)} / ' + n_out + ' = ' + {_ms(_DELTA_P, 2)}'",
    "In all its other steps it decodes": (
        f"'ΔH = ' + {_ms('delta_h', 3)}. On average both add ' + {_ms(f'{_DELTA_P} + {_DELTA_H}', 2)}'"
    ),
    f"Or: its prompt in {CHUNKS} chunks": (
        f"'The mean stays. The longest step: ' + {_ms(f'{_ALONE} + {_DELTA_H} + {_CHUNK}', 0)}'"
    ),
    "Or: its prompt on other GPUs": f"'Only ΔH is left: ' + {_ms('delta_h', 3)}'",
}
"""What each scene says: its title, and its numbers as an expression of Vega's."""


def _by_scene(*seconds: str) -> str:
    """Return an expression (ms) that goes from each scene's value to the next one's as the moment does."""
    moves = (f"({b} - ({a})) * clamp(moment - {scene}, 0, 1)" for scene, (a, b) in enumerate(pairwise(seconds), 1))
    return f"1000 * ({' + '.join([seconds[0], *moves])})"


_MEAN, _WHOLE = f"1.15 * ({_ALONE} + {_DELTA_P} + {_DELTA_H})", f"1.05 * ({_ALONE} + ttft_1)"
_TOP = _by_scene(_WHOLE, _WHOLE, _MEAN, _MEAN, f"1.15 * ({_ALONE} + {_CHUNK})", _MEAN)
_JOINS, _CUT = f"({_PLACE} == 0 ? ttft_1 : 0)", f"({_PLACE} >= 0 && {_PLACE} < {CHUNKS} ? {_CHUNK} : 0)"
_HEIGHTS = {
    "weight read": "1000 * t_w",
    "decodes": "1000 * delta_h + " + _by_scene("0", "0", "0", *[_DELTA_H] * 3),
    "prompt": _by_scene("0", _JOINS, _DELTA_P, _DELTA_P, _CUT, "0"),
}


def opening(case: Case, last: int = len(SCENES)) -> explore.Live:
    """Return the scenes up to the `last` as a live figure, opened on the costs of a case."""
    across = alt.Scale(domainMin=0, domainMax=alt.ExprRef("n_out"), nice=False)
    up = alt.Scale(domainMin=0, domainMax=alt.ExprRef("top"), nice=False)
    colours = alt.Scale(domain=list(_HEIGHTS), range=explore.colours_of(["wait", "decode", "bubble"]))
    bars = (
        alt.Chart(alt.sequence(0, 400, 1, as_="step"))
        .transform_filter("datum.step < n_out")
        .transform_calculate(end="datum.step + 0.85", **_HEIGHTS)
        .transform_fold(list(_HEIGHTS), as_=["curve", "value"])
        .transform_stack(stack="value", groupby=["step"], as_=["from", "to"])
        .mark_rect()
        .encode(
            x=alt.X("step:Q", title="steps of an answer", scale=across, axis=alt.Axis(grid=False, tickMinStep=1)),
            x2="end:Q",
            y=alt.Y("from:Q", title="time of a step (ms)", scale=up, axis=alt.Axis(tickCount=5, minExtent=34)),
            y2="to:Q",
            color=alt.Color("curve:N", legend=alt.Legend(title=None, orient="bottom"), scale=colours),
        )
    )
    above = alt.Chart(alt.sequence(0, 1, 1, as_="i")).encode(x=alt.value(-34))
    lines = (
        above.mark_text(text=alt.ExprRef(f"told[{line}]"), align="left", fontSize=14).encode(
            y=alt.value(20 * line - 38)
        )
        for line in range(2)
    )
    words = ", ".join(f"['{scene} · {title}', {said}]" for scene, (title, said) in enumerate(SCENES.items(), 1))
    params: dict[str, object] = {"t_w": case.t_1 - case.delta_h, "delta_h": case.delta_h}
    params |= {"clock": {"name": "scene", "from": 1, "to": last, "seconds": 3 * (last - 1), "scenes": True}}
    moments = {
        "moment": "floor(scene) + pow(sin(min(0.5, scene - floor(scene)) * PI), 2)",  # each scene stands a while
        "top": _TOP,
        "told": f"[{words}][ceil(scene) - 1]",
    }
    chart = alt.layer(bars, *lines).add_params(
        explore.named_slider("scene", "scene", MEAN, 1, last, 0.01),
        explore.named_slider("ttft_1", "P, what the prompt adds to its step (s)", case.prompt, 0.01, 1, 0.001),
        explore.named_slider("n_out", "answer (token)", case.n_out, 10, 400, 1),
        *(alt.param(name=name, value=value) for name, value in params.items()),
        *(alt.param(name=name, expr=expr) for name, expr in moments.items()),
    )
    return explore.Live(
        chart.properties(width="container", height=240),
        alt_text="Bars, one for each step of an answer, as high as the step is long. One more request comes. Its "
        "prompt makes one bar many times as high. Spread, it is a thin layer on all, and its decode a thinner one.",
        question="What does one more request cost the others?",
    )
