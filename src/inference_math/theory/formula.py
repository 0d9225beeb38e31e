"""What a formula is: one SymPy expression from which everything else is printed."""

from __future__ import annotations

import inspect
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import overload

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.latex import LatexPrinter
from sympy.printing.numpy import NumPyPrinter

from inference_math.evidence.checks import Numbers, as_numbers, as_one_of
from inference_math.theory._talks import BOOK
from inference_math.theory.notation import QUANTITIES

__all__ = ["DERIVED", "Derived", "Formula", "formula", "to_javascript", "to_latex", "to_numpy", "to_vega"]


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula of the book: call it with numbers, print it, or take its expression further.

    Parameters
    ----------
    name
        The name in the catalogue, for example ``"crossover"``.
    arguments
        The symbols of `notation` that the expression contains, in the order of the signature.
    right
        The function of these symbols that returns the right-hand side; it may have the symbols of `where`, too. It is
        called when the expression is asked for first: SymPy takes a second for all formulas.
    latex_name
        The left-hand side, in LaTeX.
    unit
        Unit of the result in SI ("1" for a pure number).
    claim, source
        The claim that it states (``"C06"``) and where that was printed.
    meaning
        One plain sentence.
    domain
        A condition on the arguments without which the formula means nothing, for example ``sla_tpot > t_w``.
    where
        Parts with a symbol of their own, by which the equation is printed.
    room
        The room of the package that has it: ``theory``, or ``laws`` beyond the talks.
    given
        Why no notebook derives it: ``"Definition: ..."`` with what makes it one, ``"Cited: ..."`` with who proved it.

    Examples
    --------
    >>> from inference_math import theory
    >>> theory.crossover(e=9)
    0.9
    """

    name: str
    arguments: tuple[sp.Symbol, ...]
    right: Callable[..., sp.Expr]
    latex_name: str
    unit: str
    claim: str
    source: str
    meaning: str
    domain: sp.Basic = sp.true
    where: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    room: str = "theory"
    given: str = ""

    @cached_property
    def _written(self) -> sp.Expr:
        """The right-hand side as it is printed, with the symbols of `where`."""
        return self.right(*self.arguments)

    @cached_property
    def expr(self) -> sp.Expr:
        """The right-hand side, in the symbols of `arguments` alone; others are a `ValueError`."""
        parts = set(self.where)
        if parts - self._written.free_symbols or parts & set(self.arguments):
            raise ValueError(f"{self.name}: the symbols of where are not the expression's own")
        expr = self._written.subs(self.where)
        if set(self.arguments) != expr.free_symbols or not self.domain.free_symbols <= set(self.arguments):
            raise ValueError(f"{self.name}: the arguments are not the symbols of the expression")
        return expr

    @cached_property
    def latex(self) -> str:
        """The equation, left and right side, and those of its parts."""
        parts = [f"{to_latex(symbol)} = {to_latex(part)}" for symbol, part in self.where.items()]
        return r",\quad ".join([f"{self.latex_name} = {to_latex(self._written)}", *parts])

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature([inspect.Parameter(s.name, kind) for s in self.arguments])

    @property
    def usage(self) -> str:
        """How it is called: ``"speedup_layerwise(alpha, e)"``."""
        return f"{self.name}({', '.join(symbol.name for symbol in self.arguments)})"

    @overload
    def __call__(self, **arguments: float) -> float: ...

    @overload
    def __call__(self, **arguments: ArrayLike) -> NDArray[np.float64]: ...

    def __call__(self, **arguments: ArrayLike) -> Numbers:
        """Evaluate with NumPy: a float for numbers, an array when an argument is one (they broadcast).

        Raises
        ------
        TypeError
            For a missing or unknown argument, or one that is no number.
        ValueError
            For a number outside the range of its symbol (see `notation`), for shapes that do not
            broadcast, outside the formula's domain, and where it has no finite value.
        """
        names = [symbol.name for symbol in self.arguments]
        _check_names(self.usage, names, arguments)
        given = [as_numbers(name, arguments[name], QUANTITIES[name].accepted) for name in names]
        try:
            shape = np.broadcast_shapes(*(a.shape for a in given))
        except ValueError:
            shapes = ", ".join(f"{n} {a.shape}" for n, a in zip(names, given, strict=True))
            raise ValueError(f"{self.name}: shapes do not broadcast: {shapes}") from None
        with np.errstate(all="ignore"):  # what is not finite is refused just below
            result = np.asarray(self.unchecked(*given), dtype=np.float64)
        if self.domain is not sp.true:
            outside = ~np.broadcast_to(self._in_domain(*given), shape)
            if outside.any():
                raise ValueError(f"{self.name} needs {self.domain}, not {self._first(names, given, outside)}")
        if not np.isfinite(result).all():
            raise ValueError(f"{self.name} has no finite value at {self._first(names, given, ~np.isfinite(result))}")
        return float(result) if not shape else result

    @cached_property
    def unchecked(self) -> Callable[..., Numbers]:
        """The compiled function of the arguments by position: no checks, for numbers that were checked before."""
        compiled: Callable[..., Numbers] = sp.lambdify(self.arguments, self.expr, "numpy", printer=_Numpy, cse=True)
        return compiled

    @cached_property
    def plain(self) -> Callable[..., float]:
        """The same on plain numbers, without NumPy: for loops, and for what a browser runs, too."""
        compiled: Callable[..., float] = sp.lambdify(self.arguments, self.expr, "math", cse=True)
        return compiled

    @property
    def javascript(self) -> str:
        """The right-hand side as a JavaScript function of the arguments by position."""
        arguments = ", ".join(symbol.name for symbol in self.arguments)
        return f"function {self.name}({arguments}) {{ return {to_javascript(self.expr)}; }}"

    @cached_property
    def _in_domain(self) -> Callable[..., NDArray[np.bool_]]:
        holds: Callable[..., NDArray[np.bool_]] = sp.lambdify(self.arguments, self.domain, "numpy", printer=_Numpy)
        return holds

    def _first(self, names: list[str], given: list[NDArray[np.float64]], bad: NDArray[np.bool_]) -> str:
        where = np.unravel_index(np.argmax(bad), bad.shape)
        values = (np.broadcast_to(a, bad.shape)[where] for a in given)
        return ", ".join(f"{n}={v:g}" for n, v in zip(names, values, strict=True))

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"

    def vega(self, datum: Collection[str] = ()) -> str:
        """Print the right-hand side as a Vega expression; see `to_vega`."""
        return to_vega(self.expr, datum)

    def equals(self, derived: sp.Expr) -> bool:
        """Tell whether SymPy can show that `derived` is this formula's expression."""
        return _vanishes(derived - self.expr)

    def derived(self, result: sp.Expr) -> Derived:
        """Return what shows this formula as the result of a derivation.

        Raises
        ------
        ValueError
            Where SymPy cannot show that `result` is the formula's expression.

        Examples
        --------
        >>> from inference_math import theory
        >>> from inference_math.theory.notation import e
        >>> theory.crossover.derived(e / (e + 1))
        theory.crossover(e)
        >>> theory.crossover.derived(e)
        Traceback (most recent call last):
            ...
        ValueError: crossover: e is not shown to be e/(e + 1)
        """
        if not self.equals(result):
            raise ValueError(f"{self.name}: {result} is not shown to be {self.expr}")
        return Derived(self)


DERIVED = "application/vnd.inference-math.formula+json"  # which formula an output shows, for a page that numbers it


@dataclass(frozen=True)
class Derived:
    """What a notebook shows of a `formula` that was derived: the equation, its claim, and how it is called."""

    formula: Formula

    def __repr__(self) -> str:
        return f"{self.formula.room}.{self.formula.usage}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        one = self.formula
        call = f"{one.room}.{one.name}".replace("_", r"\_")
        note = rf"\qquad\scriptsize\text{{{one.claim}}}\;\mathtt{{{call}}}"
        return {
            DERIVED: {"name": one.name},
            "text/latex": rf"$\displaystyle {one.latex}{note}$",
            "text/plain": repr(self),
        }


def _vanishes(difference: sp.Expr) -> bool:
    """Tell whether SymPy can show that an expression is 0 wherever it is defined."""
    if sp.simplify(difference) == 0:
        return True
    plain = difference.replace(lambda part: isinstance(part, sp.Max | sp.Min), _taken_out)
    if sp.simplify(plain) == 0:
        return True
    cases = sp.piecewise_fold(plain.rewrite(sp.Piecewise)) if plain.has(sp.Max, sp.Min) else plain
    return bool(sp.simplify(cases) == 0)


def _taken_out(extreme: sp.Expr) -> sp.Expr:
    """Return a maximum or minimum with the positive factors of all its parts before it."""
    parts = [sp.factor(part) for part in extreme.args]
    powers = [part.as_powers_dict() for part in parts]
    shared = {base for base in powers[0] if base.is_positive and all(base in other for other in powers)}
    common = sp.Mul(*(base ** min(other[base] for other in powers) for base in shared))
    return common * extreme.func(*(part / common for part in parts))


def formula(
    latex_name: str,
    *,
    claim: str,
    source: str = BOOK,
    unit: str = "1",
    domain: sp.Basic = sp.true,
    where: Mapping[sp.Symbol, sp.Expr] | None = None,
    given: str = "",
) -> Callable[[Callable[..., sp.Expr]], Formula]:
    """Decorator: make a `Formula` of a function that returns the right-hand side.

    The function's name is the formula's, its docstring the meaning; its parameters are symbols of `notation`, by name.
    The other parts are those of `Formula`. The name joins its module's ``__all__``, in alphabetical order. A module of
    formulas begins with ``# mypy: allow-untyped-defs``, for SymPy has no types.

    Raises
    ------
    ValueError
        For a parameter that is no symbol of `notation`.

    Examples
    --------
    >>> @formula(r"\\alpha^{*}", claim="C06")
    ... def crossover(e):
    ...     "Stored share at which loading takes as long as computing the rest."
    ...     return e / (1 + e)
    >>> crossover.latex
    '\\\\alpha^{*} = \\\\frac{e}{1 + e}'
    """

    def as_formula(function: Callable[..., sp.Expr]) -> Formula:
        name = function.__name__
        names = [as_one_of(f"a parameter of {name}", n, QUANTITIES) for n in inspect.signature(function).parameters]
        symbols = tuple(QUANTITIES[n].symbol for n in names)
        meaning = " ".join((function.__doc__ or "").split())
        insort(function.__globals__.setdefault("__all__", []), name)
        room = str(function.__module__).split(".")[-2:][0]
        parts = where or {}
        return Formula(name, symbols, function, latex_name, unit, claim, source, meaning, domain, parts, room, given)

    return as_formula


def _check_names(usage: str, names: list[str], given: Iterable[str]) -> None:
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    if missing or unknown:
        parts = [f"{word} {', '.join(which)}" for word, which in (("missing", missing), ("unknown", unknown)) if which]
        raise TypeError(f"{usage}: {'; '.join(parts)}")


def _in_order(expr: sp.Basic) -> list[sp.Basic]:
    # Max, Min and And keep their arguments in a set, whose order changes from run to run.
    return sorted(expr.args, key=sp.default_sort_key)


class _Numpy(NumPyPrinter):  # type: ignore[misc]
    """Max, Min and And of arguments that broadcast; SymPy's own stacks them and needs equal shapes."""

    def _print_Max(self, expr: sp.Expr) -> str:
        return self._fold("maximum", expr)

    def _print_Min(self, expr: sp.Expr) -> str:
        return self._fold("minimum", expr)

    def _print_And(self, expr: sp.And) -> str:
        return self._fold("logical_and", expr)

    def _fold(self, function: str, expr: sp.Basic) -> str:
        name = self._module_format(f"numpy.{function}")
        return reduce(lambda left, right: f"{name}({left}, {right})", [str(self._print(a)) for a in _in_order(expr)])


class _Latex(LatexPrinter):  # type: ignore[misc]
    """Sums as one writes them by hand: short terms first, then rising powers, what is subtracted last."""

    def _as_ordered_terms(self, expr: sp.Expr, order: object = None) -> list[sp.Expr]:
        terms = super()._as_ordered_terms(expr, order="rev-lex")
        return sorted(terms, key=lambda term: (bool(term.could_extract_minus_sign()), term.has(sp.Add)))


def to_latex(expr: sp.Basic) -> str:
    """Print `expr` in LaTeX as the book does: 1 − α, L − 1, 1 + α/e − α."""
    return str(_Latex().doprint(expr))


def to_numpy(expr: sp.Expr) -> str:
    """Print `expr` as Python code that calls ``numpy``, as `to_vega`; the symbols are names of numbers or arrays."""
    return str(_Numpy().doprint(_in_a_figure(expr)))


_BROWSER_NODES = (
    sp.Add, sp.Mul, sp.Pow, sp.Max, sp.Min, sp.Abs, sp.exp, sp.log, sp.floor, sp.ceiling,
    sp.Symbol, sp.Rational, sp.Float, sp.NumberSymbol, sp.Piecewise, sp.functions.elementary.piecewise.ExprCondPair,
    sp.core.relational.Relational, sp.logic.boolalg.BooleanAtom, sp.And, sp.Or, sp.Not,
)  # fmt: skip


class _JavaScript(JavascriptCodePrinter):  # type: ignore[misc]
    """JavaScript with the arguments of Max and Min in an order that does not change."""

    def __init__(self, datum: Collection[str] = ()) -> None:
        super().__init__()
        self._datum = datum

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return f"datum.{expr.name}" if expr.name in self._datum else str(expr.name)

    def _print_Max(self, expr: sp.Expr) -> str:
        return f"Math.max({', '.join(map(self._print, _in_order(expr)))})"

    def _print_Min(self, expr: sp.Expr) -> str:
        return f"Math.min({', '.join(map(self._print, _in_order(expr)))})"


def to_javascript(expr: sp.Expr, datum: Collection[str] = ()) -> str:
    """Print `expr` in JavaScript; raises `ValueError` for anything that a browser cannot evaluate."""
    for node in sp.preorder_traversal(expr):
        if not isinstance(node, _BROWSER_NODES):
            raise ValueError(f"a browser cannot evaluate {type(node).__name__}: {node}")
    return str(_JavaScript(datum).doprint(expr)).replace("\n", " ")


def to_vega(expr: sp.Expr, datum: Collection[str] = ()) -> str:
    """Print `expr` in Vega's expression language, for a curve that the browser computes.

    Symbols named in `datum` are read from the row (the axis variable); all others are parameters
    of the figure (sliders). Decimal numbers have six digits. Raises `ValueError` for anything that Vega cannot
    evaluate.
    """
    # Vega's language is JavaScript without `Math.`
    return to_javascript(_in_a_figure(expr), datum).replace("Math.", "")


def _in_a_figure(expr: sp.Expr) -> sp.Expr:
    """Return `expr` with numbers as short as a figure's others; not in counts, which the last digit may decide."""
    if isinstance(expr, sp.Float):
        return sp.Float(f"{float(expr):.6g}")
    whole = not expr.args or isinstance(expr, sp.floor | sp.ceiling)
    return expr if whole else expr.func(*map(_in_a_figure, expr.args))
