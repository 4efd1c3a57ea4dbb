"""The tile program: loops over tiles, from which every text of a kernel is printed.

A block program states what is computed; a tile program states also when, and from where. Every
decision about a kernel is a pass over this data, and the printers of its texts decide nothing.

A *tile* is the local item of the current iteration: along each of its axes it is the block of that
dim at which the enclosing loop stands. Without such a loop it is the whole dim; for an accumulator
it holds partial results. Each tile is defined once in a nest; an ``Init`` is followed by ``Fold``s
of its target.

The place of an access follows from its axes. An element axis whose dim is among the tile's axes is
the slice of the current block (the whole axis if no loop or grid dim runs over it). An element axis
of another dim is list-only, with block size 1: it is the current iteration's one element. A
per-block axis is the current iteration's number (0 without a loop); an axis without a dim is
element 0. The tile's axes may stand in another order than the buffer's: a transposed read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.hashed import HashedOnce
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.waits import Between
from blockbuster.ir.expr import Expr
from blockbuster.ir.lengths import Rule
from blockbuster.ir.ops import Op
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim
from blockbuster.ir.views import AxisView, dims_among

INPUT, OUTPUT, WORKSPACE = "input", "output", "workspace"


@dataclass(frozen=True)
class BufferAxis:
    """One axis of an array in global memory.

    ``per_block``: an entry per block of ``dim``, not per element. ``dim`` None: of extent 1.
    """

    dim: Dim | None
    per_block: bool = False


@dataclass(frozen=True)
class Buffer(HashedOnce):
    """An array in global memory: a graph's input or output, or a workspace between nests.

    ``dtype``: of its elements in memory, as NumPy names it; empty in a program without dtypes.
    Truth values ("bool") take a byte each. ``pitch``: rows lie a multiple of it apart, in elements.
    """

    name: str
    axes: tuple[BufferAxis, ...]
    space: str
    dtype: str = ""
    pitch: int = 1


@dataclass(frozen=True)
class View(HashedOnce):
    """A buffer as one access reads or writes it: ``dims[i]`` is the dim under which axis i runs, or
    how it is strided; not the buffer's if relabeled. ``paired``: at every other element of rows."""

    buffer: Buffer
    dims: tuple[AxisView, ...]
    hint: str = field(default="", compare=False, repr=False)
    paired: bool = False

    @cached_property
    def runs(self) -> tuple[Dim, ...]:
        """All dims under which the access runs."""
        return tuple(dict.fromkeys(dims_among(self.dims)))

    def sliced(self, tile: Tile) -> tuple[Dim, ...]:
        """The tile's dims in the order of the array's axes."""
        return tuple(filter(tile.axes.__contains__, self._elements))

    @cached_property
    def _elements(self) -> tuple[Dim, ...]:
        axes = zip(self.dims, self.buffer.axes, strict=True)
        return tuple(dict.fromkeys(dims_among([d for d, axis in axes if not axis.per_block])))


@dataclass(frozen=True)
class Tile(HashedOnce):
    """A named local item and its axes, in order. ``hint`` is the user's word for it.

    ``per_lane``: axes along which it holds an entry per lane of a full block, whichever block a
    loop is at: an accumulator that the loop folds lane by lane. ``dtype``: of its elements, as
    NumPy names it ("bool" for truth values, "int" for index vectors); empty in a program without
    dtypes, whose numbers are exact.

    A loaded tile has the dtype of its buffer, an accumulator that of the arithmetic, a guarded tile
    that of its value (where that holds numbers); a store converts to the buffer's dtype. Conversion
    to a narrower dtype rounds to nearest, ties to even; to "bool" it tells what is not 0.
    """

    name: str
    axes: tuple[Dim, ...]
    hint: str = field(default="", compare=False, repr=False)
    per_lane: tuple[Dim, ...] = ()
    dtype: str = ""


@dataclass(frozen=True)
class Load(HashedOnce):
    """Read the tile of the current iteration from global memory.

    ``columns``: it lies in registers with its two axes exchanged, as the matrix units take their
    second operand.
    """

    target: Tile
    view: View
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    columns: bool = False


@dataclass(frozen=True)
class Issue(HashedOnce):
    """Start to load the tile for ``ahead`` iterations later of the loop around this statement.

    The loads for the first ``ahead`` iterations start before the loop. The tile arrives in one of
    ``slots`` places, that of its iteration's number modulo ``slots``, at any time until it is
    awaited. ``token`` names the ring. ``described``: by a descriptor, if the layout has one.
    """

    token: str
    tile: Tile
    view: View
    ahead: int
    slots: int
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    described: bool = False


@dataclass(frozen=True)
class Await(HashedOnce):
    """The tile of this iteration, which an ``Issue`` of the same loop started to load.

    Until the iteration ends, ``target`` is read where it arrived. ``columns``: as of a ``Load``.
    """

    target: Tile
    token: str
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    columns: bool = False


FIRST, LAST, END = "first", "last", "end"


@dataclass(frozen=True)
class Iota(HashedOnce):
    """The indices of the current block of ``dim``, which no memory holds.

    ``at``: only the ``FIRST`` or the ``LAST`` of them, or the one behind the whole dim (``END``),
    without an axis. Lanes past the end have no index: the last index is that of an element.
    """

    target: Tile
    dim: Dim
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    at: str = ""


FAR = 2**30
"""Positions are told apart up to here: farther ones count as this, NaN as its opposite."""


@dataclass(frozen=True)
class BlockOf(HashedOnce):
    """The numbers of the blocks of ``dim`` that hold the elements at positions ``value``.

    Each is the floor of position / lanes of a block: below 0 before the first element, and at least
    the number of blocks behind the last. Positions need not be whole.
    """

    target: Tile
    dim: Dim
    value: Tile
    origin: Origin = field(default=Origin(), compare=False, repr=False)


@dataclass(frozen=True)
class Store(HashedOnce):
    """Write a tile to its place in global memory."""

    view: View
    value: Tile
    origin: Origin = field(default=Origin(), compare=False, repr=False)


@dataclass(frozen=True)
class Let(HashedOnce):
    """A block operator applied to tiles.

    ``op`` is local: Pointwise, a dot, a reduction or scan of rows, Cast, Transpose, Relabel.
    It computes in float32, or float64 where its target is that: operands are converted first, and
    the result is converted to the dtype of its target. Two cases are exact in narrower dtypes, and
    computed there: indices, which are added and compared as integers; and a dot on the matrix
    units, whose operands are both in the dtype of the program (its products are added in float32).
    ``result_dtypes.py`` says which dtype each operator gives: a cast its own, a comparison "bool".
    ``into``: a sum to which the matrix units add the dot, where a fold does; nothing else reads it.
    ``apart``: why its products are rounded before they are added to others (workarounds.py).
    ``split``: a dot of float32 by matrix units, in three products of parts; it errs little more.
    ``beside``: a sum across lanes that is exchanged together with the one right behind it.
    """

    target: Tile
    op: Op
    args: tuple[Tile, ...]
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    into: Tile | None = None
    apart: str = ""
    split: bool = False
    beside: bool = False


@dataclass(frozen=True)
class Guard(HashedOnce):
    """``value`` with its padded lanes along ``dim`` (those past the dim's end) set to ``fill``."""

    target: Tile
    value: Tile
    dim: Dim
    fill: float
    origin: Origin = field(default=Origin(), compare=False, repr=False)


@dataclass(frozen=True)
class Init(HashedOnce):
    """An accumulator set to the identity of its monoid."""

    target: Tile
    monoid: str


@dataclass(frozen=True)
class Member:
    """A significand of a group: factor(target, r, r2) folded with factor(value, rv, r2).

    r and r2 are its leads before and after, all r first; rv what they folded, or r2 if ``ahead``.
    Number 0 of ``leads`` is the fold's target, number k that of member k.
    """

    target: Tile
    monoid: str
    value: Tile
    factor: Expr
    leads: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Fold(HashedOnce):
    """``target`` becomes target (monoid) value; then the members of its group follow.

    ``ahead``: ``value`` is the new value of ``target``, under which members' values were computed.
    ``onto``: a rescaled ``target`` to fold onto. ``apart``: why it is carried out otherwise."""

    target: Tile
    monoid: str
    value: Tile
    members: tuple[Member, ...] = ()
    ahead: bool = False
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    onto: Tile | None = None
    apart: str = ""


@dataclass(frozen=True)
class For(HashedOnce):
    """A loop over the blocks of ``dim``; parallel iterations may run in any order or at once.

    ``chunk``: a list-only dim that a loop around walks. The blocks are then cut into as many chunks
    of equally many (the last may be short, or empty) as that dim has elements; this loop is over
    the one of the current number. ``settled``: sums read once more behind it (workarounds.py).
    ``span``: (begin, end), tiles without axes: it runs from begin to before end, or along a chain
    (next_block.py). ``full``: no lanes past it. ``flat``: one with its inner loop. ``down``: back.
    ``within`` (of, piece): once, at the pieces in the current block of another dim."""

    dim: Dim
    parallel: bool
    body: tuple[Stmt, ...]
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    chunk: Dim | None = None
    settled: tuple[Tile, ...] = ()
    span: Span | None = None
    full: bool = False
    flat: bool = False
    down: bool = False
    within: tuple[Dim, ...] = ()

    @property
    def bounds(self) -> tuple[Tile, ...]:
        """The tiles of the span, which the loop itself reads."""
        return tuple(tile for tile in self.span or () if tile is not None)

    @cached_property
    def statements(self) -> tuple[Stmt, ...]:
        """All statements inside, those of inner loops included, in program order."""
        return tuple(statements(self.body))


@dataclass(frozen=True)
class Chunks:
    """``count`` chunks of loops over ``dim``: ``number`` counts them, ``lanes`` are all of them."""

    dim: Dim
    count: int
    number: Dim
    lanes: Dim


Stmt = (
    Load | Issue | Await | Iota | BlockOf | Store | Let | Guard | Init | Fold | For | Next | Between
)
Span: TypeAlias = "tuple[Tile | None, Tile | None]"
READS, ACCESSES = (Load, Issue), (Load, Issue, Store)


@dataclass(frozen=True)
class Block:
    """The cut of a dim in a nest: blocks of ``lanes`` elements.

    ``whole``: the dim is at most one block, and no loop over it remains. ``ragged``: its last block
    may have lanes past the end of the dim, so that accesses are masked.
    """

    dim: Dim
    lanes: int
    whole: bool = False
    ragged: bool = True


@dataclass(frozen=True)
class Nest(HashedOnce):
    """A group of statements, one kernel: it runs after all earlier nests, or waits for them inside.

    ``grid``: the parallel loops bound to the launch grid, outermost first. ``blocks``: how it cuts
    the dims whose blocks are more than one element. Both are empty until ``bind`` and ``block``.
    ``last_first``: dims whose blocks the grid takes from the last to the first. ``group``: a dim,
    not its last, whose blocks it takes in groups. ``programs``: so many take its places, in so many
    ``stages``; 0: one each. ``warps``: of one. ``accurate`` functions. ``overlaps``: begins early.
    """

    body: tuple[Stmt, ...]
    grid: tuple[Dim, ...] = ()
    blocks: tuple[Block, ...] = ()
    warps: int = 0
    accurate: tuple[str, ...] = ()
    last_first: tuple[Dim, ...] = ()
    overlaps: bool = False
    group: Group | None = None
    programs: int = 0
    stages: int = 0


@dataclass(frozen=True)
class TileProgram(HashedOnce):
    """Nests in order, and the buffers they share.

    ``whole``: dims that are one block, without a loop. ``units``: list-only dims (batch, heads):
    blocks of one element. ``rules``: facts about sizes from slices, split axes and chunks.
    ``chunks``: the chunks of loops. ``constants``: inputs that are the same in every call, by name.
    ``dtype``: of dots; empty without dtypes. Arithmetic is float64 if that is, else float32.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    workspaces: tuple[Buffer, ...]
    nests: tuple[Nest, ...]
    units: tuple[Dim, ...] = ()
    whole: tuple[Dim, ...] = ()
    rules: tuple[Rule, ...] = ()
    chunks: tuple[Chunks, ...] = ()
    dtype: str = ""
    constants: tuple[str, ...] = ()

    def show(self) -> str:
        """The text form."""
        from blockbuster.emit.tile.show import show_tiles

        return show_tiles(self)

    __str__ = show


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements of ``body``, those inside loops included, in program order."""
    if len(body) == 1 and isinstance(body[0], For):  # as most often: a loop of the grid
        return chain(body, body[0].statements)
    return chain(*[(s, *s.statements) if isinstance(s, For) else (s,) for s in body])
