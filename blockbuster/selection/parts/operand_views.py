"""Views between an array and a product that reads it: which are worth being arrays.

    rows = image cut into patches, turned and joined          a copy of an input: a unit
    y = heads of a computed array, turned and joined          stored so by the kernel that makes it

A kernel reads transposed and cut axes as they are, but an axis that was joined it reads piece by
piece, and one that is not dense element by element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from blockbuster.frontend.kinds import FLOAT, MOVES
from blockbuster.frontend.program import ArrayProgram, Equation, Shape
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim
from blockbuster.selection.priors import PRIORS

PRODUCT = "matmul"
OPAQUE = "custom"
FOLLOWED = ("transpose", "expand", "windows")


def elements(shape: Shape, sizes: Mapping[Dim, int]) -> int:
    """The number of elements of an array of ``shape``."""
    return prod(sizes[axis] for axis in shape if isinstance(axis, str))


def most_outside(program: ArrayProgram, sizes: Mapping[Dim, int]) -> int:
    """The number of elements of the largest input or output."""
    shapes = [one.shape for one in program.inputs]
    shapes += [program.shape_of(output.value) for output in program.outputs]
    return max(elements(shape, sizes) for shape in shapes)


def operands_of(program: ArrayProgram, at: int) -> tuple[Value, ...]:
    """The arrays that an equation reads."""
    return tuple(o for o in program.equations[at].operands if isinstance(o, Value))


def repeats(equation: Equation) -> bool:
    """True for elements repeated along an axis: each reader repeats them where it reads them."""
    return equation.op == "where" and equation.operands[1] == equation.operands[2]


def turned_for_products(program: ArrayProgram) -> set[int]:
    """Transposes that a product reads, of which it needs another axis than the last to be dense.

    The last axis of what is transposed is no row, column or inner axis there, or windows run along
    it, which begin anywhere: each element of a tile is a load of its own. Such a transpose may be
    worth an array, so it is a unit.
    """
    products = [at for at, equation in enumerate(program.equations) if equation.op == PRODUCT]
    found = (_turned(program, value) for at in products for value in operands_of(program, at))
    return {at for at in found if at is not None}


def with_shared_copies(program: ArrayProgram) -> ArrayProgram:
    """``program`` with one transpose in place of equal ones of an array that may each be worth an
    array of their own: one copy of an image serves all convolutions of it.
    """
    turned = sorted(turned_for_products(program))
    moves = [program.equations[at] for at in turned]
    keys = [(one.op, one.operands, one.params) for one in moves]
    if len(set(keys)) == len(keys):
        return program
    first = dict(reversed([*zip(keys, turned, strict=True)]))
    kept = {Value(at): Value(first[key]) for key, at in zip(keys, turned, strict=True)}
    return replace(
        program,
        equations=tuple(one.reading(kept) for one in program.equations),
        outputs=tuple(replace(o, value=kept.get(o.value, o.value)) for o in program.outputs),
    )


def joined_for_products(program: ArrayProgram, sizes: Mapping[Dim, int]) -> tuple[int, ...]:
    """The views that join axes of a computed array for a product, and turn them before, in order.

    A kernel can write heads behind each other as one axis, but not read an axis that was joined: a
    product would sum over each head by itself. So the array that is stored is the joined one, if
    nothing reads another form of it.
    """
    readers = Counter(v for at in range(len(program.equations)) for v in operands_of(program, at))
    readers.update(output.value for output in program.outputs)
    found: dict[int, None] = {}
    for chain, base in _joined(program, sizes):
        made = program.equations[base.node] if base.node >= 0 else None
        alone = all(readers[value] == 1 for value in (base, *map(Value, chain[1:])))
        moves = made is not None and (made.op in (OPAQUE, *MOVES) or repeats(made))
        if made and alone and not moves and made.kind == FLOAT:
            found |= dict.fromkeys(chain)
    return tuple(sorted(found))


def copied_for_products(program: ArrayProgram, sizes: Mapping[Dim, int]) -> set[int]:
    """The views that may be worth an array of their own, so that they are units: what is turned,
    and inputs of which short pieces are joined, as the patches of an image.
    """
    found = turned_for_products(program)
    for chain, base in _joined(program, sizes):
        piece = program.shape_of(operands_of(program, chain[0])[0])[-1:]
        if base.node < 0 and elements(piece, sizes) < PRIORS.piece_elements:
            found.add(chain[0])
    return found


def _joined(
    program: ArrayProgram, sizes: Mapping[Dim, int]
) -> Iterator[tuple[tuple[int, ...], Value]]:
    """The views behind which products read joined axes: the reshape that joins them, then those
    that it reads, as far as they only turn and cut; and what these are views of.
    """
    for at, product in enumerate(program.equations):
        for value in operands_of(program, at) if _is_product(program, product) else ():
            while value.node >= 0 and program.equations[value.node].op in FOLLOWED:
                (value,) = operands_of(program, value.node)
            chain: list[int] = []
            while value.node >= 0 and program.equations[value.node].op in ("transpose", "reshape"):
                chain.append(value.node)
                (value,) = operands_of(program, value.node)
            if chain and _only_joins(program, chain[0], sizes):
                yield tuple(chain), value


def _is_product(program: ArrayProgram, one: Equation) -> bool:
    """True for a product of matrices, and one with elements of windows, over which it is summed."""
    for operand in one.operands if one.op == "mul" else ():
        value = operand
        while isinstance(value, Value) and value.node >= 0:
            move = program.equations[value.node]
            if move.op not in FOLLOWED:
                break
            if move.op == "windows":
                return True
            (value,) = move.operands
    return one.op == PRODUCT


def _only_joins(program: ArrayProgram, at: int, sizes: Mapping[Dim, int]) -> bool:
    """True if each axis of a reshape is one axis of its operand, or several that are adjacent."""

    def extents(shape: Shape) -> list[int]:
        return [elements((axis,), sizes) for axis in shape]

    left = extents(program.shape_of(operands_of(program, at)[0]))
    for extent in reversed(extents(program.equations[at].shape)):
        while left and extent > 1 and extent % left[-1] == 0:
            extent //= left.pop()
        if extent != 1:
            return False
    return not left


def _turned(program: ArrayProgram, operand: Value) -> int | None:
    """The transpose that makes an operand of a product of an array that is dense elsewhere."""
    dense: set[int | None] = {*range(len(program.shape_of(operand)))[-2:]}
    turned = None
    while operand.node >= 0 and program.equations[operand.node].op in FOLLOWED:
        move, (base,) = program.equations[operand.node], operands_of(program, operand.node)
        if move.op == "windows":  # stored, they would take the array's memory for each tap
            turned, tap = None, len(program.shape_of(base))
            dense -= {move.param("axis"), tap}  # rows of a window begin anywhere
        else:
            turned = operand.node if move.op == "transpose" else turned
            dense = {move.param("axes")[axis] for axis in dense if axis is not None}
        operand = base
    long = [at for at, axis in enumerate(program.shape_of(operand)) if axis != 1]
    return turned if len(long) > 2 and long[-1] not in dense else None


def windows_of(
    program: ArrayProgram, bases: Mapping[Value, tuple[Value, ...]]
) -> dict[int, dict[int, None]]:
    """The computed values of which each equation is a view by windows."""
    found: dict[int, dict[int, None]] = {}
    for at, equation in enumerate(program.equations):
        own = found[at] = dict[int, None]()
        for value in operands_of(program, at) if bases[Value(at)] != (Value(at),) else ():
            if equation.op == "windows":
                own |= {base.node: None for base in bases[value] if base.node >= 0}
            else:
                own |= found.get(value.node, {})
    return found
