"""Terms of the glossary are links where a page of the handbook uses them first."""

import pytest

from inference_math_book.extension.terms import pattern_of

PAGE = "book/handbook/promise-a-percentile.html"
pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Chunked prefills and steps", ["Chunked prefills", "steps"]),
        ("SLOs, not slo; Little's law", ["SLOs", "Little's law"]),
        ("a non-step, chunk-free, misstep", []),
    ],
)
def test_a_term_is_a_word_the_longest_one(text, found):
    pattern = pattern_of(["chunk", "chunked prefill", "SLO", "step", "Little's law"])
    assert [match[0] for match in pattern.finditer(text)] == found


def test_the_first_of_each_term_is_a_link_with_its_definition(open_page):
    page = open_page(PAGE)
    links = page.locator("a.term")
    targets = links.evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert len(targets) == len(set(targets)) > 8
    batch = page.locator("a.term[href$='#term-batch']")
    assert batch.get_attribute("title") == "The requests that one step works on together."
    assert page.locator(":is(h1, h2, h3, h4, code, table, figcaption, math) a.term").count() == 0
    batch.click()
    page.wait_for_url("**/glossary.html#term-batch")
