"""The parts of an array program that MCFuser would fuse: memory-bound compute-intensive chains.

A matrix product does 2 T^2 K operations on a tile of its result and touches 2 T^2 + 2 T K elements
(section II-A). It is memory-bound if that ratio is below P / W, the machine's peak over its
bandwidth. The source counts elements in the ratio but bytes in W. This module does the same,
because only then does the source's example hold (on an A100, K = 1024 is compute-bound and K = 1
memory-bound).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from blockbuster.errors import message
from blockbuster.frontend.program import ArrayProgram, Axis, Equation
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim
from blockbuster.machines import Machine
from blockbuster.tiling.chain import Chain, Operator, Tensor

TILE = 256
"""Elements along each side of a tile of the result, as in the source's figure 2."""

BETWEEN = (*FUNCTIONS, "softmax", "log_softmax", "layer_norm", "rms_norm", "cast")
"""Memory-intensive operators that a chain may have between two products: they keep the shape."""


def intensity(rows: int, columns: int, summed: int) -> float:
    """Operations per element accessed for a tile of the result of a product (section II-A).

    >>> round(intensity(256, 256, 1024), 1), round(intensity(256, 256, 1), 2)
    (204.8, 1.0)
    """
    elements = 2 * rows * columns + (rows + columns) * summed
    return 2 * rows * columns * summed / elements


def not_memory_bound(m: int, n: int, k: int, machine: Machine, dtype: str) -> str:
    """Why a product of m x k and k x n elements is not memory-bound, or ""."""
    ratio = intensity(min(TILE, m), min(TILE, n), k)
    bound = machine.rate("matrix", dtype) / machine.memory.bandwidth
    if ratio < bound:
        return ""
    return f"{ratio:.1f} operations an element, and {machine.name} is balanced at {bound:.1f}"


@dataclass(frozen=True)
class Product:
    """A matrix product of an array program: the position of its equation, and its axes."""

    position: int
    batch: tuple[Axis, ...]
    m: Axis
    n: Axis
    k: Axis

    def __str__(self) -> str:
        return f"product {self.position} ({self.m} x {self.k} x {self.n})"


def chains(
    program: ArrayProgram,
    sizes: Mapping[Dim, int],
    machine: Machine,
    *,
    dtype: str = "float16",
    note: Callable[[str], None] = lambda _: None,
) -> tuple[Chain, ...]:
    """The chains of two or more memory-bound products in ``program``, in program order.

    The result of each is the first operand of the next, perhaps behind operators that keep its
    shape, and nothing else reads it. ``note`` hears why a product is in no chain. Raises ValueError
    for a dim without a size.
    """
    missing = [dim for dim in program.dims if sizes.get(dim, 0) < 1]
    if missing:
        what = f"dim {missing[0]} needs a size of at least 1"
        raise ValueError(message(what, value=sizes.get(missing[0]), hint="give sizes of all dims"))
    found: list[list[tuple[Product, str]]] = []
    for product in _products(program):
        m, n, k = (_size(axis, sizes) for axis in (product.m, product.n, product.k))
        if reason := not_memory_bound(m, n, k, machine, dtype):
            note(f"{product}: {reason}")
            continue
        for run in found:
            between = _between(program, run[-1][0], product)
            if between is not None:
                run.append((product, between))
                break
        else:
            found.append([(product, "")])
    for run in found:
        if len(run) == 1:
            note(f"{run[0][0]}: no memory-bound neighbour")
    return tuple(_chain(run, sizes, dtype) for run in found if len(run) > 1)


def _products(program: ArrayProgram) -> Iterator[Product]:
    for position, equation in enumerate(program.equations):
        if equation.op == "matmul":
            left, right = (program.shape_of(o) for o in equation.operands if isinstance(o, Value))
            if len(left) > 1 and len(right) > 1:
                *batch, m, n = equation.shape
                yield Product(position, tuple(batch), m, n, left[-1])


def _between(program: ArrayProgram, first: Product, second: Product) -> str | None:
    """What stands between two products that are neighbours in a chain; None if they are not."""
    applied: list[str] = []
    at = program.equations[second.position].operands[0]
    while isinstance(at, Value) and at.node != first.position:
        if at.node < 0:
            return None
        equation = program.equations[at.node]
        if equation.op not in BETWEEN or _readers(program, at) != 1:
            return None
        applied.insert(0, equation.op)
        at = _main_operand(program, equation)
    alone = isinstance(at, Value) and _readers(program, at) == 1
    return (
        ", ".join(applied) if alone and (first.batch, first.m) == (second.batch, second.m) else None
    )


def _main_operand(program: ArrayProgram, equation: Equation) -> Value | None:
    """The operand that has the shape of the result, if one alone has it."""
    arrays = [o for o in equation.operands if isinstance(o, Value)]
    same = [o for o in arrays if program.shape_of(o) == equation.shape]
    return same[0] if len(same) == 1 else None


def _readers(program: ArrayProgram, value: Value) -> int:
    uses = [o for equation in program.equations for o in equation.operands if o == value]
    return len(uses) + sum(output.value == value for output in program.outputs)


# chains ------------------------------------------------------------------------------


def _chain(run: list[tuple[Product, str]], sizes: Mapping[Dim, int], dtype: str) -> Chain:
    """The chain of products in a row, each with what is applied to its first operand."""
    first = run[0][0]
    axes = [first.m, first.n, first.k, *(product.n for product, _ in run[1:])]
    letters = _letters(axes)
    rows, summed = letters[0], letters[2]
    columns = (letters[1], *letters[3:])
    names = iter(ascii_uppercase)
    left = Tensor(next(names), (rows, summed))
    operators: list[Operator] = []
    for (_, applied), column in zip(run, columns, strict=True):
        right = Tensor(next(names), (summed, column))
        result = Tensor(next(names), (rows, column))
        operators.append(Operator(result, (left, right), applied))
        left, summed = result, column
    named = list(zip(letters, axes, strict=True))
    return Chain(
        tuple(operators),
        {letter: _size(axis, sizes) for letter, axis in named},
        math.prod(_size(axis, sizes) for axis in first.batch),
        dtype,
        {letter: axis for letter, axis in named if isinstance(axis, str) and axes.count(axis) == 1},
    )


def _letters(axes: list[Axis]) -> list[str]:
    """A letter for each axis: its own in lower case where that is free, else the next free one."""
    taken: list[str] = []
    for axis in axes:
        own = axis[0].lower() if isinstance(axis, str) else ""
        free = [x for x in (own, *ascii_lowercase) if x and x not in taken and x.isalpha()]
        taken.append(free[0])
    return taken


def _size(axis: Axis, sizes: Mapping[Dim, int]) -> int:
    return axis if isinstance(axis, int) else sizes[axis]
