"""The tools that execute the chapters and remember what was built."""

from __future__ import annotations

from pathlib import Path

import execution_cache
import nbformat
import pytest

import notebooks

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "book" / "part").mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_config.yml").write_text("repository: {url: https://example.org/a/b}\n")
    (tmp_path / "jupytext.toml").write_text((TOOLS.parent / "jupytext.toml").read_text())
    (tmp_path / "book" / "part" / "01-x.md").write_text(
        "---\nkernelspec:\n  display_name: Python 3 (ipykernel)\n  language: python\n  name: python3\n---\n\n# X\n\n"
        "```{code-cell} ipython3\nif False:\n    %pip install --quiet git+https://old.example/x\n```\n\n"
        "```{code-cell} ipython3\n1 + 1\n```\n\n```{code-cell} ipython3\n1 + 1\n```\n"
    )
    (tmp_path / "book" / "part" / "prose.md").write_text("# Only prose\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_twin_is_written_once_and_then_unchanged(checkout):
    (text,) = notebooks.chapters()
    assert notebooks.execute(text)
    first = notebooks.twin_of(text).read_bytes()
    assert not notebooks.execute(text)
    assert notebooks.twin_of(text).read_bytes() == first
    twin = nbformat.reads(first.decode(), as_version=4)
    assert [c.execution_count for c in twin.cells if c.cell_type == "code"] == [1, 2, 3]
    assert twin.cells[-1].outputs[0].data["text/plain"] == "2"
    assert len({c.id for c in twin.cells}) == len(twin.cells)


def test_the_repository_s_address_is_written_from_the_configuration(checkout):
    (text,) = notebooks.chapters()
    notebooks.name_repository(text)
    assert "git+https://example.org/a/b\n" in text.read_text()
    assert "old.example" not in text.read_text()
    quoted = 'pip install "x @ git+https://old.example/x"\n'
    text.write_text(quoted)
    notebooks.name_repository(text)
    assert text.read_text() == quoted.replace("old.example/x", "example.org/a/b")


def test_caches_are_dropped_when_code_or_data_changed_and_only_then(checkout):
    (checkout / "src").mkdir()
    (checkout / "src" / "a.py").write_text("a = 1\n")
    execution_cache.main()
    remembered = checkout / "_build" / ".jupyter_cache"
    remembered.mkdir()
    execution_cache.main()
    assert remembered.exists()
    (checkout / "src" / "a.py").write_text("a = 2\n")
    execution_cache.main()
    assert not remembered.exists()
    pages = checkout / "_build" / ".doctrees"
    pages.mkdir()
    remembered.mkdir()
    (checkout / "_config.yml").write_text("title: another\n")
    execution_cache.main()
    assert remembered.exists()
    assert not pages.exists()
