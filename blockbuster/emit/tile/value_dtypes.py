"""The dtype of every value of a block program: one rule for all paths.

- A cast has its dtype, a predicate has truth values ("bool"), an input of masks or integers its own
  dtype. Results that are integers end in a cast.
- Operators that only move elements keep their dtype: views, copies, lists, and a concatenation of
  arrays of one dtype. A function of whole arrays has the common dtype of its operands, but never
  truth values.
- Everything else has the *common* dtype of the program's inputs: inputs, arithmetic, and a
  concatenation of several dtypes.

The rule depends on a value's meaning, not on how it is computed, so fusion does not change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from blockbuster.ir.dtypes import INTEGERS, OWN, TRUTH, deciding
from blockbuster.ir.expr import Arg, is_predicate
from blockbuster.ir.graph import Graph, Input, Node, Read, Value
from blockbuster.ir.ops import (
    Cast,
    Collect,
    Elementwise,
    Map,
    Misc,
    Pointwise,
    Relabel,
    Transpose,
)


def met(dtypes: Iterable[str]) -> str:
    """The dtype in which dtypes meet: their own if they are one, else a wider.

    Truths do not count beside numbers, nor integers beside floats.

    >>> met(["float16", "float16"]), met(["float16", "bfloat16"]), met(["bool", "float16"])
    ('float16', 'float32', 'float16')
    """
    distinct = dict.fromkeys(dtypes)
    integers = [name for name in distinct if name in INTEGERS]
    numbers = deciding(name for name in distinct if name not in OWN)
    if len(numbers) == 1:
        return numbers[0]
    if not numbers:
        return np.result_type(*map(np.dtype, integers)).name if integers else TRUTH
    return "float64" if "float64" in numbers else "float32"


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
    of_misc: dict[int, str] = {}

    def of(value: Value) -> str:
        maker, position = _maker(graph, value)
        if isinstance(maker, Input):
            view = maker.view
            if not isinstance(view, Read):
                return common
            return of_source.get(view.source, view.dtype or common)
        return of_misc.get(position) or _made(maker) or common

    for position, op in graph.of_type(Misc):
        operands = [of(operand) for operand in graph.nodes[position].operands]
        of_misc[position] = met(operands) if op.only_moves else result_dtype(operands, common)
    parts: dict[str, list[str]] = {}
    for name, output in zip(graph.output_names, graph.outputs, strict=True):
        parts.setdefault(name, []).append(of(output.value))
    return {name: met(found) for name, found in parts.items()}


def casts(graph: Graph) -> dict[str, None]:
    """The dtypes that a program casts to, at any level."""
    found: dict[str, None] = {}
    for node in graph.nodes:
        if isinstance(node.op, Cast):
            found[node.op.dtype] = None
        elif isinstance(node.op, Map):
            found |= casts(node.op.body)
    return found


def _made(maker: Node) -> str:
    """The dtype that an operator gives its result; empty if that is the common one."""
    match maker.op:
        case Cast(dtype):
            return dtype
        case Elementwise(expr) | Pointwise(expr) if is_predicate(expr):
            return TRUTH
    return ""


def _maker(graph: Graph, value: Value) -> tuple[Node | Input, int]:
    """The operator that computes the elements of ``value``, or the input that they come from.

    With its position at the top level; -1 for an input, and inside a map.
    """
    maps: list[tuple[Graph, Node]] = []
    while True:
        if value.node < 0 and not maps:
            return graph.inputs[value.port], -1
        if value.node < 0:
            graph, node = maps.pop()
            value = node.operands[value.port]
            continue
        node = graph.nodes[value.node]
        match node.op:
            case Transpose() | Relabel():
                value = node.operands[0]
            case Elementwise(Arg(index)) | Pointwise(Arg(index)):
                value = node.operands[index]
            case Map(results=results, body=body) if isinstance(results[value.port], Collect):
                maps.append((graph, node))
                graph, value = body, body.outputs[value.port].value
            case _:
                return node, -1 if maps else value.node
