from collections.abc import Callable
from typing import Any

from . import (
    catalogue as catalogue,
    evidence as evidence,
    optimiser as optimiser,
    simulate as simulate,
    theory as theory,
    unit as unit,
    workload as workload,
)
from .unit import Unit as Unit
from .workload import SLA as SLA, Workload as Workload

__version__: str

def door(package: str, others: str = "", **names: str) -> Callable[[str], Any]: ...
