"""Candidates beside the snapshots: programs that recompute large values instead of storing them.

Attention's backward pass reads its scores in three products whose loops do not meet, so fusion
alone stores them. ``made_again`` (rules/made_again.py) copies their computation into each product.
That saves traffic and costs arithmetic; which is cheaper depends on sizes, and choice.py decides.

Extensions repeat more: a loop also takes in values no larger than an array, and repeats all that it
takes in in every iteration. Attention by random features multiplies keys by values once per head;
an extension does so for each block of queries, a hundred times the work. So there are two programs:
one with extensions, and one that recomputes only larger values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.traffic import Arithmetic, arithmetic
from blockbuster.emit.tile.uses import has_exact_dots
from blockbuster.errors import EmitError
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules import (
    RULES,
    CopyProducer,
    Derivation,
    ExtendMapOverCopies,
    Rule,
    made_again,
)
from blockbuster.selection.candidates.repeating import repeating
from blockbuster.selection.candidates.whole import Sites
from blockbuster.selection.cost import in_elements
from blockbuster.selection.priors import PRIORS

EXTENDING: tuple[Rule, ...] = (*RULES, ExtendMapOverCopies())
ALONE: tuple[Rule, ...] = (
    *(rule for rule in RULES if rule.kind != "extension"),
    ExtendMapOverCopies(),
)
"""Without the extensions that take in what is not copied."""


@dataclass(frozen=True)
class Again:
    """A program with larger values made again; ``derivation`` begins with the steps that copy them.

    ``dims`` are in one block each. ``alone``: no extension took in anything else.
    """

    derivation: Derivation
    dims: tuple[Dim, ...] = ()
    alone: bool = False

    @property
    def graph(self) -> Graph:
        """The program."""
        return self.derivation.final

    @property
    def name(self) -> str:
        """Its name among the snapshots."""
        whole = f", {' and '.join(self.dims)} in one block" if self.dims else ""
        alone = " alone" * self.alone
        return f"the program with larger values{alone} made again{whole}"

    @cached_property
    def copied(self) -> tuple[str, ...]:
        """The values that are made again, of those that have names."""
        count = sum(step.rule == CopyProducer.name for step in self.derivation.steps)
        nodes = self.derivation.graph_after(count).nodes
        made = [node for node in nodes if node.origin.rule == CopyProducer.name]
        return tuple(dict.fromkeys(node.hints[0] for node in made if node.hints[0]))


def values_again(
    derivation: Derivation, whole: tuple[Dim, ...] = (), *, alone: bool = False
) -> Again | None:
    """The program that makes larger values again, where there is anything to gain from it."""
    made = made_again(derivation, ALONE if alone else EXTENDING, whole=whole)
    return None if made is None else Again(made, whole, alone)


def programs_again(derivation: Derivation) -> tuple[Again, ...]:
    """The programs that make larger values again, each once."""
    found = (values_again(derivation), values_again(derivation, alone=True))
    return tuple({one.graph: one for one in found[::-1] if one is not None}.values())[::-1]


class AgainWhole:
    """Programs that make values again with dims in one block: what two loops read is made once.

    Two products that need the scores in one order can share them where the loops over their columns
    are gone: dk and dv of attention's backward pass. The dims are those in whose iterations the
    work would be repeated, as far as they fit a tile beside dots.
    """

    def __init__(self, again: Again, fused: Derivation) -> None:
        self._again, self._fused = again, fused
        self._sites = Sites(again.derivation.start)
        self._extended = self._sites.of(_extended(again.derivation))
        self._dims = tuple(dict.fromkeys((*self._extended, *self._sites.all)))
        self._found: dict[tuple[Dim, ...], Again | None] = {}

    def for_sizes(self, sizes: Mapping[Dim, int]) -> dict[int, Again]:
        """The program for these sizes (by size class), by a number that its dims have."""
        most = PRIORS.whole_elements_beside_dots
        fitting = tuple(d for d in self._dims if 0 < sizes[size_class(d)] <= most)
        dims = tuple(dim for dim in self._extended if dim in fitting)
        if self._again.alone:
            dims = self._not_repeating(fitting)
        one = self._with(dims) if dims else None
        number = sum(1 << self._dims.index(dim) for dim in dims)
        return {number: one} if one else {}

    def _not_repeating(self, fitting: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The dims of loops that repeat others, one by one, until none is left of ``fitting``."""
        dims: tuple[Dim, ...] = ()
        one: Again | None = self._again
        while one is not None:
            again = self._sites.of(repeating(one.graph))
            more = next((dim for dim in again if dim in fitting and dim not in dims), None)
            if more is None:
                break
            dims = (*dims, more)
            one = self._with(dims)
        return dims

    def _with(self, dims: tuple[Dim, ...]) -> Again | None:
        if dims not in self._found:
            self._found[dims] = values_again(self._fused, dims, alone=self._again.alone)
        return self._found[dims]


def _extended(derivation: Derivation) -> tuple[Dim, ...]:
    """The dims of the maps that were extended: each iteration does what they took in."""
    found: dict[Dim, None] = {}
    for step, application in zip(derivation.steps, derivation.applications, strict=True):
        if application.rule.kind == "extension":
            op = step.before.at(step.path).nodes[step.match["map"]].op
            assert isinstance(op, Map)
            found.setdefault(op.dim)
    return tuple(found)


@dataclass(frozen=True)
class Repeated:
    """The arithmetic of a program that makes values again, and of the one that makes each once.

    ``exact``: their dots are those of float32. ``copied``: which values, by name.
    """

    now: Arithmetic
    once: Arithmetic
    exact: bool
    copied: tuple[str, ...] = ()

    @property
    def too_much(self) -> bool:
        """True if the work is done more than ``repeated_arithmetic`` over."""
        now, once = (in_elements(work, exact=self.exact) for work in (self.now, self.once))
        return now > PRIORS.repeated_arithmetic * once

    @property
    def words(self) -> str:
        """The amount of repeated work, in words."""
        now, once = self.now.matrix + self.now.vector, self.once.matrix + self.once.vector
        names = f"{', '.join(self.copied)} and what they read" if self.copied else "values"
        counts = f"{in_operations(now)} operations instead of {in_operations(once)}"
        return f"{names} are computed again where they are read: {counts}"


def in_operations(number: int) -> str:
    """A number of operations in words.

    >>> in_operations(171_798_691_840), in_operations(2_000_000), in_operations(512)
    ('172 billion', '2 million', '512')
    """
    for size, word in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return (
                f"{number / size:,.3g} {word}"
                if number < 1000 * size
                else f"{number // size:,} {word}"
            )
    return f"{number:,}"


def repeated(
    one: Again, program: TileProgram, once: TileProgram, sizes: Mapping[Dim, int]
) -> Repeated:
    """The work of ``program``, the tiles of ``one``, beside that of ``once``, which is unfused.

    Raises EmitError if that is too much.
    """
    work = arithmetic(program, sizes), arithmetic(once, sizes)
    made = Repeated(*work, exact=has_exact_dots(program), copied=one.copied)
    if made.too_much:
        raise EmitError(f"it repeats too much: {made.words}")
    return made
