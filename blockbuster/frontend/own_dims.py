"""Which axes share a loop: every read names its axes anew, and operators tie them together.

A user's word says that axes have one size; it does not say that they are one loop. In
``softmax(x @ x.T) @ x`` the columns of x are summed over inside a loop over the columns of the
result: one dim for both would keep the scores from ever meeting the second product. So

1. an operator ties the axes that it makes meet: those of its result, and the one it folds;
2. a computed value ties its axes to those of its readers, the nearest first, and
3. reads of the same axes of one array become one loop, as a whole or axis by axis,

unless 2 or 3 would make one dim of a loop and of one that must run around it. Axes that stay
separate get a dim of their own of the same size class (D' beside D); a computed value is then read
through a relabeled view. Names decide nothing: programs that differ only in names get equal loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from blockbuster.frontend.limits import NEAREST
from blockbuster.frontend.loops import Loop, Loops
from blockbuster.frontend.piece_places import operand_positions
from blockbuster.frontend.primitives import (
    Contract,
    Count,
    Fold,
    Opaque,
    Primitive,
    Ref,
    Scan,
    Source,
)
from blockbuster.frontend.program import Shape
from blockbuster.ir.types import Dim, size_class

Tile = tuple[Loop, ...]
"""The loops along the axes of a value, in the order of its axes; unit axes have none."""

_Axes = tuple[Loop | None, ...]
"""The same with unit axes."""


def with_own_dims(
    primitives: Sequence[Primitive], live: Sequence[bool], outputs: Sequence[int]
) -> list[Primitive]:
    """The primitives with a dim for every loop: their shapes, folded axes and operands' shapes.

    ``outputs``: the values of the outputs, in order; they keep the user's words first.
    """
    naming = _Naming(primitives, live)
    naming.meet()
    naming.share()
    names = naming.names(outputs)
    return [
        naming.renamed(position, names) if naming.made[position] else primitive
        for position, primitive in enumerate(primitives)
    ]


@dataclass(frozen=True)
class _Read:
    """The loops along the axes of a value where it is read, and those that run around each."""

    loops: Tile
    around: tuple[int, ...]
    """As bits."""


@dataclass(frozen=True)
class _Made:
    """The loops of a computed value: along its axes, along the one it folds, along operands'."""

    axes: tuple[Loop | None, ...]
    folded: Loop | None
    operands: tuple[tuple[Loop | None, ...], ...]
    """The loops along what each operand shows."""


class _Naming:
    """The loops of a primitive program."""

    def __init__(self, primitives: Sequence[Primitive], live: Sequence[bool]) -> None:
        self._primitives = primitives
        self._loops = Loops()
        self._words: list[Dim] = []
        self.made: list[_Made | None] = [None] * len(primitives)
        self._reads: list[list[_Read]] = [[] for _ in primitives]
        """Of every value, the last reader first."""
        self._apart: list[list[Tile]] = [[] for _ in primitives]
        """Reads of computed values by other loops than their own."""
        self._live = live

    def meet(self) -> None:
        """Tie computed values to their readers, from the last value to the first.

        Readers come before what they read, so it is known which loops run around each of them.
        """
        for position in reversed(range(len(self._primitives))):
            primitive = self._primitives[position]
            if self._live[position] and not isinstance(primitive.op, Source | Count):
                self._make(position, self._as_read(position))

    def _as_read(self, position: int) -> _Read:
        """The loops of a computed value: those of its first reader, and of all that can share."""
        dims = [dim for dim in self._primitives[position].shape if isinstance(dim, str)]
        if not self._reads[position]:
            loops = tuple(self._new(dim) for dim in dims)
            self._loops.keep_apart(loops)
            return _Read(loops, (0,) * len(loops))
        first, *others = reversed(self._reads[position])
        around = first.around
        for read in others:
            if self._loops.unite(first.loops, read.loops):
                around = tuple(a | b for a, b in zip(around, read.around, strict=True))
            else:
                self._apart[position].append(read.loops)
        return _Read(first.loops, around)

    def _make(self, position: int, own: _Read) -> None:
        """Note the loops of a computed value and what they ask of its operands."""
        primitive = self._primitives[position]
        op = primitive.op
        loops = iter(own.loops)
        axes = tuple(next(loops) if isinstance(dim, str) else None for dim in primitive.shape)
        around: dict[Loop | None, int] = dict(zip(own.loops, own.around, strict=True))
        folded: Loop | None = None
        operands: tuple[_Axes, ...]
        if isinstance(op, Opaque):
            operands = tuple(map(self._standing_alone, op.shapes))
        else:
            inner = op.dim if isinstance(op, Fold) else op.inner if isinstance(op, Contract) else 1
            if isinstance(inner, str):
                folded = self._new(inner)
                around[folded] = self._loops.fold_inside(folded, own.loops, own.around)
            operands = tuple(map(tuple, _shown(primitive, axes, folded)))
        self.made[position] = _Made(axes, folded, operands)
        for ref, along in reversed([*zip(primitive.operands, operands, strict=True)]):
            tile = _along(ref, along)
            read = _Read(tile, tuple(around.get(loop, 0) for loop in tile))
            self._reads[ref.value].append(read)

    def _standing_alone(self, shape: Shape) -> tuple[Loop | None, ...]:
        """Loops for a whole array, which no other loop runs around."""
        made = tuple(self._new(dim) if isinstance(dim, str) else None for dim in shape)
        self._loops.keep_apart([loop for loop in made if loop is not None])
        return made

    def _new(self, dim: Dim) -> Loop:
        self._words.append(size_class(dim))
        return self._loops.new()

    def share(self) -> None:
        """Make one loop of reads of the same axes: of whole tiles first, then of single axes."""
        families = [family for family in map(self._family, range(len(self._primitives))) if family]
        for parts in (_all_of, _each_of):
            for family in families:
                self._share(family, parts)

    def _family(self, position: int) -> list[Tile]:
        """The ways in which a value is read: an array by each reader, a computed value as made."""
        made = self.made[position]
        if made is not None and self._apart[position]:
            return [tuple(loop for loop in made.axes if loop is not None), *self._apart[position]]
        is_array = isinstance(self._primitives[position].op, Source)
        return [read.loops for read in reversed(self._reads[position])] if is_array else []

    def _share(self, family: Sequence[Tile], parts: Callable[[Tile], list[Tile]]) -> None:
        seen: dict[Tile, None] = {}
        for tile in family:
            if self._loops.found(tile) not in seen:
                for earlier in [*seen][-NEAREST:]:
                    for one, other in zip(parts(earlier), parts(tile), strict=True):
                        self._loops.unite(one, other)
                seen[self._loops.found(tile)] = None

    def names(self, outputs: Sequence[int]) -> Mapping[Loop, Dim]:
        """The dim of every loop: the user's word, primed for all but the first that have it."""
        made = [m for m in (*(self.made[value] for value in outputs), *self.made) if m is not None]
        order = (loop for m in made for loop in (*m.axes, m.folded, *_flat(m.operands)))
        count: dict[Dim, int] = {}
        names: dict[Loop, Dim] = {}
        for loop in order:
            if loop is not None and self._loops.find(loop) not in names:
                word = self._words[loop]
                names[self._loops.find(loop)] = word + "'" * count.setdefault(word, 0)
                count[word] += 1
        return {loop: names[self._loops.find(loop)] for loop in range(len(self._words))}

    def renamed(self, position: int, names: Mapping[Loop, Dim]) -> Primitive:
        """A primitive with the dims of its loops."""
        primitive, made = self._primitives[position], self.made[position]
        assert made is not None

        def dims(loops: Sequence[Loop | None]) -> Shape:
            return tuple(1 if loop is None else names[loop] for loop in loops)

        op = primitive.op
        if isinstance(op, Fold):
            op = replace(op, dim=str(*dims([made.folded])))
        elif isinstance(op, Contract):
            op = replace(op, inner=dims([made.folded])[0])
        elif isinstance(op, Opaque):
            op = replace(op, shapes=tuple(map(dims, made.operands)))
        return replace(primitive, op=op, shape=dims(made.axes))


def _all_of(tile: Tile) -> list[Tile]:
    return [tile]


def _each_of(tile: Tile) -> list[Tile]:
    return [(loop,) for loop in tile]


def _along(ref: Ref, shown: Sequence[Loop | None]) -> Tile:
    """The loops along the value's own axes, from those along what the operand shows."""
    pairs = [(axis, loop) for axis, loop in zip(ref.axes, shown, strict=True) if axis is not None]
    return tuple(loop for _, loop in sorted(pairs) if loop is not None)


def _flat(operands: Sequence[Sequence[Loop | None]]) -> list[Loop | None]:
    return [loop for shown in operands for loop in shown]


def _shown(primitive: Primitive, axes: _Axes, folded: Loop | None) -> list[list[Loop | None]]:
    """The loops along what each operand shows: those of the result, and what is folded."""
    found = [[folded] * len(ref.axes) for ref in primitive.operands]
    for axis, loop in enumerate(axes):
        for index, position in operand_positions(primitive, axis):
            found[index][position] = loop
    if isinstance(primitive.op, Scan):  # which is along its axis, and looks into it
        found[0][primitive.op.axis] = axes[primitive.op.axis]
    return found
