"""Passes that act on one nest at a time, and remember what became of it.

The schedules that a search looks at differ in one nest, or in one number of it, so that passes meet
the same nests and bodies again and again. ``each_body`` makes a pass over programs of a function of
one nest. All that such a function may read of the other nests and of the arrays is
an argument of it: ``Around``, and the names that other tiles have.

Results are remembered by the body as an object, not by its value: bodies that are equal may differ
in the user's words, which printers print. Those that differ in nothing are one object (alike.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from blockbuster.emit.tile.alike import Inputs, first_alike
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import defined, names_beside, with_parts
from blockbuster.emit.tile.hashed import HashedOnce
from blockbuster.emit.tile.program import Block, Buffer, Nest, Stmt, TileProgram, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.tiling import ragged_dims
from blockbuster.ir.types import Dim

KEPT = 2048
"""Nests whose results each pass remembers."""

RAGGED = "ragged"
"""What a pass reads of blocks that asks only which of them may be ragged, and not for lanes."""

Kind = TypeVar("Kind")
Body: TypeAlias = tuple[Stmt, ...]
ProgramPass: TypeAlias = Callable[[TileProgram], TileProgram]
NamingPass: TypeAlias = "Callable[[Nest, Around, Iterator[str]], Nest]"


class Same(Generic[Kind]):
    """The key of one object: equal to the keys of that object alone. It keeps the object alive."""

    __slots__ = ("one",)

    def __init__(self, one: Kind) -> None:
        self.one = one

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.one is other.one

    def __hash__(self) -> int:
        return id(self.one)


@dataclass(frozen=True)
class Around(HashedOnce):
    """What a pass over one nest may know of its program: fields of the program."""

    units: tuple[Dim, ...]
    dtype: str
    outputs: tuple[Buffer, ...]

    @property
    def accurate(self) -> bool:
        """True if results show how often a value is rounded (``is_accurate`` of typed.py)."""
        return FLOAT in (self.dtype, *(buffer.dtype for buffer in self.outputs))

    @property
    def arithmetic(self) -> str:
        """The dtype in which operators compute; none in a program without dtypes."""
        return ("float64" if self.dtype == "float64" else FLOAT) if self.dtype else ""


def around_nests(program: TileProgram) -> Around:
    """What passes over one nest of ``program`` may know of it."""
    return _around(program.units, program.dtype, Same(program.outputs))


@lru_cache(maxsize=KEPT)  # the same object has its hash already
def _around(units: tuple[Dim, ...], dtype: str, outputs: Same[tuple[Buffer, ...]]) -> Around:
    return Around(units, dtype, outputs.one)


def each_body(*reads: str) -> Callable[[Callable[[Nest, Around], Nest]], ProgramPass]:
    """Makes a pass over programs of a function that changes the body of a nest only, and reads of
    its other fields only those named in ``reads``: the nest that it is given has no others.
    """
    return lambda one: _pass(one, lambda nest, known, _: one(nest, known), reads)


def naming_body(*reads: str) -> Callable[[NamingPass], ProgramPass]:
    """The same for passes that make tiles: they get names that no tile of the program has."""
    return lambda one: _pass(one, one, reads)


def _pass(said: Callable[..., Nest], one: NamingPass, reads: tuple[str, ...]) -> ProgramPass:
    """The pass with the name of ``said`` that applies ``one``, which may ask for ``names``."""

    @lru_cache(maxsize=KEPT)
    def made(
        body: Same[Body],
        fields: tuple[Any, ...],
        known: Around,
        given: tuple[str, ...] | None,
        inputs: Same[Inputs],
    ) -> tuple[Body, int]:
        """The body after the pass, and how many names it asked for: of those ``given``, or of any
        that the nest does not have.
        """
        asked = Names(_unused_in(body) if given is None else iter(given))
        after = one(_bare(body.one, reads, fields), known, asked).body
        same = after is body.one
        return after if same else first_alike(after, inputs.one), len(asked.given)

    @wraps(said)
    def every(program: TileProgram) -> TileProgram:
        known, inputs, nests = around_nests(program), Same(program.inputs), list[Nest]()
        free: Iterator[str] | None = None
        for nest in program.nests:
            key = Same(nest.body), tuple([_read(nest, name) for name in reads]), known
            after, count = made(*key, None, inputs)
            if count:  # most nests ask for none: what the others have is looked up for few
                free = free or names_beside(names_of(program))
                after, _ = made(*key, tuple(islice(free, count)), inputs)
            nests.append(nest if after is nest.body else changed(nest, body=after))
        return with_parts(program, nests=tuple(nests))

    return every


class Names(Iterator[str]):
    """Names for tiles, the next of the ``free`` ones; ``given``: those that were asked for."""

    def __init__(self, free: Iterator[str]) -> None:
        self._free, self.given = free, list[str]()

    def __next__(self) -> str:
        self.given.append(next(self._free))
        return self.given[-1]


def _read(nest: Nest, name: str) -> Any:
    return ragged_dims(nest) if name == RAGGED else getattr(nest, name)


def _bare(body: Body, reads: tuple[str, ...], fields: tuple[Any, ...]) -> Nest:
    """A nest with this body, and of other fields only those that are read."""
    given = dict(zip(reads, fields, strict=True))
    if RAGGED in given:
        given["blocks"] = tuple([Block(dim, 0) for dim in given.pop(RAGGED)])
    return Nest(body, **given)


def _unused_in(body: Same[Body]) -> Iterator[str]:
    """Names that no tile of ``body`` has; its own are looked up if one is asked for."""
    yield from names_beside(names_in(body))


def names_of(program: TileProgram) -> frozenset[str]:
    """The names of the tiles that a program makes."""
    return frozenset[str]().union(*(names_in(Same(nest.body)) for nest in program.nests))


@lru_cache(maxsize=4 * KEPT)
def names_in(body: Same[Body]) -> frozenset[str]:
    """The names of the tiles that ``body`` makes."""
    made = map(defined, statements(body.one))
    return frozenset(tile.name for tile in made if tile is not None)
