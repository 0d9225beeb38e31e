"""The house: who may import whom, read from the files themselves."""

import graphlib
import re
from itertools import pairwise

import house

KNOWN = house.modules()
GRAPH = house.imports(KNOWN)


def test_every_room_imports_from_lower_floors_alone():
    floor_of = {room: number for number, floor in enumerate(house.FLOORS) for room in floor}
    seen = house.arrows(GRAPH)
    assert set(seen) == set(floor_of)
    assert [
        (room, other) for room, others in seen.items() for other in others if floor_of[other] >= floor_of[room]
    ] == []
    assert len(seen) <= 14
    assert sum(map(len, seen.values())) <= 60


def test_no_room_outgrows_its_budget():
    """Who needs more lines takes them from another room, or argues in the change that asks for them."""
    sizes = house.sizes()
    assert set(sizes) == set(house.BUDGETS)
    assert {room: lines for room, lines in sizes.items() if lines > house.BUDGETS[room]} == {}


def test_nor_do_scripts_tests_and_what_is_hard_to_read(root):
    texts = {path: path.read_text(encoding="utf-8") for path in (root / "src").rglob("*.py")}
    scripts = (root / "book" / "_static").glob("planner*.js")
    assert sum(house.script_lines(path.read_text(encoding="utf-8")) for path in scripts) <= house.SCRIPTS
    tests = [path for path in (root / "tests").rglob("*.py") if "research" not in path.parts]
    assert sum(house.code_lines(path.read_text(encoding="utf-8")) for path in tests) <= house.TESTS
    assert sum(len([*house.long_signatures(text)]) for text in texts.values()) <= house.LONG_SIGNATURES
    computes = [text for path, text in texts.items() if {"inference_math", "inference_math_planner"} & {*path.parts}]
    assert sum(len(re.findall(r"\bAny\b", text)) for text in computes) <= house.ANYS
    assert sum(text.count("# fmt: skip") for text in texts.values()) <= house.UNFORMATTED


def test_lines_of_code_are_those_without_remarks():
    text = (
        '"""A module."""\n\n# why\ndef f(a):\n    """Return\n\n    one."""\n    return [\n        a,  # this\n    ]\n'
    )
    assert house.code_lines(text) == 4
    assert house.script_lines("// why\n\nlet a = 1;  // one\n") == 1
    long = ", ".join("abcdefgh")
    assert [*house.long_signatures(f"def f({long}): ...\nclass A:\n    def g(self, {long[:-3]}): ...\n")] == ["f"]


def test_no_files_import_each_other_in_a_circle():
    try:
        tuple(graphlib.TopologicalSorter(GRAPH).static_order())
    except graphlib.CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def test_no_folders_import_each_other_in_a_circle():
    """At every depth: inference_math_book.figures as a whole, for example."""
    for depth in (2, 3):
        folders: dict[str, set[str]] = {}
        for module, others in GRAPH.items():
            own, *there = (".".join(name.split(".")[:depth]) for name in (module, *others))
            folders.setdefault(own, set()).update({*there} - {own})
        tuple(graphlib.TopologicalSorter(folders).static_order())


def test_what_makes_a_release_is_imported_by_neither_package_nor_book(root):
    research = {path.stem for path in (root / "tools" / "research").glob("*.py")}
    assert "score_served" in research
    files = [*(root / "src").rglob("*.py"), *(root / "book").rglob("*.md")]
    imported = {
        (path.name, name)
        for path in files
        for name in re.findall(r"^\s*(?:from|import) (\w+)(?: import| as |$)", path.read_text(encoding="utf-8"), re.M)
    }
    assert ("notebook.py", "sympy") in imported
    assert [pair for pair in imported if pair[1] in research] == []


def test_what_stands_in_functions_and_what_serves_annotations_alone_is_seen(tmp_path, monkeypatch):
    (tmp_path / "inference_math" / "a").mkdir(parents=True)
    for name, text in {
        "__init__": "", "a/__init__": "", "a/one": "def f():\n    from inference_math.a import two\n",
        "a/two": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from inference_math.a.one import f\n",
    }.items():  # fmt: skip
        (tmp_path / "inference_math" / f"{name}.py").write_text(text)
    monkeypatch.setattr(house, "SOURCE", tmp_path)
    found = house.imports(house.modules())
    assert found["inference_math.a.one"] == {"inference_math.a.two"}
    assert found["inference_math.a.two"] == {"inference_math.a.one"}


def test_the_tour_shows_the_house_as_it_is(root, capsys):
    house.main()
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for words in printed[:-1]:
        row = f"| `{words[0]}` |"
        (line,) = [line for line in shown.splitlines() if line.startswith(row)]
        assert {name.strip(", `") for name in line.split("|")[3].split(",")} == {word.strip(",") for word in words[6:]}
    assert [words[0] for words in printed[:-1]] == [
        line.split("`")[1] for line in shown.splitlines() if line.startswith("| `") and "/`" not in line[:14]
    ]
    assert all(a != b for a, b in pairwise(printed))
