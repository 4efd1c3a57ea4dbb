"""Numbers for a tile program: its dims, their sizes as arrays show them, block sizes, trips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blockbuster.emit.dataflow import defined, operands
from blockbuster.emit.tile import For, Let, Load, Store, TileProgram, statements
from blockbuster.ir.expr import Expr, Size, rewrite
from blockbuster.ir.ops import Elementwise, Pointwise
from blockbuster.ir.types import Dim, size_class


def dims_of(program: TileProgram) -> tuple[Dim, ...]:
    """Every dim of ``program``, each once: of loops, arrays, tiles and expressions."""
    return tuple(dict.fromkeys(_dims(program)))


def _dims(program: TileProgram) -> Iterator[Dim]:
    for buffer in (*program.inputs, *program.outputs, *program.workspaces):
        yield from (axis.dim for axis in buffer.axes if axis.dim is not None)
    for nest in program.nests:
        yield from nest.grid
        for stmt in statements(nest.body):
            tile = defined(stmt)
            for used in (*operands(stmt), *((tile,) if tile else ())):
                yield from used.axes
            if isinstance(stmt, For):
                yield stmt.dim
            elif isinstance(stmt, Load | Store):
                yield from (dim for dim in stmt.view.dims if dim is not None)
            elif isinstance(stmt, Let) and isinstance(stmt.op, Elementwise | Pointwise):
                yield from sizes_in(stmt.op.expr)


def sizes_in(expr: Expr) -> tuple[Dim, ...]:
    """The dims whose sizes ``expr`` reads."""
    found: list[Dim] = []

    def note(leaf: Expr) -> Expr:
        if isinstance(leaf, Size):
            found.append(leaf.dim)
        return leaf

    rewrite(expr, note)
    return tuple(found)


def bound_sizes(
    program: TileProgram,
    shapes: Mapping[str, tuple[int, ...]],
    sizes: Mapping[Dim, int] | None = None,
) -> dict[Dim, int]:
    """The size of each size class, from ``sizes`` and the shapes of the inputs, which must agree.

    Raises ValueError where they do not, or where a size shows nowhere.
    """
    bound = {size_class(dim): size for dim, size in (sizes or {}).items()}
    for buffer in program.inputs:
        shape = shapes[buffer.name]
        if len(shape) != len(buffer.axes):
            raise ValueError(
                f"input {buffer.name} has shape {shape}, expected {len(buffer.axes)} axes"
            )
        for axis, size in zip(buffer.axes, shape, strict=True):
            known = 1 if axis.dim is None else bound.setdefault(size_class(axis.dim), size)
            if known != size:
                raise ValueError(
                    f"dim {axis.dim or '1'} has size {size} in input {buffer.name} but {known}"
                )
    for dim in dims_of(program):
        if size_class(dim) not in bound:
            raise ValueError(f"the size of {dim} shows in no input: pass sizes={{{dim!r}: ...}}")
    return bound


def bound_blocks(
    program: TileProgram, sizes: Mapping[Dim, int], block_sizes: Mapping[Dim, int] | None = None
) -> dict[Dim, int]:
    """The block size of each dim: as given for it or its class, 1 if list-only, else its size."""
    given = block_sizes or {}
    bound: dict[Dim, int] = {}
    for dim in dims_of(program):
        name = size_class(dim)
        single = name in program.units
        size = max(sizes[name], 1)
        bound[dim] = 1 if single else given.get(dim, given.get(name, size))
        if dim in program.whole:
            bound[dim] = max(bound[dim], size)
        if bound[dim] < 1:
            raise ValueError(f"block size of {dim} is {bound[dim]}, expected at least 1")
    return bound
