"""The package as a user gets it: a wheel in an empty folder, the README's examples, the changelog."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pybtex.database
import pytest
import yaml
from packaging.specifiers import SpecifierSet

import inference_math
from inference_math import evidence, theory


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


DISTRIBUTIONS = {
    "inference_math": ".",
    **{f"inference_math_{room}": f"src/inference_math_{room}" for room in ("planner", "bench", "book")},
}


@pytest.fixture(scope="module")
def wheels(root, tmp_path_factory) -> dict[str, Path]:
    """Build a wheel of each distribution, by way of its sdist, as who publishes does."""
    out = tmp_path_factory.mktemp("wheels")
    for folder in DISTRIBUTIONS.values():
        # --no-isolation: the build backend is in the lock, so this needs no network.
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, root / folder, cwd=out)
    return {name: next(out.glob(f"{name}-*.whl")) for name in DISTRIBUTIONS}


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory) -> Path:
    """Unpack the package's wheel where neither the checkout nor its data can be found."""
    target = tmp_path_factory.mktemp("empty folder") / "site"
    with zipfile.ZipFile(wheels["inference_math"]) as archive:
        archive.extractall(target)
    return target


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_wheel_has_the_modules_and_tables_of_its_own_folder_and_no_others(root, wheels, name):
    with zipfile.ZipFile(wheels[name]) as archive:
        packed = {path for path in archive.namelist() if path.endswith((".py", ".toml"))}
    source = root / "src"
    files = {
        path.relative_to(source).as_posix() for kind in ("py", "toml") for path in (source / name).rglob(f"*.{kind}")
    }
    assert packed - {path for path in packed if "/_data/" in path} == files - {f"{name}/pyproject.toml"}


def test_the_core_needs_seven_others_and_each_distribution_those_below_it(wheels):
    needs, commands = {}, {}
    for name, wheel in wheels.items():
        with zipfile.ZipFile(wheel) as archive:
            told = {
                Path(path).name: archive.read(path).decode() for path in archive.namelist() if ".dist-info/" in path
            }
        needs[name] = set(re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra ==)", told["METADATA"], re.M))
        commands[name] = told.get("entry_points.txt", "")
    assert needs["inference_math"] == {"msgspec", "numpy", "pandas", "scipy", "sympy", "tomli-w", "tqdm"}
    own = {"inference-math", "msgspec", "prometheus-client"}
    assert needs["inference_math_planner"] == own | needs["inference_math"] - {"tomli-w"}
    assert {"inference-math", "inference-math-planner"} < needs["inference_math_bench"]
    assert {"inference-math", "inference-math-planner", "inference-math-bench"} < needs["inference_math_book"]
    assert "inference-math = inference_math_planner.cli:main" in commands["inference_math_planner"]
    assert "measure = inference_math_bench.measure.__main__" in commands["inference_math_bench"]


@pytest.mark.parametrize("folder", DISTRIBUTIONS.values())
def test_binder_takes_a_python_that_the_distribution_runs_on(root, folder):
    """Beside a folder `.binder` repo2docker reads no pyproject.toml, and takes an older Python of its own."""
    name, _, version = (root / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip().partition("-")
    assert name == "python"
    project = tomllib.loads((root / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert version in SpecifierSet(project["requires-python"])


OWN = re.compile(r"(?<![\w./-])inference[-_]math(?:[-_](?:planner|bench|book))?(?= *(?:[\[\s\"'`.,;]|$))")
PATH = re.compile(r"(?<![\w/.])(\.(?:/\w+)*)(?:\[([\w,]+)\])?(?=[\s\"'`]|$)")
TEXTS = ("README.md", "CONTRIBUTING.md", "data/README.md", "book/**/*.md", "src/**/*.py", "src/**/*.md")


def test_what_is_told_to_be_installed_is_to_be_had(root):
    """None of our distributions is on an index: each is named by its folder, with an extra that it has."""
    named = 0
    for path in (path for pattern in TEXTS for path in root.glob(pattern)):
        for line in re.findall(r"pip install\s+([^`\n]+)", path.read_text(encoding="utf-8")):
            assert not OWN.search(line), f"{path}: {line}"
            for folder, extras in PATH.findall(line):
                project = tomllib.loads((root / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
                assert {*filter(None, extras.split(","))} <= {*project.get("optional-dependencies", ())}, line
                named += 1
    assert named >= 10  # else the pattern finds nothing any more


def run_installed(installed: Path, code: str) -> str:
    # -I ignores the environment and the folder; the wheel stands before the editable install.
    others = [name for name in DISTRIBUTIONS if name != "inference_math"]  # None: importing it is an ImportError
    start = f"import sys; sys.path.insert(0, {str(installed)!r}); sys.modules.update(dict.fromkeys({others}))\n"
    return run(sys.executable, "-I", "-c", start + code, cwd=installed.parent)


def test_the_readme_s_example_prints_what_it_says(root, installed):
    readme = (root / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", readme, re.S)[1]
    printed = re.search(r"```\n(.*?)```", readme[readme.index(code) + len(code) + 3 :], re.S)[1]
    assert run_installed(installed, code) == printed


def test_the_readme_s_plan_prints_what_it_says(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    asked, printed = re.search(r"```sh\ninference-math (plan .*?)```\n\n```\n(.*?)```", readme, re.S).groups()
    command = shlex.split(asked.replace("\\\n", " "))
    assert run(sys.executable, "-m", "inference_math_planner", *command, cwd=root) == printed


MOST_WORDS = 600  # of the README's prose: what is longer is a page of the handbook


def test_the_readme_is_short_and_its_links_lead_somewhere(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", readme, flags=re.S | re.M)
    links = [link for link in re.findall(r"\]\(([^)]+)\)", prose) if "://" not in link]
    assert len(links) >= 10
    assert [link for link in links if not (root / link).exists()] == []
    pages = re.findall(r"`(book/[\w/.-]+)\.html`", prose)  # of the built book
    assert pages
    assert [page for page in pages if not (root / f"{page}.md").exists()] == []
    words = [word for word in re.sub(r"(?<=\])\([^)]*\)", "", prose).split() if re.search(r"\w", word)]
    assert len(words) <= MOST_WORDS


def test_the_wheel_carries_its_data(installed):
    code = (
        "import inference_math; from inference_math import evidence, catalogue\n"
        "assert inference_math.__file__.startswith(sys.path[0]), inference_math.__file__\n"
        "print(evidence.digest(), *(len(evidence.load(t).frame) > 0 for t in evidence.tables()))"
    )
    digest, *loaded = run_installed(installed, code).split()
    assert digest == evidence.digest()
    assert set(loaded) == {"True"}


def test_version_and_licence_are_the_same_everywhere(root):
    files = [root / folder / "pyproject.toml" for folder in DISTRIBUTIONS.values()]
    project, *others = (tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files)
    for other in others:
        assert (other["version"], other["license"]) == (project["version"], project["license"])
        own = [name for name in other["dependencies"] if name.startswith("inference-math")]
        assert all(name.endswith(f"=={project['version']}") for name in own)
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    assert inference_math.__version__ == project["version"] == citation["version"]
    assert project["license"] == citation["license"]
    heading = f"## {citation['version']} ({citation['date-released']})\n"
    assert re.search(r"^## \d.*\n", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[0] == heading


KINDS = ("Names that moved", "Added", "Changed", "Fixed", "Removed", "Numbers that moved")


def test_the_changelog_has_a_line_for_each_change_and_one_table_of_what_moved(root):
    """The newest two: what is to come, and the last release, whose paragraphs are a page of the book."""
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (.*)\n", changelog, flags=re.M)[1:]
    assert sections[0] == "Unreleased"
    for title, text in (sections[:2], sections[2:4]):
        kinds = re.split(r"^### (.*)\n", text, flags=re.M)[1:]
        assert kinds[::2] == [kind for kind in KINDS if kind in kinds[::2]], title
        for kind, lines in zip(kinds[::2], kinds[1::2], strict=True):
            begins = ("| ", "|---") if kind in (KINDS[0], KINDS[-1]) else "- "
            assert [line for line in lines.splitlines() if line and not line.startswith(begins)] == [], title
    lines = [line for line in f"## {sections[2]}\n{sections[3]}".rstrip().splitlines() if not line.startswith("|")]
    assert len(lines) <= 60


def test_the_citation_file_is_valid_and_has_the_book_s_addresses_and_year(root):
    file = root / "CITATION.cff"
    run(
        Path(sys.executable).with_name("check-jsonschema"),
        "--builtin-schema",
        "vendor.citation-file-format",
        file,
        cwd=root,
    )
    citation = yaml.safe_load(file.read_text(encoding="utf-8"))
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    deposit = json.loads((root / ".zenodo.json").read_text(encoding="utf-8"))
    assert citation["title"] == settings["title"] == deposit["title"]
    assert (deposit["license"], deposit["keywords"]) == (citation["license"].lower(), citation["keywords"])
    assert citation["url"] == settings["html"]["baseurl"] == deposit["related_identifiers"][0]["identifier"]
    assert citation["repository-code"] == settings["repository"]["url"]
    assert str(citation["date-released"].year) == settings["copyright"]


def test_the_citation_file_refers_to_the_talks_as_the_bibliography_does(root):
    talks = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    listed = pybtex.database.parse_file(root / "book" / "references.bib").entries
    listed = [entry for key, entry in listed.items() if key.startswith("hillel")]
    assert len(talks) == len(listed) == 3
    for talk, entry in zip(talks, listed, strict=True):
        fields = {key: value.replace("{", "").replace("}", "") for key, value in entry.fields.items()}
        assert (talk["title"], str(talk["year"])) == (fields["title"], fields["year"])
        assert f"Talk, {talk['conference']['name']}, {talk['conference']['city']}" == fields["howpublished"]
        (author,), (person,) = talk["authors"], entry.persons["author"]
        assert [author["family-names"], author["given-names"]] == [*person.last_names, *person.first_names]


def test_the_api_page_s_example_runs(root):
    page = (root / "book" / "reference" / "api.md").read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], scope)
    assert scope["llama"].name == "llama-3-70b"


def test_every_room_is_found_from_the_package(root):
    rooms = {path.parent.name for path in (root / "src" / "inference_math").glob("*/__init__.py")}
    assert rooms | {"Unit", "Workload", "SLA"} == set(dir(inference_math))
    for name in dir(inference_math):
        assert getattr(inference_math, name).__name__.rpartition(".")[2] == name


PLOTTING = ["altair", "ipywidgets", "jinja2", "matplotlib"]  # of the extra
PLAN = "plan --model llama-3-8b --gpu h100-sxm --prompt 500 --output 250 --ttft 1 --tpot 0.05"


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        (["pandas", "scipy"], "import inference_math; assert inference_math.theory.crossover(e=9) == 0.9"),
        (PLOTTING, f"from inference_math_planner.cli import main; assert main({PLAN!r}.split()) == 0"),
        (PLOTTING, "import inference_math; [getattr(inference_math, name) for name in dir(inference_math)]"),
    ],
)
def test_who_computes_needs_no_more_than_that(missing, code, tmp_path):
    block = f"import sys; sys.modules.update(dict.fromkeys({missing}))\n"  # None: importing it is an ImportError
    run(sys.executable, "-c", block + code, cwd=tmp_path)


def test_the_room_of_formulas_lists_them_and_has_no_others():
    assert {"delta_p", "littles_law", "CATALOGUE"} < {*dir(theory)}
    assert theory.littles_law is theory.CATALOGUE["littles_law"]
    with pytest.raises(AttributeError, match="no attribute 'delta_q'"):
        _ = theory.delta_q


LAWS = {"theory", "unit", "simulate", "optimiser", "sympy"}


@pytest.mark.parametrize(
    ("module", "without", "most"),
    [
        ("inference_math.catalogue.engines", LAWS, 17),
        ("inference_math.catalogue.tiers", LAWS, 17),
        ("inference_math_planner.fleets.traces", LAWS, 20),
        ("inference_math.workload", {"theory", "catalogue", "unit"}, 100),
        ("inference_math.theory", {"sympy"}, 4),
        ("inference_math.unit.operators", {"workload", "simulate", "optimiser", "sympy"}, 100),
        ("inference_math.unit.unit", {"simulate", "optimiser", "sympy"}, 100),
        ("inference_math.simulate", {"catalogue", "optimiser", "sympy"}, 100),
        ("inference_math_planner", {"simulate", "fleets.traffic"}, 150),  # one unit is planned without a simulator
    ],
)
def test_a_room_is_entered_without_those_that_it_does_not_need(module, without, most, tmp_path):
    loaded = loaded_by(module, tmp_path)
    assert not {name for name in loaded if without & {name, *name.split(".")[1:2], name.partition(".")[2]}}
    assert len([name for name in loaded if name.startswith("inference_math.")]) < most


def loaded_by(module: str, folder: Path) -> set[str]:
    """Return the modules that a fresh interpreter has after it imported one: ours, and SymPy."""
    code = f"import {module}, sys; print(*(n for n in sys.modules if n.startswith(('inference_math', 'sympy'))))"
    return set(run(sys.executable, "-c", code, cwd=folder).split())


MOST_MODULES = 126  # of ours that a chapter's kernel loads; the aim is 60, then 40: lower it whenever that can be


def test_a_chapter_s_kernel_loads_few_modules_of_ours(root):
    noted = json.loads((root / "notebooks" / "made_from.json").read_text(encoding="utf-8"))
    loaded = {name: sum(file.endswith(".py") for file in one["from"].split()) for name, one in noted.items()}
    assert {name: many for name, many in loaded.items() if many > MOST_MODULES} == {}
