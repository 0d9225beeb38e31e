"""The planner's page: its arithmetic as JavaScript, formulas printed from SymPy, numbers to start from."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from msgspec import NODEFAULT, structs, to_builtins

from inference_math import catalogue, evidence, theory
from inference_math.catalogue import Model
from inference_math.catalogue.engines import engines, usual_limits
from inference_math.catalogue.links import USUAL, links
from inference_math.catalogue.tiers import tiers
from inference_math.evidence import numerals
from inference_math.evidence.records import OpenRecord, Record
from inference_math.evidence.sentences import HOLE, JOINS, templates
from inference_math.optimiser.case import DRAWS
from inference_math.optimiser.choice import LOOKED
from inference_math.unit import mixing, steps
from inference_math.unit.coefficients import COEFFICIENTS, ZERO_SHOT_SCOPE, Calibration, normals, scored_too
from inference_math.unit.front import handover, moves
from inference_math.unit.kernels import kernels
from inference_math.unit.nearest import SERVED_SCOPE, TOGETHER_SCOPE, known_comparisons, known_errors, levels
from inference_math.unit.shapes import kind_of, operators_of, shape_of
from inference_math.unit.unit import serving_gpu
from inference_math_book.explore.packing import BLOCKS, OF_A_CACHE, OF_A_SHAPE, OF_A_TOKEN, SHARED_BY
from inference_math_book.explore.pictures import pictures
from inference_math_planner.answers import notes
from inference_math_planner.answers.deployment import ANSWERS
from inference_math_planner.answers.verdicts import concurrency_bins, scored, unseen
from inference_math_planner.fleets import bench
from inference_math_planner.fleets.benchmarks import policy_of
from inference_math_planner.fleets.loops import Habit
from inference_math_planner.fleets.mixes import MIXES, mix
from inference_math_planner.fleets.traffic import SHARED, chances
from inference_math_planner.fleets.tries import IN_POOLS, TOGETHER

__all__ = ["PRINTED_MODULES", "data", "packed", "script", "sentences"]

PRINTED_MODULES = (
    "inference_math.optimiser.answers",
    "inference_math.unit.problem",
    "inference_math.unit.batch",
    "inference_math_planner.fleets.bench",
    "inference_math.unit.mixing",
    "inference_math.simulate.chance",
    "inference_math.optimiser.choice",
    "inference_math_planner.answers.commands",
    "inference_math.optimiser.gain_error",
    "inference_math.optimiser.draws",
    "inference_math.simulate.engine",
    "inference_math.unit.max_load",
    "inference_math_planner.fleets.goodput",
    "inference_math_planner.fleets.ladder",
    "inference_math.workload.lengths",
    "inference_math.optimiser.load",
    "inference_math.unit.overlap",
    "inference_math.simulate.pace",
    "inference_math_planner.fleets.queues",
    "inference_math.unit.scope",
    "inference_math.optimiser.search",
    "inference_math.optimiser.settings",
    "inference_math_planner.fleets.sessions",
    "inference_math.optimiser.starts",
    "inference_math.unit.steps",
    "inference_math.simulate.systems",
    "inference_math_planner.fleets.tries",
    "inference_math_planner.fleets.compared",
    "inference_math.optimiser.verdict",
    "inference_math_planner.fleets.visits",
    "inference_math_planner.answers.card",
    "inference_math_planner.answers.cautions",
    "inference_math_planner.answers.numbers",
    "inference_math_planner.answers.ways",
    "inference_math_planner.answers.notes",
    "inference_math.catalogue.naming",
    "inference_math_book.explore.packing",
    "inference_math_book.explore.form",
    "inference_math_book.explore.lines",
    "inference_math_book.explore.tables",
    "inference_math.unit.deployed",
    "inference_math.optimiser.question",
)
"""What is printed: modules whose functions are plain Python, numbers in and out."""
_MODULES = [import_module(name) for name in PRINTED_MODULES]
# What Python's built-ins, its modules math, heapq and collections, and two functions of SciPy are in JavaScript, where
# a name is passed on, too: a root by Ridders' method, and the regularised incomplete gamma function by its series, or
# its continued fraction (Numerical Recipes, 9.2 and 6.2).
_PRELUDE = """
var exp = Math.exp, max = Math.max, min = Math.min, floor = Math.floor, ceil = Math.ceil, isfinite = Number.isFinite;
var atan = Math.atan, cos = Math.cos, sin = Math.sin, tan = Math.tan, pi = Math.PI;
var sqrt = Math.sqrt, log = Math.log, log10 = Math.log10, log1p = Math.log1p, inf = Infinity, nan = NaN;
function replace(x, changes) { return Object.assign({}, x, changes); }
function keys_of(x) { return typeof x === "object" && !Array.isArray(x) ? Object.keys(x) : x; }
function deque() { var queue = []; queue.popleft = queue.shift; queue.appendleft = queue.unshift; return queue; }
function before(a, b) { return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]); }
function heappush(heap, row) {
  var i = heap.length;
  for (heap.push(row); i > 0 && before(row, heap[(i - 1) >> 1]); i = (i - 1) >> 1) heap[i] = heap[(i - 1) >> 1];
  heap[i] = row;
}
function heappop(heap) {
  var top = heap[0], row = heap.pop(), i = 0, child;
  if (!heap.length) return top;
  while ((child = 2 * i + 1) < heap.length) {
    if (child + 1 < heap.length && before(heap[child + 1], heap[child])) child++;
    if (!before(heap[child], row)) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = row;
  return top;
}
function brentq(f, a, b, args, xtol, rtol) {
  var fa = f(a), fb = f(b), i, m, x, fm, fx, near, beside;
  if (fa === 0) return a;
  if (fb === 0) return b;
  for (i = 0; i < 300; i++) {
    m = (a + b) / 2;
    fm = f(m);
    if (fm === 0) return m;
    x = m + (m - a) * Math.sign(fa - fb) * fm / Math.sqrt(fm * fm - fa * fb);
    fx = f(x);
    near = xtol + rtol * Math.abs(x);
    if (fx === 0 || Math.abs(b - a) <= near) return x;
    if (fm < 0 !== fx < 0) {
      a = m;
      fa = fm;
    }
    if (fa < 0 !== fx < 0) {
      b = x;
      fb = fx;
    } else {
      a = x;
      fa = fx;
    }
    beside = x === a ? x + near * Math.sign(b - a) : x - near * Math.sign(b - a);
    if (Math.abs(b - a) <= near || f(beside) < 0 !== fx < 0) return x;  // the root lies between both
  }
  return x;
}
function lgamma(x) {
  var sum = 1.000000000190015;
  [
    76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 1.208650973866179e-3,
    -5.395239384953e-6
  ].forEach((c, i) => { sum += c / (x + i + 1); });
  return (x + 0.5) * Math.log(x + 5.5) - x - 5.5 + Math.log(2.5066282746310005 * sum / x);
}
function gammainc(a, x) {
  if (x <= 0) return 0;
  if (x === Infinity) return 1;
  var front = Math.exp(a * Math.log(x) - x - lgamma(a)), n, term, sum, b, c, d, h, an;
  if (x < a + 1) {
    for (n = a, sum = term = 1 / a; term > 1e-16 * sum; sum += term) term *= x / ++n;
    return Math.min(sum * front, 1);
  }
  b = x + 1 - a; c = 1e300; d = h = 1 / b;
  for (n = 1; n < 10000; n++) {
    an = n * (a - n);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return 1 - front * h;
}
function erf(x) { return Math.sign(x) * gammainc(0.5, x * x); }
function digits(x) {
  return Math.abs(x) >= 100 ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(3)));
}
function percent(x) {
  var y = 100 * x;  // a half goes to the even number, as in Python
  return (Math.abs(y % 1) === 0.5 ? 2 * Math.round(y / 2) : Math.round(y)) + "%";
}
function most_of(x) { return Number.isFinite(x) ? digits(x) : "no number"; }
function in_ms(x) { return digits(1000 * x) + " ms"; }
function in_seconds(x) { return x >= 1 ? digits(x) + " s" : x >= 0 ? in_ms(x) : "-"; }
function as_gb(x) { return x >= 1000 ? digits(x / 1000) + " TB" : digits(x) + " GB"; }
var formats = { digits, gb: as_gb, most: most_of, ms: in_ms, percent, seconds: in_seconds };
function render(said) {
  if (Array.isArray(said)) return said.map((one) => render(one)).join("");
  if (typeof said !== "object") return String(said);
  return (said.text ?? window.inferenceMath.data.sentences[said.key]).replace(hole, (_, name, form, one, others) => {
    const value = said[name];
    if (one !== undefined) return value == 1 ? one : others.replace("{}", () => digits(value));
    return form in joins ? value.map(render).join(joins[form]) : form ? formats[form](value) : render(value);
  });
}
"""
# Where both languages look for a hole, and what joins a list in it.
_HOLES = f"var hole = /{HOLE.pattern}/g, joins = {json.dumps(JOINS)};\n"


# What the printer writes before each loop, over a list or over the keys of a dictionary.
_EACH = re.compile(r'if \(\(typeof (\w+) === "object"\) && \(!Array\.isArray\(\1\)\)\) ?\{ ?\1 = Object\.keys\(\1\);\}')
_KERNEL = ("memory", "compute", "launch", "rate", "decode", "slower", "choosing")


def script() -> str:
    """Return a JavaScript program that defines ``window.inferenceMath``: the functions of those modules, and `data`."""
    from pscript import py2js  # a tool of the book's build

    source = "\n".join(ast.unparse(_portable(ast.parse(inspect.getsource(module)))) for module in _MODULES)
    printed = "\n".join(theory.CATALOGUE[name].javascript for name in sorted(_formulas()))
    names = sorted(name for module in _MODULES for name in _functions(module))
    exported = ", ".join([*numerals.__all__, "render", *names])
    numbers = json.dumps(data(), separators=(",", ":"), sort_keys=True)
    functions = _EACH.sub(r"\1 = keys_of(\1);", py2js(source, docstrings=False))
    return _shortened(  # who reads it reads the Python
        f'(function () {{\n"use strict";\n{_PRELUDE}{_HOLES}{printed}\n{functions}\n'
        f"window.inferenceMath = {{ {exported}, data: {numbers} }};\nunpack(window.inferenceMath.data);\n}})();\n"
    )


def _shortened(program: str) -> str:
    """Return a program without blanks, and with short names of what it keeps to itself.

    On Apple's processors, for which the library is not to be had, it stays as it is, and does the same.
    """
    try:
        from minify import string
    except ImportError:
        return program
    shortened: str = string("application/javascript", program)
    return shortened


def _usual(engine: str, gpu: str) -> list[int]:
    """Return the tokens of a step and the requests at once that an engine takes on a GPU, for `bench_limits`."""
    limits = usual_limits(engine, catalogue.gpu(gpu))
    return [limits.tokens, limits.seqs]


def data() -> dict[str, Any]:
    """Return the catalogue, the calibrations that ship with what draws them, and the tiers, as plain numbers."""
    tables: dict[str, Any] = {
        "packed": _models(),
        "gpus": {name: serving_gpu(gpu) for name, gpu in catalogue.GPUS.items()},
        "coefficients": list(COEFFICIENTS),
        "operators": {name: _coefficients(Calibration.zero_shot(name)) for name in engines()},
        "levels": levels(),
        "kernels": _kernels(),
        "together": TOGETHER,
        "apart": IN_POOLS,
        "budget": Habit.budget,
        "cadences": bench.CADENCES,
        "engines": dict(engines()),
        "usual": {name: {gpu: _usual(name, gpu) for gpu in catalogue.GPUS} for name in engines()},
        "habits": {name: policy_of(name) for name in engines()},
        "fronts": {factor: moves()[factor] for factor in (*mixing.FRONTS, "sd", "spread")},
        "handover": handover().seconds,
        "looked": LOOKED,
        "normals": _normals(),
        "crowd": _crowd(),
        "mixes": {
            name: {"title": title, "rows": np.stack(mix(name).rows()[:2], axis=1).tolist()}
            for name, title in MIXES.items()
        },
        "guessed": notes.GUESSED,
        "errors": _errors(),
        "comparisons": known_comparisons(),
        "verdicts": scored(),
        "concurrency_bins": concurrency_bins(),
        "unseen": unseen(),
        "answers": ANSWERS,
        "parts": steps.PARTS,
        "pictures": pictures(),
        "sentences": sentences(),
        "scopes": {
            "operators": scored_too(ZERO_SHOT_SCOPE),
            "served": scored_too(SERVED_SCOPE),
            "together": TOGETHER_SCOPE,
        },
        "widths": evidence.load("widths").frame.set_index("name")["width"].to_dict(),
        "links": {
            name: {"title": one.title, "bw": one.bw or 0, "measured": one.measured} for name, one in links().items()
        },
        "link": USUAL,
        "tiers": {name: {"title": tier.title, "read_bw": tier.read_bw} for name, tier in tiers().items()},
    }
    built: dict[str, Any] = to_builtins(tables, enc_hook=np.generic.item)
    return built


def sentences() -> dict[str, str]:
    """Return the templates of the tables that printed modules name, by their keys."""
    source = "".join(map(inspect.getsource, _MODULES))
    return {key: text for key, text in templates().items() if f'"{key.partition(".")[0]}.' in source}


def _short(value: float) -> float:
    """Return a number, whether something is so as 1 or 0."""
    return int(value) if isinstance(value, bool) else value


def packed(model: Model, fines: list[dict[str, Any]]) -> list[Any]:
    """Return a model as a row for `unpacked`; which precision its groups have is a place in `fines`, which may grow."""
    by_tp = {tp: shape_of(model, tp) for tp in SHARED_BY if model.n_heads % tp == 0}
    shape: dict[str, Any] = to_builtins(by_tp[1])
    operators = operators_of(model)
    if shape["fine"] not in fines:
        fines.append(shape["fine"])
    rows = [
        [cache.heads if name == "copies" else _short(values[name]) for name in OF_A_CACHE]
        for cache, values in zip(model.caches, shape["caches"], strict=True)
    ]
    operators_row = [
        operators.heads,
        operators.products,
        operators.mixed,
        fines.index(shape["fine"]),
        _short(operators.blocks == BLOCKS),
        _short(model.stored_kv == "fp8"),
    ]
    moved = [by_tp[tp].layer_bytes if tp in by_tp else 0 for tp in SHARED_BY]
    sizes = [shape[name] for name in OF_A_SHAPE]
    params = [shape["params"][name] for name in OF_A_TOKEN]
    return [kind_of(model), model.stored, model.context, operators_row, sizes, params, moved, rows]


def _models() -> dict[str, Any]:
    """Return the models that differ as `packing.packed` has them, by name; of all others which they are made as."""
    fines: list[dict[str, Any]] = []
    rows = {name: packed(model, fines) for name, model in catalogue.MODELS.items()}
    like = {}
    for name in catalogue.names()[len(rows) :]:
        model = catalogue.model(name)
        if model.name == name:
            rows[name] = packed(model, fines)
        else:
            like[name] = [model.name, model.context]
    return {"rows": rows, "like": like, "fines": fines}


def _errors() -> dict[str, Any]:
    """Return how far off predictions are known to be, as lists, without what models and GPUs tell."""
    rows = list(map(structs.asdict, known_errors()))
    names = [name for name in rows[0] if name not in ("kind", "maker", "generation")]
    return {"names": names, "rows": [[row[name] for name in names] for row in rows]}


def _normals() -> dict[str, Any]:
    """Return the normal numbers of all draws by their place among the few that there are."""
    rows = normals(DRAWS)
    values = sorted({number for row in rows for number in row})
    return {"values": values, "rows": [[values.index(number) for number in row] for row in rows]}


def _kernels() -> dict[str, Any]:
    """Return measured kernels, each as a list in the order of its names; the page makes them `Kernels`."""
    known: dict[str, Any] = to_builtins(kernels())
    parts = {name: part for name, part in known.items() if name != "like"}

    def listed(part: Any) -> Any:
        if "launch" not in part:
            return {name: listed(inner) for name, inner in part.items()}
        row = [part[name] for name in _KERNEL if name in part]
        row = row[:5] if row[5:] == [steps.NO_INDEX.slower, steps.NO_INDEX.choosing] else row
        return row[:4] if row[4:] == [row[1]] else row  # decodes' share is left out where it is the prompts'

    return {"like": known["like"], "names": _KERNEL, "no_index": steps.NO_INDEX, "parts": listed(parts)}


def _crowd() -> dict[str, Any]:
    """Return the chances that simulated requests come from: times between arrivals, lengths; and the usual promise."""
    gaps, lengths = chances(0, 1.0)
    return {"gaps": gaps, "lengths": lengths, "share": SHARED}


def _coefficients(calibration: Calibration) -> dict[str, Any]:
    root = calibration.root.tolist()
    return {"found": asdict(calibration.coefficients), "root": root, "spread": calibration.spread}


def _functions(module: ModuleType) -> Iterator[str]:
    """Yield the names of a module's own functions and printed classes, but for those that it keeps to itself."""
    for name, thing in vars(module).items():
        made = inspect.isclass(thing) and thing.__bases__ == (object,)
        if (made or inspect.isfunction(thing)) and thing.__module__ == module.__name__ and not name.startswith("_"):
            yield name


def _formulas() -> set[str]:
    """Return the formulas' names that the printed modules take a plain function of."""
    taken = [(name, thing, module) for module in _MODULES for name, thing in vars(module).items()]
    return {name for name, thing, module in taken if name in theory.CATALOGUE and thing.__module__ != module.__name__}


def _records() -> dict[str, dict[str, Any]]:
    """Return the defaults of each record, by the record's name."""
    defaults: dict[str, dict[str, Any]] = {}
    todo: list[Any] = [Record, OpenRecord]
    while todo:
        record = todo.pop()
        todo += record.__subclasses__()
        named = zip(reversed(record.__struct_fields__), reversed(record.__struct_defaults__), strict=False)
        defaults[record.__name__] = {name: _default(value) for name, value in named if value is not NODEFAULT}
    return defaults


def _default(value: Any) -> Any:
    return value.factory() if hasattr(value, "factory") else value


class _Strip(ast.NodeTransformer):
    """Take from Python what JavaScript has no use for: annotations, docstrings, and the names of records."""

    records = _records()

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in {"replace", *self.records}:
            return node
        given = {str(keyword.arg): keyword.value for keyword in node.keywords}
        left = self.records.get(node.func.id, {})
        values = {name: ast.parse(repr(left[name]), mode="eval").body for name in left if name not in given} | given
        named = ast.copy_location(ast.Dict([ast.Constant(name) for name in values], [*values.values()]), node)
        if node.func.id in self.records:
            return named
        node.args, node.keywords = [*node.args, named], []
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign(targets=[node.target], value=self.visit(node.value)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        node.body = _undocumented(node.body) or [ast.Pass()]
        # Plus and times mean numbers here, not lists: the printer need not look.
        node.body.insert(0, ast.parse("PSCRIPT_OVERLOAD = False").body[0])
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.generic_visit(node)
        node.body = _undocumented(node.body)
        return node


def _undocumented(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    return body[1:] if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else body


def _portable(module: ast.Module) -> ast.Module:
    """Keep a module's functions and constants, and its classes but for those that only describe others."""
    kept = [node for node in module.body if isinstance(node, ast.FunctionDef) or _is_constant(node) or _is_made(node)]
    stripped: ast.Module = _Strip().visit(ast.Module(body=kept, type_ignores=[]))
    return ast.fix_missing_locations(stripped)


def _is_made(node: ast.stmt) -> bool:
    """Tell whether something is a class of which there are objects."""
    return isinstance(node, ast.ClassDef) and not node.bases


def _is_constant(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return isinstance(target, ast.Name) and target.id.isupper()
