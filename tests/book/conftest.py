"""The built pages in headless Chromium, without a network."""

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "_build" / "html"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip
PATIENCE = 300_000  # ms: a page that searches layouts simulates for minutes on a busy machine


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built book."""
    if not SITE.exists():
        pytest.skip("no built book: run 'make book'")
    return SITE


@pytest.fixture(scope="module")
def browser(site):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None and not os.environ.get("CI"):
        pytest.skip("no Chromium: 'apt install chromium' (Debian)")
    assert chromium, "CI needs Chromium: apt install chromium"
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


# What waits for a page can see that it complained.
COMPLAINED = """window.addEventListener("error", () => { window.complained = true; });
    const complain = console.error;
    console.error = (...what) => { window.complained = true; complain(...what); };"""

# A figure is drawn when somebody scrolls there, and opens what folds it.
SCROLLED = """() => {
    const next = document.querySelector(".live-figure:not([data-drawn])");
    for (let fold = next?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    next?.scrollIntoView();
    return !next;
}"""


def opener(browser, site):
    """Open built pages from disk, and fail at the end if one complained or looked elsewhere."""
    contexts, troubles = [], []

    def opened(name: str, width: int = 1280, scheme: str = "light", **more):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        context.add_init_script(COMPLAINED)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(f"{name}: {error}"))
        page.on("console", lambda m: troubles.append(f"{name}: {m.text}") if m.type == "error" else None)
        page.on(
            "request",
            lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else troubles.append(f"{name}: {r.url}"),
        )
        page.goto((site / name.partition("#")[0]).as_uri() + name[len(name.partition("#")[0]) :])
        # What a fold of the planner's form hides, a test fills in, too.
        page.evaluate(
            "document.querySelectorAll('#planner-form fieldset > details').forEach((one) => { one.open = true; })"
        )
        page.wait_for_function(SCROLLED)
        if "#" not in name:
            page.evaluate("window.scrollTo(0, 0)")
        assert not troubles  # else every wait for what a broken page should show takes its whole time
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not troubles


@pytest.fixture
def plain(browser, site):
    """Open a page of the book as a reader does, who has not scrolled yet."""
    contexts = []

    def opened(name: str, **kwargs):
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}, **kwargs))
        page = contexts[-1].new_page()
        page.goto((site / "book" / f"{name}.html").as_uri(), wait_until="load")
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def open_page(browser, site):
    """Open a page for one test."""
    yield from opener(browser, site)


@pytest.fixture(scope="module")
def kept_page(browser, site):
    """Open a page once for all tests of a module, which must set what they read."""
    opened = opener(browser, site)
    yield cache(next(opened))
    next(opened, None)


@pytest.fixture
def page(kept_page, request):
    """A page of the planner, the first or the module's own PAGE, kept for the module, with its form as at first."""
    planner = kept_page(getattr(request.module, "PAGE", "book/planner.html"))
    planner.locator("#planner-form").get_by_role("button", name="Reset").click()
    planner.wait_for_selector("#planner-form[data-answered]")
    return planner
