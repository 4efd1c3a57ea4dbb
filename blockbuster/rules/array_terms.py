"""The values of a program as terms over whole arrays: what each is, wherever it is computed.

A loop over blocks changes no element, so a term knows no loops: an item of a list is the list, and
a fold over the iterations of a map is a fold along its dim. Dims have names, hence two values with
one term have the same elements where their dims agree, also if one was stored and the other is
computed again. Terms are numbered by what makes them, so that comparing two is comparing numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from blockbuster.ir.expr import COMMUTATIVE, Arg, Call, Const, Expr, Size
from blockbuster.ir.graph import Graph, Input, Node, Read, Value
from blockbuster.ir.ops import (
    MONOID_OF,
    Accumulate,
    Cast,
    Collect,
    Functional,
    Map,
    Reduce,
    Relabel,
    Result,
    Scan,
    Transpose,
)
from blockbuster.rules.element_formulas import scalar_of

Number = int


class Term(NamedTuple):
    """A function, the numbers of the terms that it is applied to, and the node that applies it.

    ``fn`` is a scalar function's name; "fold +", "fold max" or "fold min" of all or of a block's
    elements along a dim; else the name of an operator. ``leaf`` tells apart what has no operands.
    """

    fn: str
    args: tuple[Number, ...] = ()
    leaf: Hashable = None


@dataclass
class Terms:
    """Numbered terms; ``nodes`` holds the node that first made each."""

    terms: list[Term] = field(default_factory=list)
    nodes: list[Node | None] = field(default_factory=list)
    _numbers: dict[Term, Number] = field(default_factory=dict)

    def number(self, term: Term, node: Node | None = None) -> Number:
        """The number of a term: always the same one, in whatever order it adds or multiplies."""
        term = _ordered(term)
        if term not in self._numbers:
            self._numbers[term] = len(self.terms)
            self.terms.append(term)
            self.nodes.append(node)
        return self._numbers[term]

    def __getitem__(self, number: Number) -> Term:
        return self.terms[number]

    def known(self, fn: str, args: tuple[Number, ...], leaf: Hashable = None) -> Number | None:
        """The number of a term that was met, or None."""
        return self._numbers.get(_ordered(Term(fn, args, leaf)))

    def values(self, graph: Graph, given: Sequence[Number] | None = None) -> dict[Value, Number]:
        """The terms of the values of a graph, or of a map's body whose inputs are ``given``."""
        if given is None:
            given = [self._input(i, port) for port, i in enumerate(graph.inputs)]
        made = {Value(-1, port): number for port, number in enumerate(given)}
        for position in graph.places():
            node = graph.nodes[position]
            args = [made[value] for value in node.operands]
            for port, number in enumerate(self._node(graph, node, args)):
                made[Value(position, port)] = number
        return made

    def _input(self, given: Input, port: int) -> Number:
        view = given.view
        read = (view.source, view.axes) if isinstance(view, Read) else view or port
        return self.number(Term("input", leaf=read))

    def _node(self, graph: Graph, node: Node, args: list[Number]) -> list[Number]:
        expr = scalar_of(node)
        if expr is not None:
            return [self._expression(expr, node, args)]
        match node.op:
            case Map(dim=dim, body=body, results=results, start=0):
                inner = self.values(body, args)
                ends = zip(body.outputs, results, strict=True)
                return [self._result(inner[end.value], r, dim, node) for end, r in ends]
            case Functional("dot"):
                dim = graph.type_of(node.operands[0]).axes[-1]
                return [self._folded("+", dim, self.number(Term("mul", tuple(args)), node), node)]
            case Functional(name) if name in MONOID_OF:
                dim = graph.type_of(node.operands[0]).axes[-1]
                return [self._folded(MONOID_OF[name], dim, args[0], node)]
            case Reduce(dim, monoid):
                return [self._folded(monoid, dim, args[0], node)]
            case Scan():
                dim = node.types[0].axes[-1]
                return [self.number(Term("scan", tuple(args), (node.op, dim)), node)]
            case Cast() | Transpose():
                return args
            case Relabel(old, new):
                return [self.number(Term("relabel", tuple(args), (old, new)), node)]
        return [
            self.number(Term("operator", tuple(args), (node.op, port)), node)
            for port in range(len(node.types))
        ]

    def _result(self, end: Number, result: Result, dim: str, node: Node) -> Number:
        match result:
            case Collect():
                return end
            case Accumulate(monoid):
                return self._folded(monoid, dim, end, node)
        return self.number(Term("significand", (end,), dim), node)

    def _folded(self, monoid: str, dim: str, of: Number, node: Node) -> Number:
        """A fold along a dim; one of the folds of blocks along it is the same fold."""
        term = Term(f"fold {monoid}", (of,), dim)
        inner = self.terms[of]
        if inner.fn == term.fn and inner.leaf == dim:
            return of
        return self.number(term, node)

    def _expression(self, expr: Expr, node: Node, args: list[Number]) -> Number:
        match expr:
            case Arg(index):
                return args[index]
            case Const(value):
                return self.number(Term("number", leaf=repr(value)))
            case Size(dim):
                return self.number(Term("size", leaf=dim))
            case Call(fn, given):
                parts = tuple(self._expression(part, node, args) for part in given)
                return self.number(Term(fn, parts), node)


def _ordered(term: Term) -> Term:
    return term._replace(args=tuple(sorted(term.args))) if term.fn in COMMUTATIVE else term


def value_of(term: Term) -> float | None:
    """The number that a term is, if it is one."""
    return float(str(term.leaf)) if term.fn == "number" else None


def below(terms: Terms, number: Number) -> Iterator[Number]:
    """``number`` and what its folds and extrema are taken of: the elements it may be one of."""
    left = [number]
    while left:
        found = left.pop()
        yield found
        term = terms[found]
        if term.fn in ("fold max", "fold min", "maximum", "minimum"):
            left += term.args
