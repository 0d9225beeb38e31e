from inference_math.optimiser.case import Case as Case
from inference_math_planner.answers.deployment import Plan as Plan, plan as plan
from inference_math_planner.answers.record import Answer as Answer, Record as Record, schema as schema
from inference_math_planner.answers.sensitivity import sensitivity as sensitivity, sweep as sweep
from inference_math_planner.answers.text import as_markdown as as_markdown
from inference_math_planner.fleets.benchmarks import (
    Benchmark as Benchmark,
    Foreseen as Foreseen,
    cadences as cadences,
    foresee as foresee,
)
from inference_math_planner.fleets.gpus import across as across
from inference_math_planner.fleets.layouts import Sized as Sized, layouts as layouts, search as search, size as size
from inference_math_planner.fleets.stores import Ladder as Ladder, size_store as size_store
from inference_math_planner.fleets.traffic import (
    Arrivals as Arrivals,
    Fleet as Fleet,
    NoFleetError as NoFleetError,
    as_record as as_record,
    capacity as capacity,
    fleet as fleet,
)
