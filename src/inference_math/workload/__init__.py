"""What users send: prompt and output lengths, the reusable share of the prompt, arrivals; and what they expect."""

from __future__ import annotations

from inference_math.workload.requests import LENGTHS, SLA, RandomLengths, Requests, Source, Trace, Workload

__all__ = ["LENGTHS", "SLA", "RandomLengths", "Requests", "Source", "Trace", "Workload"]
