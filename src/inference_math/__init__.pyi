from . import book as book
from . import catalogue as catalogue
from . import evidence as evidence
from . import lab as lab
from . import measure as measure
from . import perf as perf
from . import planner as planner
from . import profiles as profiles
from . import runs as runs
from . import simulate as simulate
from . import theory as theory
from . import unit as unit
from . import workload as workload
from .planner import plan as plan
from .unit import Unit as Unit
from .workload import SLA as SLA
from .workload import Workload as Workload

__version__: str
