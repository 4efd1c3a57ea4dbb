"""The kernels of a file or a plan, one line each: what it computes, its time, what limits it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from blockbuster.costs.report import in_us
from blockbuster.emit.schedule.numbered_chunks import is_walked
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.tile.between import words_of
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.dataflow import loaded, stored
from blockbuster.emit.tile.program import (
    OUTPUT,
    Buffer,
    Chunks,
    Fold,
    Let,
    Nest,
    TileProgram,
    statements,
)
from blockbuster.errors import shown
from blockbuster.frontend.program import Equation
from blockbuster.ir.ops import Functional
from blockbuster.ir.origin import SourceLine
from blockbuster.selection.parts.operand_views import PRODUCT
from blockbuster.selection.plans import layout
from blockbuster.selection.plans.operators import computes

DOT = "dot"


@dataclass(frozen=True)
class KernelLine:
    """A kernel in words. ``equations`` are those it computes, ``more`` what else is to be known.

    ``us``: predicted microseconds, infinite if none are known; ``limit``: what limits it.
    ``writes``: the arrays that it makes, but for partial results. ``otherwise``: what it does, for
    a kernel of no known equations.
    """

    equations: tuple[Equation, ...]
    us: float
    limit: str = ""
    more: tuple[str, ...] = ()
    otherwise: str = ""
    writes: tuple[str, ...] = ()

    def text(self, mark: str) -> str:
        """The line, of at most ``kernel_line_width`` characters; ``mark`` stands in front."""
        time = f"{in_us(self.us)}" if isfinite(self.us) else ""
        limit = f"limited by {self.limit}" if self.limit else ""
        end = ", ".join(filter(None, (time, limit)))
        behind = "".join(f", {one}" for one in self.more) + (f"; {end}" if end else "")
        few = layout.ARRAYS
        names = (*self.writes[:few], "...") if len(self.writes) > few else self.writes
        mark += f"{cut(shown(', '.join(names)), layout.NAMES)} = " if names else ""
        room = layout.KERNEL_WIDTH - len(mark) - len(behind)
        what = computes(self.equations, room) if self.equations else self.otherwise
        return cut(mark + cut(shown(what), room) + behind, layout.KERNEL_WIDTH)

    def renamed(self, names: Mapping[str, str]) -> KernelLine:
        """The same line, with other names of arrays."""
        return replace(self, writes=tuple(names.get(name, name) for name in self.writes))


def cut(text: str, room: int) -> str:
    """A text of at most ``room`` characters.

    >>> cut("softmax", 7), cut("softmax", 6)
    ('softmax', 'sof...')
    """
    return text if len(text) <= room else f"{text[: max(room - 3, 0)]}..."


def of_program(
    program: TileProgram,
    times: Sequence[tuple[float, str]],
    equations: Sequence[Equation],
    *,
    whole: bool,
) -> Iterator[KernelLine]:
    """A line for each kernel of a tile program. ``times``: of those that run in each call.

    ``equations``: of the function that it was traced from; ``whole``: all of them are computed by
    it. A kernel is said to compute those whose lines in the user's file its statements come from.
    """
    kept, left = kept_nests(program), iter(times)
    nests = program.nests
    for at, nest in enumerate(nests):
        time = (0.0, "") if at in kept else next(left, (float("inf"), ""))
        alone = whole and len(nests) == 1
        own = tuple(equations) if alone else tuple(_of_nest(nest, equations))
        more = [*_chunks(program, nest)]
        more += ["kept from call to call"] if at in kept else []
        yield KernelLine(own, *time, tuple(more), _operators(nest), tuple(_writes(program, nest)))


def of_text(
    program: TileProgram, us: float, equations: Sequence[Equation], *, whole: bool
) -> KernelLine:
    """The line of a file of NumPy text, whose kernels have no times of their own."""
    count = len(split_nests(program).nests)
    lines = [*of_program(split_nests(program), (), equations, whole=whole)]
    own = tuple(one for one in equations if any(one in line.equations for line in lines))
    more = (f"in {count} kernels",) if count > 1 else ()
    outputs = tuple(buffer.name for buffer in program.outputs)
    return KernelLine(own, us, "", more, lines[0].otherwise, outputs)


def _of_nest(nest: Nest, equations: Iterable[Equation]) -> Iterator[Equation]:
    """The equations whose lines a nest's statements come from: products by dots, others by others.

    Rules copy and merge operators, so that several kernels may compute parts of one line.
    """
    dots, others = dict[SourceLine, None](), dict[SourceLine, None]()
    for stmt in statements(nest.body):
        if isinstance(stmt, Let | Fold):
            found = dots if isinstance(stmt, Let) and _name(stmt) == DOT else others
            found.update(dict.fromkeys(stmt.origin.lines()))
    for one in equations:
        if one.where in (dots if one.op == PRODUCT else others):
            yield one


def _name(stmt: Let) -> str:
    return stmt.op.name if isinstance(stmt.op, Functional) else ""


def _operators(nest: Nest) -> str:
    """What a nest computes where no function was traced: its dots and reductions of rows."""
    names = [_name(stmt) for stmt in statements(nest.body) if isinstance(stmt, Let)]
    counted = {name: names.count(name) for name in names if name == DOT or name.startswith("row_")}
    words = [
        f"{count} {word}{'s' * (count > 1)}"
        for name, count in counted.items()
        for word in [name.removeprefix("row_")]
    ]
    return ", ".join(words) or "operators on elements"


def _writes(program: TileProgram, nest: Nest) -> Iterator[str]:
    """The arrays that a nest stores, by the user's words; no partial results of chunks."""
    words = words_of(program)
    for buffer in sorted(stored(nest.body), key=lambda one: one.space != OUTPUT):
        if not any(_has((buffer,), one) for one in program.chunks):
            yield buffer.name if buffer.space == OUTPUT else words.get(buffer, buffer.name)


def _chunks(program: TileProgram, nest: Nest) -> Iterator[str]:
    """The loops that a nest runs in chunks, and those whose partial results it combines."""
    walked = [one for one in program.chunks if is_walked(program, one)]
    for one in (one for one in program.chunks if one not in walked):
        if _has(loaded(nest.body), one):
            yield f"combines {one.count} chunks of {one.dim}"
        elif _has(stored(nest.body), one):
            yield f"in {one.count} chunks of {one.dim}"


def _has(buffers: Iterable[Buffer], chunks: Chunks) -> bool:
    dims = {chunks.number, chunks.lanes}
    return any(axis.dim in dims for buffer in buffers for axis in buffer.axes)
