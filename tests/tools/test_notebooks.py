"""The tools that execute the chapters and remember what was built."""

import shutil
from contextlib import chdir
from pathlib import Path

import execution_cache
import nbformat
import pytest
from jupyter_cache import get_cache
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

import notebooks

TOOLS = Path(__file__).parents[2] / "tools"


def write_checkout(folder):
    (folder / "book" / "part").mkdir(parents=True)
    (folder / "notebooks").mkdir()
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("a = 1\n")
    (folder / "src" / "b.py").write_text("b = 1\n")  # which the chapter does not use
    (folder / "data").mkdir()
    (folder / "data" / "t.csv").write_text("x\n1\n")
    (folder / "requirements.txt").write_text("\n")
    (folder / "_config.yml").write_text("repository: {url: https://github.com/a/b}\n")
    (folder / "jupytext.toml").write_text((TOOLS.parent / "jupytext.toml").read_text())
    (folder / "book" / "01-x.md").write_text(
        "---\nkernelspec:\n  display_name: Python 3 (ipykernel)\n  language: python\n  name: python3\n---\n\n# X\n\n"
        "```{code-cell} ipython3\nif False:\n    %pip install --quiet https://raw.githubusercontent.com/old/x/main/colab.txt\n```\n\n"
        "```{code-cell} ipython3\nimport sys\n\nsys.path.append('../src')\nimport a\n\n"
        "x = open('../data/t.csv').read()\n```\n\n"
        "```{code-cell} ipython3\n1 + 1\n```\n\n```{code-cell} ipython3\n1 + 1\n```\n"
    )
    (folder / "book" / "part" / "prose.md").write_text("# Only prose\n")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    write_checkout(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_repository_s_address_is_written_from_the_configuration(checkout):
    (text,) = notebooks.paired()
    notebooks.name_repository(text)
    assert "https://raw.githubusercontent.com/a/b/main/colab.txt\n" in text.read_text()
    assert "old/x" not in text.read_text()


def test_caches_are_dropped_when_code_or_data_changed_and_only_then(checkout):
    execution_cache.drop_outdated()
    remembered = checkout / "_build" / ".jupyter_cache"
    remembered.mkdir()
    (checkout / "README.md").write_text("read me\n")
    (checkout / "src" / ".a.py.swp").write_text("an editor's")
    execution_cache.drop_outdated()
    assert remembered.exists()
    (checkout / "src" / "a.py").write_text("a = 2\n")
    execution_cache.drop_outdated()
    assert not remembered.exists()
    pages = checkout / "_build" / ".doctrees"
    pages.mkdir()
    remembered.mkdir()
    (checkout / "_config.yml").write_text("title: another\n")
    execution_cache.drop_outdated()
    assert remembered.exists()
    assert not pages.exists()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A checkout with its twin."""
    folder = tmp_path_factory.mktemp("made")
    write_checkout(folder)
    with chdir(folder):
        notebooks.execute(*notebooks.paired())
    return folder


@pytest.fixture
def executed(made, tmp_path, monkeypatch):
    """A checkout as it is cloned: the twin is there, and nothing is built."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path, *notebooks.paired()


def known(text):
    """Return whether a build finds this chapter's outputs, read as the build reads it."""
    execution_cache.main()
    read = read_myst_markdown_notebook(text.read_text(), config=MdParserConfig(), add_source_map=True)
    try:
        _, merged = get_cache("_build/.jupyter_cache").merge_match_into_notebook(read)
    except KeyError:
        return False
    assert merged.cells[-1].outputs[0].data["text/plain"] == "2"
    return True


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("src/a.py", "a = 1", "a = 2"),
        ("data/t.csv", "1", "2"),
        ("requirements.txt", "\n", "x==1\n"),
        ("book/01-x.md", "```{code-cell} ipython3\n1 + 1", "```{code-cell} ipython3\n2"),
        ("notebooks/01-x.ipynb", '"2"', '"3"'),  # edited by hand, or merged
    ],
)
def test_a_chapter_runs_again_when_its_text_its_twin_or_the_package_changed(executed, capsys, name, old, new):
    checkout, text = executed
    content = (checkout / name).read_text()
    assert old in content
    (checkout / name).write_text(content.replace(old, new, 1))
    assert not known(text)
    assert "Executing 1 of 1 notebooks" in capsys.readouterr().out


def test_a_twin_is_written_once_and_then_unchanged(executed):
    _, text = executed
    first = notebooks.twin_of(text).read_bytes()
    assert not notebooks.execute(text)
    assert notebooks.twin_of(text).read_bytes() == first
    twin = nbformat.reads(first.decode(), as_version=4)
    assert [c.execution_count for c in twin.cells if c.cell_type == "code"] == [1, 2, 3, 4]
    assert twin.cells[-1].outputs[0].data["text/plain"] == "2"
    assert len({c.id for c in twin.cells}) == len(twin.cells)


def test_a_fresh_clone_finds_the_twin_s_outputs_also_when_prose_and_other_files_changed(executed, capsys):
    checkout, text = executed
    assert known(text)
    assert known(text)  # and at the next build
    (checkout / "README.md").write_text("read me\n")
    (checkout / "src" / "b.py").write_text("b = 2\n")
    (checkout / "data" / "u.csv").write_text("y\n")
    text.write_text(text.read_text().replace("# X\n", "# Another title\n"))
    assert known(text)
    assert not capsys.readouterr().out


def test_a_new_title_is_paired_and_nothing_runs(executed, capsys, monkeypatch):
    checkout, text = executed
    text.write_text(text.read_text().replace("# X\n", "# Another title\n"))
    monkeypatch.setattr(notebooks, "timed", lambda text: pytest.fail("nothing that runs has changed"))
    monkeypatch.setattr("sys.argv", ["notebooks.py"])
    notebooks.main()
    twin = nbformat.read(notebooks.twin_of(text), as_version=4)
    assert twin.cells[0].source == "# Another title"
    assert twin.cells[-1].outputs[0].data["text/plain"] == "2"
    assert notebooks.is_fresh(notebooks.twin_of(text))
    assert "written" in capsys.readouterr().out
    (checkout / "src" / "a.py").write_text("a = 2\n")
    assert notebooks.pair(text) is None


def test_a_twin_that_is_gone_is_forgotten(executed):
    _, text = executed
    other = text.with_name("02-y.md")
    text.rename(other)
    notebooks.twin_of(text).unlink()
    notebooks.execute(other)
    assert known(other)
    assert list(notebooks.stamps(notebooks.TWINS / notebooks.MADE_FROM)) == ["notebooks/02-y.ipynb"]


def test_the_twins_of_the_book_are_fresh(root, monkeypatch):
    """Else whoever clones the book executes its chapters, for minutes; `make notebooks` makes them fresh."""
    monkeypatch.chdir(root)
    twins = [notebooks.twin_of(text) for text in notebooks.paired()]
    assert [twin for twin in twins if not notebooks.is_fresh(twin)] == []


def test_a_page_that_is_no_chapter_has_its_twin_in_the_build_alone_and_runs_when_it_must(executed, capsys):
    checkout, text = executed
    page = checkout / "book" / "part" / "01-p.md"
    page.write_text(text.read_text().replace("../", "../../../"))
    assert known(text)
    assert "Executing 1 pages" in capsys.readouterr().out
    assert (checkout / "_build" / "pages" / "part" / "01-p.ipynb").exists()
    assert not (checkout / "notebooks" / "part").exists()
    assert known(page.relative_to(checkout))
    assert not capsys.readouterr().out
    (checkout / "src" / "a.py").write_text("a = 2\n")
    execution_cache.main()
    assert "Executing 1 pages" in capsys.readouterr().out
