"""Formulas of `theory`, written by `tools/plain.py`: do not edit."""

# mypy: no-warn-return-any

from __future__ import annotations

import numpy

from inference_math.evidence.checks import Numbers


def kv_load_time(kv_token: Numbers, io_bw: Numbers) -> Numbers:
    return kv_token / io_bw


def token_acceleration(T: Numbers, R: Numbers) -> Numbers:
    return T / R


def decode_share(t_w: Numbers, t_c: Numbers) -> Numbers:
    return t_c / numpy.sqrt(t_c**2 + t_w**2)


def step_time(t_w: Numbers, t_c: Numbers, t_rest: Numbers) -> Numbers:
    return t_rest + numpy.sqrt(t_c**2 + t_w**2)
