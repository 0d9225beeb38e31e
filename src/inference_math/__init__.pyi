from collections.abc import Callable
from typing import Any

from . import catalogue as catalogue
from . import evidence as evidence
from . import optimiser as optimiser
from . import simulate as simulate
from . import theory as theory
from . import unit as unit
from . import workload as workload
from .unit import Unit as Unit
from .workload import SLA as SLA
from .workload import Workload as Workload

__version__: str

def door(package: str, others: str = "", **names: str) -> Callable[[str], Any]: ...
