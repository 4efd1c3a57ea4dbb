"""Passes that act on one nest at a time, and remember what became of it.

The schedules that a search looks at differ in one nest, or in one number of it, so that passes meet
the same nests and bodies again and again. ``each_nest`` and ``each_body`` make a pass over programs
of a function of one nest. All that such a function may read of the other nests and of the arrays is
an argument of it: ``Around``, and the names that other tiles have.

Results are remembered by the body as an object, not by its value: bodies that are equal may differ
in the user's words, which printers print. Those that differ in nothing are one object (alike.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import fields as fields_of
from functools import lru_cache, wraps
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from blockbuster.emit.tile.alike import Inputs, first_alike
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import defined, names_beside, with_parts
from blockbuster.emit.tile.hashed import HashedOnce
from blockbuster.emit.tile.program import Buffer, Nest, Stmt, TileProgram, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.ir.types import Dim

KEPT = 512
"""Nests whose results each pass remembers."""

BESIDE = tuple(each.name for each in fields_of(Nest) if each.name != "body")
"""The fields of a nest besides its body."""

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


def each_nest(one: Callable[[Nest, Around], Nest]) -> ProgramPass:
    """The pass that applies ``one`` to each nest of a program."""
    return _pass(one, lambda nest, known, _: one(nest, known), BESIDE, keeps=False)


def each_body(*reads: str) -> Callable[[Callable[[Nest, Around], Nest]], ProgramPass]:
    """The same for passes that change the body of a nest only, and read of its other fields only
    those named in ``reads``: the nest that they are given has no others.
    """
    return lambda one: _pass(one, lambda nest, known, _: one(nest, known), reads)


def naming_body(*reads: str) -> Callable[[NamingPass], ProgramPass]:
    """The same for passes that make tiles: they get names that no tile of the program has."""
    return lambda one: _pass(one, one, reads)


def _pass(
    said: Callable[..., Nest],
    one: NamingPass,
    reads: tuple[str, ...],
    *,
    keeps: bool = True,
) -> ProgramPass:
    """The pass with the name of ``said`` that applies ``one``, which may ask for ``names``.

    ``keeps``: nests keep their fields besides the body.
    """

    @lru_cache(maxsize=KEPT)
    def made(
        body: Same[Body],
        fields: tuple[Any, ...],
        known: Around,
        given: tuple[str, ...] | None,
        inputs: Same[Inputs],
    ) -> tuple[Nest, int]:
        """The nest after the pass, and how many names it asked for: of those ``given``, or of any
        that the nest does not have.
        """
        own = names_in(body) if given is None else frozenset[str]()
        asked = Names(names_beside(own) if given is None else iter(given))
        nest = one(_bare(body.one, reads, fields), known, asked)
        other = nest.body if nest.body is body.one else first_alike(nest.body, inputs.one)
        return with_parts(nest, body=other), len(asked.given)

    @wraps(said)
    def every(program: TileProgram) -> TileProgram:
        known, inputs, nests = around_nests(program), Same(program.inputs), list[Nest]()
        free: Iterator[str] | None = None
        for nest in program.nests:
            key = Same(nest.body), tuple([getattr(nest, name) for name in reads]), known
            after, count = made(*key, None, inputs)
            if count:  # most nests ask for none: what the others have is looked up for few
                free = free or names_beside(names_of(program))
                after, _ = made(*key, tuple(islice(free, count)), inputs)
            if keeps:
                after = nest if after.body is nest.body else changed(nest, body=after.body)
            nests.append(after)
        return with_parts(program, nests=tuple(nests))

    return every


class Names(Iterator[str]):
    """Names for tiles, the next of the ``free`` ones; ``given``: those that were asked for."""

    def __init__(self, free: Iterator[str]) -> None:
        self._free, self.given = free, list[str]()

    def __next__(self) -> str:
        self.given.append(next(self._free))
        return self.given[-1]


def _bare(body: Body, reads: tuple[str, ...], fields: tuple[Any, ...]) -> Nest:
    """A nest with this body, and of other fields only those that are read."""
    return Nest(body, **dict(zip(reads, fields, strict=True)))


def names_of(program: TileProgram) -> frozenset[str]:
    """The names of the tiles that a program makes."""
    return frozenset[str]().union(*(names_in(Same(nest.body)) for nest in program.nests))


@lru_cache(maxsize=4 * KEPT)
def names_in(body: Same[Body]) -> frozenset[str]:
    """The names of the tiles that ``body`` makes."""
    made = map(defined, statements(body.one))
    return frozenset(tile.name for tile in made if tile is not None)
