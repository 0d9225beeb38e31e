"""The formulas: each one a `Formula`, by name in this module and by ID in `CATALOGUE`.

They are in SymPy, which is loaded when the first is asked for. As functions of plain numbers they are in `plain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_math import door

if TYPE_CHECKING:
    from inference_math.theory.formulas import *  # noqa: F403
else:
    __getattr__ = door(__name__, others="formulas")


def __dir__() -> list[str]:
    from inference_math.theory import formulas

    return dir(formulas)
