"""A part of a program that NumPy runs operator by operator, on whole arrays.

That is what the user's function does without us, with sums and exponentials rounded once. Where the
fused text would walk through short pieces of arrays, Python's time for each of them is far more
than what fusion saves. It is not offered where the fused text is safe and the plain one is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from blockbuster.frontend import ArrayProgram, lower
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.moves import Flip
from blockbuster.frontend.program import Equation
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.rules import overflowing
from blockbuster.selection.parts.better_together import cancelling
from blockbuster.selection.parts.operand_views import OPAQUE, elements, most_outside
from blockbuster.selection.parts.partition import Price
from blockbuster.selection.plans.part import Part
from blockbuster.selection.plans.pieces import Axes, Pieces, Seen, Whole
from blockbuster.selection.plans.whole_price import price_of_whole
from blockbuster.selection.plans.whole_text import whole_text
from blockbuster.selection.priors import PRIORS

TWO_TEXTS = ("sigmoid", "silu", "gelu", "erf", "sub0", "recip0")
"""Functions that a text would define twice under one name, for floats and for integers."""

GROWING = ("exp", "softmax", "log_softmax", "logsumexp")
"""Operators whose results can overflow where those made of them do not."""

SAFE = (("safe", True),)
"""The parameter of a softmax that subtracts the largest element, as its text does."""


class WholePart(Part):
    """``part`` on whole arrays. Raises ValueError, with the reason, if that cannot be."""

    def __init__(self, part: Part) -> None:
        program = part.program
        reason = why_not_whole(program)
        if reason:
            raise ValueError(reason)
        self.program, self.size_rules = program, program.rules
        self.arithmetic, self._of = part.arithmetic, part._of
        self.steps, self.fused = (), ()
        inputs = {one.name: _axes_of(one.shape) for one in program.inputs}
        names = {output.name: _fresh(output.name, inputs) for output in program.outputs}
        shapes = {names[o.name]: _axes_of(program.shape_of(o.value)) for o in program.outputs}
        shown = tuple(Seen(name, tuple(range(len(axes)))) for name, axes in shapes.items())
        renamed = tuple(replace(o, name=names[o.name]) for o in program.outputs)
        whole = Whole(
            whole_text(replace(program, outputs=renamed)),
            tuple(inputs),
            tuple(shapes),
            tuple(shapes.values()),
        )
        self.pieces = Pieces(inputs, (whole,), tuple(names), shown)
        found = {**{n: part._of.inputs.get(n, part._of.common) for n in inputs}, **part.dtypes}
        self.dtypes = {names[name]: found[seen.array] for name, seen in part.results}

    def price(self, sizes: Mapping[Dim, int], machine: Machine) -> Price:
        """What it takes at ``sizes`` (by size class).

        It counts more if it makes an array far larger than all that it is given or gives.
        """
        taken = price_of_whole(self.program, sizes, machine)
        weight = PRIORS.stored_large_factor if self._is_large(sizes) else 1.0
        return Price(taken, len(self.notes), weight=weight)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each of its exponentials that can overflow."""
        if not any(one.op in GROWING for one in self.program.equations):
            return ()
        inner = tuple(map(_as_it_grows, self.program.equations))
        return overflowing(lower(replace(self.program, equations=inner)))

    def _is_large(self, sizes: Mapping[Dim, int]) -> bool:
        known = {dim: sizes[size_class(dim)] for dim in self.program.dims}
        most = PRIORS.large_array_factor * most_outside(self.program, known)
        return any(elements(one.shape, known) > most for one in self.program.equations)


def why_not_whole(program: ArrayProgram) -> str:
    """Why a program does not run on whole arrays, in words; empty if it does."""
    for one in program.equations:
        if one.op == OPAQUE and not isinstance(one.param("fn"), Flip):
            return f"{one.param('name')} is a function of the user's"
        if one.op in ("floordiv", "mod") and one.kind != FLOAT:
            return f"{one.op} of integers has no result over 0"
        values = (o for o in one.operands if isinstance(o, Value))
        if one.op in TWO_TEXTS and any(program.kind_of(value) != FLOAT for value in values):
            return f"{one.op} of integers is another function than that of floats"
    if cancelling(program, products=True):
        return "a variance is a difference of large numbers, which fused text takes around the mean"
    return ""


def _as_it_grows(one: Equation) -> Equation:
    """An operator on rows as another one whose lowered form can overflow where its text can."""
    if one.op == "softmax":
        return replace(one, params=tuple((k, v) for k, v in one.params if k != "safe") + SAFE)
    if one.op == "log_softmax":
        return replace(one, op="softmax", params=(*one.params, *SAFE))
    return replace(one, op="max") if one.op == "logsumexp" else one


def _axes_of(shape: tuple[Dim | int, ...]) -> Axes:
    return tuple(axis if isinstance(axis, str) else None for axis in shape)


def _fresh(name: str, taken: Mapping[str, Axes]) -> str:
    while name in taken:
        name += "_out"
    return name
