"""Axes behind a reshape by names of their own, where only their length ties them to others.

    x: (A, B, C)                             x: (A, B, C)
    t: (A, D, E, C) = reshape(x)             t: (A, D, E, C_) = reshape(x)
    y: (A, D) = fold(t) over E and C         y: (A, D) = fold(t) over E and C_

A reshape gives an axis the name of a dim that is as long. Where no operator brings the two together
they may become parts of different axes: E and C_ merge, and C stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from blockbuster.frontend.plain_folds import FOLDS
from blockbuster.frontend.program import ArrayProgram, Equation, Shape
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Rule, size, whole
from blockbuster.ir.types import Dim

Slot = tuple[Value, int] | Dim
"""An axis of a value; or a name, with which all axes are one that must keep it."""
SAME_AXES = ("cast", "softmax", "log_softmax")


def with_own_axes(program: ArrayProgram) -> tuple[ArrayProgram, Mapping[Dim, Dim]]:
    """A program with plain folds, with new names for such axes; and the old name of each."""
    axes = _Axes(program)
    axes.join_all()
    names = {axes.root(dim): dim for dim in program.dims if dim in axes.joined}
    taken, old = dict.fromkeys(names.values()), dict[Dim, Dim]()

    def named(value: Value, shape: Shape) -> Shape:
        return tuple(
            name((value, at), axis) if isinstance(axis, str) else axis
            for at, axis in enumerate(shape)
        )

    def name(slot: Slot, dim: Dim) -> Dim:
        root = axes.root(slot)
        if root not in names:
            new = dim
            while new in taken or (new != dim and new in program.dims):
                new += "_"
            names[root] = new
            taken[new] = None
            if new != dim:
                old[new] = dim
        return names[root]

    equations = tuple(
        replace(equation, shape=named(Value(at), equation.shape))
        for at, equation in enumerate(program.equations)
    )
    sizes = program.sizes
    fixed = tuple((new, sizes[dim]) for new, dim in old.items() if dim in sizes)
    lengths = {new: whole(sizes[dim]) if dim in sizes else size(dim) for new, dim in old.items()}
    rules = tuple(Rule(new, length) for new, length in lengths.items())
    made = replace(
        program, equations=equations, fixed_sizes=(*program.fixed_sizes, *fixed),
        rules=(*program.rules, *rules),
    )  # fmt: skip
    return made, old


@dataclass
class _Axes:
    """Which axes of a program's values are one."""

    program: ArrayProgram
    joined: dict[Slot, Slot] = field(default_factory=dict)

    def root(self, slot: Slot) -> Slot:
        """What stands for an axis and all that are one with it."""
        while slot in self.joined and self.joined[slot] != slot:
            slot = self.joined[slot]
        return slot

    def join(self, one: Slot, other: Slot) -> None:
        """Two axes are one."""
        self.joined.setdefault(other, other)
        self.joined[self.root(one)] = self.root(other)

    def join_all(self) -> None:
        """Join what operators bring together; the axes of inputs keep their names."""
        for port in range(len(self.program.inputs)):
            self._keep(Value(-1, port))
        for at, equation in enumerate(self.program.equations):
            together = _together(self.program, equation)
            if together is None:
                for value in (Value(at), *equation.arrays):
                    self._keep(value)
                continue
            for axis, slot in together:
                if isinstance(equation.shape[axis], str):
                    self.join((Value(at), axis), slot)

    def _keep(self, value: Value) -> None:
        for axis, dim in enumerate(self.program.shape_of(value)):
            if isinstance(dim, str):
                self.join((value, axis), dim)


def _together(
    program: ArrayProgram, equation: Equation
) -> list[tuple[int, tuple[Value, int]]] | None:
    """The axes of a result, each with an axis of an operand that is the same; None for operators
    behind which axes keep their names, such as transposes: only the two that a transpose leaves
    side by side could merge, and a later reshape may cut elsewhere.
    """
    if equation.op in FUNCTIONS or equation.op in SAME_AXES:
        return list(_broadcast(program, equation))
    (x, *others) = equation.arrays or (None,)
    if x is None or others:
        return None
    shape = program.shape_of(x)
    if equation.op in FOLDS:
        folded = equation.param("axis") % len(shape)
        return [(at, (x, at + (at >= folded))) for at in range(len(equation.shape))]
    if equation.op == "expand":
        axes = equation.param("axes")
        return [(at, (x, axis)) for at, axis in enumerate(axes) if axis is not None]
    if equation.op == "reshape":
        count = 0
        while equation.shape[: count + 1] == shape[: count + 1] and count < len(shape):
            count += 1
        return [(at, (x, at)) for at in range(count)]
    return None


def _broadcast(
    program: ArrayProgram, equation: Equation
) -> Iterator[tuple[int, tuple[Value, int]]]:
    for operand in equation.arrays:
        shape = program.shape_of(operand)
        more = len(equation.shape) - len(shape)
        for at, axis in enumerate(shape):
            if axis == equation.shape[at + more]:
                yield at + more, (operand, at)
