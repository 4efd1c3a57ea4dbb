"""Checks of the sizes at which a kernel is costed: known, at least one, fit for its masks."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral

from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.tiling import is_ragged
from blockbuster.emit.tile.trips import named, sized
from blockbuster.errors import message
from blockbuster.ir.lengths import completed
from blockbuster.ir.sizes import example_of_sizes
from blockbuster.ir.types import Dim, size_class


def own_sizes(program: TileProgram, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
    """The ``sizes`` that the program has: a plan passes its files the sizes of all of them."""
    own = set(map(size_class, named(program)))
    return {dim: size for dim, size in sizes.items() if size_class(dim) in own}


def fitting(program: TileProgram, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
    """The size of each size class. Raises ValueError for what is missing, unknown or does not fit,
    TypeError for what is no whole number.

    A kernel has masks only where its blocks were ragged for the sizes that it was made for.
    """
    known = named(program)
    for dim, size in sizes.items():
        if dim not in known and size_class(dim) not in map(size_class, known):
            raise ValueError(message(f"unknown dim {dim!r}", hint=f"known: {', '.join(known)}"))
        if not isinstance(size, Integral) or isinstance(size, bool):
            raise TypeError(f"the size of {dim} is a whole number, not {size!r}")
        if size < 1:
            raise ValueError(
                message(
                    f"{dim} has size {size}: a kernel without elements does nothing",
                    hint="give every dim at least one element",
                )
            )
    found = completed({size_class(dim): int(size) for dim, size in sizes.items()}, program.rules)
    missing = [dim for dim in sized(program) if dim not in found]
    if missing:
        hint = example_of_sizes(known, sizes)
        raise ValueError(message(f"no size given for {', '.join(missing)}", hint=hint))
    _check_blocks(program, found)
    return found


def _check_blocks(program: TileProgram, sizes: Mapping[Dim, int]) -> None:
    for number, nest in enumerate(program.nests, 1):
        if not nest.warps:
            raise ValueError(
                message(
                    f"nest {number} has no warps: what a program takes is not decided",
                    hint=f"add a line to the schedule, such as: warps nest {number} 4",
                )
            )
        for block in nest.blocks:
            size = sizes[size_class(block.dim)]
            if block.whole and size > block.lanes:
                raise ValueError(
                    message(
                        f"{block.dim} has size {size}, and the kernel holds it in one block of "
                        f"{block.lanes}",
                        hint="emit the kernel for this size",
                    )
                )
            if not block.ragged and is_ragged(size, block.lanes, block.whole):
                raise ValueError(
                    message(
                        f"{block.dim} has size {size}, and the kernel has no masks for sizes that "
                        f"are no multiple of {block.lanes}",
                        hint="emit the kernel for this size",
                    )
                )
