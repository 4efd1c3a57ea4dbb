"""The emitted file of the final program, with the node behind each line of its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from blockbuster.emit.kernel import Kernel, written
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.steps import KernelDerivation
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import TileProgram
from blockbuster.errors import shown_lines
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim
from blockbuster.view.explorer.chosen import Chosen
from blockbuster.view.explorer.places import filled, place_in, with_places
from blockbuster.view.explorer.texts import Span, Text

JIT = "@triton.jit"


@dataclass(frozen=True)
class KernelText:
    """The file's text, the lines of each kernel in it, and what it was written for."""

    text: Text
    kernels: tuple[Span, ...] = ()
    tiles: Mapping[Dim, int] | None = None
    target: str = ""
    kernel: Kernel | None = None

    @property
    def derivation(self) -> KernelDerivation | None:
        """The kernel's derivation."""
        return self.kernel.derivation if self.kernel else None


def kernel_text(chosen: Chosen, reference: Graph, dtype: str) -> KernelText:
    """The Triton file of what was chosen; ``text.missing`` says why there is none.

    It is printed twice, once with the places of nodes for comments: line by line the texts agree.
    """
    if chosen.considered is None:
        return KernelText(Text((), (), chosen.missing))
    best = chosen.considered.best
    assert best.scheduled is not None, "a GPU's choice has a schedule"
    file = partial(
        written,
        reference=reference,
        notes=(*best.unsafe, *best.notes),
        fused=chosen.derivation,
        plain=lower_to_tiles(reference),
        name=chosen.name,
        chosen=chosen.considered.short,
    )
    kernel = file(best.scheduled, best.stable, tiles=best.lowered.program)
    same = with_places(best.stable)
    tiles = lower_to_tiles(same)
    marked = file(_again(best.scheduled, tiles, reference, dtype), same, tiles=tiles)
    lines, other = shown_lines(kernel.source), shown_lines(marked.source)
    kernels = _kernels(lines)
    places = [""] * len(lines)
    for first, end in kernels:
        own = _statements(lines[first:end], [place_in(line) for line in other[first:end]])
        places[first:end] = filled(lines[first:end], own)
    text = Text(tuple(lines), tuple(places))
    return KernelText(text, kernels, kernel.tiles, kernel.target, kernel)


def _again(made: Scheduled, tiles: TileProgram, reference: Graph, dtype: str) -> Scheduled:
    """The schedule of a program, applied to an equal one whose nodes carry other origins."""
    program = typed_for_gpu(reference, tiles, given_by(dtype))
    return replayed(unscheduled(program, made.known, made.target), made.schedule)


def _kernels(lines: list[str]) -> tuple[Span, ...]:
    """The functions that are launched; the small ones they call have names with an underscore."""
    starts = [
        at for at, line in enumerate(lines) if line == JIT and not lines[at + 1].startswith("def _")
    ]
    return tuple((start, _end(lines, start)) for start in starts)


def _end(lines: list[str], start: int) -> int:
    """The line behind the last line of the function that starts there."""
    end = lines.index("):", start) + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
        end += 1
    while not lines[end - 1]:
        end -= 1
    return end


def _statements(lines: list[str], places: list[str]) -> list[str]:
    """The lines of a call over several lines have the place of the first."""
    result, open_call = [], ""
    for line, place in zip(lines, places, strict=True):
        code = line.split("  #")[0].rstrip()
        if code.endswith("(") and place:
            open_call = place
        result.append(place or open_call)
        if code.endswith(")") and not code.endswith("("):
            open_call = "" if code.strip() == ")" else open_call
    return result
