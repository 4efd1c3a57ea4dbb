"""The cost of making a value again at its reader: operations, and items of other values.

Each item of a pointwise value is computed from one item of each array it reads. A reader that
recomputes the value reads those items in place of the value's own; so the axes of items alone tell
whether more or less is read, at any loops around.
"""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.ir.expr import functions_of
from blockbuster.ir.graph import Graph, Index, Node, Value
from blockbuster.ir.ops import Cast, Collect, Map, Reduce
from blockbuster.ir.types import Dim, Type
from blockbuster.rules.base import label, name_of
from blockbuster.rules.element_formulas import applies, scalar_of

PLAIN = frozenset(
    {"add", "sub", "mul", "neg", "relu", "abs", "square", "maximum", "minimum", "sub0"}
    | {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "where"}
)
"""Scalar functions that a processor has an instruction for, or two."""
OTHER_WORK = 8
"""What any other scalar function counts, a division or a logarithm, in plain ones."""
MOST_WORK = 48
"""How many plain functions an element may take: about what a block of attention's softmax takes."""
MOST_VECTORS = 4
"""How many vectors may be read beside blocks where one could be."""
ROUNDED = ("float16", "bfloat16")
"""The dtypes of 16 bits."""


@dataclass(frozen=True)
class Recipe:
    """The operators that make a result of a map, all of them pointwise.

    ``read`` are the operands of the map that it comes from, ``work`` is how many plain scalar
    functions one element takes, ``rounds`` whether it is rounded to 16 bits on the way,
    ``exponential`` whether an exponential is among them.
    """

    read: tuple[int, ...]
    work: int
    rounds: bool
    exponential: bool


def recipe(op: Map, port: int) -> Recipe | None:
    """The recipe of result ``port`` of ``op``; None if not only pointwise operators make it.

    It looks no further where an element takes more than twice ``MOST_WORK``.
    """
    nodes: list[Node] = []
    read = _reached(op, port, nodes)
    if read is None:
        return None
    rounds = any(isinstance(n.op, Cast) and n.op.dtype in ROUNDED for n in nodes)
    work = sum(map(_work, nodes))
    return Recipe(tuple(sorted(read)), work, rounds, any(applies(n, "exp") for n in nodes))


def _reached(op: Map, port: int, nodes: list[Node]) -> dict[int, None] | None:
    """The inputs of the body that a result comes from; ``nodes`` gets the operators in between."""
    if not isinstance(op.results[port], Collect) or op.start:
        return None
    body, read = op.body, dict[int, None]()
    stack, seen = [body.outputs[port].value], set[Value]()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.node < 0:
            read[value.port] = None
            continue
        node = body.nodes[value.node]
        if isinstance(node.op, Map):
            inner = _reached(node.op, value.port, nodes)
            if inner is None:
                return None
            stack += [node.operands[at] for at in inner]
        elif not _pointwise(node) or len(nodes) > 2 * MOST_WORK:
            return None
        else:
            nodes.append(node)
            stack += node.operands
    return read


def _pointwise(node: Node) -> bool:
    return scalar_of(node) is not None or isinstance(node.op, Cast)


def _work(node: Node) -> int:
    expr = scalar_of(node)
    functions = functions_of(expr) if expr is not None else ()
    return sum(1 if fn in PLAIN else OTHER_WORK for fn in functions) or 1


@dataclass(frozen=True)
class Reading:
    """The way in which a map reads an operand, finally item by item.

    ``again`` are the dims of loops that read all that they are given of it in every iteration;
    ``beside`` is true if each item meets a larger one, as a vector meets a block.
    """

    again: tuple[Dim, ...]
    beside: bool


def reading(op: Map, port: int) -> Reading | str:
    """The way in which ``op`` reads operand ``port``; a reason if it reads more than items in
    loops.
    """
    again: tuple[Dim, ...] = () if op.iterated[port] else (op.dim,)
    value, body = Value(-1, port), op.body
    if not body.type_of(value).buffered:
        return Reading(again, _meets_larger(body, value))
    if value in body.output_values:
        return f"each iteration over {op.dim} gives the list as it is"
    beside = True
    for reader, index in body.uses_of(value):
        node = body.nodes[reader]
        found = _read_inside(node, index, body.type_of(value))
        if isinstance(found, str):
            return found
        again += found.again
        beside = beside and found.beside
    return Reading(again, beside)


def _read_inside(node: Node, index: int, type: Type) -> Reading | str:
    if isinstance(node.op, Map) and index < len(node.op.iterated):
        return reading(node.op, index)
    if isinstance(node.op, Reduce) and not type.element().buffered:
        return Reading((), beside=False)
    return f"{label(node)} takes the list as a whole: it would be stored in every iteration"


def _meets_larger(body: Graph, item: Value) -> bool:
    """True if all that is made of ``item`` meets an item of more axes before it leaves the body."""
    own = set(body.type_of(item).axes)
    stack, seen = [item], {item}
    while stack:
        value = stack.pop()
        if value in body.output_values:
            return False
        for reader, _ in body.uses_of(value):
            node = body.nodes[reader]
            if isinstance(node.op, Map) or any(own < set(t.axes) for t in _types(body, node)):
                continue  # inside a map it is read less often than what the map reads
            new = {Value(reader, port) for port in range(len(node.types))} - seen
            seen |= new
            stack += sorted(new)
    return True


def _types(body: Graph, node: Node) -> tuple[Type, ...]:
    return (*node.types, *body.types_of(node.operands))


# Side conditions: each returns "" where it is met, else the reason in words ------------------


def holds_exponential(graph: Graph, value: Value, made: Recipe) -> str:
    """The safe form of an exponential is a pair: each reader would keep a running maximum."""
    if made.exponential:
        return f"{name_of(graph, value)} holds an exponential, whose safe form is a pair"
    return ""


def too_much_work(graph: Graph, value: Value, made: Recipe) -> str:
    """Every reader, in each of its loops, computes all of it again."""
    if made.work > MOST_WORK:
        return (
            f"an element of {name_of(graph, value)} takes more than {MOST_WORK} operations: "
            "too many to do again for every reader"
        )
    return ""


def enters_its_own_loop(graph: Graph, value: Value, made: Recipe, dim: Dim) -> str:
    """A map over ``dim`` is given items that go along it one by one, or none.

    The loops that make a list are over its dims, and a list over ``dim`` is never read whole by a
    map over it; so only axes that the operators drop can be in the way.
    """
    for port in made.read:
        operand = graph.nodes[value.node].operands[port]
        if dim in graph.type_of(operand).axes:
            return (
                f"{name_of(graph, value)} is made of {name_of(graph, operand)}, "
                f"all of which would enter a loop over {dim}, one of its axes"
            )
    return ""


def reads_more(graph: Graph, value: Value, made: Recipe, read: Reading) -> str:
    """In place of an item a reader may read items of fewer axes, or one as large, once each."""
    large, name = as_large(graph, value, made), name_of(graph, value)
    if few_vectors(graph, value, made, read):
        return ""
    names = " and ".join(name_of(graph, v) for v in large[:3])
    if len(large) > 1:
        return f"each reader of {name} would read items of {names}, all as large as its own"
    if large and read.again:
        return (
            f"the loop over {read.again[0]} reads all of {name} in every iteration, "
            f"and would make it again of {names}, which is as large"
        )
    if large and made.rounds:
        return f"{name} is rounded to 16 bits: {names}, of which it is made, may take more bytes"
    return ""


def few_vectors(graph: Graph, value: Value, made: Recipe, read: Reading | str) -> bool:
    """True if a few vectors are read for one beside blocks, which counts for nothing."""
    beside = isinstance(read, Reading) and read.beside
    return beside and len(graph.type_of(value).axes) < 2 and len(made.read) <= MOST_VECTORS


def as_large(graph: Graph, value: Value, made: Recipe) -> list[Value]:
    """The arrays of which ``value`` is made whose items have as many axes as its own.

    Positions along a dim are no array: no memory is behind them.
    """
    own = set(graph.type_of(value).axes)
    read = [graph.nodes[value.node].operands[port] for port in made.read]
    stored = [v for v in read if v.node >= 0 or not isinstance(graph.inputs[v.port].view, Index)]
    return [v for v in stored if own <= set(graph.type_of(v).axes)]
