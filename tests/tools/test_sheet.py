"""The sheet of one page has one page, names formulas and claims that exist, and says what the package computes now."""

from __future__ import annotations

import json
import re

import pytest
import sheet

from inference_math import theory
from inference_math_book.claims import load_claims


def test_the_sheet_is_one_page_a4_with_the_numbers_of_today():
    raw = sheet.SHEET.read_bytes()
    assert len(raw) < 100_000
    assert raw.count(b"/Type /Page ") == 1
    box = [float(one) for one in re.search(rb"/MediaBox \[([^\]]*)\]", raw)[1].split()]
    assert box[2:] == pytest.approx([841.9, 595.3], abs=1)
    keywords = re.search(rb"/Keywords \((.*?)\)\s", raw, re.S)[1].replace(b"\\", b"")
    assert json.loads(keywords) == pytest.approx(sheet.numbers(), rel=1e-3)  # else: python tools/sheet.py


def test_boxes_are_nine_and_name_what_there_is():
    parts = sheet.boxes(sheet.numbers())
    known = {claim.id for claim in load_claims()}
    assert len(parts) == 9
    for box in parts:
        assert set(re.findall(r"[CE]\d\d", box.claims)) <= known
        assert set(box.formulas) <= set(theory.CATALOGUE)
        assert set(re.findall(r"[CE]\d\d", box.claims)) & {theory.CATALOGUE[name].claim for name in box.formulas}
