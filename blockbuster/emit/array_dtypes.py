"""The dtypes of a kernel's arrays: one rule, here.

- An input has the dtype it was given; inputs without one have the common dtype of the others.
- The *common* dtype is that of all inputs where they agree, else float32.
- Arithmetic is float32. A dot takes its operands in the common dtype and sums in float32.
- An output has the common dtype, unless the program ends in a cast: then it has that one.
- A cast anywhere else rounds the value and goes on in float32. Truth values are bool.

Kernels have no float64: the NumPy path computes in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.emit.dtypes import DTYPES, Dtype, dtype_of
from blockbuster.emit.tile import TileProgram
from blockbuster.errors import message
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Cast, Map, Relabel, Transpose


@dataclass(frozen=True)
class ArrayDtypes:
    """``common``: what dots read, and most outputs have; ``of``: per input and output.

    ``accurate``: float32 is the common dtype or that of an output.
    """

    common: Dtype
    of: Mapping[str, Dtype]
    accurate: bool = False


def array_dtypes(graph: Graph, program: TileProgram, given: str | Mapping[str, str]) -> ArrayDtypes:
    """``given``: one dtype for all inputs, or those of some inputs and outputs by name.

    ``graph`` is the block program, before the safety pass, that became ``program``.
    """
    named = {} if isinstance(given, str) else dict(given)
    known = [b.name for b in (*program.inputs, *program.outputs)]
    for name in named:
        if name not in known:
            raise ValueError(
                message(f"unknown array {name!r} in dtype", hint=f"known: {', '.join(known)}")
            )
    common = _common(program, given if isinstance(given, str) else "", named)
    found = {b.name: dtype_of(named.get(b.name, common.name)) for b in program.inputs}
    casts = dict(
        zip(graph.output_names, (cast_of(graph, o.value) for o in graph.outputs), strict=True)
    )
    for buffer, cast in zip(program.outputs, casts.values(), strict=True):
        asked = named.get(buffer.name)
        found[buffer.name] = dtype_of(asked) if asked else DTYPES.get(cast, common)
    wide = (common.name, *(found[b.name].name for b in program.outputs))
    return ArrayDtypes(common, found, "float32" in wide)


def _common(program: TileProgram, given: str, named: Mapping[str, str]) -> Dtype:
    if given:
        return dtype_of(given)
    names = dict.fromkeys(named[b.name] for b in program.inputs if b.name in named)
    kinds = [dtype_of(name) for name in names]
    return kinds[0] if len(kinds) == 1 else dtype_of("float32")


def cast_of(graph: Graph, value: Value) -> str:
    """The dtype of the cast that makes ``value``, if one does; else empty."""
    if value.node < 0:
        return ""
    node = graph.nodes[value.node]
    match node.op:
        case Cast(dtype):
            return dtype
        case Map(body=body):
            return cast_of(body, body.outputs[value.port].value)
        case Transpose() | Relabel():
            return cast_of(graph, node.operands[0])
    return ""
