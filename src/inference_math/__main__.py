"""`python -m inference_math`."""

from __future__ import annotations

import sys

from inference_math.cli import main

sys.exit(main())
