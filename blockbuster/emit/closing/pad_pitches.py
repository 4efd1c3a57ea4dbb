"""pad-pitches: rows of a workspace that dots read begin where wide copies can.

before   store(t1,I1[m,k])    K = 1365           after   t2 = guard(t1,K,0)
         t3 = load(I1[m,k])                              store(t2,I1[m,k])    rows 1376 apart
         t4 = dot(t3,x)                                  t3 = load(I1[m,k])
                                                         t4 = dot(t3,x)

A GPU copies 16 bytes at once from addresses that are multiples of 16, and loads that run ahead of
dots need at least 4. Rows of 1365 float16 numbers begin at odd multiples of 2 bytes, and a mask
that ends inside 16 bytes takes them apart, too. So rows are ``PITCH`` elements or a multiple of it
apart, and the elements behind a row hold zeros: stores and loads are masked where these end, and a
load gives what it gave before. Costs that much memory. Runs after the dtypes of workspaces are
known. A dim whose blocks are all full needs none of this.
"""

from __future__ import annotations

from blockbuster.emit.closing.guard import guarded_stores
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.each_nest import Same
from blockbuster.emit.tile.other_arrays import accessed_in, with_arrays
from blockbuster.emit.tile.program import ACCESSES, Buffer, Nest, TileProgram, statements
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.ir.types import Dim

PITCH = 16
"""Triton tells strides that are multiples of 16 elements from others, whatever their dtype."""


def pad_pitches(program: TileProgram) -> TileProgram:
    """``program`` with padded workspaces, as far as they can be, if it has dtypes."""
    if not program.dtype:
        return program
    padded = [buffer for buffer in program.workspaces if not not_padded(program, buffer)]
    if not padded:
        return program
    return guarded_stores(
        with_arrays(program, lambda b: changed(b, pitch=PITCH) if b in padded else b)
    )


def not_padded(program: TileProgram, buffer: Buffer) -> str:
    """Why the rows of a workspace stay as they are, or ""."""
    if len(buffer.axes) < 2 or buffer.axes[-1].dim is None or buffer.axes[-1].per_block:
        return f"{buffer.name} has no rows of elements"
    nests = [nest for nest in program.nests if buffer in accessed_in(Same(nest.body))]
    found = [
        (stmt.view, tiling_of(program, nest))
        for nest in nests
        for stmt in statements(nest.body)
        if isinstance(stmt, ACCESSES) and stmt.view.buffer == buffer
    ]
    if any(view.dims[-1] in view.dims[:-1] for view, _ in found):
        return f"{buffer.name} is walked along a diagonal"
    columns = [(view.dims[-1], tiling) for view, tiling in found]
    if not all(isinstance(dim, str) and _fits(dim, tiling) for dim, tiling in columns):
        return f"{buffer.name} is not walked along its rows in blocks of {PITCH} elements"
    if not any(isinstance(dim, str) and tiling.ragged(dim) for dim, tiling in columns):
        return f"the blocks of {buffer.axes[-1].dim} are full"
    if not any(_feeds_a_dot(program, nest, buffer) for nest in nests):
        return f"no matrix product reads {buffer.name}"
    return ""


def _fits(dim: Dim, tiling: Tiling) -> bool:
    """True if blocks of ``dim`` hold all elements behind a row, or none of them."""
    cut = not tiling.is_unit(dim) and dim in tiling.blocks
    return cut and tiling.blocks[dim] % PITCH == 0


def _feeds_a_dot(program: TileProgram, nest: Nest, buffer: Buffer) -> bool:
    uses = Uses(nest, tiling_of(program, nest))
    held = (tile for tile, view in arrivals(nest.body) if view.buffer.name == buffer.name)
    return any(uses.only_in_dots(tile) for tile in held)
