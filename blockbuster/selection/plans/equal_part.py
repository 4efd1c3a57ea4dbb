"""A part that is equal to an earlier one but for names: the kernels of that one compute it.

Layers of a model are such parts. Nothing is lowered or fused again for them, and nothing is chosen
again where their sizes are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blockbuster.emit.tile.value_dtypes import result_dtype
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.dims import letters
from blockbuster.frontend.structure import exact_structure, in_names
from blockbuster.ir.dtypes import OWN
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
            now = dict(zip(old_names, names, strict=True))
            found = EqualPart(program, of, first, now, dict(zip(old_dims, dims, strict=True)))
            if found.is_apart(taken):
                return found
        made = Part(program, of, cut, taken)
        self._known.setdefault(key, (made, names, dims))
        return made


def _told(of: Dtypes, name: str, is_cut: bool) -> tuple[Any, ...]:
    """What a part is told of an array."""
    given = of.inputs.get(name, of.common)
    read = of.read.get(name, given)
    computed = read if name not in of.read or read in OWN else result_dtype([read], of.common)
    return given, computed, of.cut.get(name), name in of.constants, is_cut


class EqualPart(Part):
    """A part that ``first`` computes, with its ``names`` of arrays and ``dims`` by those there.

    What ``first`` names besides gets names here: arrays between steps, and dims of lowering.
    """

    def __init__(
        self,
        program: ArrayProgram,
        of: Dtypes,
        first: Part,
        names: Mapping[str, str],
        dims: Mapping[Dim, Dim],
    ) -> None:
        self.program, self._of, self._first, self._given_dims = program, of, first, dims
        self._given_names = names
        self._names, self._dims = _with_inner(first, names), _with_made(first, program, dims)
        made = [in_names(r, self._dims) for r in first.size_rules if r.dim not in dims]
        self.size_rules = (*first.size_rules, *made)
        self.by, self._offered, self._cut = first.by, first._offered, first._cut
        self.arithmetic, self.steps, self.fused = first.arithmetic, first.steps, first.fused
        self.given, self.subjects = first.given, first.subjects
        self.dtypes = {self._name(n): dtype for n, dtype in first.dtypes.items()}
        self.pieces = self._renamed(first.pieces)

    @property
    def first(self) -> Part:
        return self._first

    def own(self, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
        known = {size_class(one): sizes[size_class(dim)] for one, dim in self._given_dims.items()}
        return completed(known, self._first.size_rules)

    def named(self, blocks: Mapping[Dim, tuple[int, ...]]) -> Mapping[Dim, tuple[int, ...]]:
        now = {size_class(one): size_class(dim) for one, dim in self._dims.items()}
        return {now.get(dim, dim): lanes for dim, lanes in blocks.items()}

    def structure(self, sizes: Mapping[Dim, int]) -> tuple[Any, ...]:
        return self._first.structure(self.own(sizes))

    def form(self, first: Part) -> Part:
        """This part in another form, which ``first`` has."""
        return EqualPart(self.program, self._of, first, self._given_names, self._given_dims)

    def is_apart(self, taken: set[str]) -> bool:
        """True if names here tell apart what names in ``first`` do, of arrays and of sizes, and no
        array between steps has a name that is ``taken``.
        """
        pairs = {(size_class(one), size_class(dim)) for one, dim in self._dims.items()}
        sizes = all(len({pair[at] for pair in pairs}) == len(pairs) for at in (0, 1))
        inner = {name for old, name in self._names.items() if old not in self._given_names}
        return sizes and len({*self._names.values()}) == len(self._names) and not inner & taken

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


def _with_inner(first: Part, names: Mapping[str, str]) -> dict[str, str]:
    """The names with those of arrays between the steps of a part, which begin as its first output
    does.
    """
    old = first.program.outputs[0].name
    inner = (name for step in first.pieces.steps for name in step.writes if name not in names)
    return {**names, **{name: names[old] + name.removeprefix(old) for name in inner}}


def _with_made(first: Part, program: ArrayProgram, dims: Mapping[Dim, Dim]) -> dict[Dim, Dim]:
    """The dims with those that lowering made of ``first``, which get names that are free."""
    used = {*program.dims, *program.taken}
    free = (word for word in letters() if word not in used)
    made = dict.fromkeys(rule.dim for rule in first.size_rules if rule.dim not in dims)
    return {**dims, **dict(zip(made, free, strict=False))}
