"""split-float: a dot of float32 is computed by three products on the matrix units.

before   t3 = dot(t1,t2)                  after   t3 = dot(t1,t2)   split

Matrix units round operands of float32 to tf32, to 11 binary digits. Let A be a rounded to tf32 and
a' the remainder. Then a·b = A·B + A·b' + a'·B up to a'·b', which is below 2^-22 of it.

Lets the matrix units compute dots of float32: they take three tf32 products in about half the time
of one product on the vector units. Costs two conversions and two subtractions per element of each
operand, and shared memory for both parts of the second operand.

A product errs by up to 2^-20 instead of 2^-24 of it, but the sum of a block is rounded less often:
in an emulation (bench/split_float.py) the error is at most 1.2 times that of one float32 sum from
256 summands on, and a fifth to a half of it for long sums; for 64 summands it is at most 1.2 times
as large if they are alike in magnitude, and 2.5 times if they spread over 12 decades.

Infinities and NaN are kept: where the two small products are NaN, Triton replaces them by 0. Finite
numbers above 2^128 - 2^116 become infinite.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import NEST, Move
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, nests_at, with_nests
from blockbuster.emit.target.targets import Target
from blockbuster.emit.tile.dataflow import mapped
from blockbuster.emit.tile.program import Let, Stmt, TileProgram, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.typed import takes_matrix_units


class SplitFloat(Move):
    """Split the float32 dots of a nest, or of all nests."""

    name: ClassVar[str] = "split-float"
    takes: ClassVar[str] = NEST

    def not_here(self, scheduled: Scheduled, site: Site, found: object, /, **args: Any) -> str:
        """There are dots of float32 that are whole, and Triton splits them for this target."""
        return not_splittable(scheduled.draft, site) or not_split_for(scheduled.target)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with these dots split."""
        draft = scheduled.draft

        def split(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Let) and is_whole(stmt, draft):
                return replace(stmt, split=True)
            return stmt

        return with_nests(draft, site, lambda nest: replace(nest, body=mapped(nest.body, split)))


def not_splittable(program: TileProgram, site: Site) -> str:
    """Why the nests at ``site`` have no dot that can be split, or ""."""
    if program.dtype != FLOAT:
        return f"dots take {program.dtype or 'exact numbers'}, expected {FLOAT}"
    bodies = [program.nests[at].body for at in nests_at(program, site)]
    dots = [s for body in bodies for s in statements(body) if takes_matrix_units(s, program.units)]
    if any(is_whole(dot, program) for dot in dots):
        return ""
    return "all dots are split" if dots else "no dot of two blocks is there"


def is_whole(stmt: Stmt, program: TileProgram) -> bool:
    """True for a dot of two blocks of float32 that is not split."""
    if not isinstance(stmt, Let) or not takes_matrix_units(stmt, program.units):
        return False
    return not stmt.split and all(arg.dtype == FLOAT for arg in stmt.args)


def not_split_for(target: Target) -> str:
    """Why Triton splits no dots of float32 for ``target``, or "": a fact of Triton 3.6 to 3.9."""
    return "" if target.backend == "cuda" else f"Triton splits no dots for {target.name}"
