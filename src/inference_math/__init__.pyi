from collections.abc import Callable
from typing import Any

from . import calibrate as calibrate
from . import catalogue as catalogue
from . import checks as checks
from . import cli as cli
from . import evidence as evidence
from . import perf as perf
from . import planner as planner
from . import simulate as simulate
from . import theory as theory
from . import unit as unit
from . import workload as workload
from .planner import plan as plan
from .unit import Unit as Unit
from .workload import SLA as SLA
from .workload import Workload as Workload

__version__: str

def door(package: str, **names: str) -> Callable[[str], Any]: ...
