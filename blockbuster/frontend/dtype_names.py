"""The dtype of a traced array, in the terms of the inputs' library."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.kinds import MOVES
from blockbuster.ir.dtypes import OWN, met
from blockbuster.ir.graph import Value

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray
    from blockbuster.frontend.program import ArrayProgram, Equation


class Undecided:
    """The dtype of arrays that dims alone describe; a cast to it changes nothing."""

    def __repr__(self) -> str:
        return "the dtype of the inputs"


UNDECIDED = Undecided()


def dtype_of(x: TracedArray) -> Any:
    """The dtype of ``x``: NumPy's, or torch's where the inputs are tensors."""
    name = dtype_name(x)
    if not name:
        return UNDECIDED
    return getattr(sys.modules["torch"], name) if x.trace.of_tensors else np.dtype(name)


def least_step(x: TracedArray) -> float:
    """The distance from 1 to the next number in the dtype in which torch computes with ``x``.

    That is float32 for narrower floats.
    """
    return 2.0**-52 if dtype_name(x) == "float64" else 2.0**-23


def dtype_name(x: TracedArray) -> str:
    """The name of the dtype; empty if it is not decided."""
    inputs, equations = x.trace.recorded
    made = x.trace.dtypes

    def known(value: Value) -> str:
        return inputs[value.port].dtype if value.node < 0 else made[value.node]

    for equation in equations[len(made) : x.value.node + 1]:
        read = equation.operands[equation.op == "where" :]
        made.append(_of_result(equation, [known(o) for o in read if isinstance(o, Value)]))
    return known(x.value)


def held_in(program: ArrayProgram, given: Mapping[str, str], common: str) -> dict[Value, str]:
    """The dtype in which a library would hold each value of a program.

    ``given``: those of inputs that have another dtype than ``common``.
    """
    found = {
        Value(-1, port): given.get(one.name, one.dtype if one.dtype in OWN else common)
        for port, one in enumerate(program.inputs)
    }
    for at, equation in enumerate(program.equations):
        read = equation.operands[equation.op == "where" :]
        dtypes = [found[operand] for operand in read if isinstance(operand, Value)]
        found[Value(at)] = _of_result(equation, dtypes) or common
    return found


def _of_result(equation: Equation, read: Sequence[str]) -> str:
    if equation.kind != "float":
        return {"mask": "bool", "index": "int64"}.get(equation.kind, equation.kind)
    if equation.op == "cast":
        return str(equation.param("dtype"))
    floats = [name for name in read if "float" in name or not name]
    if len({*floats}) < 2 and equation.op in MOVES:
        return floats[0] if floats else ""
    return "" if "" in floats or not floats else met(floats)
