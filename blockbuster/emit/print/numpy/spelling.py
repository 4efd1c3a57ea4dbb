"""Spellings of operators and scalar expressions in NumPy.

Tables of texts; names in braces are operands. Names without `np.` are defined in own_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property

from blockbuster.emit.print.numpy.own_functions import HELPERS, HELPERS_OF
from blockbuster.ir.expr import (
    INFIX,
    Arg,
    Call,
    Const,
    Expr,
    Size,
    arguments,
    is_predicate,
    show_number,
    without_zeros,
)
from blockbuster.ir.types import Dim

# dots and reductions; items are arrays with the axes of the operand
FUNCTIONAL_TEXT: dict[str, str] = {
    "row_sum": "{0}.sum(axis=-1)",
    "row_prod": "{0}.prod(axis=-1, dtype=np.float64)",  # rounded once, as the library does
    "row_max": "{0}.max(axis=-1, initial=-np.inf)",
    "row_min": "{0}.min(axis=-1, initial=np.inf)",
    "dot": "{0} @ {1}.T",  # np.dot leaves out what a single 0 is multiplied by, NaN too
}  # fmt: skip

# the same of float64 alone
DOUBLE_TEXT = FUNCTIONAL_TEXT | {
    "row_sum": "np.add.reduce({0}, axis=-1)",
    "row_prod": "np.multiply.reduce({0}, axis=-1)",
    "row_max": "np.maximum.reduce({0}, axis=-1, initial=-np.inf)",
    "row_min": "np.minimum.reduce({0}, axis=-1, initial=np.inf)",
}

INTO_TEXT = {
    "add": "np.add", "sub": "np.subtract", "mul": "np.multiply", "div": "np.divide", "neg": "",
}  # fmt: skip
"""Infix operators as functions, which take the memory that the result is written to. NumPy 2.4
negates wrongly from each 64th byte to memory in steps: it makes its own.
"""

# computed in double precision and rounded once, so that float32 errs no more than eager does
EXACT_FUNCTIONAL = {"row_sum": "row_sum", "dot": "dot"}
WIDE_FUNCTIONAL = {"row_sum": "wide_row_sum", "dot": "wide_dot"}
EXACT_CALL_TEXT = {
    "exp": "exp", "log": "log", "tanh": "tanh", "sigmoid": "near_sigmoid", "silu": "near_silu",
    "gelu": "near_gelu", "sub0": "minus",
}  # fmt: skip

DOUBLE_CALL_TEXT = {"sigmoid": "near_sigmoid", "silu": "near_silu", "sub0": "minus"}

WIDE = "np.float64"

MONOID_TEXT = {
    "+": "{0} + {1}", "prod": "{0} * {1}", "max": "np.maximum({0}, {1})",
    "min": "np.minimum({0}, {1})",
}  # fmt: skip
IDENTITY_TEXT = {"+": "0", "prod": "1", "max": "-np.inf", "min": "np.inf"}

# scalar functions that are no infix operators; a name without `np.` is a helper
CALL_TEXT: dict[str, str] = {
    "exp": "np.exp", "log": "np.log", "sqrt": "np.sqrt", "tanh": "np.tanh", "abs": "np.abs",
    "square": "np.square", "maximum": "np.maximum", "minimum": "np.minimum",
    "neg": "np.negative", "reciprocal": "reciprocal", "rsqrt": "rsqrt", "relu": "relu",
    "sigmoid": "sigmoid", "silu": "silu", "gelu": "gelu", "erf": "erf",
    "sub0": "sub0", "recip0": "recip0",
    "floordiv": "np.floor_divide", "mod": "np.mod", "whole": "whole",
    "bitand": "np.bitwise_and", "shl": "np.left_shift", "shr": "np.right_shift",
    "floor": "np.floor", "round": "np.rint", "sin": "np.sin", "cos": "np.cos",
    "log1p": "np.log1p", "expm1": "np.expm1", "atan": "np.arctan",
}  # fmt: skip

INTO_HELPERS = ("exp", "log", "tanh", "near_sigmoid", "near_silu", "minus", "dot")
"""Functions of a text's own that take that memory, too."""

ROUNDING = (
    "exp", "log", "tanh", "near_sigmoid", "near_silu", "near_gelu", "near_power", "erf", "row_sum",
    "dot",
)  # fmt: skip
"""Functions of a text's own that are told the dtype of their result."""

# names that a text needs, or Python
RESERVED = (
    "np", "math", "run", "safe", "inputs", "sizes", "block_sizes", "dtype", "order", "empty",
    "range", "min", "list", *HELPERS, "and", "as", "assert", "async", "await", "break", "class",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
    "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
    "while", "with", "yield", "True", "False", "None",
)  # fmt: skip


class Spelling:
    """Writes expressions and remembers which helpers and sizes they need.

    ``exact``: functions and sums are computed in float64 and rounded once; else NumPy's own do,
    as they do where all is float64. ``dtype`` is what typed constants are written with.
    Powers, and numbers that replace others, are written by helpers unless ``exact`` is False.
    """

    def __init__(self, size_name: Callable[[Dim], str], *, exact: bool = True) -> None:
        self._size_name = size_name
        self._calls = {**CALL_TEXT, **EXACT_CALL_TEXT} if exact else CALL_TEXT
        self._exact = EXACT_FUNCTIONAL if exact else {}
        self._functionals = FUNCTIONAL_TEXT
        self._by_helpers = exact
        self.dtype = "dtype"
        self.helpers: dict[str, None] = {}

    def of(self, *, wide: bool, exact: bool = False) -> Spelling:
        """This, or the same for what is computed in float64 whatever ``dtype`` is.

        ``exact``: of float64, so that nothing has to be converted.
        """
        if exact and self._by_helpers:
            return self._wide._double if wide else self._double
        return self._wide if wide else self

    @cached_property
    def _wide(self) -> Spelling:
        other = copy(self)
        other._exact, other.dtype = WIDE_FUNCTIONAL, WIDE
        return other

    @cached_property
    def _double(self) -> Spelling:
        other = copy(self)
        other._exact, other._functionals = {}, DOUBLE_TEXT
        other._calls = {**CALL_TEXT, **DOUBLE_CALL_TEXT}
        return other

    def helper(self, name: str) -> str:
        """The name of a helper, which the text will define."""
        for needed in (*HELPERS_OF.get(name, ()), name):
            self.helpers.setdefault(needed)
        return name

    def _called(self, name: str, args: Sequence[str], *options: str) -> str:
        """A call of NumPy's function or of the text's own, which may be told its result's dtype."""
        if not name.startswith("np."):
            self.helper(name)
        told = (self.dtype,) if name in ROUNDING else ()
        return f"{name}({', '.join((*args, *told, *options))})"

    def value(self, expr: Expr, names: Sequence[str]) -> str:
        """``expr`` as the value of a name: a typed number, never one of Python's own."""
        return self._typed(expr) if isinstance(expr, Const) else self.number(expr, names)

    def _typed(self, const: Const) -> str:
        return f"{self.dtype}({_constant(const.value, 0)})"

    def _operand(self, call: Call, at: int, names: Sequence[str], floor: int = 0) -> str:
        """Operand ``at`` of ``call`` as a number.

        Among constants alone the first is typed: Python's own numbers have other truth values
        (~True is -2) and other arithmetic (1 / 0 raises an error).
        """
        first = call.args[at]
        if at == 0 and isinstance(first, Const) and all(isinstance(a, Const) for a in call.args):
            return self._typed(first)
        return self.number(first, names, floor)

    def functional(self, name: str, args: Sequence[str]) -> str:
        """A dot or reduction of operands of these names."""
        if name in self._exact:
            return self._called(self._exact[name], args)
        return self._functionals[name].format(*args)

    def functional_into(self, name: str, args: Sequence[str], memory: str) -> str:
        """The same, written to ``memory``; empty if it takes none."""
        helper = self._exact.get(name, "")
        if helper not in INTO_HELPERS:
            return ""
        return self._called(helper, args, f"out={memory}")

    def into(self, expr: Expr, names: Sequence[str], memory: str, free: str) -> str:
        """``expr`` written to ``memory``; empty if its function takes none.

        ``free``: the operand whose memory may be overwritten before the last step, or empty.
        """
        assert isinstance(expr, Call)
        function = self._filling(expr)
        if not function:
            return ""
        texts = []
        for at, part in enumerate(expr.args):
            others = [
                names[i] for a in (*expr.args[:at], *expr.args[at + 1 :]) for i in arguments(a)
            ]
            alone = free and free not in others and free in (names[i] for i in arguments(part))
            step = self.into(part, names, free, free) if alone and isinstance(part, Call) else ""
            text = step or self._operand(expr, at, names)
            texts.append(f"{text}.0" if text.isdigit() else text)  # NumPy takes a float faster
        return self._called(function, texts, f"out={memory}")

    def _filling(self, expr: Call) -> str:
        """The function of ``expr`` that writes to memory it is given; empty if there is none."""
        name = INTO_TEXT.get(expr.fn, self._calls.get(expr.fn, ""))
        if is_predicate(expr) or not name.startswith("np."):
            return name if name in INTO_HELPERS else ""
        return name

    def number(self, expr: Expr, names: Sequence[str], floor: int = 0) -> str:
        """``expr`` as a number; a truth value becomes 0 or 1."""
        if is_predicate(expr):
            return f"({self.truth(expr, names)}).astype({self.dtype})"
        match expr:
            case Arg(index):
                return names[index]
            case Size(dim):
                return f"{self.dtype}({self._size_name(dim)})"
            case Const(value):
                return _constant(value, floor)
            case Call("whole", (arg,)) if not arguments(arg):
                return f"np.int64({self._wide.number(arg, names)})"
            case Call("where") if self._by_helpers and (x := without_zeros(expr)) is not None:
                return f"{self.helper('divisor')}({self.number(x, names)})"
            case Call(
                "where", (Call("eq", (Arg() as x, Const() as old)), Const() as new, same)
            ) if self._by_helpers and x == same:
                parts = (self.number(part, names) for part in (x, old, new))
                return f"{self.helper('replaced')}({', '.join(parts)})"
            case Call("where", (condition, a, b)):
                text = f"np.where({self.truth(condition, names)}, "
                text += f"{self.number(a, names)}, {self.number(b, names)})"
                plain = isinstance(a, Const) and isinstance(b, Const)
                return f"{text}.astype(dtype)" if plain else text
            case Call("pow") if self._by_helpers and not all(map(_is_one_number, expr.args)):
                given = (self._operand(expr, at, names) for at in (0, 1))
                return self._called("near_power", [*given])
            case Call(fn) if fn in INFIX:
                sign, level = INFIX[fn]
                power = fn == "pow"
                a_text = self._operand(expr, 0, names, level + power)
                b_text = self._operand(expr, 1, names, level + (not power))
                text = f"{a_text} {sign} {b_text}"
                return f"({text})" if level < floor else text
            case Call(fn, args):
                given = (self._operand(expr, at, names) for at in range(len(args)))
                return self._called(self._calls[fn], [*given])
        raise AssertionError(expr)

    def truth(self, expr: Expr, names: Sequence[str]) -> str:
        """``expr`` as a truth value; a number is true where it is not 0."""
        match expr:
            case Call("and", (a, b)):
                return f"({self.truth(a, names)}) & ({self.truth(b, names)})"
            case Call("or", (a, b)):
                return f"({self.truth(a, names)}) | ({self.truth(b, names)})"
            case Call("not", (a,)):
                return f"~({self.truth(a, names)})"
            case Call(fn) if is_predicate(expr):
                sign, level = INFIX[fn]
                left, right = (self._operand(expr, at, names, level + 1) for at in (0, 1))
                return f"{left} {sign} {right}"
            case Const():
                return f"{self._typed(expr)} != 0"
        return f"{self.number(expr, names, 5)} != 0"


def _is_one_number(expr: Expr) -> bool:
    """True for a number that is one for all elements."""
    return isinstance(expr, Const | Size)


def _constant(value: float, floor: int) -> str:
    if value != value:
        return "np.nan"
    text = show_number(value).replace("inf", "np.inf")
    return f"({text})" if text.startswith("-") and floor > 0 else text


def aligned(name: str, axes: tuple[Dim, ...], target: tuple[Dim, ...]) -> str:
    """``name`` with the axes ``target``: missing ones are inserted, others have extent 1 and go."""
    if axes == target:
        return name
    picked = f"[{', '.join(':' if d in target else '0' for d in axes)}]"
    text = name if all(d in target for d in axes) else name + picked
    kept = tuple(d for d in axes if d in target)
    if kept == target or not kept:
        return text
    return f"{text}[{', '.join(':' if d in kept else 'None' for d in target)}]"
