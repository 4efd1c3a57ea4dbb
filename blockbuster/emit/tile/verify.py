"""Well-formedness of tile programs: each invariant is a small function that returns reasons.

Running NumPy text cannot show every mistake: a single thread hides a stale tile or a race. These
checks inspect the statements instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import TypeAlias

from blockbuster.emit.tile import rings
from blockbuster.emit.tile.chains import chains_are_whole
from blockbuster.emit.tile.constants import CHECKS as CONSTANT_CHECKS
from blockbuster.emit.tile.dataflow import accessed, defined, folded, operands
from blockbuster.emit.tile.monoids import COMBINED
from blockbuster.emit.tile.pointwise import in_tiles
from blockbuster.emit.tile.program import (
    END,
    FIRST,
    INPUT,
    LAST,
    BlockOf,
    Buffer,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.scans import broken_scans
from blockbuster.emit.tile.verify_dtypes import DTYPE_CHECKS
from blockbuster.emit.tile.verify_waits import CHECKS as WAIT_CHECKS
from blockbuster.errors import VerifyError, message
from blockbuster.ir.ops import MONOID_OF, Functional, Pointwise
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim
from blockbuster.ir.views import Share, dims_along, dims_among, shares_of


def verify_tiles(program: TileProgram) -> None:
    """Raise VerifyError, with the reason, where an invariant fails.

    Dtypes are looked at where the program has them, or part of them (verify_dtypes.py).
    """
    for check in (*CHECKS, *(DTYPE_CHECKS if program.dtype else DTYPE_CHECKS[:1])):
        for reason in check(program):
            raise VerifyError(message(f"ill-formed tile program: {reason}"))


@dataclass(frozen=True)
class Around:
    """A loop around a statement; ``number`` tells two loops over one dim apart."""

    dim: Dim
    parallel: bool
    number: int
    chunk: Dim | None = None
    within: tuple[Dim, ...] = ()


Place: TypeAlias = tuple[Around, ...]  # the loops around a statement, outermost first


def placed(nest: Nest) -> Iterator[tuple[Place, Stmt]]:
    """Every statement of ``nest`` with its place, in program order."""
    numbers = count()

    def walk(body: tuple[Stmt, ...], place: Place) -> Iterator[tuple[Place, Stmt]]:
        for stmt in body:
            yield place, stmt
            if isinstance(stmt, For):
                around = Around(stmt.dim, stmt.parallel, next(numbers), stmt.chunk, stmt.within)
                yield from walk(stmt.body, (*place, around))

    return walk(nest.body, tuple(Around(dim, True, next(numbers)) for dim in nest.grid))


def tiles_are_defined_before_use(nest: Nest) -> Iterator[str]:
    """A tile is read in its own nest, behind its definition, inside the loops around that."""
    homes: dict[Tile, Place] = {}
    for place, stmt in placed(nest):
        for tile in (*operands(stmt), *folded(stmt)):
            home = homes.get(tile)
            if home is None or place[: len(home)] != home:
                yield f"{tile.name} is read where it is not defined"
                continue
            lanes = tile.per_lane if tile in folded(stmt) else ()
            for loop in place[len(home) :]:
                if loop.dim in tile.axes and loop.dim not in lanes:
                    yield f"{tile.name}, made outside the loop over {loop.dim}, is read in it"
        made = defined(stmt)
        if made is not None:
            if made in homes:
                yield f"{made.name} is defined twice in one nest"
            homes[made] = place


def lanes_are_reduced_before_use(nest: Nest) -> Iterator[str]:
    """Entries per lane are no elements: they are guarded, reduced, or folded into their like."""
    for stmt in statements(nest.body):
        for tile in operands(stmt):
            if tile.per_lane and not _keeps_lanes(stmt, tile):
                yield f"{tile.name} has an entry per lane of {tile.per_lane[0]}, and is read"


def _keeps_lanes(stmt: Stmt, tile: Tile) -> bool:
    match stmt:
        case Guard(target, _, dim):
            return dim not in tile.per_lane and target.per_lane == tile.per_lane
        case Let(target, Functional(name)) if name in MONOID_OF:
            return target.per_lane == tuple(d for d in tile.per_lane if d in target.axes)
        case Fold(target, members=()):
            return set(tile.per_lane) <= set(target.per_lane)
    return False


def accumulators_are_private(nest: Nest) -> Iterator[str]:
    """No parallel loop folds into an accumulator made outside it, and each has its init."""
    homes: dict[Tile, Place] = {}
    for place, stmt in placed(nest):
        if isinstance(stmt, Init):
            homes[stmt.target] = place
        for tile in folded(stmt):
            home = homes.get(tile)
            if home is None:
                yield f"{tile.name} is folded into without an init"
            elif any(loop.parallel for loop in place[len(home) :]):
                yield f"iterations of a parallel loop share the accumulator {tile.name}"


def leads_are_folded_ahead(nest: Nest) -> Iterator[str]:
    """What a fold takes for its target already folded is that of the target and something."""
    made = {let.target: let for _, let in placed(nest) if isinstance(let, Let)}
    for _, stmt in placed(nest):
        if isinstance(stmt, Fold) and stmt.ahead:
            let = made.get(stmt.value)
            if (
                let is None
                or let.op != Pointwise(COMBINED[stmt.monoid], let.target.axes)
                or stmt.target not in let.args
            ):
                yield f"{stmt.value.name} is not {stmt.target.name} folded"


def parallel_stores_are_apart(nest: Nest) -> Iterator[str]:
    """Each iteration of a parallel loop stores at its own place."""
    for place, stmt in placed(nest):
        if isinstance(stmt, Store):
            runs = _with_chunks(place, _told_apart(stmt.view))
            for loop in place:
                if loop.parallel and loop.dim not in runs and not loop.within:
                    name = stmt.view.buffer.name
                    yield f"iterations over {loop.dim} store {name} at one place"


def _told_apart(view: View) -> tuple[Dim, ...]:
    """The dims of which each element is stored at another place: of a joined one, all shares."""
    found: dict[Dim, dict[Share, None]] = {}
    for dim, share in shares_of(view.dims):
        found.setdefault(dim, {}).setdefault(share)
    part = [dim for dim, own in found.items() if len(own) < len(next(iter(own)).dims)]
    return tuple(dim for dim in view.runs if dim not in part)


def _with_chunks(place: Place, dims: Iterable[Dim]) -> dict[Dim, None]:
    """``dims`` and those whose chunks of them, or of their chunks, are walked, or whose blocks
    hold blocks of them: what is apart for blocks is for chunks.
    """
    found = dict.fromkeys(dims)
    for loop in reversed(place):
        if loop.chunk is not None and loop.dim in found:
            found[loop.chunk] = None
        if loop.dim in found:
            found.update(dict.fromkeys(loop.within[:1]))
    return found


def pieces_are_walked(nest: Nest) -> Iterator[str]:
    """A loop over the pieces of a dim runs inside a loop over that dim, and tiles hold pieces as
    they are regrouped.
    """
    for place, stmt in placed(nest):
        if isinstance(stmt, For) and stmt.within:
            joined, piece = stmt.within
            if joined not in [loop.dim for loop in place]:
                yield f"a loop over the pieces {stmt.dim} outside a loop over {joined}"
            if piece in [loop.dim for loop in place]:
                yield f"a loop over {piece} around one over pieces of it"
        if isinstance(stmt, Let) and isinstance(stmt.op, Regroup):
            around = [(loop.dim, *loop.within) for loop in place if loop.within]
            known = [((joined,), (dim, piece)) for dim, joined, piece in around]
            if not {(stmt.op.old, stmt.op.new), (stmt.op.new, stmt.op.old)} & {*known}:
                yield f"{stmt.target.name} is regrouped outside a loop over its pieces"


def chunks_are_walked(nest: Nest) -> Iterator[str]:
    """A loop over a chunk runs inside a loop over all chunks, which cuts no other dim."""
    cut: dict[Around, Dim] = {}
    for place, stmt in placed(nest):
        if isinstance(stmt, For) and stmt.chunk is not None:
            around = [loop for loop in place if loop.dim == stmt.chunk]
            if not around:
                yield f"a loop over a chunk of {stmt.dim} outside a loop over {stmt.chunk}"
            elif cut.setdefault(around[0], stmt.dim) != stmt.dim:
                yield f"{stmt.chunk} counts chunks of {cut[around[0]]} and of {stmt.dim}"


def loads_read_what_is_there(program: TileProgram) -> Iterator[str]:
    """Loaded elements were stored before, by an earlier nest or the same parallel iteration."""
    ready: dict[Buffer, None] = dict.fromkeys(program.inputs)
    for nest in program.nests:
        stores: dict[Buffer, list[tuple[Place, View]]] = {}
        for place, stmt in placed(nest):
            if isinstance(stmt, Store):
                if stmt.view.buffer.space == INPUT:
                    yield f"the input {stmt.view.buffer.name} is stored"
                stores.setdefault(stmt.view.buffer, []).append((place, stmt.view))
            elif isinstance(stmt, Load | Issue) and stmt.view.buffer not in ready:
                found = stores.get(stmt.view.buffer, [])
                reasons = [[*_same_iteration(place, stmt.view, store)] for store in found]
                none = [f"{stmt.view.buffer.name} is loaded before it is stored"]
                yield from min(reasons, key=len, default=none)
        ready.update(dict.fromkeys(stores))


def _same_iteration(place: Place, view: View, store: tuple[Place, View]) -> Iterator[str]:
    """Why a load does not find what ``store`` stores, if so; another may have stored it."""
    name = view.buffer.name
    written, target = store
    for loop in (a for a, b in zip(place, written, strict=False) if a == b and a.parallel):
        axes = [dim for dim in view.dims if loop.dim in dims_along(dim)]
        if axes != [dim for dim in target.dims if loop.dim in dims_along(dim)]:
            yield f"{name} is loaded at a place that another iteration over {loop.dim} stores"


def arrays_are_known(program: TileProgram) -> Iterator[str]:
    """Accesses name the program's arrays, each dim of an access once, and names are unique."""
    buffers = (*program.inputs, *program.outputs, *program.workspaces)
    names = [buffer.name for buffer in buffers]
    if len(set(names)) < len(names):
        yield f"two arrays have one name among {', '.join(names)}"
    for nest in program.nests:
        for _, stmt in placed(nest):
            if isinstance(stmt, Load | Issue | Store):
                view = stmt.view
                tile = accessed(stmt)
                if view.buffer not in buffers:
                    yield f"{view.buffer.name} is no array of the program"
                if _repeats(view) or len(view.dims) != len(view.buffer.axes):
                    yield f"{view.buffer.name} is accessed under the dims {view.dims}"
                missing = [dim for dim in tile.axes if dim not in view.runs]
                if missing:
                    yield f"{tile.name} has the axis {missing[0]}, which {view.buffer.name} lacks"


def _repeats(view: View) -> bool:
    """True if a dim of an access runs along several axes and no shares say what of it does."""
    dims = dims_among(view.dims)
    shares = [*shares_of(view.dims)]
    plain = [dim for dim in dims if dim not in (joined for joined, _ in shares)]
    known = dict.fromkeys((dim, share.dims) for dim, share in shares)
    return (
        len({*plain}) < len(plain)
        or len({*shares}) < len(shares)
        or len(known) < len({dim for dim, _ in shares})
        or len(shares) + len(plain) < len(dims)
    )


def dots_are_added_once(nest: Nest) -> Iterator[str]:
    """A dot that is made where it is added is read there, by one fold, and nowhere else."""
    lets = {s.target: s for _, s in placed(nest) if isinstance(s, Let) and s.into is not None}
    readers: dict[Tile, list[tuple[Place, Stmt]]] = {tile: [] for tile in lets}
    homes: dict[Tile, Place] = {}
    for place, stmt in placed(nest):
        homes |= {stmt.target: place} if isinstance(stmt, Let) else {}
        for tile in (tile for tile in operands(stmt) if tile in lets):
            readers[tile].append((place, stmt))
    for tile, let in lets.items():
        match readers[tile]:
            case [(place, Fold(target, "+", value, members=(), ahead=False))]:
                if value == tile and target == let.into and place == homes[tile]:
                    continue
        yield f"{tile.name} is not what is added to {let.into.name if let.into else ''} once"


def sums_beside_others(nest: Nest) -> Iterator[str]:
    """What is exchanged together are two sums of the same lanes, one right behind the other."""
    total, stmts = Functional("row_sum"), [*statements(nest.body)]
    for stmt, after in zip(stmts, (*stmts[1:], None), strict=True):
        if not (isinstance(stmt, Let) and stmt.beside):
            continue
        if not (isinstance(after, Let) and after.op == stmt.op == total and not after.beside):
            yield f"{stmt.target.name} stands beside no other sum"
        elif after.args[0].axes != stmt.args[0].axes or stmt.target in operands(after):
            yield f"{stmt.target.name} and {after.target.name} are not summed together"


def operators_are_of_tiles(nest: Nest) -> Iterator[str]:
    """Every operator that applies a scalar function to elements is a ``Pointwise``."""
    for _, stmt in placed(nest):
        if isinstance(stmt, Let) and in_tiles(stmt.op, stmt.target.axes) != stmt.op:
            yield f"{stmt.target.name} has an operator of block programs: expected pointwise"


def spans_are_known(nest: Nest) -> Iterator[str]:
    """The bounds of a loop are single numbers, which do not change while it runs."""
    changing = {tile for stmt in statements(nest.body) for tile in folded(stmt)}
    for loop in (stmt for stmt in statements(nest.body) if isinstance(stmt, For)):
        if loop.span == (None, None):
            yield f"the loop over {loop.dim} has a span without bounds"
        for tile in loop.bounds:
            if tile.axes:
                yield f"{tile.name}, a bound of the loop over {loop.dim}, is no single number"
            if tile in changing:
                yield f"{tile.name}, a bound of the loop over {loop.dim}, is an accumulator"


def indices_fit_their_tiles(nest: Nest) -> Iterator[str]:
    """Indices have the axis of their dim, but one alone none; blocks have those of positions."""
    for stmt in statements(nest.body):
        match stmt:
            case Iota(target, dim, at=at):
                if at not in ("", FIRST, LAST, END):
                    yield f"{target.name} is the index of {dim} at {at!r}"
                if target.axes != (() if at else (dim,)):
                    yield f"{target.name}, of indices of {dim}, has the axes {target.axes}"
            case BlockOf(target, dim, value):
                if target.axes != value.axes:
                    yield f"{target.name} and {value.name} have other axes"


def loops_do_not_repeat(program: TileProgram) -> Iterator[str]:
    """No loop runs inside another over the same dim, nor over a dim that is one block."""
    for nest in program.nests:
        for place, stmt in placed(nest):
            if isinstance(stmt, For):
                if stmt.dim in (loop.dim for loop in place):
                    yield f"a loop over {stmt.dim} inside a loop over {stmt.dim}"
                if stmt.dim in program.whole:
                    yield f"a loop over {stmt.dim}, which is one block"


Check: TypeAlias = Callable[[TileProgram], Iterator[str]]


def of_nests(*checks: Callable[[Nest], Iterator[str]]) -> Iterator[Check]:
    """Checks of programs that ask the same of each of their nests."""

    def of_program(check: Callable[[Nest], Iterator[str]], program: TileProgram) -> Iterator[str]:
        return chain.from_iterable(map(check, program.nests))

    return (partial(of_program, check) for check in checks)


CHECKS: tuple[Check, ...] = (
    arrays_are_known,
    loops_do_not_repeat,
    *of_nests(
        chunks_are_walked,
        pieces_are_walked,
        spans_are_known,
        chains_are_whole,
        indices_fit_their_tiles,
        tiles_are_defined_before_use,
        lanes_are_reduced_before_use,
        accumulators_are_private,
        leads_are_folded_ahead,
        parallel_stores_are_apart,
    ),
    loads_read_what_is_there,
    *of_nests(
        dots_are_added_once,
        sums_beside_others,
        operators_are_of_tiles,
        broken_scans,
        *rings.CHECKS,
    ),
    *WAIT_CHECKS,
    *CONSTANT_CHECKS,
)
