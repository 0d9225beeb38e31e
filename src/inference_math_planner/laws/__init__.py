"""Laws beyond the talks: queues, first tokens, cadence, routing. `CATALOGUE` has them after those of `theory`.

Quantiles of gaps are in `latency`, of waits in `waiting`, rounds of prompts and decodes in `rounds`. The formulas are
in SymPy, which is loaded when the first is asked for; as functions of plain numbers they are in `plain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_math import door

if TYPE_CHECKING:
    from inference_math_planner.laws.formulas import *  # noqa: F403
    from inference_math_planner.laws.routing import spread_of as spread_of
else:
    __getattr__ = door(__name__, others="formulas", routing="spread_of")


def __dir__() -> list[str]:
    from inference_math_planner.laws import formulas

    return [*dir(formulas), "spread_of"]
