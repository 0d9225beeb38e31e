"""Python for one page: Brython, and what a module imports, as one script that a page loads when it is asked to.

The planner reads what is pasted with the package's own modules, as they are. Brython runs them as JavaScript;
it carries its own copies of Python's library, of which this script takes those that the modules import.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["script"]

# What a module is to Brython: its kind, its source, what it imports, and a 1 for a package.
Entry = list[Any]
NOTICE = """/* Brython {version} (https://brython.info), Copyright (c) 2012, Pierre Quentel, BSD 3-Clause License, whose
conditions follow. With it come modules of Inference Math, and a part of the library of Python, Copyright (c) 2001
Python Software Foundation, under the PSF License Agreement (https://docs.python.org/3.11/license.html).

{conditions}*/
"""
# Brython's own JSON takes "{" for sound and 1e-6 for an error; Python's, in Python, is slow but complains rightly. So
# the browser reads what is sound: numbers and null as text, which keeps 1.0 apart from 1, and each text behind a quote.
PROGRAM = """
import json
from browser import window
from {module} import {function}

def python(found):
    if window.Array.isArray(found):
        return [python(one) for one in found]
    if found == "null":
        return None
    if isinstance(found, str):
        return found[1:] if found[0] == "'" else int(found) if found.lstrip("-").isdigit() else float(found)
    if isinstance(found, bool):
        return found
    return {{name[1:]: python(value) for name, value in window.Object.entries(found)}}

complain = json.loads
def loads(text, **rules):
    if rules:  # which the browser's reader does not know
        return complain(text, **rules)
    marked = window.{ready}Marked(text)
    return python(marked[0]) if len(marked) else complain(text)

json.loads = loads
window.{ready}({function})
"""
# Brython runs scripts of the page that have an id. It looks for newer copies of modules nowhere, and keeps none.
START = """
(() => {{
  const start = Object.assign(document.createElement("script"), {{ type: "text/python", id: "{ready}" }});
  start.textContent = {program};
  document.head.append(start);
  const token = /"((?:[^"\\\\]|\\\\.)*)"|null|-?\\d[\\d.eE+-]*/g;
  window.{ready}Marked = (text) => {{
    try {{
      JSON.parse(text);
      return [JSON.parse(text.replace(token, (all, inner) => inner === undefined ? `"${{all}}"` : `"'${{inner}}"`))];
    }} catch {{
      return [];
    }}
  }};
  brython({{ ids: [start.id], indexedDB: false, debug: 0 }});
}})();
"""


def script(module: str, function: str, ready: str) -> str:
    """Return a script that calls `window.<ready>` with a function of a module of the package."""
    runtime, library = _brython()
    files: dict[str, Entry] = {}
    _add(_flat(module), library | _python(json) | _python(tomllib) | _package(), files)
    program = PROGRAM.format(module=_flat(module), function=function, ready=ready)
    bundle = f"__BRYTHON__.use_VFS = true;\n__BRYTHON__.update_VFS({json.dumps(files, sort_keys=True)});\n"
    return _notice() + runtime + "\n" + bundle + START.format(program=json.dumps(program), ready=ready)


def _brython() -> tuple[str, dict[str, Entry]]:
    """Return Brython, and its copies of Python's library by name."""
    files = {file.name: Path(str(file.locate())) for file in importlib.metadata.files("brython") or []}
    library = files["brython_stdlib.js"].read_text(encoding="utf-8")
    begin = library.index("{", library.index("var scripts"))
    entries: dict[str, Entry] = json.JSONDecoder().raw_decode(library, begin)[0]
    return files["brython.js"].read_text(encoding="utf-8"), entries


def _notice() -> str:
    licence = (Path(__file__).parents[3] / "LICENSE").read_text(encoding="utf-8")
    conditions = licence[licence.index("Redistribution and use") :]
    return NOTICE.format(version=importlib.metadata.version("brython"), conditions=conditions)


def _python(package: ModuleType) -> dict[str, Entry]:
    """Return a package of Python's own library, as far as it is written in Python."""
    name, folder = package.__name__, Path(str(package.__file__)).parent
    found: dict[str, Entry] = {
        f"{name}.{path.stem}": [".py", path.read_text(encoding="utf-8"), []] for path in folder.glob("*.py")
    }
    for entry in found.values():  # Brython's StopIteration has no value, and no set of its `re` ends with a hyphen
        entry[1] = entry[1].replace("err.value", "err.args[0]").replace("[+-]", "[-+]")
    return found | {name: [*found.pop(f"{name}.__init__"), 1]}


MISSING = ("numpy", "pandas", "scipy", "sympy")  # in Brython


def _package() -> dict[str, Entry]:
    """Return the modules of the package and the book by their flat names, changed as far as Brython needs it."""
    import inference_math
    import inference_math_book

    folders = [Path(str(one.__file__)).parent for one in (inference_math, inference_math_book)]
    names = {
        path: ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        for folder in folders
        for path in folder.rglob("*.py")
    }
    return {_flat(name): [".py", _bare(path.read_text(encoding="utf-8")), []] for path, name in names.items()}


def _bare(source: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_Bare().visit(ast.parse(source))))


def _flat(name: str) -> str:
    return name.replace(".", "_")


def _add(name: str, known: dict[str, Entry], files: dict[str, Entry]) -> None:
    """Add a module, the packages that it lies in, and all that importing it imports.

    What is not known is a part of Brython itself, or one that Python's library can do without.
    """
    parts = name.split(".")
    for each in (".".join(parts[:depth]) for depth in range(1, len(parts) + 1)):
        if each in files or each not in known:
            continue
        kind, source, *_ = files[each] = known[each]
        package = each if len(known[each]) > 3 else each.rpartition(".")[0]
        # Those in JavaScript import nothing at once.
        for other in sorted(_imports(source, package)) if kind == ".py" else ():
            if other in MISSING and each.startswith("inference_math"):
                raise ValueError(f"{each} must import {other} inside of what needs it: pages run it without")
            _add(other, known, files)


class _Bare(ast.NodeTransformer):
    """Leave out the annotations of functions, write those of fields as text, and give modules names without dots.

    Text is what `from __future__ import annotations` makes of them, which Brython 3.11 does not everywhere. Nor does
    it make a dataclass in a module whose name has a dot.
    """

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(ast.unparse(node.annotation))
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.module and node.module.startswith(("inference_math.", "inference_math_book.")):
            node.module = _flat(node.module)
        return node


def _imports(source: str, package: str) -> set[str]:
    """Return the modules that are imported when a module is, and names that may be modules."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif not (isinstance(node, ast.FunctionDef) or _never(node)):
            waiting += ast.iter_child_nodes(node)
    return found


def _never(node: ast.AST) -> bool:
    """Tell whether a branch is for the type checker, or for a module that is run as a program."""
    return isinstance(node, ast.If) and any(name in ast.unparse(node.test) for name in ("TYPE_CHECKING", "__main__"))
