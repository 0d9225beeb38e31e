"""Print what each page of the built book weighs and how soon it can be read: table of `make bench`.

    python tools/pages.py

In headless Chromium, from a server on this machine, 1280 pixels wide, nothing else open. Bytes are those of all files
that a page loads before anybody scrolls, and after all of it was seen. Times are medians of three, and belong to the
machine.
"""

from __future__ import annotations

import re
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import pandas as pd
from playwright.sync_api import sync_playwright

SITE = Path("_build/html")
ROUNDS = 3
# Long tasks are those beyond 50 ms: what a reader feels as a page that does not answer.
WATCH = """
window.seen = { blocked: 0, figure: null };
new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => { seen.blocked += duration - 50; }))
  .observe({ entryTypes: ["longtask"] });
new MutationObserver(() => {
  if (seen.figure === null && document.querySelector(".live-figure[data-drawn]")) seen.figure = performance.now();
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-drawn"] });
"""
TIMES = """() => ({
  paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
  figure: seen.figure, blocked: seen.blocked, formulas: document.querySelectorAll("math").length,
  bytes: [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")]
    .reduce((sum, one) => sum + one.decodedBodySize, 0),
})"""
SCROLL = """async () => {
  for (let y = 0; y < document.body.scrollHeight; y += 600) {
    window.scrollTo(0, y);
    await new Promise((done) => setTimeout(done, 20));
  }
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def measured(browser: Any, address: str) -> dict[str, float]:
    """Return the numbers of one visit."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(WATCH)
    page.goto(address, wait_until="networkidle")
    first = page.evaluate(TIMES)
    page.evaluate(SCROLL)
    page.wait_for_timeout(300)
    last = page.evaluate(TIMES)
    page.close()
    return {
        "kB": first["bytes"] / 1e3, "kB, all seen": last["bytes"] / 1e3, "formulas": first["formulas"],
        "first paint (ms)": first["paint"], "first figure (ms)": first["figure"] or float("nan"),
        "blocked (ms)": first["blocked"],
    }  # fmt: skip


def table(address: str) -> pd.DataFrame:
    """Return a row for each page of the book."""
    pages = re.findall(r"(?:file|root): (\S+)", Path("_toc.yml").read_text(encoding="utf-8"))
    rows = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in pages:
            rounds = [measured(browser, f"{address}/{name}.html") for _ in range(ROUNDS)]
            rows.append({"page": name} | {key: median(one[key] for one in rounds) for key in rounds[0]})
        browser.close()
    return pd.DataFrame(rows).sort_values("kB", ascending=False)


def main() -> None:
    """Serve the built book to a browser; print the table."""
    serve = partial(_Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        print(table(f"http://127.0.0.1:{server.server_port}").to_string(index=False, float_format="{:,.0f}".format))
        server.shutdown()


if __name__ == "__main__":
    main()
