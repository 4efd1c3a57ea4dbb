"""Scalar expressions as Triton text: float32 arithmetic in which NaN always propagates.

For float32 results, division, roots and exp are as exact as in CUDA's library (``ACCURATE_CALLS``);
for narrower results, the GPU's approximations are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from blockbuster.emit.print.integers import integer_literal
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.result_dtypes import (
    FLOAT,
    INDEX,
    LITERAL,
    WHOLE,
    are_indices,
    are_whole,
    call_dtype,
    literal_dtype,
)
from blockbuster.ir.base_two import made_finite
from blockbuster.ir.dtypes import FLOAT8, INTEGERS, TRUTH
from blockbuster.ir.expr import Arg, Call, Const, Expr, Size
from blockbuster.ir.types import Dim

# how tightly Python binds
_COMPARE, _OR, _AND, _SHIFT, _ADD, _MUL, _UNARY, ATOM = 3, 4, 6, 7, 8, 9, 10, 12


@dataclass(frozen=True)
class Text:
    """A piece of Triton text: its dtype, and how tightly its outermost operator binds; ``single``:
    it is one number, which stands for every lane beside it.
    """

    text: str
    dtype: str = FLOAT
    level: int = ATOM
    single: bool = False

    def at(self, floor: int) -> str:
        """The text as an operand of an operator that binds with ``floor``."""
        return f"({self.text})" if self.level < floor else self.text


def number(value: float) -> str:
    """A float literal that Triton reads."""
    return repr(float(value)) if math.isfinite(value) else f'float("{value}")'


def as_float(text: Text) -> Text:
    """The same value in float32; literals stay literals."""
    if text.dtype == FLOAT or is_literal(text):
        return text
    return Text(f"{text.at(ATOM)}.to(tl.float32)")


def is_literal(text: Text) -> bool:
    """True for a constant."""
    return text.dtype in (LITERAL, WHOLE)


def as_bool(text: Text) -> Text:
    """The truth of a value: not zero."""
    if text.dtype == TRUTH:
        return text
    return Text(f"{text.at(_COMPARE + 1)} != 0", TRUTH, _COMPARE)


def power_of_two(text: Text) -> int:
    """The exponent of a constant that is a power of two above 1; 0 for any other text."""
    value = int(float(text.text)) if text.dtype == WHOLE else 0
    return value.bit_length() - 1 if value > 0 and not value & (value - 1) else 0


def as_dtype(text: Text, dtype: str) -> Text:
    """The same value in the dtype of a tile."""
    if text.dtype == dtype:
        return text
    if dtype in (TRUTH, FLOAT):
        return as_bool(text) if dtype == TRUTH else as_float(text)
    if dtype in INTEGERS:
        return as_integer(text, dtype)
    number = text if text.dtype in (TRUTH, FLOAT8) else as_float(text)
    return Text(f"{number.at(ATOM)}.to({MEMORY[dtype].triton})", dtype)


def as_integer(text: Text, dtype: str) -> Text:
    """The same whole number as an integer; literals stay literals."""
    if text.dtype in (dtype, WHOLE):
        return _integer(text)
    return Text(f"{text.at(ATOM)}.to({MEMORY[dtype].triton})", dtype)


_BITS = {"bitand": ("&", _AND), "shl": ("<<", _SHIFT), "shr": (">>", _SHIFT)}
_BY_POWERS: dict[str, tuple[str, Callable[[int], int]]] = {
    "floordiv": ("shr", lambda bits: bits), "mod": ("bitand", lambda bits: (1 << bits) - 1),
}  # fmt: skip
"""Division by 2**bits: what it is of the bits of an integer, which rounds down, too."""
_INFIX = {"add": ("+", _ADD), "sub": ("-", _ADD), "mul": ("*", _MUL), "div": ("/", _MUL)}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_TRUTH = {"and": ("&", _AND, "{lanes}, False"), "or": ("|", _OR, "True, {lanes}")}
"""Signs, and what tl.where chooses from by one truth value beside those of lanes."""
_BUILTIN = {
    "exp": "tl.exp", "log": "tl.log", "sqrt": "tl.sqrt", "rsqrt": "tl.rsqrt", "erf": "tl.erf",
    "abs": "tl.abs", "floor": "tl.floor", "sin": "tl.sin", "cos": "tl.cos",
}  # fmt: skip
# functions that Triton lacks, or has without NaN: written into the file where used
_OWN = {
    "maximum": "_maximum", "minimum": "_minimum", "relu": "_relu", "square": "_square",
    "tanh": "_tanh", "sigmoid": "_sigmoid", "silu": "_silu", "gelu": "_gelu", "sub0": "_sub0",
    "recip0": "_recip0", "pow": "_power", "round": "_round", "log1p": "_log1p", "expm1": "_expm1",
    "atan": "_atan",
}  # fmt: skip
_INTEGER_CALLS = {
    "where": "tl.where", "abs": "tl.abs", "square": "_square", "maximum": "tl.maximum",
    "minimum": "tl.minimum", "relu": "tl.maximum", "floordiv": "_floordiv", "mod": "_mod",
    "shl": "_shl", "shr": "_shr",
}  # fmt: skip
_POWERS: dict[float, tuple[str, ...]] = {
    1.0: (), 2.0: ("square",), 4.0: ("square", "square"), 0.5: ("sqrt",), -0.5: ("rsqrt",),
    -1.0: ("reciprocal",),
}  # fmt: skip
"""Powers with a known exponent as multiplications and roots, one after the other."""
Factors = Callable[[Call], tuple[Expr, Expr]]
_PRODUCTS: dict[str, Factors] = {
    "mul": lambda product: (product.args[0], product.args[1]),
    "square": lambda product: (product.args[0], product.args[0]),
    **dict.fromkeys(("silu", "gelu", "pow"), lambda product: (product, Const(1.0))),
}
"""Functions that are a product, or end in one: what a rounded product multiplies."""
_FACTORS: dict[str, Factors] = {**_PRODUCTS, "neg": lambda negated: (negated, Const(1.0))}
"""The same, and of a negated value, which may be a product."""
ACCURATE_CALLS = {"div": "tl.div_rn", "sqrt": "tl.sqrt_rn", "exp": "_exp"}


class ScalarPrinter:
    """Prints expressions; ``helpers`` collects the functions the file has to define.

    ``calls``: scalar functions that are to be spelled as a call of something else.
    """

    def __init__(
        self,
        size_text: Callable[[Dim], str],
        helpers: dict[str, None],
        calls: Mapping[str, str],
    ) -> None:
        self._size_text = size_text
        self._calls = calls
        self.helpers = helpers

    def text(self, expr: Expr, args: Sequence[Text]) -> Text:
        """``expr`` over operands that already broadcast together."""
        if (chosen := made_finite(expr)) is not None:
            return self._called("_finite", [as_float(self.text(chosen, args))])
        match expr:
            case Arg(index):
                return args[index]
            case Const(value):
                return Text(number(value), literal_dtype(value), _UNARY if value < 0 else ATOM)
            case Size(dim):
                return Text(self._size_text(dim))
            case Call("pow", (base, Const(exponent))) if exponent in _POWERS:
                return as_float(self.text(_powered(base, exponent), args))
            case Call("pow", (Const(2.0), exponent)):
                return self._called("tl.exp2", [as_float(self.text(exponent, args))])
            case Call("pow", (base, Const(exponent))):
                tensor = Text(f"tl.full((), {number(exponent)}, tl.float32)")
                return self._float_call("pow", [as_float(self.text(base, args)), tensor])
            case Call(fn, operands):
                given = [self.text(a, args) for a in operands]
                single = all(a.single or is_literal(a) for a in given)
                return replace(self._call(fn, given), single=single)
        raise AssertionError(expr)

    def summand(self, expr: Expr, args: Sequence[Text]) -> Text:
        """``expr`` as what lanes will add up: a product is rounded before it meets an addition."""
        match expr:
            case Call("pow", (base, Const(exponent))) if exponent in _POWERS:
                return self.summand(_powered(base, exponent), args)
            case Call("pow", (Const(2.0), _)):
                return self.text(expr, args)
            case Call(fn) if fn in _FACTORS:
                factors = _FACTORS[fn](expr)
            case _:
                return self.text(expr, args)
        a, b = (as_float(self.text(factor, args)).text for factor in factors)
        return Text(f"tl.fma({a}, {b}, 0.0)")

    def apart(self, expr: Expr, args: Sequence[Text]) -> Text:
        """``expr`` with each of its products rounded before it meets an addition."""
        given = [*args]

        def named(part: Expr) -> Expr:
            """``part`` with its products as further operands."""
            if not isinstance(part, Call):
                return part
            made = Call(part.fn, tuple(map(named, part.args)))
            if part.fn not in _PRODUCTS:
                return made
            text = self.summand(made, given)
            if not text.text.startswith("tl.fma("):
                return made
            given.append(text)
            return Arg(len(given) - 1)

        return self.text(named(expr), given)

    def helper(self, name: str, *args: str) -> Text:
        """A call of a function that the file defines."""
        self.helpers.setdefault(name)
        return Text(f"{name}({', '.join(args)})")

    def _call(self, fn: str, args: list[Text]) -> Text:
        dtype = call_dtype(fn, [a.dtype for a in args])
        if fn in _TRUTH:
            sign, level, choice = _TRUTH[fn]
            left, right = map(as_bool, args)
            if args[0].single != args[1].single:
                return _beside(choice, *((left, right) if args[0].single else (right, left)))
            return Text(f"{left.at(level)} {sign} {right.at(level + 1)}", dtype, level)
        if fn == "not":
            return Text(f"~{as_bool(args[0]).at(_UNARY)}", dtype, _UNARY)
        if fn == "where" and dtype not in INTEGERS:
            chosen = [as_float(a).text for a in args[1:]]
            return Text(f"tl.where({as_bool(args[0]).text}, {', '.join(chosen)})")
        if fn in _COMPARISONS:
            left, right = _comparable(args)
            level = _COMPARE + 1
            return Text(f"{left.at(level)} {_COMPARISONS[fn]} {right.at(level)}", dtype, _COMPARE)
        if dtype == INDEX:
            return _whole(fn, [_integer(a) for a in args])
        if dtype in INTEGERS:
            return self._integer_call(fn, args, dtype)
        return self._float_call(fn, [as_float(a) for a in args])

    def _integer_call(self, fn: str, args: list[Text], dtype: str) -> Text:
        """A function of integers, each made one of ``dtype`` before."""
        if fn == "whole":
            (number,) = args
            if is_literal(number):
                literal = integer_literal(float(number.text), dtype)
                return Text(f"tl.full((), {literal}, {MEMORY[dtype].triton})", dtype)
            return as_integer(number, dtype)
        condition = [as_bool(args[0]).text] if fn == "where" else []
        given = [as_integer(a, dtype) for a in args[len(condition) :]]
        if fn in _INFIX:
            return replace(_infix(fn, given), dtype=dtype)
        if fn in _BY_POWERS and (bits := power_of_two(given[1])):
            fn, number_of = _BY_POWERS[fn]
            given = [given[0], Text(str(number_of(bits)), WHOLE)]
        if fn in _BITS and (fn not in _INTEGER_CALLS or is_literal(given[1])):
            sign, level = _BITS[fn]
            return Text(f"{given[0].at(level)} {sign} {given[1].at(level + 1)}", dtype, level)
        if fn == "neg":
            return Text(f"-{given[0].at(_UNARY + 1)}", dtype, _UNARY)
        texts = [*condition, *(a.text for a in given), *(["0"] if fn == "relu" else [])]
        name = _INTEGER_CALLS[fn]
        if name.startswith("_"):
            self.helpers.setdefault(name)
        return Text(f"{name}({', '.join(texts)})", dtype)

    def _float_call(self, fn: str, args: list[Text]) -> Text:
        if fn == "mul" and all(map(is_literal, args)):
            return replace(_infix(fn, args), dtype=LITERAL)
        if all(map(is_literal, args)):
            args = [Text(f"tl.full((), {args[0].text}, tl.float32)"), *args[1:]]
        if fn == "reciprocal":
            return self._float_call("div", [Text("1.0", WHOLE), *args])
        if fn in self._calls:
            return self._called(self._calls[fn], args)
        if fn in _INFIX:
            return _infix(fn, args)
        if fn == "neg":
            return Text(f"-{args[0].at(_UNARY + 1)}", FLOAT, _UNARY)
        if fn in _BUILTIN:
            return Text(f"{_BUILTIN[fn]}({args[0].text})")
        return self._called(_OWN[fn], args)

    def _called(self, name: str, args: list[Text]) -> Text:
        """A call of a function of Triton's, or of one that the file defines."""
        given = [a.text for a in args]
        own = name.startswith("_")
        return self.helper(name, *given) if own else Text(f"{name}({', '.join(given)})")


def _powered(base: Expr, exponent: float) -> Expr:
    """``base`` to a power that is in the table."""
    for fn in _POWERS[exponent]:
        base = Call(fn, (base,))
    return base


def _infix(fn: str, args: Sequence[Text]) -> Text:
    sign, level = _INFIX[fn]
    return Text(f"{args[0].at(level)} {sign} {args[1].at(level + 1)}", FLOAT, level)


def _beside(choice: str, one: Text, lanes: Text) -> Text:
    """Combine one truth value with those of lanes by ``tl.where``.

    Triton's interpreter broadcasts the result of a float comparison as floats, which ``&`` and
    ``|`` refuse.
    """
    return Text(f"tl.where({one.text}, {choice.format(lanes=lanes.text)})", TRUTH)


def _whole(fn: str, args: Sequence[Text]) -> Text:
    """A function of indices, none of which is NaN."""
    if fn in _INFIX:
        return replace(_infix(fn, args), dtype=INDEX)
    return Text(f"tl.{fn}({', '.join(a.text for a in args)})", INDEX)


def _integer(text: Text) -> Text:
    return replace(text, text=text.text.removesuffix(".0")) if text.dtype == WHOLE else text


def _comparable(args: Sequence[Text]) -> list[Text]:
    """Both sides as integers where they are, else in float32."""
    dtypes = [a.dtype for a in args]
    if are_indices(dtypes):
        return [_integer(a) for a in args]
    if are_whole(dtypes) and any(dtype in INTEGERS for dtype in dtypes):
        return [as_integer(a, "int32") if a.dtype == TRUTH else _integer(a) for a in args]
    return [as_float(a) for a in args]
