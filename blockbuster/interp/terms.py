"""Programs as terms: each output element as a formula of input elements, comparisons undecided.

If two programs differ as terms of tier A, a comparison may be the reason. So at small sizes each
output element is written out as a term over the elements of the inputs, comparisons included, and
``cases.py`` decides for each element whether the two terms agree for all outcomes. Sums, products,
maxima and minima are flat and sorted, so that the order of a fold does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from blockbuster.interp.domains import NARROW, wrapped
from blockbuster.interp.layout import Array
from blockbuster.interp.objects import Objects
from blockbuster.interp.semantics import Refused
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.expr import BITWISE, UNINTERPRETED, Call, Const
from blockbuster.ir.ops import Misc
from blockbuster.ir.types import Dim, size_class

DECIDING = ("lt", "eq", "max", "min", "where", "and", "or", "not", "sub0")
FLAT = ("add", "mul", "max", "min")
MOST_TERMS = 20_000  # of two programs at one size


class TooLarge(Exception):
    """Terms, or what becomes of them, outgrow what is worth the time; the text says which."""


class Term:
    """A function of terms; equal terms of one ``Terms`` are one object."""

    __slots__ = ("args", "fn", "number")

    def __init__(self, fn: str, args: tuple[Any, ...], number: int) -> None:
        self.fn, self.args, self.number = fn, args, number

    @property
    def parts(self) -> tuple[Term, ...]:
        """The terms that it is made of."""
        return self.args if self.fn not in ("input", "number") else ()

    @property
    def value(self) -> Fraction | float | None:
        """The number that it is, or None."""
        return self.args[0] if self.fn == "number" else None


def below(*terms: Term) -> Iterator[Term]:
    """These terms and all that they are made of, each once."""
    seen: set[int] = set()
    stack = [*reversed(terms)]
    while stack:
        term = stack.pop()
        if term.number not in seen:
            seen.add(term.number)
            yield term
            stack.extend(term.parts)


class Terms(Objects):
    """Elements are terms.

    ``anywhere``: index vectors and sizes are unknowns, and a fold is one of any length; ``sized``:
    sizes alone are.
    """

    def __init__(self, *, anywhere: bool = False, sized: bool = False) -> None:
        self.anywhere, self.sized = anywhere, sized or anywhere
        self.known: dict[tuple[Any, ...], Term] = {}
        super().__init__(self._table())

    # making terms ----------------------------------------------------------------------

    def term(self, fn: str, *args: Any) -> Term:
        """The term of a function; sums and the like become flat."""
        if fn in FLAT:
            parts = [part for a in args for part in (a.args if a.fn == fn else (a,))]
            args = tuple(sorted(parts, key=lambda part: part.number))
        key = (fn, *(a.number if isinstance(a, Term) else a for a in args))
        if key not in self.known:
            if len(self.known) >= MOST_TERMS:
                raise TooLarge("the programs are too large to be gone through case by case")
            self.known[key] = Term(fn, args, len(self.known))
        return self.known[key]

    def number(self, value: Fraction | float) -> Term:
        """A number: a fraction, or an infinity."""
        return self.term("number", value)

    def _sum(self, x: Term, y: Term) -> Term:
        for one, other in ((x, y), (y, x)):
            if one.value == 0:
                return other
        a, b = x.value, y.value
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return self.number(a + b)
        return self.term("add", x, y)

    def _product(self, x: Term, y: Term) -> Term:
        for one, other in ((x, y), (y, x)):
            if one.value == 1:
                return other
        a, b = x.value, y.value
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return self.number(a * b)
        return self.term("mul", x, y)

    def _negative(self, x: Term) -> Term:
        if x.value is not None:
            return self.number(-x.value)
        return self._product(self.number(Fraction(-1)), x)

    def _inverse(self, x: Term) -> Term:
        if isinstance(x.value, Fraction) and x.value != 0:
            return self.number(1 / x.value)
        return self.term("inverse", x)

    def _divided(self, fn: str, x: Term, y: Term) -> Term:
        a, b = x.value, y.value
        if not (isinstance(a, Fraction) and isinstance(b, Fraction) and b):
            return self.term(fn, x, y)
        return self.number(Fraction(a // b) if fn == "floordiv" else a % b)

    def _extreme(self, fn: str, x: Term, y: Term) -> Term:
        return x if x is y else self.term(fn, x, y)

    def _sigmoid(self, x: Term) -> Term:
        one = self.number(Fraction(1))
        return self._inverse(self._sum(one, self.term("exp", self._negative(x))))

    def _gelu(self, x: Term) -> Term:
        bell = self.term("erf", self._product(x, self.number(Fraction(math.sqrt(0.5)))))
        halved = self._product(x, self.number(Fraction(1, 2)))
        return self._product(halved, self._sum(bell, self.number(Fraction(1))))

    def _table(self) -> dict[str, Callable[..., Term]]:
        zero = self.number(Fraction(0))
        return {
            "add": lambda x, y: self._sum(x, y),
            "sub": lambda x, y: self._sum(x, self._negative(y)),
            "mul": lambda x, y: self._product(x, y),
            "div": lambda x, y: self._product(x, self._inverse(y)),
            "neg": lambda x: self._negative(x), "square": lambda x: self._product(x, x),
            "reciprocal": lambda x: self._inverse(x),
            "rsqrt": lambda x: self._inverse(self.term("sqrt", x)),
            "sigmoid": lambda x: self._sigmoid(x),
            "silu": lambda x: self._product(x, self._sigmoid(x)), "gelu": lambda x: self._gelu(x),
            "relu": lambda x: self._extreme("max", x, zero),
            "abs": lambda x: self._extreme("max", x, self._negative(x)),
            "maximum": lambda x, y: self._extreme("max", x, y),
            "minimum": lambda x, y: self._extreme("min", x, y),
            "lt": lambda x, y: self.term("lt", x, y), "gt": lambda x, y: self.term("lt", y, x),
            "le": lambda x, y: self.term("not", self.term("lt", y, x)),
            "ge": lambda x, y: self.term("not", self.term("lt", x, y)),
            "eq": lambda x, y: self.term("eq", x, y),
            "ne": lambda x, y: self.term("not", self.term("eq", x, y)),
            "and": lambda x, y: self.term("and", x, y), "or": lambda x, y: self.term("or", x, y),
            "not": lambda x: self.term("not", x),
            "where": lambda c, x, y: x if x is y else self.term("where", c, x, y),
            "recip0": lambda x: self.term("where", x, self._inverse(x), zero),
            "sub0": lambda x, z: self.term("sub0", x, z), "exp": lambda x: self.term("exp", x),
            "log": lambda x: self.term("log", x), "sqrt": lambda x: self.term("sqrt", x),
            **{name: partial(self.term, name) for name in (*UNINTERPRETED, *BITWISE)},
            "pow": lambda x, y: self.term("pow", x, y), "whole": lambda x: x,
            "floordiv": lambda x, y: self._divided("floordiv", x, y),
            "mod": lambda x, y: self._divided("mod", x, y),
        }  # fmt: skip

    # items -----------------------------------------------------------------------------

    def inputs(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, Array]:
        """An unknown for each element of each input."""
        made = {}
        for name, shape in shapes.items():
            array = np.empty(shape, object)
            for at in np.ndindex(*shape):
                array[at] = self.term("input", (name, *at))
            made[name] = array
        return made

    def numbers(self, item: Array) -> Array:
        raise Refused("a bound that is a term")

    def constant(self, value: float) -> Any:
        return self.number(Fraction(value) if math.isfinite(value) else value)

    def positions(self, dim: Dim, numbers: Array) -> Array:
        if not self.anywhere:
            return self.item(numbers)
        made = np.empty(numbers.shape, object)
        for at, number in enumerate(numbers.tolist()):
            made[at] = self.term("input", (dim, int(number)))
        return made

    def extent(self, dim: Dim, size: int) -> Any:
        return self.term("input", (size_class(dim),)) if self.sized else super().extent(dim, size)

    def fold(self, monoid: str, a: Array, b: Array) -> Array:
        if self.anywhere and monoid == "+":
            joined = np.frompyfunc(lambda x, y: self.term("fold", x, y), 2, 1)
            return np.asarray(joined(a, b), object)
        return super().fold(monoid, a, b)

    def fold_last(self, monoid: str, item: Array) -> Array:
        if not item.shape[-1]:
            return self.identity(monoid, item.shape[:-1])
        total = item[..., 0]
        for column in range(1, item.shape[-1]):
            total = self.fold(monoid, total, item[..., column])
        return np.asarray(total, object)

    def cast(self, item: Array, dtype: str) -> Array:
        return np.asarray(np.frompyfunc(lambda x: self._rounded(x, dtype), 1, 1)(item), object)

    def _rounded(self, x: Term, dtype: str) -> Term:
        value = x.value
        if isinstance(value, Fraction) and dtype in OWN:
            return self.number(Fraction(wrapped(dtype, value)))
        if isinstance(value, Fraction) and value.denominator == 1 and abs(value) <= NARROW:
            return x
        return self.term(f"cast {dtype}", x)

    def misc(self, op: Misc, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> Any:
        given = [term for array in arrays for term in np.ravel(array)]
        key = "x".join(str(array.shape) for array in arrays)
        made = []
        for port, shape in enumerate(shapes):
            array = np.empty(shape, object)
            for at in np.ndindex(*shape):
                array[at] = self.term(f"{op.name} {key} {port} {at}", *given)
            made.append(array)
        return made

    def applied(self, call: Call, args: Sequence[Any]) -> Any:
        match call:
            case Call("pow", (_, Const(value))) if value.is_integer() and abs(value) <= 16:
                base = args[0] if value >= 0 else self.scalars["reciprocal"](args[0])
                made = np.broadcast_to(np.asarray(self.constant(1.0)), np.shape(base))
                for _ in range(abs(int(value))):
                    made = self.scalars["mul"](made, base)
                return made
            case Call("pow", (_, Const(value))) if abs(value) == 0.5:
                return self.scalars["sqrt" if value > 0 else "rsqrt"](args[0])
        return super().applied(call, args)
