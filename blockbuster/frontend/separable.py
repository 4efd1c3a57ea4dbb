"""The dims along which some indices of a program can be computed without the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from blockbuster.frontend.program import ArrayProgram, Equation, Shape
from blockbuster.frontend.shapes import REDUCTIONS, SCANS
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.types import Dim


def separable_dims(program: ArrayProgram) -> tuple[Dim, ...]:
    """The dims of outputs that nothing folds, cuts, joins or looks into: rows of them stand alone.

    >>> from blockbuster.frontend.trace import trace
    >>> separable_dims(trace(lambda x, y: (x @ y).sum(axis=1), x="M K", y="K N"))
    ('M',)
    """
    shown = [axis for o in program.outputs for axis in program.shape_of(o.value)]
    read = {axis for equation in program.equations for axis in looked_into(program, equation)}
    return tuple(dict.fromkeys(a for a in shown if isinstance(a, str) and a not in read))


def looked_into(program: ArrayProgram, equation: Equation) -> Iterator[Any]:
    """The axes along which elements of an operator's result depend on several of its operands."""
    shapes = [program.shape_of(o) for o in equation.arrays]
    if equation.op in FUNCTIONS:
        return
    for pick in LOOKED_INTO[equation.op]:
        yield from pick(equation, shapes)


Pick = Callable[[Equation, Sequence[Shape]], Shape]


def _axis_of_first(equation: Equation, shapes: Sequence[Shape]) -> Shape:
    axis = equation.param("axis")
    return shapes[0] if axis is None else (shapes[0][axis],)


def _axis_of_all(equation: Equation, shapes: Sequence[Shape]) -> Shape:
    axis = equation.param("axis") % len(shapes[0])
    return tuple(shape[axis] for shape in (*shapes, equation.shape))


def _windowed(equation: Equation, shapes: Sequence[Shape]) -> Shape:
    axis = equation.param("axis")
    return (shapes[0][axis], equation.shape[axis], equation.shape[-1])


def _everything(equation: Equation, shapes: Sequence[Shape]) -> Shape:
    return (*equation.shape, *(axis for shape in shapes for axis in shape))


def _between(equation: Equation, shapes: Sequence[Shape]) -> Shape:
    """The axes of a reshape but those that stay, in front of all others or behind them."""
    before, after = shapes[0], equation.shape
    front = 0
    while front < min(len(before), len(after)) and before[front] == after[front]:
        front += 1
    back = 0
    while back < min(len(before), len(after)) - front and before[-1 - back] == after[-1 - back]:
        back += 1
    return (*before[front : len(before) - back], *after[front : len(after) - back])


LOOKED_INTO: Mapping[str, tuple[Pick, ...]] = {
    **dict.fromkeys(
        (*REDUCTIONS, *SCANS, "softmax", "log_softmax"),
        (_axis_of_first,),
    ),
    **dict.fromkeys(("rms_norm", "layer_norm"), (lambda _, shapes: (shapes[0][-1],),)),
    "matmul": (lambda _, shapes: (shapes[0][-1], shapes[1][-2:][0]),),
    **dict.fromkeys(("slice", "strided", "concat"), (_axis_of_all,)),
    "windows": (_windowed,),
    "custom": (_everything,),
    "reshape": (_between,),
    **dict.fromkeys(("transpose", "expand", "cast", "arange"), ()),
}
"""For each operator that is not pointwise, which axes it looks into."""
