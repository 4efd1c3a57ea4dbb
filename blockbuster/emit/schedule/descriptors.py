"""Which loads can use tensor descriptors: their strides must be known before a launch.

A tensor descriptor states where an array lies and how large a tile is. A device's memory unit
computes addresses from it, and fills in zeros where a tile reaches past an end.
"""

from __future__ import annotations

from blockbuster.emit.target.targets import Target
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.program import Load
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.ir.dtypes import TRUTH

AXES = range(2, 6)
"""Axes of arrays that are described: CUDA's tensor maps have at most five."""

FIRST = 90
"""The first architecture with a memory unit that takes descriptors."""

MOST, LEAST = 256, 16
"""Lanes of a tile along an axis, at most, and bytes along the last: CUDA's tensor maps."""


def not_described(load: Load, tiling: Tiling, target: Target) -> str:
    """Why no descriptor takes a load, or ""."""
    name = load.view.buffer.name
    return (
        no_such_unit(target)
        or not_plain(load)
        or not_two_lanes(load, tiling)
        or not_a_box(load, tiling)
        or (f"{name} has truth values" if load.view.buffer.dtype == TRUTH else "")
    )


def no_such_unit(target: Target) -> str:
    """Why a target has no descriptors, or "": a target predicate."""
    if target.backend == "cuda" and isinstance(target.arch, int) and target.arch >= FIRST:
        return ""
    return f"{target.name} has no tensor descriptors: GPUs of NVIDIA have them from sm_{FIRST} on"


def not_plain(load: Load) -> str:
    """Why the place of a tile is no box in its array, or ""."""
    name, dims = load.view.buffer.name, load.view.dims
    if len(dims) not in AXES:
        return f"{name} has {len(dims)} axes: descriptors are for {AXES.start} to {AXES.stop - 1}"
    if not all(dim is None or isinstance(dim, str) for dim in dims):
        return f"{name} is read by a slice or a part of an axis"
    walked = [dim for dim in dims if dim is not None]
    if len(set(walked)) < len(walked):
        return f"{name} is read along a diagonal"
    return ""


def not_two_lanes(load: Load, tiling: Tiling) -> str:
    """Why a tile is no matrix, its last axis that of the array or the one before, or ""."""
    lanes = tiling.lanes(load.target)
    if len(lanes) != 2:
        return f"a tile of {load.view.buffer.name} has {len(lanes)} axes: descriptors load matrices"
    last, axis = load.view.dims[-1], load.view.buffer.axes[-1]
    if last not in lanes or axis.per_block:
        return f"a tile of {load.view.buffer.name} has one element along its last axis"
    return ""


def not_a_box(load: Load, tiling: Tiling) -> str:
    """Why a tile is too large or too narrow, or ""."""
    name, width = load.view.buffer.name, MEMORY[load.view.buffer.dtype].bytes
    last = load.view.dims[-1]
    for dim in tiling.lanes(load.target):
        if dim not in tiling.blocks:
            return f"{dim} is not cut yet: add 'block {dim} 64' before"
        if tiling.blocks[dim] > MOST:
            return f"a tile of {name} has {tiling.blocks[dim]} lanes along {dim}, more than {MOST}"
        if dim == last and tiling.blocks[dim] * width < LEAST:
            return (
                f"a tile of {name} has {tiling.blocks[dim] * width} bytes along {dim}, "
                f"fewer than {LEAST}"
            )
    return ""
