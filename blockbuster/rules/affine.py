"""Values of a map's body as ``rest + slope * factor``, for a factor that all iterations share.

    value                rest              slope
    row_scale(x, c)      0                 x
    row_shift(x, c)      x                 1
    mul(p, g)            0                 mul(x, g)             p = row_scale(x, c)
    where(b, q, 0)       where(b, x, 0)    where(b, 1, 0)        q = row_shift(x, c)
    abs(p)               0                 abs(x)                times the size of the factor

Products and sums of blocks, rows and columns are taken as scalar functions over axes that are
matched by dim, so that a part may have fewer axes than the value, or be one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Expr, arguments, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Functional
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, Type
from blockbuster.rules.base import label
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.element_formulas import scalar_of
from blockbuster.rules.laws import SCALES
from blockbuster.rules.linear_expressions import BOTH, ONE, NotAffine, Parts, split

Term = Value | Expr
"""A value of the edited body, or an expression without arguments (one number)."""


class Leaves(list[Value]):
    """The values that the arguments of an expression stand for."""

    def arg(self, term: Term | None) -> Expr | None:
        """The argument that stands for a value; a number stays as it is."""
        if not isinstance(term, Value):
            return term
        if term not in self:
            self.append(term)
        return Arg(self.index(term))


OfCalls = Callable[[Call], "Parts[Expr] | None"]
Own = Callable[[Call, Node, Leaves], "Parts[Expr] | None"]
"""The parts of a function of a node's operands, where a rule knows them by itself."""


@dataclass
class Affine:
    """The values of ``body`` that depend on a factor over ``axes``, as their parts.

    ``parts`` starts with those that are known; new ones are made in ``builder``, an edit of the
    body. Values that are no such sum have the reason in ``refused``, as has all that reads them.
    ``passed`` are the functions that the factor passes, beside arithmetic. Behind absolute values,
    ``sizes`` holds the values that are multiples of its size.
    """

    body: Graph
    builder: Builder
    axes: tuple[Dim, ...]
    origin: Origin
    parts: dict[Value, Parts[Term]] = field(default_factory=dict)
    own: Own | None = None
    refused: dict[Value, str] = field(default_factory=dict)
    passed: tuple[str, ...] = SCALES[0].passes
    sizes: dict[Value, None] = field(default_factory=dict)

    @classmethod
    def of(
        cls, body: Graph, factor: Value, origin: Origin, passed: tuple[str, ...] = SCALES[0].passes
    ) -> Affine:
        """What depends on one value of ``body``, which is a part of itself, followed to the end."""
        found = cls(body, Builder(body), body.type_of(factor).axes, origin, passed=passed)
        found.parts[factor] = Parts(None, ONE)
        found.follow()
        return found

    def follow(self) -> None:
        """Find the parts of every value that has some."""
        for position, node in enumerate(self.body.nodes):
            reasons = [self.refused[value] for value in node.operands if value in self.refused]
            made = None
            try:
                made = None if reasons else self._node(node)
            except NotAffine as reason:
                reasons = [str(reason)]
            if reasons:
                ports = range(len(node.types))
                self.refused.update((Value(position, port), reasons[0]) for port in ports)
            elif made is not None:
                self.parts[Value(position)] = made
                if self._is_size(node):
                    self.sizes[Value(position)] = None

    def _node(self, node: Node) -> Parts[Term] | None:
        given = [self.parts.get(value) for value in node.operands]
        expr = scalar_of(node)
        if expr is not None:
            return self._pointwise(expr, node)
        if not any(given):
            return None
        match node.op:
            case Functional("dot") if "dot" in self.passed:
                return self._dot(node, given)
            case Functional(name) if name in self.passed:
                return self._row_fold(name, node, given)
        raise NotAffine(label(node))

    def _is_size(self, node: Node) -> bool:
        """Whether a node makes, or passes on, multiples of the size of the factor."""
        held = [value in self.sizes for value in node.operands if value in self.parts]
        return any(held) or _size_of(node, self.passed) is not None

    # scalar functions -----------------------------------------------------------------

    def _pointwise(self, expr: Expr, node: Node) -> Parts[Term] | None:
        leaves = Leaves()

        def own(inner: Call) -> Parts[Expr] | None:
            return self.own(inner, node, leaves) if self.own else None

        of = _size_of(node, self.passed)
        found = self.split(expr if of is None else of, node, leaves, own)
        if found.slope is None:
            return None
        if of is not None:
            if found.rest is not None:
                raise NotAffine("the size of a sum of it and others")
            found = Parts(None, call("abs", found.slope))
        if len({value in self.sizes for value in node.operands if value in self.parts}) > 1:
            raise NotAffine("a sum of it and its size")
        rest, slope = (self._emitted(part, leaves, node) for part in (found.rest, found.slope))
        return Parts(rest, slope)

    def split(
        self, expr: Expr, node: Node, leaves: Leaves, own: OfCalls = lambda _: None
    ) -> Parts[Expr]:
        """The parts of an expression of a node's operands; raises as ``split``."""

        def operand(arg: Arg) -> Parts[Expr]:
            value = node.operands[arg.index]
            parts = self.parts.get(value) or Parts[Term](value, None)
            return Parts(leaves.arg(parts.rest), leaves.arg(parts.slope))

        return split(expr, operand, own)

    def _emitted(self, expr: Expr | None, leaves: Sequence[Value], node: Node) -> Term | None:
        if expr is None or not arguments(expr):
            return expr
        axes = node.types[0].axes
        return by_dim(self.builder, expr, leaves, axes, self.origin, node.hints)

    # folds ----------------------------------------------------------------------------

    def _row_fold(self, name: str, node: Node, given: Sequence[Parts[Term] | None]) -> Parts[Term]:
        (folded,) = self.body.types_of(node.operands)
        self._does_not_change_along(folded.axes[-1])
        if name != "row_sum" and given[0] and given[0].rest is not None:
            raise NotAffine("a sum of it and others")

        def row_fold(term: Term) -> Term:
            if not isinstance(term, Value):
                raise NotAffine(f"one number, added along {folded.axes[-1]}")
            if self.builder.type_of(term).axes[-1:] != folded.axes[-1:]:
                raise NotAffine(f"a part that is the same along {folded.axes[-1]}")
            return self._add(Functional(name), term, hints=node.hints)

        return _each(given[0], row_fold)

    def _dot(self, node: Node, given: Sequence[Parts[Term] | None]) -> Parts[Term]:
        self._does_not_change_along(self.body.type_of(node.operands[0]).axes[1])
        if all(given):
            raise NotAffine(BOTH)
        at = 0 if given[0] else 1
        whole, plain = self.body.type_of(node.operands[at]), node.operands[1 - at]

        def product(term: Term) -> Term:
            if not self._is_whole(term, whole):
                return self._weighted(term, plain, whole.axes[1], node)
            assert isinstance(term, Value)
            factors = (term, plain) if at == 0 else (plain, term)
            return self._add(Functional("dot"), *factors, hints=node.hints)

        found = given[at]
        assert found is not None
        if all(self._is_whole(part, whole) for part in (found.rest, found.slope)):
            raise NotAffine("two matrix products in place of one")
        return _each(found, product)

    def _weighted(self, term: Term, plain: Value, inner: Dim, node: Node) -> Value:
        """The product of ``plain`` with a block whose rows, or columns, are all ``term``."""
        if not isinstance(term, Value) or self.builder.type_of(term).axes != (inner,):
            raise NotAffine(f"a part that is the same along {inner}")
        weighted = self._add(Functional("col_scale"), plain, term)
        return self._add(Functional("row_sum"), weighted, hints=node.hints)

    def _is_whole(self, term: Term | None, type: Type) -> bool:
        return isinstance(term, Value) and self.builder.type_of(term) == type

    def _does_not_change_along(self, dim: Dim) -> None:
        if dim in self.axes:
            raise NotAffine(f"a fold along {dim}, along which it changes")

    def _add(self, op: Functional, *operands: Value, hints: tuple[str, ...] = ()) -> Value:
        return self.builder.add(op, *operands, hints=hints, origin=self.origin)[0]


def _size_of(node: Node, passed: tuple[str, ...]) -> Expr | None:
    """What a node takes absolute values of, if these are passed."""
    match scalar_of(node):
        case Call("abs", (expr,)) if "abs" in passed:
            return expr
    return None


def _each(parts: Parts[Term] | None, change: Callable[[Term], Term]) -> Parts[Term]:
    """Both parts under a linear operator."""
    assert parts is not None
    rest, slope = (None if part is None else change(part) for part in (parts.rest, parts.slope))
    return Parts(rest, slope)
