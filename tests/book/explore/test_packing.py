"""What the page is sent of a model says as much as the package's own record."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import asdict

from inference_math import catalogue
from inference_math.unit.shapes import kind_of, operators_of, shape_of
from inference_math_book.explore.browser import data, packed
from inference_math_book.explore.packing import SHARED_BY, unpacked


@pytest.mark.parametrize("name", [name for name in catalogue.names() if catalogue.model(name).name == name])
def test_a_model_comes_out_as_it_went_in(name: str) -> None:
    fines: list[dict[str, Any]] = []
    model = catalogue.model(name)
    found = unpacked(name, packed(model, fines), fines)
    assert (found["kind"], found["stored"], found["context"]) == (kind_of(model), model.stored, model.context)
    assert found["operators"] | {"fine": found["shape"]["fine"]} == asdict(operators_of(model))
    assert set(found["tp"]) == {str(tp) for tp in SHARED_BY if model.n_heads % tp == 0}
    for tp, own in found["tp"].items():
        shape = to_builtins(shape_of(model, int(tp)))
        for cache in shape["caches"]:  # what a unit adds
            del cache["bytes"], cache["slower"], cache["choosing"]
        assert found["shape"] | own == shape


def test_what_is_made_as_another_model_names_it() -> None:
    sent = data()["packed"]
    assert set(sent["rows"]) | set(sent["like"]) == set(catalogue.names())
    for name, (like, context) in sent["like"].items():
        assert like in sent["rows"]
        assert context == catalogue.model(name).context
