"""Reports in words which iterations a kernel's masks leave in its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from blockbuster.emit.schedule.conditions import Formulas, conditions, formulas_of
from blockbuster.emit.schedule.narrow import not_narrowable
from blockbuster.emit.schedule.site import Site, loops_of, with_body
from blockbuster.emit.tile.chains import next_of
from blockbuster.emit.tile.dataflow import replaced_by
from blockbuster.emit.tile.known_bounds import KnownBounds
from blockbuster.emit.tile.program import Await, For, Iota, Load, Nest, TileProgram, statements
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.spanned import parts_of
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim


def narrowed_loops(
    program: TileProgram, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]
) -> Iterator[str]:
    """A sentence for each loop that a mask narrows or parts, at these sizes and blocks.

    Both are by size class. The parts of a loop are told together.
    """
    sizes = completed(dict(sizes), program.rules)
    bound = bound_blocks(program, sizes, blocks)
    for nest in program.nests:
        known = KnownBounds(nest, sizes, blocks_in(nest, bound))
        for stmt in statements(nest.body):
            if isinstance(stmt, For) and stmt.span is not None:
                parts = _computing(stmt, nest)
                if parts and parts[0] is stmt:
                    yield _told(parts, nest, known)


def whole_loops(program: TileProgram) -> Iterator[str]:
    """A sentence, with the reason, for each loop that runs over all its blocks under a mask."""
    for site, loop in loops_of(program):
        nest = program.nests[site.nest - 1]
        parts = _computing(loop, nest)
        if parts and parts[-1] is loop and not _is_narrowed(parts) and _has_mask(loop, nest):
            reason = not_narrowable(_unparted(program, site, loop), site)
            yield f"a loop over {loop.dim} runs over all blocks in spite of its mask: {reason}"


def _computing(loop: For, nest: Nest) -> tuple[For, ...]:
    """The parts of a loop that read memory: others fill what a mask empties."""
    return tuple(
        part
        for part in parts_of(loop, nest)
        if any(isinstance(stmt, Load | Await) for stmt in statements(part.body))
    )


def _is_narrowed(parts: tuple[For, ...]) -> bool:
    """True if the first of ``parts`` begins, or the last one ends, where a mask says it."""
    (begin, _), (_, end) = (part.span or (None, None) for part in (parts[0], parts[-1]))
    return begin is not None or end is not None


def _unparted(program: TileProgram, site: Site, loop: For) -> TileProgram:
    """``program`` with ``loop`` over all blocks, as it was before it was parted."""
    nest = program.nests[site.nest - 1]
    return with_body(program, site, replaced_by(nest.body, loop, (replace(loop, span=None),)))


def _told(parts: tuple[For, ...], nest: Nest, known: KnownBounds) -> str:
    """How many blocks of a loop are left, on average over its rows, and how many of them whole."""
    dim, formulas = parts[0].dim, formulas_of(nest)
    if not any(conditions(part, formulas) for part in parts):
        last = f"the last of {len(known.firsts(dim))} blocks"
        return f"a loop over {dim} looks at lanes past its end in {last} alone"
    if next_of(parts[0]) is not None:
        masks = ", ".join(_masks_in_memory(parts[0], formulas))
        past = f"a loop over {dim} goes past the blocks in which {masks} lets nothing by"
        return f"{past}; its time is that of all {len(known.firsts(dim))} blocks"
    of = f"{sum(map(known.trips, parts)):.3g} of {len(known.firsts(dim))} blocks"
    if not all(tile in known.known for part in parts for tile in part.bounds):
        whole = ", and which whole: these run without it" if len(parts) > 1 else ""
        return f"a loop over {dim} runs over at most {of}: data say which its mask leaves{whole}"
    does = ["empties the others"] if _is_narrowed(parts) else []
    if len(parts) > 1:
        whole = f"{known.trips(_unmasked(parts, nest)):.3g}"
        does.append(f"leaves {whole} whole, which run without it")
    return f"a loop over {dim} runs over {of}: its mask {' and '.join(does)}"


def _masks_in_memory(loop: For, formulas: Formulas) -> dict[str, None]:
    """The arrays of truth values that conditions in ``loop`` read."""
    read = dict(arrivals(formulas.nest.body))
    leaves = (formulas.leaves_of(one.formula) for one in conditions(loop, formulas))
    found = (leaf for own in leaves for leaf in own if leaf.dtype == TRUTH and leaf in read)
    return {read[leaf].buffer.name: None for leaf in found}


def _unmasked(parts: tuple[For, ...], nest: Nest) -> For:
    """The part of a loop that compares least."""
    formulas = formulas_of(nest)
    return min(parts, key=lambda part: len(conditions(part, formulas)))


def _has_mask(loop: For, nest: Nest) -> bool:
    """True for a serial loop that compares with its own positions."""
    formulas = formulas_of(nest)
    leaves = (
        formulas.made.get(leaf)
        for one in conditions(loop, formulas)
        for leaf in formulas.leaves_of(one.formula)
    )
    own = (stmt for stmt in leaves if isinstance(stmt, Iota) and stmt.dim == loop.dim)
    return not loop.parallel and any(True for _ in own)
