"""The dtype of every value of a block program: one rule for all paths.

- A cast has its dtype, a predicate has truth values ("bool"), an input of masks or integers its own
  dtype. Results that are integers end in a cast.
- Operators that only move elements keep their dtype: views, copies, lists, and a concatenation of
  arrays of one dtype. A function of whole arrays has the common dtype of its operands, but never
  truth values.
- Arithmetic has the dtype in which the floats meet that it reads: `x.float() * 2` is float32 beside
  arrays of float16, too. What chooses (a condition) is not read as a number, nor do integers count.
- Arithmetic of integers alone has integers, those of its tiles: an array of them may be kept
  between two kernels.
- What reads neither, and inputs without a dtype, have the *common* dtype of the program's inputs.

The rule depends on which values meet, not on the order in which they do, so fusion does not change
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from blockbuster.emit.tile.pointwise import in_tiles
from blockbuster.emit.tile.result_dtypes import SUMS, folded_dtype, value_dtype
from blockbuster.ir.dtypes import INTEGERS, OWN, TRUTH, met
from blockbuster.ir.expr import Arg, Call, Expr, is_predicate
from blockbuster.ir.graph import Graph, Input, Node, Read, Value
from blockbuster.ir.ops import (
    Accumulate,
    Cast,
    Collect,
    Elementwise,
    Functional,
    Map,
    Misc,
    Op,
    Pointwise,
    Reduce,
    Relabel,
    Result,
    Transpose,
)
from blockbuster.ir.regroup import Regroup


def result_dtype(operands: Iterable[str], common: str) -> str:
    """The dtype of what a function of whole arrays gives, for operands of these dtypes."""
    found = met(operands)
    return common if found == TRUTH else found


def output_dtypes(
    graph: Graph, common: str, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The dtypes of a program's outputs by name, "bool" for truth values.

    ``known`` are those of arrays that the program reads, where they are not the common one. Parts
    of one array meet.
    """
    of_source = known or {}
    given = [_of_input(one, of_source, common) for one in graph.inputs]
    of = _dtypes_in(graph, given, common)
    parts: dict[str, list[str]] = {}
    for name, output in zip(graph.output_names, graph.outputs, strict=True):
        parts.setdefault(name, []).append(of(output.value))
    return {name: _met_parts(dtypes, common) for name, dtypes in parts.items()}


def _met_parts(dtypes: Sequence[str], common: str) -> str:
    """Floats of no dtype take that of the floats beside them, never that of integers."""
    return _of_floats(dtypes) or met(dtype or common for dtype in dtypes)


def casts(graph: Graph) -> dict[str, None]:
    """The dtypes that a program casts to, at any level."""
    found: dict[str, None] = {}
    for node in graph.nodes:
        if isinstance(node.op, Cast):
            found[node.op.dtype] = None
        elif isinstance(node.op, Map):
            found |= casts(node.op.body)
    return found


Of = Callable[[Value], str]
"""The dtype of each value of a graph; empty where no float was read."""


def _of_input(given: Input, of_source: Mapping[str, str], common: str) -> str:
    view = given.view
    return of_source.get(view.source, view.dtype or common) if isinstance(view, Read) else ""


def _dtypes_in(graph: Graph, given: Sequence[str], common: str) -> Of:
    """``given`` are the dtypes of the graph's inputs."""
    made: list[tuple[str, ...]] = []

    def of(value: Value) -> str:
        return given[value.port] if value.node < 0 else made[value.node][value.port]

    for node in graph.nodes:
        made.append(_results(node, [of(operand) for operand in node.operands], common))
    return of


def _results(node: Node, operands: Sequence[str], common: str) -> tuple[str, ...]:
    """The dtypes of an operator's results."""
    match node.op:
        case Cast(dtype):
            return (dtype,)
        case Transpose() | Relabel() | Regroup():
            return (operands[0],)
        case Elementwise(expr) | Pointwise(expr):
            return (_of_expr(expr, operands) or _of_integers(node.op, operands),)
        case Map(body=body, results=results):
            inside = _dtypes_in(body, operands, common)
            pairs = zip(body.outputs, results, strict=True)
            return tuple(
                inside(o.value) if isinstance(r, Collect) else _folded(r, inside(o.value))
                for o, r in pairs
            )
        case Misc(results=results) as op:
            taken = [operand or common for operand in operands]
            found = met(taken) if op.only_moves else result_dtype(taken, common)
            return (found,) * len(results)
        case Reduce() as op:
            return (_folded(op, operands[0]),)
    return (_of_floats(operands) or _of_integers(node.op, operands),) * len(node.types)


def _of_expr(expr: Expr, operands: Sequence[str]) -> str:
    if is_predicate(expr):
        return TRUTH
    if isinstance(expr, Arg):
        return operands[expr.index]
    return _of_floats(operands[at] for at in dict.fromkeys(_numbers(expr)))


def _of_floats(dtypes: Iterable[str]) -> str:
    """The dtype in which floats meet; empty if there is none."""
    floats = [dtype for dtype in dtypes if dtype and dtype not in OWN]
    return met(floats) if floats else ""


def _of_integers(op: Op, operands: Sequence[str]) -> str:
    """The dtype of integers that an operator makes; empty for others."""
    if op == Functional("dot"):  # tiles of integers are multiplied and summed
        return SUMS if all(dtype in INTEGERS for dtype in operands) else ""
    found = value_dtype(in_tiles(op, ()), operands)
    return found if found in INTEGERS else ""


def _folded(result: Result | Reduce, dtype: str) -> str:
    floats = _of_floats([dtype])
    by = result.monoid if isinstance(result, Accumulate | Reduce) else ""
    return floats or (folded_dtype(by, [dtype]) if by else "")


def _numbers(expr: Expr) -> Iterator[int]:
    """The operands that ``expr`` reads as numbers: not in comparisons, nor to choose."""
    left, seen = [expr], set[int]()
    while left:
        top = left.pop()
        if isinstance(top, Arg):
            yield top.index
        elif isinstance(top, Call) and not is_predicate(top) and id(top) not in seen:
            seen.add(id(top))
            left.extend(top.args[top.fn == "where" :])
