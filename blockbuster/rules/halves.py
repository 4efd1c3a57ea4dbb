"""A factor times an exponential of a sum, as two factors where the exponential may be too large.

before   t = h * 2                          after   t = h * 2
         y = w * exp(t)                             e = exp(h)
                                                    y = w * e * e

``safe`` joins w * exp(a) * exp(b) to w * exp(a + b). If no maximum bounds a + b, exp(a + b) may be
infinite, or 0, although each exponential and the product are neither, as eager computes them. Its
root is neither: if the product is finite and w is not smaller than floats with all their digits,
then (a + b) / 2 is below the largest exponent. Without a factor w nothing changes: exp(a + b) is
the result.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Const, Expr, call
from blockbuster.ir.graph import Graph, Node, Output, Value
from blockbuster.ir.ops import Elementwise, Map, Op, Pointwise
from blockbuster.rules.array_terms import Number, Terms
from blockbuster.rules.upper_bounds import Bounds

SCALAR = (Elementwise, Pointwise)


def halved(graph: Graph) -> Graph:
    """``graph`` with factors times joined exponentials in two factors, where no bound shows."""
    return _Halver().halved(graph, None) if _has_candidates(graph) else graph


def _has_candidates(graph: Graph) -> bool:
    return any(
        _has_candidates(node.op.body)
        if isinstance(node.op, Map)
        else _joined_exponent(graph, node) is not None
        for node in graph.nodes
    )


def _joined_exponent(graph: Graph, node: Node) -> int | None:
    """The operand t of ``node`` if it is w * exp(t) with a sum t that ``safe`` made, else None."""
    if not isinstance(node.op, SCALAR):
        return None
    index = _exponent_in(node.op.expr)
    if index is None or node.operands[index].node < 0:
        return None
    maker = graph.nodes[node.operands[index].node]
    if maker.origin.rule != "safe" or not isinstance(maker.op, SCALAR):
        return None
    sums = isinstance(maker.op.expr, Call) and maker.op.expr.fn in ("add", "sub0", "mul")
    return index if sums else None


def _exponent_in(expr: Expr) -> int | None:
    """The argument t of w * exp(t), which nothing else reads; None for other expressions."""
    at = expr
    while isinstance(at, Call) and at.fn in ("mul", "div"):
        parts = at.args if at.fn == "mul" else at.args[:1]
        at = next((part for part in parts if _holds_power(part)), Const(1.0))
    if at is expr or not (isinstance(at, Call) and at.fn == "exp" and isinstance(at.args[0], Arg)):
        return None
    index = at.args[0].index
    return index if [*_leaves(expr)].count(index) == 1 else None


def _leaves(expr: Expr) -> Sequence[int]:
    """The arguments that ``expr`` reads, as often as it reads them."""
    if isinstance(expr, Arg):
        return (expr.index,)
    return [at for part in expr.args for at in _leaves(part)] if isinstance(expr, Call) else ()


def _holds_power(expr: Expr) -> bool:
    """True for exp(t), and for products and quotients with it."""
    if not isinstance(expr, Call):
        return False
    if expr.fn in ("mul", "div"):
        return any(map(_holds_power, expr.args[: 2 if expr.fn == "mul" else 1]))
    return expr.fn == "exp"


def _without_exp(expr: Expr, index: int) -> Expr:
    """``expr`` with its argument ``index`` in place of the exponential of it."""
    if expr == Call("exp", (Arg(index),)):
        return Arg(index)
    if not isinstance(expr, Call):
        return expr
    return replace(expr, args=tuple(_without_exp(part, index) for part in expr.args))


@dataclass
class _Halver:
    """What is known of the sizes of terms, while a program and the bodies of its maps are read."""

    terms: Terms = field(default_factory=Terms)

    def __post_init__(self) -> None:
        self.bounds = Bounds(self.terms)

    def halved(self, graph: Graph, given: Sequence[Number] | None) -> Graph:
        """``graph``, a program or a body whose inputs are the terms ``given``."""
        known = self.terms.values(graph, given)
        builder, made = Builder(), dict[Value, Value]()
        for port, one in enumerate(graph.inputs):
            made[Value(-1, port)] = builder.input(one.type, one.view, one.hint)
        for position, node in enumerate(graph.nodes):
            op: Op = node.op
            operands = [made[value] for value in node.operands]
            index = _joined_exponent(graph, node)
            if isinstance(op, Map) and not op.start and _has_candidates(op.body):
                op = replace(op, body=self.halved(op.body, [known[v] for v in node.operands]))
            elif index is not None and not self.bounds.is_bounded(known[node.operands[index]]):
                operands[index] = _half(builder, operands[index], node)
                assert isinstance(op, SCALAR)
                op = replace(op, expr=call("mul", _without_exp(op.expr, index), Arg(index)))
            results = builder.add(op, *operands, hints=node.hints, origin=node.origin)
            made |= {Value(position, port): value for port, value in enumerate(results)}
        outputs = [Output(made[o.value], o.name, o.axes) for o in graph.outputs]
        return builder.finish(*outputs)


def _half(builder: Builder, total: Value, node: Node) -> Value:
    """The exponential of half of ``total``."""
    maker = builder.maker_of(total)
    assert maker is not None
    assert isinstance(maker.op, SCALAR)
    if maker.op.expr == call("mul", Arg(0), 2.0):
        (half,) = maker.operands
    else:
        (half,) = builder.add(Elementwise(call("mul", Arg(0), 0.5)), total, origin=node.origin)
    (made,) = builder.add(Elementwise(call("exp", Arg(0))), half, origin=node.origin)
    return made
