"""Dims with two names for one fixed size, as reshapes to numbers make them.

``y.view(2, 9, 8)`` names its axes anew, though it may only undo ``x.view(18, 8)``. Where taking the
program apart cancels the two, an operator reads x where it read y: the dims are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from blockbuster.frontend.decompose import decompose
from blockbuster.frontend.final_names import with_names
from blockbuster.frontend.primitive_program import Primitives
from blockbuster.frontend.primitives import Apply, Contract, Count, Primitive, Source
from blockbuster.frontend.program import ArrayProgram, Axis, Shape
from blockbuster.ir.lengths import size
from blockbuster.ir.types import Dim


def with_one_name(program: ArrayProgram) -> tuple[ArrayProgram, Primitives]:
    """The program with one name for dims that meet in its primitives, and these primitives.

    Arrays that are inputs are read with any dims, so their axes need not have the same name.
    """
    apart = decompose(program)
    given = {dim for array in program.inputs for dim in array.shape}
    names: dict[Dim, Dim] = {}
    for pair in _met(apart):
        one, other = (names.get(dim, dim) for dim in pair)
        one, other = (other, one) if other in given else (one, other)
        same = one in apart.fixed and apart.fixed[one] == apart.fixed.get(other)
        if one != other and same and other not in given:
            names = {dim: one if name == other else name for dim, name in names.items()}
            names[other] = one
    if not names:
        return program, apart
    program = _renamed(program, names)
    return program, decompose(program)


def _met(apart: Primitives) -> Iterator[tuple[Dim, Dim]]:
    """The dims of computed values, and those with which operators read them, if others."""
    for primitive in apart.primitives:
        for shown, ref in zip(_shown(primitive), primitive.operands, strict=False):
            read = apart.primitives[ref.value]
            if not isinstance(read.op, Source | Count):
                for axis, wanted in zip(reversed(ref.axes), reversed(shown), strict=False):
                    made = 1 if axis is None else read.shape[axis]
                    if isinstance(made, str) and isinstance(wanted, str) and made != wanted:
                        yield made, wanted


def _shown(primitive: Primitive) -> tuple[Shape, ...]:
    """The axes with which an operator reads its operands, aligned from the right."""
    *outer, row, column = (1, 1, *primitive.shape)
    match primitive.op:
        case Apply():
            return (primitive.shape,) * len(primitive.operands)
        case Contract(inner):
            return (*outer, row, inner), (*outer, inner, column)
    return ()


def _renamed(program: ArrayProgram, names: Mapping[Dim, Dim]) -> ArrayProgram:
    full: dict[Dim, Axis] = {dim: names.get(dim, dim) for dim in (*program.dims, *program.sizes)}
    full.update({dim: names.get(dim, dim) for rule in program.rules for dim in rule.length.dims})

    def renamed(shape: Shape) -> Shape:
        return tuple(full[axis] if isinstance(axis, str) else axis for axis in shape)

    rules = (
        replace(
            rule, dim=names.get(rule.dim, rule.dim),
            length=rule.length.replaced(lambda dim: size(names.get(dim, dim))),
        )
        for rule in program.rules
    )  # fmt: skip
    return replace(
        program,
        equations=tuple(
            replace(one, **with_names(one, full), shape=renamed(one.shape))
            for one in program.equations
        ),
        fixed_sizes=tuple((dim, n) for dim, n in program.fixed_sizes if dim not in names),
        rules=tuple(dict.fromkeys(rule for rule in rules if rule.length != size(rule.dim))),
    )
