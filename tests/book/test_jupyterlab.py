"""The notebooks as a reader has them in JupyterLab: they run, show their mathematics, and their sliders move."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import nbformat
import pytest
from grids import early

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("jupyterlab")]
ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(p for p in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
PATIENCE = 300  # seconds; a busy machine is slow, not wrong
RAW = re.compile(r"\{(?:glue|formula|eq|numref|ref|cite|badge|prf)\b|^:::|\(\)$", re.M)  # what only a page understands
SETTINGS = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
DRAWN = ".jp-RenderedVegaCommon5"
# All that the cells of a notebook show, cell by cell, and what stands in it that should not.
SHOWN = """() => ({
    text: [...document.querySelectorAll('.jp-RenderedMarkdown')].map(one => one.innerText),
    formulas: document.querySelectorAll('.jp-RenderedLatex mjx-container').length,
    wrong: [...document.querySelectorAll('mjx-merror, .jp-RenderedText[data-mime-type*=stderr]')]
        .map(one => one.innerText),
    empty: [...document.querySelectorAll('.jp-RenderedMarkdown a[href]:not(.jp-InternalAnchorLink)')]
        .filter(one => !one.textContent.trim()).length,
})"""
# The figure that the first slider moves: others may stand before it.
PICTURE = f"""() => {{
    const figure = document.querySelector('{DRAWN} input[type=range]').closest('{DRAWN}');
    const one = figure.querySelector('canvas');
    return one ? one.toDataURL() : figure.querySelector('svg').outerHTML;
}}"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browser):
    """JupyterLab over a copy of the notebooks, with all cells drawn; the address, and a list of its pages' troubles."""
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", home / "notebooks")
    (home / "settings" / SETTINGS).parent.mkdir(parents=True)
    (home / "settings" / SETTINGS).write_text(json.dumps({"windowingMode": "none"}), encoding="utf-8")
    port = free_port()
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--allow-root",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={home / 'notebooks'}",
    ]  # fmt: skip
    settings = {"JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(home / "spaces")}
    with subprocess.Popen(command, env=os.environ | settings, stderr=subprocess.DEVNULL) as server:
        address = f"http://127.0.0.1:{port}"
        for _ in range(240):
            try:
                with urlopen(f"{address}/api", timeout=5):
                    break
            except OSError:
                time.sleep(0.5)
        yield address
        server.terminate()


def connected(lab: str, name: str) -> None:
    """Wait until the notebook's kernel answers: before that, JupyterLab calls it idle and loses what it is told."""
    while True:
        with urlopen(f"{lab}/api/sessions", timeout=PATIENCE) as answer:
            kernels = [session["kernel"] for session in json.load(answer) if session["path"] == name]
        if any(kernel["execution_state"] == "idle" and kernel["connections"] for kernel in kernels):
            return
        time.sleep(0.5)


@pytest.fixture
def opened(lab, browser):
    """Open a notebook, run all its cells, and fail at the end if a request left the machine."""
    pages, left = [], []

    def run(name: str):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1000 * PATIENCE)
        pages.append(page)
        page.on(
            "request",
            lambda r: None if lab.split(":")[1] in r.url or r.url[:5] in ("data:", "blob:") else left.append(r.url),
        )
        page.goto(f"{lab}/lab/workspaces/{name[:2]}/tree/{name}")  # one of its own, without other tabs
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        connected(lab, name)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        page.wait_for_function(
            "n => document.querySelectorAll('.jp-CodeCell').length === n && "
            "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt:not(.jp-Placeholder-prompt)')]"
            ".every(one => /\\[\\d+\\]/.test(one.textContent))",
            arg=sum(cell.cell_type == "code" for cell in nbformat.read(ROOT / "notebooks" / name, 4).cells),
        )
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        return page

    yield run
    for page in pages:
        page.close()
    assert left == []


@pytest.mark.parametrize("path", early(NOTEBOOKS, "02"), ids=lambda p: p.stem)
def test_it_runs_and_shows_its_formulas_and_no_mark_that_only_a_page_understands(opened, path):
    page = opened(path.relative_to(ROOT / "notebooks").as_posix())
    derived = len(
        re.findall(r"\.derived\(", "".join(c.source for c in nbformat.read(path, 4).cells if c.cell_type == "code"))
    )
    page.wait_for_function("n => document.querySelectorAll('.jp-RenderedLatex mjx-container').length >= n", arg=derived)
    shown = page.evaluate(SHOWN)
    assert shown["wrong"] == []
    assert shown["empty"] == 0
    assert page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.error']").count() == 0
    assert [text for text in shown["text"] if RAW.search(text)] == []
    assert page.locator(".jp-RenderedImage").count() == 0  # the still of a live figure is for others
    if page.locator(f"{DRAWN} input[type=range]").count():
        page.wait_for_selector(f"{DRAWN} canvas, {DRAWN} svg")
        before = page.evaluate(PICTURE)
        slider = page.locator(f"{DRAWN} input[type=range]").first
        slider.evaluate(  # the moment up to which a figure is played opens at its end
            "one => { one.value = one.value === one.max ? one.min : one.max;"
            " one.dispatchEvent(new Event('input', {bubbles: true})); }"
        )
        page.wait_for_function(f"before => ({PICTURE})() !== before", arg=before)
