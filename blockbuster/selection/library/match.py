"""A call that can stand in place of equations of a program, and the program with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from blockbuster.frontend.kinds import MOVES
from blockbuster.frontend.part import part
from blockbuster.frontend.program import ArrayProgram, Equation, Shape
from blockbuster.ir.graph import Value
from blockbuster.selection.parts.operand_views import OPAQUE


@dataclass(frozen=True)
class Match:
    """``fn`` of inputs, by their numbers and without axes of one element, gives an array of
    ``shape``; the equation ``at`` is that array with its axes in ``order``, and those of one
    element between them.
    """

    at: int
    fn: Callable[..., Any]
    ports: tuple[int, ...]
    shape: Shape
    order: tuple[int, ...]

    def equations(self, program: ArrayProgram, place: int) -> Iterator[Equation]:
        """Its operands without axes of one element, the call, and its result with its axes in
        order and those of one element; the first of these is equation ``place``.
        """
        made, operands = partial(replace, program.equations[self.at]), []
        for port in self.ports:
            given, shape = Value(-1, port), program.inputs[port].shape
            long = tuple(axis for axis, extent in enumerate(shape) if extent != 1)
            if len(long) < len(shape):
                params, left = (("axes", long),), tuple(shape[axis] for axis in long)
                yield made(op="expand", operands=(given,), params=params, shape=left)
                given, place = Value(place), place + 1
            operands.append(given)
        called = (("fn", self.fn), ("name", str(self.fn)))
        yield made(op=OPAQUE, operands=tuple(operands), params=called, shape=self.shape)
        shape = tuple(self.shape[axis] for axis in self.order)
        if self.order != tuple(range(len(shape))):
            params = (("axes", self.order),)
            yield made(op="transpose", operands=(Value(place),), params=params, shape=shape)
            place += 1
        if 1 in made().shape:
            count = iter(range(len(shape)))
            axes = tuple(None if extent == 1 else next(count) for extent in made().shape)
            yield made(op="expand", operands=(Value(place),), params=(("axes", axes),))


def with_calls(program: ArrayProgram, matches: Sequence[Match]) -> ArrayProgram:
    """``program`` with calls in place of the equations that they match."""
    by_place = {match.at: match for match in matches}
    made = {Value(-1, port): Value(-1, port) for port in range(len(program.inputs))}
    equations: list[Equation] = []
    for at, one in enumerate(program.equations):
        if at in by_place:
            equations += by_place[at].equations(program, len(equations))
        else:
            operands = tuple(made[o] if isinstance(o, Value) else o for o in one.operands)
            equations.append(replace(one, operands=operands))
        made[Value(at)] = Value(len(equations) - 1)
    outputs = tuple(replace(output, value=made[output.value]) for output in program.outputs)
    whole = replace(program, equations=tuple(equations), outputs=outputs)
    values = {output.name: output.value for output in outputs}
    found = part(whole, whole.needed(values.values()), values, {}, program.taken)
    return replace(found, fixed_sizes=program.fixed_sizes, rules=program.rules)


def only_reader(program: ArrayProgram, at: int) -> int | None:
    """The number of the equation that alone reads the result of equation ``at``, if there is one
    and the result is no output.
    """
    if any(output.value == Value(at) for output in program.outputs):
        return None
    readers = [n for n, one in enumerate(program.equations) for o in one.operands if o == Value(at)]
    return readers[0] if len(readers) == 1 else None


def shows(program: ArrayProgram, value: Value, other: Value) -> bool:
    """True if ``value`` is ``other``, or a view of it."""
    while value != other and value.node >= 0 and program.equations[value.node].op in MOVES:
        (value,) = (o for o in program.equations[value.node].operands if isinstance(o, Value))
    return value == other
