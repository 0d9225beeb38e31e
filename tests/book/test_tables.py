"""Tables that a reader filters by words."""

import pytest

pytestmark = pytest.mark.browser


def test_a_row_stays_that_has_all_words(open_page):
    page = open_page("book/handbook/accuracy.html")
    page.locator("details.folded-table").first.evaluate("one => one.open = true")
    form = page.locator("form.ledger-filters").first
    rows = page.locator("#T_accuracy-groups tbody tr")
    every = rows.count()
    assert form.locator("output").inner_text() == f"{every} of {every} rows"
    form.get_by_label("Show set-ups with").fill("B200 aside vllm")
    shown = rows.filter(visible=True)
    assert 0 < shown.count() < every
    for text in shown.all_inner_texts():
        assert all(word in text.lower() for word in ("b200", "aside", "vllm"))
    assert form.locator("output").inner_text() == f"{shown.count()} of {every} rows"
    form.get_by_label("Show set-ups with").fill("no such row")
    assert shown.count() == 0
