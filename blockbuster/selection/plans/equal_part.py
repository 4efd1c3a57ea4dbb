"""A part that is equal to an earlier one but for names: the kernels of that one compute it.

Layers of a model are such parts. Nothing is lowered or fused again for them, and nothing is chosen
again where their sizes are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.dims import letters
from blockbuster.frontend.structure import exact_structure, in_names
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.plans.part import Dtypes, Part
from blockbuster.selection.plans.pieces import Call, Piece, Pieces, Seen, Whole, renamed_axes


class Firsts:
    """The first of parts that are equal but for names."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Part, tuple[str, ...], tuple[Dim, ...]]] = {}

    def part(
        self, program: ArrayProgram, of: Dtypes, cut: Mapping[str, Any], taken: set[str]
    ) -> Part:
        """A program as a part, whose kernels are those of an equal part if there is one."""
        structure, dims, names = exact_structure(program)
        names += tuple(output.name for output in program.outputs)
        key = structure, *(_told(of, name, name in cut) for name in names), of.common
        if key in self._known:
            first, old_names, old_dims = self._known[key]
            now = dict(zip(old_dims, dims, strict=True))
            if _are_apart(now):
                names_now = dict(zip(old_names, names, strict=True))
                return EqualPart(program, of, first, names_now, now, taken)
        made = Part(program, of, cut, taken)
        self._known.setdefault(key, (made, names, dims))
        return made


def _told(of: Dtypes, name: str, is_cut: bool) -> tuple[Any, ...]:
    """What a part is told of an array."""
    given = of.inputs.get(name, of.common)
    return given, of.read.get(name, given), of.cut.get(name), name in of.constants, is_cut


def _are_apart(dims: Mapping[Dim, Dim]) -> bool:
    """True if dims have one size exactly where the dims that they stand for have one."""
    pairs = {(size_class(one), size_class(dim)) for one, dim in dims.items()}
    return all(len({pair[at] for pair in pairs}) == len(pairs) for at in (0, 1))


class EqualPart(Part):
    """A part that ``first`` computes, with its ``names`` of arrays and ``dims`` by those there.

    What ``first`` names besides gets names here that are not ``taken``: arrays between steps, and
    dims of lowering.
    """

    def __init__(
        self,
        program: ArrayProgram,
        of: Dtypes,
        first: Part,
        names: Mapping[str, str],
        dims: Mapping[Dim, Dim],
        taken: Collection[str],
    ) -> None:
        self.program, self._of, self._first, self._told = program, of, first, (names, dims, taken)
        self._names, self._dims = _with_inner(first, names, taken), _with_made(first, program, dims)
        made = [in_names(r, self._dims) for r in first.size_rules if r.dim not in dims]
        self.size_rules = (*first.size_rules, *made)
        self.by, self.arithmetic = first.by, first.arithmetic
        self.steps, self.fused = first.steps, first.fused
        self.given, self.subjects = first.given, first.subjects
        self.dtypes = {self._name(n): dtype for n, dtype in first.dtypes.items()}
        self.pieces = self._renamed(first.pieces)

    @property
    def first(self) -> Part:
        return self._first

    def own(self, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
        of_first, (_, dims, _) = self._first.own(sizes), self._told
        known = {size_class(one): sizes[size_class(dim)] for one, dim in dims.items()}
        same = known.items() <= of_first.items()
        return of_first if same else completed(known, self._first.size_rules)

    def named(self, blocks: Mapping[Dim, tuple[int, ...]]) -> Mapping[Dim, tuple[int, ...]]:
        now = {size_class(one): size_class(dim) for one, dim in self._dims.items()}
        return {now.get(dim, dim): lanes for dim, lanes in blocks.items()}

    def structure(self, sizes: Mapping[Dim, int]) -> tuple[Any, ...]:
        return self._first.structure(self.own(sizes))

    def form(self, first: Part) -> Part:
        """This part in another form, which ``first`` has."""
        return EqualPart(self.program, self._of, first, *self._told)

    def _renamed(self, pieces: Pieces) -> Pieces:
        return Pieces(
            {self._name(n): renamed_axes(axes, self._dims) for n, axes in pieces.inputs.items()},
            tuple(map(self._step, pieces.steps)),
            tuple(map(self._name, pieces.names)),
            tuple(map(self._seen, pieces.results)),
        )

    def _name(self, name: str) -> str:
        return self._names.get(name, name)

    def _seen(self, seen: Seen) -> Seen:
        return replace(seen, array=self._name(seen.array))

    def _step(self, step: Piece | Call | Whole) -> Piece | Call | Whole:
        writes = tuple(map(self._name, step.writes))
        if isinstance(step, Piece):
            return replace(step, writes=writes, names=self._names, dims=self._dims)
        assert isinstance(step, Call), "kernels for a GPU have no text on whole arrays"
        axes = tuple(renamed_axes(one, self._dims) for one in step.axes)
        operands = tuple(map(self._seen, step.operands))
        return replace(step, operands=operands, writes=writes, axes=axes)


def _with_inner(
    first: Part, names: Mapping[str, str], taken: Collection[str]
) -> dict[str, str]:
    """The names with those of arrays between the steps of a part, which begin as its first output
    does.
    """
    found, old = {**names}, first.program.outputs[0].name
    for inner in (name for step in first.pieces.steps for name in step.writes):
        name = found.get(inner) or names[old] + inner.removeprefix(old)
        while inner not in found and name in (*taken, *found.values()):
            name += "_"
        found[inner] = name
    return found


def _with_made(first: Part, program: ArrayProgram, dims: Mapping[Dim, Dim]) -> dict[Dim, Dim]:
    """The dims with those that lowering made of ``first``, which get names that are free."""
    used = {*program.dims, *program.taken}
    free = (word for word in letters() if word not in used)
    made = dict.fromkeys(rule.dim for rule in first.size_rules if rule.dim not in dims)
    return {**dims, **dict(zip(made, free, strict=False))}
