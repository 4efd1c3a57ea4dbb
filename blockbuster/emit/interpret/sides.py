"""The two programs of a comparison, block or tile programs, run at drawn sizes and blocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, lcm

import numpy as np

from blockbuster.emit.interpret.bounding_inputs import bounding_inputs
from blockbuster.emit.interpret.exact import exact
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.lanes import check_lanes
from blockbuster.emit.interpret.remembered import Remembered
from blockbuster.emit.tile.program import Let, TileProgram, statements
from blockbuster.emit.tile.trips import sized
from blockbuster.interp.binding import dims_of, sources
from blockbuster.interp.constants import constants_in, constants_of
from blockbuster.interp.degree import Degree
from blockbuster.interp.layout import Array
from blockbuster.interp.objects import Objects
from blockbuster.interp.semantics import Semantics
from blockbuster.interp.setting import Setting
from blockbuster.ir.dtypes import OWN, own_dtypes
from blockbuster.ir.fitting import fitted
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import Rule
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Cast, Pointwise
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.whole_dims import whole_dims

Program = Graph | TileProgram
Lanes = Mapping[tuple[Dim, int], int]
"""Small blocks for those that a program names: by size class and lanes."""


@dataclass(frozen=True)
class Cut:
    """Sizes and blocks of one trial, by size class; ``lanes`` stand for a program's own blocks."""

    setting: Setting
    lanes: Lanes
    seed: int

    @property
    def key(self) -> Hashable:
        """Equal for equal cuts."""
        held = (self.setting.sizes, self.setting.block_sizes, self.lanes)
        return *(tuple(sorted(one.items())) for one in held), self.seed


@dataclass(frozen=True)
class Side:
    """A program that can be run on drawn inputs, at drawn sizes, under any semantics."""

    program: Program

    @cached_property
    def sources(self) -> dict[str, tuple[Dim | None, ...]]:
        """The size class of each axis of each array that the program takes."""
        if isinstance(self.program, Graph):
            found = sources(self.program)
        else:
            found = {b.name: tuple(axis.dim for axis in b.axes) for b in self.program.inputs}
        return {
            name: tuple(None if d is None else size_class(d) for d in axes)
            for name, axes in found.items()
        }

    @cached_property
    def dtypes(self) -> dict[str, str]:
        """The dtypes of the arrays of masks and integers that the program takes."""
        if isinstance(self.program, Graph):
            return own_dtypes(self.program)
        return {b.name: b.dtype for b in self.program.inputs if b.dtype in OWN}

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the arrays that the program gives."""
        if isinstance(self.program, Graph):
            return tuple(dict.fromkeys(self.program.output_names))
        return tuple(buffer.name for buffer in self.program.outputs)

    @cached_property
    def classes(self) -> tuple[Dim, ...]:
        """The size classes of the program."""
        if isinstance(self.program, Graph):
            return tuple(dict.fromkeys(map(size_class, dims_of(self.program))))
        return sized(self.program)

    @cached_property
    def single(self) -> tuple[Dim, ...]:
        """The size classes whose blocks have one element."""
        if isinstance(self.program, Graph):
            return tuple(list_only(self.program))
        return self.program.units

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The facts about sizes that the program holds."""
        if isinstance(self.program, Graph):
            return tuple(self.program.size_rules)
        return self.program.rules

    @cached_property
    def whole(self) -> tuple[Dim, ...]:
        """The size classes of dims that have to be one block."""
        if isinstance(self.program, Graph):
            return whole_dims(self.program)
        return tuple(dict.fromkeys(map(size_class, self.program.whole)))

    @cached_property
    def blocks(self) -> dict[tuple[Dim, int], bool]:
        """The blocks of several that the program names: whether the last may be ragged."""
        if isinstance(self.program, Graph):
            return {}
        found = [b for nest in self.program.nests for b in nest.blocks if not b.whole]
        return {
            key: all(b.ragged for b in found if (size_class(b.dim), b.lanes) == key)
            for key in ((size_class(block.dim), block.lanes) for block in found)
        }

    @property
    def constants(self) -> tuple[float, ...]:
        """The finite numbers that the program mentions."""
        if isinstance(self.program, Graph):
            return constants_of(self.program)
        lets = [s for n in self.program.nests for s in statements(n.body) if isinstance(s, Let)]
        return constants_in(let.op.expr for let in lets if isinstance(let.op, Pointwise))

    @cached_property
    def bounding(self) -> tuple[str, ...]:
        """The arrays that bound loops of the program."""
        return () if isinstance(self.program, Graph) else bounding_inputs(self.program)

    @property
    def typed(self) -> bool:
        """True for a tile program with dtypes, which rounds where its block program does not."""
        return not isinstance(self.program, Graph) and bool(self.program.dtype)

    @cached_property
    def untyped(self) -> Side:
        """The same program without dtypes."""
        return self if isinstance(self.program, Graph) else Side(exact(self.program))

    @cached_property
    def casts(self) -> bool:
        """True if the program casts numbers itself."""
        if isinstance(self.program, Graph):
            return any(True for _, level in self.program.walk() for _ in level.of_type(Cast))
        bodies = (nest.body for nest in self.program.nests)
        lets = (s for body in bodies for s in statements(body) if isinstance(s, Let))
        return any(isinstance(let.op, Cast) for let in lets)

    def run(
        self,
        inputs: Mapping[str, Array],
        cut: Cut,
        semantics: Semantics,
        known: Remembered | None = None,
    ) -> dict[str, Array]:
        """The outputs; ``known``: what nests gave under ``semantics``.

        Raises Hazard, ZeroDenominator, or Refused.
        """
        if isinstance(self.program, Graph):
            if isinstance(semantics, Objects | Degree):  # what degrees note counts each time
                return cut.setting.run(self.program, inputs, semantics)
            (made,) = cut.setting.run_all((self.program,), inputs, semantics)
            return made
        program, sizes = cut_by(self.program, cut), cut.setting.sizes
        steps = _steps(program, cut)
        return run_tiles(
            program,
            inputs,
            sizes,
            steps,
            semantics=semantics,
            seed=cut.seed,
            converts=True,
            known=known,
        )

    def check_lanes(self, cut: Cut) -> None:
        """Raise Hazard where padded lanes count: the last block of each dim that may be is ragged.

        A block program has none, and chunks fill theirs.
        """
        if isinstance(self.program, Graph):
            return
        sizes = cut.setting.sizes
        full = [chunks.lanes for chunks in self.program.chunks]
        ragged = [dim for dim in self.program.whole if dim not in full]
        one_more = {dim: sizes[size_class(dim)] + 1 for dim in ragged}
        program = cut_by(self.program, cut)
        check_lanes(program, sizes, {**_steps(program, cut), **one_more}, seed=cut.seed)


def _steps(program: TileProgram, cut: Cut) -> dict[Dim, int]:
    """Blocks for nests that do not cut a dim themselves: as other nests cut it, else as drawn."""
    own = {block.dim: block.lanes for nest in program.nests for block in nest.blocks}
    return {**cut.setting.block_sizes, **own}


def cut_by(program: TileProgram, cut: Cut) -> TileProgram:
    """``program`` with small blocks for those that it names."""
    sizes = cut.setting.sizes

    def lanes(dim: Dim, own: int, *, whole: bool, ragged: bool) -> int:
        size = sizes[size_class(dim)]
        return size + ragged if whole else cut.lanes[size_class(dim), own]

    nests = (
        replace(
            nest,
            blocks=tuple(
                replace(b, lanes=lanes(b.dim, b.lanes, whole=b.whole, ragged=b.ragged))
                for b in nest.blocks
            ),
        )
        for nest in program.nests
    )
    return replace(program, nests=tuple(nests))


def unrestricting(sides: Sequence[Side], others: Iterable[Side]) -> Iterator[Side]:
    """Tile programs among ``others`` that may be run at any sizes and blocks that suit ``sides``.

    Their rules, whole dims and blocks that are never ragged would leave fewer of them.
    """
    classes = {dim for side in sides for dim in side.classes}
    rules = {rule for side in sides for rule in side.rules}
    whole = {dim for side in sides for dim in side.whole}
    single = {dim for side in sides for dim in side.single}
    named = {key: ragged for side in sides for key, ragged in side.blocks.items()}
    for other in others:
        own = {rule for rule in other.rules if rule not in rules}
        if (
            not isinstance(other.program, Graph)
            and not any(classes & {rule.dim, *rule.length.dims} for rule in own)
            and classes & {*other.whole} <= whole
            and single & {*other.classes} <= {*other.single}
            and all(
                named.get(key, True) == ragged
                for key, ragged in other.blocks.items()
                if key[0] in classes
            )
        ):
            yield other


def cuts(
    sides: Sequence[Side], count: int, random: np.random.Generator, sizes: Sequence[int]
) -> Iterator[Cut]:
    """Small sizes and blocks for all sides; in the first, dims have several blocks, one ragged.

    As far as there are enough sizes, no two dims have the same, unless one follows from others.
    """
    rules = tuple(dict.fromkeys(rule for side in sides for rule in side.rules))
    follow = {rule.dim for rule in rules if rule.exact}
    found = {dim for side in sides for dim in side.classes}
    classes = sorted(found, key=lambda dim: (dim in follow, dim))
    single = {d for d in classes if all(d in s.single for s in sides if d in s.classes)}
    single |= {d for s in sides if isinstance(s.program, Graph) for d in s.single}
    whole = {dim for side in sides for dim in side.whole}
    named = {key: ragged for side in sides for key, ragged in side.blocks.items()}
    for number in range(count):
        several = [s for s in sizes if s > 2 and (s % 2 or s == sizes[-1])]
        order = random.permutation(sizes if number else several)
        chosen = {dim: int(order[at % len(order)]) for at, dim in enumerate(classes)}
        steps = {
            dim: 1 if dim in single else 2 if not number else int(random.integers(1, size + 1))
            for dim, size in chosen.items()
        }
        lanes = {key: int(random.integers(1, 4)) if number else 2 for key in named}
        for dim in classes:
            even = lcm(*(n for key, n in lanes.items() if key[0] == dim and not named[key]))
            chosen[dim] = -(-chosen[dim] // even) * even
        known = fitted(chosen, rules)
        for key, ragged in named.items():  # rules may have made a dim larger
            lanes[key] = lanes[key] if ragged else gcd(lanes[key], known[key[0]])
        steps |= {dim: known[dim] for dim in classes if dim in whole and dim not in single}
        yield Cut(Setting(known, steps), lanes, int(random.integers(2**31)))
