"""`python -m inference_math_planner`."""

from __future__ import annotations

import sys

from inference_math_planner.cli import main

sys.exit(main())
