"""What people type into the search: among the first three is the page that answers it. No network, as from a disk."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser
HITS = "ul.search > li > a"

FOUND = {
    # What readers asked, in their words.
    "ΔP and ΔH": "questions", "crossover": "prefill/02", "Sarathi 1.33": "questions", "does disaggregation help": "questions",
    "load or recompute": "questions", "P99 gap": "questions", "chunk size 405B": "questions", "long answers": "questions",
    "claim C28": "questions", "cheapest GPU": "questions", "how many GPUs": "questions", "speculative decoding": "questions",
    "when does offloading stop helping": "questions", "TTFT under load": "interference/05", "accuracy": "predictions/06",
    "own runs": "questions", "refuted claims": "questions", "cite formula": "questions", "MFU": "questions",
    "autoscaling": "questions", "tune vLLM": "questions", "errata": "reference/errata", "how to cite": "reference/citing",
    "how big a store": "architectures/03b", "which replica": "architectures/03d", "chunked prefill": "architectures/01-",
    "prefix caching": "prefill/02", "config.json": "questions", "goodput": "glossary", "planner": "book/planner",
    "measure my GPU": "questions", "energy per token": "questions", "what happens inside a step": "interference/01",
    "bubble": "glossary", "roofline": "glossary", "cache hit rate": "questions", "router": "questions",
}  # fmt: skip


@pytest.fixture(scope="module")
def search(browser, site):
    """A function that returns the addresses of the first three results."""
    page = browser.new_page()

    def found(query: str) -> list[str]:
        page.goto("about:blank")
        page.goto(f"{(site / 'search.html').as_uri()}?q={query.replace(' ', '+')}")
        page.wait_for_function("/finished|found|match/i.test(document.querySelector('.search-summary')?.innerText || '')")
        page.wait_for_selector(HITS)
        return [link.get_attribute("href") for link in page.locator(HITS).all()[:3]]

    yield found
    page.close()


@pytest.mark.parametrize(("query", "part"), FOUND.items())
def test_what_is_asked_is_found_among_the_first_three(search, query, part):
    assert any(part in address for address in search(query)), search(query)
