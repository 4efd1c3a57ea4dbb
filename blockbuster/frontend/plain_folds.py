"""Folds of a program in a plain form: each drops its axis, and views restore axes of extent 1.

A sum over several axes is recorded as one sum after the other. With ``keepdims`` each of them reads
a view of the one before, so that neighbours are hard to see:

    t0: (A, B, 1) = sum(x, axis=2, keepdims=True)      s0: (A, B) = sum(x, axis=2)
    t1: (A, 1, 1) = sum(t0, axis=1, keepdims=True)     s1: (A,) = sum(s0, axis=1)
                                                       t1: (A, 1, 1) = expand(s1, axes=(0, ...))
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from blockbuster.frontend.program import ArrayOutput, ArrayProgram, Equation
from blockbuster.ir.graph import Value

FOLDS = ("sum", "prod", "max", "min", "mean")
"""Folds whose result over two axes is that over the one and then over the other."""

View = tuple[int | None, ...]
"""The axes that a view shows; None is a new axis of extent 1."""


def with_plain_folds(program: ArrayProgram) -> ArrayProgram:
    """The program with plain folds, without the equations that no output needs."""
    return live(_Plain(program).program())


@dataclass
class _Plain:
    """The new equations so far: which value stands for an old one, and which are views."""

    old: ArrayProgram
    equations: list[Equation] = field(default_factory=list)
    now: dict[Value, Value] = field(default_factory=dict)
    views: dict[Value, tuple[Value, View]] = field(default_factory=dict)

    def program(self) -> ArrayProgram:
        """The new program."""
        for port in range(len(self.old.inputs)):
            self.now[Value(-1, port)] = Value(-1, port)
        for position, equation in enumerate(self.old.equations):
            make = self._fold if equation.op in FOLDS else self._as_it_is
            self.now[Value(position)] = make(equation)
        outputs = tuple(ArrayOutput(o.name, self.now[o.value]) for o in self.old.outputs)
        return replace(self.old, equations=tuple(self.equations), outputs=outputs)

    def _add(self, equation: Equation) -> Value:
        self.equations.append(equation)
        return Value(len(self.equations) - 1)

    def _as_it_is(self, equation: Equation) -> Value:
        return self._add(equation.reading(self.now))

    def _fold(self, equation: Equation) -> Value:
        """A fold of what a view shows, and a view of the result."""
        (operand,) = equation.operands
        assert isinstance(operand, Value)
        shape = self.old.shape_of(operand)
        axis, keeps = equation.param("axis") % len(shape), equation.param("keepdims")
        everything: View = tuple(range(len(shape)))
        source, shown = self.views.get(self.now[operand], (self.now[operand], everything))
        folded = shown[axis]
        if folded is None:
            return self._as_it_is(equation)
        left = tuple(entry for entry in shown if entry is not None and entry != folded)
        kept = tuple(shape[shown.index(entry)] for entry in left)
        params = (("axis", folded), ("keepdims", False))
        made = self._add(replace(equation, operands=(source,), params=params, shape=kept))
        view = _without(shown, axis, folded, keeps=bool(keeps))
        if view == tuple(range(len(kept))):
            return made
        seen = self._add(replace(equation, op="expand", operands=(made,), params=(("axes", view),)))
        self.views[seen] = (made, view)
        return seen


def _without(shown: View, axis: int, folded: int, *, keeps: bool) -> View:
    """A view without the axis that was folded, or with an axis of extent 1 in its place."""
    entries: Sequence[int | None] = [
        entry if entry is None else entry - (entry > folded) for entry in shown
    ]
    return (*entries[:axis], *((None,) if keeps else ()), *entries[axis + 1 :])


def live(
    program: ArrayProgram, ops: Collection[str] | None = None, at: Collection[int] = ()
) -> ArrayProgram:
    """The program without the equations that no output needs: all of those, or those of ``ops`` and
    those ``at`` some places.
    """
    kept_anyway = [
        Value(n) for n, e in enumerate(program.equations) if ops and e.op not in ops and n not in at
    ]
    order = program.needed([*kept_anyway, *(output.value for output in program.outputs)])
    now = {Value(node): Value(at) for at, node in enumerate(order)}
    equations = tuple(program.equations[node].reading(now) for node in order)
    outputs = tuple(ArrayOutput(o.name, now.get(o.value, o.value)) for o in program.outputs)
    return replace(program, equations=equations, outputs=outputs)


def without_lost_dims(program: ArrayProgram) -> ArrayProgram:
    """The program without what is said of sizes of dims that no array has any more."""
    kept = {*program.dims, *(dim for rule in program.rules for dim in rule.length.dims)}
    rules = tuple(rule for rule in program.rules if rule.dim in kept)
    sizes = tuple((dim, size) for dim, size in program.fixed_sizes if dim in kept)
    return replace(program, rules=rules, fixed_sizes=sizes)
