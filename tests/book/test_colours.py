"""One colour for a role, typed once, seen on light and dark pages and with any colour vision."""

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from inference_math.simulate import StepCost
from inference_math_book.colours import COLOURS, GREY, ROLES, colour_of, colours_of, css
from inference_math_book.explore.pictures import pictures
from inference_math_book.figures.engine import seen

ROOT = Path(__file__).parents[2]
HERE = ROOT / "src/inference_math_book/colours.py"
PAPERS = ("#ffffff", "#121212")
HUES = (*COLOURS, GREY)
# Machado, Oliveira and Fernandes (2009), severity 1: what is left of linear red, green and blue.
SEEN = {
    "all": np.eye(3),
    "without red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "without green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "without blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> np.ndarray:
    """Return red, green and blue as light."""
    part = np.array(to_rgb(colour))
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """Return CIELAB of linear red, green and blue, where distances are as they are seen."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(to_xyz) @ np.clip(light, 0, 1) / (0.9505, 1, 1.089))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("hue", HUES)
def test_a_line_is_seen_on_light_and_dark_pages(hue, paper):
    low, high = sorted(float(np.dot(linear(one), (0.2126, 0.7152, 0.0722))) for one in (hue, paper))
    assert (high + 0.05) / (low + 0.05) >= 3


@pytest.mark.parametrize("vision", SEEN)
@pytest.mark.parametrize(
    "together", [("prefill", "decode", "wait", "bubble"), ("aggregated", "chunked", "disaggregated")]
)
def test_what_stands_together_is_told_apart_with_any_colour_vision(together, vision):
    places = [lab(np.array(SEEN[vision]) @ linear(ROLES[role])) for role in together]
    assert min(np.linalg.norm(a - b) for a, b in combinations(places, 2)) > 9  # 2.3 is just noticed


def test_no_colour_is_typed_elsewhere():
    files = [*ROOT.glob("src/inference_math_book/**/*.py"), *ROOT.glob("book/**/*.md"), *ROOT.glob("book/_static/*.*s")]
    typed = {
        f"{path.relative_to(ROOT)}: {found}"
        for path in files
        if path != HERE
        for found in re.findall(r"#[0-9a-fA-F]{6}\b", path.read_text(encoding="utf-8"))
        if found.upper() in HUES
    }
    assert len(files) > 100
    assert not typed


def test_the_logo_has_two_of_them():
    for name in ("logo.svg", "favicon.svg"):
        filled = re.findall(r'<rect[^>]*fill="(#\w+)"', (ROOT / "book/_static" / name).read_text(encoding="utf-8"))
        assert filled == list(COLOURS[:2])


def test_a_role_is_known_by_its_name_and_others_take_what_is_left():
    assert colour_of("chunked, full overlap") == colour_of("chunks") == ROLES["chunked"]
    assert colour_of("prefill | decode") == ROLES["disaggregated"]
    assert colour_of("TTFT") is None
    others = colours_of(["disaggregated", *"abcdefg"])
    assert ROLES["disaggregated"] not in others[1:]
    assert others[6] == others[1]  # five are left


def test_style_sheets_name_them():
    assert f"--disaggregated:{ROLES['disaggregated']};" in css()


def scales(spec: object) -> list[dict]:
    """Return all colour scales of a chart."""
    if isinstance(spec, list):
        return [scale for one in spec for scale in scales(one)]
    if not isinstance(spec, dict):
        return []
    own = [spec["color"]["scale"]] if isinstance(spec.get("color"), dict) and "scale" in spec["color"] else []
    return own + [scale for one in spec.values() for scale in scales(one)]


def test_the_planner_and_the_engine_draw_roles_in_their_colours():
    roles = {name: ROLES[name] for name in ("aggregated", "chunked", "disaggregated")}
    layers = scales(pictures()["speeds"])  # bands, lines, the dot, names
    assert [dict(zip(scale["domain"], scale["range"], strict=True)) for scale in layers] == [roles] * 4
    found = scales(seen(StepCost(t_w=0.017, T=8e-5, kv_read=7e-8)).to_dict())
    drawn = dict(zip(found[0]["domain"], found[0]["range"], strict=True))
    assert drawn == {"waits": GREY} | {kind: ROLES[kind] for kind in ("prefill", "decode", "bubble")}


@pytest.mark.browser  # needs the built book
def test_in_every_live_figure_of_the_book_a_role_has_its_colour(site):
    found: dict[str, set[str]] = {}
    for page in site.rglob("*.html"):
        for text in re.findall(
            r'<script type="application/json">({.*?})</script>', page.read_text(encoding="utf-8"), re.S
        ):
            for scale in scales(json.loads(text)):
                for name, colour in zip(scale.get("domain", ()), scale.get("range", ()), strict=False):
                    if colour_of(str(name)):
                        found.setdefault(name, set()).add(colour)
    assert {"aggregated", "disaggregated", "chunked, serial KV"} <= set(found)
    assert found == {name: {colour_of(name)} for name in found}
