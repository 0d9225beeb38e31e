"""What the page is sent of a model says as much as the package's own record."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import asdict

from inference_math import catalogue
from inference_math.unit.kernels import kernels
from inference_math.unit.nearest import known_errors
from inference_math.unit.shapes import kind_of, operators_of, shape_of
from inference_math_book.explore.browser import data, packed
from inference_math_book.explore.packing import SHARED_BY, unpack, unpacked


@pytest.mark.parametrize("name", [name for name in catalogue.names() if catalogue.model(name).name == name])
def test_a_model_comes_out_as_it_went_in(name: str) -> None:
    fines: list[dict[str, Any]] = []
    model = catalogue.model(name)
    found = unpacked(name, packed(model, fines), fines)
    assert (found["kind"], found["stored"], found["context"]) == (kind_of(model), model.stored, model.context)
    assert found["operators"] == asdict(operators_of(model))
    assert set(found["shapes"]) == {str(tp) for tp in SHARED_BY if model.n_heads % tp == 0}
    for tp, own in found["shapes"].items():
        shape = to_builtins(shape_of(model, int(tp)))
        for cache in shape["caches"]:  # what a unit adds
            del cache["bytes"], cache["slower"], cache["choosing"]
        assert own == shape


def test_kernels_and_errors_come_out_as_they_went_in() -> None:
    sent = data()
    unpack(sent)
    for kind, own in to_builtins(kernels()).items():
        for engine, gpu, key in ((e, g, k) for e in own for g in own[e] for k in own[e][g]) if kind != "like" else ():
            kernel = own[engine][gpu][key]
            assert {name: sent["kernels"][kind][engine][gpu][key][name] for name in kernel} == kernel
    assert sent["kernels"]["like"] == dict(kernels().like)
    assert sent["errors"] == [asdict(row) for row in known_errors()]


def test_what_is_made_as_another_model_names_it() -> None:
    sent = data()["packed"]
    assert set(sent["rows"]) | set(sent["like"]) == set(catalogue.names())
    for name, (like, context) in sent["like"].items():
        assert like in sent["rows"]
        assert context == catalogue.model(name).context
