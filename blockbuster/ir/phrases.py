"""Parsing of the parts of a text that need no graph around them: axes, lengths, operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from blockbuster.errors import among
from blockbuster.ir.expr import DEEPEST, FUNCTIONS, INFIX, Arg, Call, Const, Expr, Size
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.lengths import ONE, Length, whole
from blockbuster.ir.ops import Cast, Elementwise, Op, Pointwise, Relabel, Scan, Transpose
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.show import factor_names
from blockbuster.ir.signatures import FUNCTIONALS
from blockbuster.ir.tokens import TokenReader
from blockbuster.ir.types import Dim, Type
from blockbuster.ir.views import AxisView, Run, Strided

T = TypeVar("T")
LOOSEST, _PRODUCT = 1, INFIX["mul"][1]
_UNARY = {"-": ("neg", 8), "not": ("not", 4)}
_CLAMPS = ("maximum", "floor")  # with which a length may begin
_BY_SIGN = {sign: (fn, level) for fn, (sign, level) in INFIX.items()}


class PhraseReader(TokenReader):
    """A text, and how far it is read: its phrases, which need no program around them."""

    def _axis(self) -> AxisView:
        if self._has("1"):
            return None
        of = self._take(kind="name")
        if not self._has("["):
            return of
        runs = [] if self._ends_runs() else [self._run()]
        while runs and self._has(","):
            runs.append(self._run())
        start = self._length() if self._has("from") else Length()
        extent = self._length() if self._has("of") else None
        padded = self._has("padded")
        self._take("]")
        return Strided(of, tuple(runs), start, extent, padded)

    def _run(self) -> Run:
        dim = self._take(kind="name")
        size = self._length() if self._has("=") else None
        return Run(dim, size, self._length() if self._has("step") else ONE)

    def _ends_runs(self) -> bool:
        """True at a bracket, and at a word with a length behind it: dims may have its name, too."""
        following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        length = following.kind == "number" or following.text in ("|", "(", "-", *_CLAMPS)
        return self._next == "]" or (self._next in ("from", "of") and length)

    def _size(self) -> Dim:
        self._take("|")
        dim = self._take(kind="name")
        self._take("|")
        return dim

    def _length(self) -> Length:
        """A number of elements, written like a scalar expression over sizes."""

        def leaf(name: str) -> Expr:
            self._refuse(f"{name} is no size: write |{name}|")

        total, sign = Length(), 1
        while True:  # a sum may have any number of terms, so it is not read as one expression
            term = length_of(self._infix(leaf, _PRODUCT))
            if term is None:
                self._refuse("a number of elements is a sum of products of sizes")
            total += term * whole(sign)
            if self._next not in ("+", "-"):
                return total
            sign = 1 if self._take() == "+" else -1

    def _type(self) -> Type:
        lists = []
        while self._next != "[":
            lists.append(self._take(kind="name"))
            if self._next != "[":
                self._take(",")
        return Type(tuple(lists), self._dims_in_brackets())

    def _dims_in_brackets(self) -> tuple[Dim, ...]:
        self._take("[")
        return tuple(self._several("]", lambda: self._take(kind="name")))

    def _scalar(self, named: Callable[[str], T]) -> tuple[Op, list[T]]:
        """A pointwise or elementwise operator and its operands: what ``named`` gives for names."""
        operands: list[T] = []

        def leaf(name: str) -> Expr:
            value = named(name)
            if value not in operands:
                operands.append(value)
            return Arg(operands.index(value))

        expr = self._infix(leaf, LOOSEST)
        if self._has("over"):
            return Pointwise(expr, self._dims_in_brackets()), operands
        return Elementwise(expr), operands

    def _factor(self, leads: int) -> Expr:
        """How a significand is repaired for its leads: an expression over ``factor_names``."""
        names = factor_names(leads)

        def leaf(name: str) -> Expr:
            if name not in names:
                self._refuse(f"a factor reads {', '.join(names)}, not {name}")
            return Arg(names.index(name))

        return self._infix(leaf, LOOSEST)

    def _transpose(self) -> Op:
        type = self._type()
        return Transpose(type.lists, type.axes)

    def _relabel(self) -> Op:
        old = self._take(kind="name")
        self._take("->")
        return Relabel(old, self._take(kind="name"))

    def _regroup(self) -> Op:
        sides: list[list[Dim]] = []
        for end in ("->", "("):
            sides.append([self._take(kind="name")])
            while self._next != end:
                self._take(",")
                sides[-1].append(self._take(kind="name"))
            if end == "->":
                self._take("->")
        old, new = map(tuple, sides)
        return Regroup(old, new)

    def _cast(self) -> Op:
        return Cast(self._take(kind="name"))

    def _scan_op(self) -> Op:
        back = self._has("back")
        return Scan(self._take(), back)

    def _infix(self, leaf: Callable[[str], Expr], floor: int) -> Expr:
        self._nested += 1
        self._limit(self._nested, DEEPEST, "an expression nests")
        left = self._prefix(leaf)
        while self._next in _BY_SIGN and _BY_SIGN[self._next][1] >= floor:
            fn, level = _BY_SIGN[self._take()]
            left = Call(fn, (left, self._infix(leaf, level + (fn != "pow"))))
            self._limit(left.depth, DEEPEST, "an expression nests")
        self._nested -= 1
        return left

    def _prefix(self, leaf: Callable[[str], Expr]) -> Expr:
        token = self._tokens[self._at]
        if token.text in _UNARY:
            self._take()
            if token.text == "-" and self._tokens[self._at].text in ("inf", "nan"):
                return Const(-float(self._take()))
            if token.text == "-" and self._tokens[self._at].kind == "number":
                return Const(-float(self._take()))
            fn, floor = _UNARY[token.text]
            return Call(fn, (self._infix(leaf, floor),))
        if token.kind == "number" or token.text in ("inf", "nan"):
            return Const(float(self._take()))
        if self._has("("):
            inner = self._infix(leaf, LOOSEST)
            self._take(")")
            return inner
        if self._next == "|":
            return Size(self._size())
        name = self._take(kind="name")
        if name in FUNCTIONS and self._has("("):
            args = self._several(")", lambda: self._infix(leaf, LOOSEST))
            if len(args) != FUNCTIONS[name]:
                self._refuse(f"{name} takes {FUNCTIONS[name]} arguments, got {len(args)}")
            return Call(name, tuple(args))
        if self._next == "(":
            hint = among(name, (*FUNCTIONS, *FUNCTIONALS))
            self._refuse(f"unknown operator {name!r}", hint=hint)
        return leaf(name)


# operators of one operand, by the word that they begin with: what stands before the operand
OF_ONE: dict[str, Callable[[PhraseReader], Op]] = {
    "transpose": PhraseReader._transpose,
    "relabel": PhraseReader._relabel,
    "regroup": PhraseReader._regroup,
    "cast": PhraseReader._cast,
    "scan": PhraseReader._scan_op,
}
