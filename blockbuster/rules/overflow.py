"""Exponentials that can overflow although the results made of them do not.

    exp(x) / (1 + exp(x))        inf / inf for large x; the result is 1
    log(1 + exp(x))              inf; the result is x

``safe`` removes those it can. The others are named here, and reported with every kernel. An
exponential that only makes its result grow, as a sum of exponentials does, is not named: there the
result itself is too large for a float. Every value carries the exponentials that it grows with and
those that it shrinks with; they may not meet in one product, quotient or difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from blockbuster.ir.expr import Arg, Call, Expr, arguments, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import (
    Cast,
    Elementwise,
    Functional,
    Head,
    Map,
    Pointwise,
    Reduce,
    Relabel,
    Transpose,
)
from blockbuster.ir.verify import check_graph

Found = dict[str, None]


@dataclass(frozen=True)
class Size:
    """The exponentials with which a value grows, and those with which it vanishes."""

    large: tuple[str, ...] = ()
    small: tuple[str, ...] = ()

    @property
    def inverse(self) -> Size:
        """The size of one over the value."""
        return Size(self.small, self.large)


MODERATE = Size()


def overflowing(graph: Graph) -> tuple[str, ...]:
    """A sentence for each exponential of ``graph`` that can overflow although its use does not.

    >>> from blockbuster.ir.parse import parse
    >>> text = "graph(X: M[M]) { Y = map M (x in X) { y = log(1 + exp(x))  yield y } return Y }"
    >>> overflowing(parse(text))
    ('exp can overflow: log takes it as it is written',)
    """
    check_graph(graph)
    found: Found = {}
    _Level(graph, [MODERATE] * len(graph.inputs), found).run()
    return tuple(found)


@dataclass
class _Level:
    """The sizes of the values of one graph."""

    graph: Graph
    inputs: Sequence[Size]
    found: Found
    sizes: dict[Value, Size] = field(default_factory=dict)

    def run(self) -> list[Size]:
        """The sizes of the outputs."""
        self.sizes = {Value(-1, port): size for port, size in enumerate(self.inputs)}
        for position, node in enumerate(self.graph.nodes):
            for port, size in enumerate(self._node(node)):
                self.sizes[Value(position, port)] = size
        return [self.sizes[output.value] for output in self.graph.outputs]

    def _node(self, node: Node) -> list[Size]:
        args = [self.sizes[value] for value in node.operands]
        match node.op:
            case Map(body=body):
                return _Level(body, args, self.found).run()
            case Elementwise(expr) | Pointwise(expr):
                return [self._expression(expr, node, args)]
            case Functional(name):
                return [self._call(NAMES.get(name, "maximum"), args, node)]
            case Reduce() | Cast() | Relabel() | Transpose() | Head():
                return args
        return [MODERATE] * len(node.types)

    def _expression(self, expr: Expr, node: Node, args: Sequence[Size]) -> Size:
        if isinstance(expr, Arg):
            return args[expr.index]
        if not isinstance(expr, Call):
            return MODERATE
        if expr.fn == "exp":
            stable = self._is_difference(expr.args[0], node) or not arguments(expr)
            return MODERATE if stable else Size(large=(_named("exp", node),))
        parts = [self._expression(arg, node, args) for arg in expr.args]
        return self._call(expr.fn, parts, node)

    def _is_difference(self, expr: Expr, node: Node) -> bool:
        """True for x less its maximum, which ``safe`` writes as sub0, or less one with others."""
        found = self._made_by(expr, node)
        if found is None or found[0].fn not in ("sub", "sub0"):
            return False
        difference, maker = found
        first, second = difference.args
        top = self._made_by(second, maker)
        if top is None or top[0].fn != "maximum":
            return difference.fn == "sub0"
        largest = [top[1].operands[arg.index] for arg in top[0].args if isinstance(arg, Arg)]
        known = isinstance(first, Arg) and maker.operands[first.index] in largest
        return known or difference.fn == "sub0"

    def _made_by(self, expr: Expr, node: Node) -> tuple[Call, Node] | None:
        """The function that gives an expression of a node's operands, and the node it is in."""
        if isinstance(expr, Arg):
            value = node.operands[expr.index]
            if value.node < 0:
                return None
            node = self.graph.nodes[value.node]
            match node.op:
                case Elementwise(made) | Pointwise(made):
                    expr = made
                case Functional("sub"):
                    expr = call("sub", Arg(0), Arg(1))
        return (expr, node) if isinstance(expr, Call) else None

    def _call(self, fn: str, args: Sequence[Size], node: Node) -> Size:
        first, last = args[0], args[-1]
        if fn == "log":
            self._meet(fn, node, first.large)
            return MODERATE
        if fn in ("reciprocal", "recip0", "rsqrt"):
            return first.inverse
        if fn in ("sub", "sub0") and first.large and last.large:
            self._meet(fn, node, first.large, last.large)
        if fn in ("mul", "div"):
            other = last.inverse if fn == "div" else last
            if (first.large and other.small) or (first.small and other.large):
                self._meet(fn, node, first.large, other.large)
            return Size(first.large + other.large, first.small + other.small)
        if fn in BOUNDED:
            return MODERATE
        parts = args[1:] if fn == "where" else args
        large = dict.fromkeys(name for part in parts for name in part.large)
        return Size(tuple(large), first.small if len(args) == 1 else ())

    def _meet(self, fn: str, node: Node, *exponentials: tuple[str, ...]) -> None:
        for name in (name for names in exponentials for name in names):
            self.found[f"{name} can overflow: {_named(fn, node)} takes it as it is written"] = None


BOUNDED = (
    "tanh", "sigmoid", "erf", "sin", "cos", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not",
)  # fmt: skip

# functional operator -> the scalar function that it applies; reductions keep what they are given
NAMES = {
    "mul": "mul", "div": "div", "add": "add", "sub": "sub",
    "row_scale": "mul", "col_scale": "mul", "dot": "mul", "outer": "mul",
}  # fmt: skip


def _named(fn: str, node: Node) -> str:
    lines = ", ".join(map(str, node.origin.lines()[:1]))
    return f"{fn} ({lines})" if lines else fn
