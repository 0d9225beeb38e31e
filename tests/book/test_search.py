"""What people type into the search: among the first three is the page that answers it. No network, as from a disk."""

import pytest
from grids import rest_long

pytestmark = pytest.mark.browser
HITS = "ul.search > li > a"

# What readers asked, in their words, by the page that answers it.
ASKED = {
    "questions": "ΔP and ΔH|does disaggregation help|P99 gap|chunk size 405B|when does offloading stop helping|"
    "refuted claims|MFU|autoscaling|measure my GPU|cache hit rate|perf per watt",
    "02-load-or-recompute": "crossover",
    "handbook/choose-a-tier": "prefix caching",
    "handbook/read-a-benchmark": "TTFT under load",
    "handbook/accuracy": "accuracy",
    "reference/errata": "errata",
    "reference/citing": "how to cite",
    "handbook/size-a-store": "how big a store",
    "handbook/route": "which replica",
    "06-chunked-prefill": "chunked prefill",
    "glossary": "goodput|bubble|roofline",
    "book/planner": "planner",
    "03-what-one-more-request-costs": "what does one more request cost",
}
# Words that have a place of their own, which comes first.
FIRST = [
    ("max_num_batched_tokens", "questions.html#index-"),
    ("gpu_memory_utilization", "questions.html#index-"),
    ("Little's law", "09-which-of-the-three.html"),
    ("c17", "claims.html#c17"),
    ("how many GPUs", "book/planner.html"),
    ("MoE", "glossary.html#term-MoE"),
    ("NVMe", "glossary.html#term-NVMe"),
]
FOUND = [(query, part) for part, queries in ASKED.items() for query in queries.split("|")]
FOUND.sort(key=lambda asked: not ASKED[asked[1]].startswith(asked[0]))  # one of each page comes first


@pytest.fixture(scope="module")
def search(browser, site):
    """A function that returns the addresses of the first three results."""
    page = browser.new_page()

    def found(query: str) -> list[str]:
        page.goto("about:blank")
        page.goto(f"{(site / 'search.html').as_uri()}?q={query.replace(' ', '+')}")
        page.wait_for_function(
            "/finished|found|match/i.test(document.querySelector('.search-summary')?.innerText || '')"
        )
        page.wait_for_selector(HITS)
        return [link.get_attribute("href") for link in page.locator(HITS).all()[:3]]

    yield found
    page.close()


@pytest.mark.parametrize(("query", "part"), rest_long(FOUND, len(ASKED)))
def test_what_is_asked_is_found_among_the_first_three(search, query, part):
    assert any(part in address for address in search(query)), search(query)


@pytest.mark.parametrize(("word", "place"), rest_long(FIRST))
def test_a_word_s_own_place_comes_first(search, word, place):
    assert place in search(word)[0]


ARTICLE = """<div role="main"><nav>Contents</nav><article class="bd-article"><section><h3>Which?</h3>
    <i id="index-1"></i> It says. <details class="hide"><p>import sympy</p></details></section></article></div>"""
CALLED = """html => {
    const result = Object.assign(document.createElement("li"), { innerHTML: "<a>Questions</a>" });
    result.append(Search.makeSearchSummary(html, ["says"], "#index-1"));
    return Promise.resolve().then(() => [result.firstChild.textContent, Search.htmlToText(html)]);
}"""


def test_a_result_shows_the_article_alone_and_a_place_is_called_by_its_heading(browser, site):
    page = browser.new_page()
    page.goto((site / "search.html").as_uri())
    called, text = page.evaluate(CALLED, ARTICLE)
    assert (called, text.split()) == ("Questions > Which?", ["Which?", "It", "says."])
    lens, field = (page.locator(f"main form.bd-search {part}").bounding_box() for part in ("i", "input"))
    assert lens["x"] + lens["width"] <= field["x"]
    page.close()
