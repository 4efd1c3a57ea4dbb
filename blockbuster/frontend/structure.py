"""The structure of an array program: what it has in common with others that are the same but for
names, so that what was chosen for one serves all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from blockbuster.frontend.final_names import with_names
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.part import dims_named
from blockbuster.frontend.program import ArrayInput, ArrayProgram, Equation, Shape
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length, Rule, size, whole
from blockbuster.ir.types import Dim

ALIGNED = 16
"""Elements of which a slice may begin behind any multiple, and is loaded as fast as from the first:
no copy of a thread takes more bytes."""

Structure = tuple[ArrayProgram, tuple[Dim, ...], tuple[str, ...]]


def structure(program: ArrayProgram) -> Structure:
    """``program`` with its arrays and dims renamed in order of use, and its own dims and inputs in
    that order. Two parts take the same time if these programs are equal, the sizes of their dims
    are, and the dtypes of their inputs: a dtype of floats is told beside the program, for that of
    an array which another part computes is not known here. Where the only slice of an input begins
    does not count, beyond how it is aligned: each step of an unrolled loop has its own.
    """
    return _renamed(program, _anywhere(program))


def exact_structure(program: ArrayProgram) -> Structure:
    """The same with all that lowering reads: where slices begin, and what is known of sizes. The
    kernels of one of two equal programs compute the other's.
    """
    made, dims, names = _renamed(program, program.equations)
    now = {dim: f"D{number}" for number, dim in enumerate(dims)}
    rules = sorted((in_names(rule, now) for rule in program.rules), key=lambda rule: rule.dim)
    fixed = sorted((now[dim], count) for dim, count in program.fixed_sizes)
    return replace(made, rules=tuple(rules), fixed_sizes=tuple(fixed)), dims, names


def in_names(rule: Rule, names: Mapping[Dim, Dim]) -> Rule:
    """A rule of dims that have other names."""
    length = rule.length.replaced(lambda dim: size(names.get(dim, dim)))
    return replace(rule, dim=names.get(rule.dim, rule.dim), length=length)


def _renamed(program: ArrayProgram, equations: Sequence[Equation]) -> Structure:
    order = _in_order_of_use(program)
    inputs = [program.inputs[port] for port in order]
    now = {Value(-1, port): Value(-1, at) for at, port in enumerate(order)}
    named = dims_named([one.shape for one in inputs], program.equations)
    dims = {dim: f"D{number}" for number, dim in enumerate(named)}

    def axes(shape: Shape) -> Shape:
        return tuple(dims[axis] if isinstance(axis, str) else axis for axis in shape)

    def renamed(one: Equation) -> Equation:
        own = replace(one, **with_names(one, dims), shape=axes(one.shape), hint="", where=None)
        return own.reading(now)

    made = ArrayProgram(
        "",
        tuple(
            ArrayInput(f"x{at}", axes(one.shape), "" if one.kind == FLOAT else one.dtype)
            for at, one in enumerate(inputs)
        ),
        tuple(map(renamed, equations)),
        tuple(
            replace(one, name=f"y{at}", value=now.get(one.value, one.value))
            for at, one in enumerate(program.outputs)
        ),
    )
    return made, tuple(dims), tuple(one.name for one in inputs)


def _in_order_of_use(program: ArrayProgram) -> list[int]:
    """The inputs, by number, in the order in which equations read them."""
    read = [o for one in program.equations for o in one.arrays]
    ports = dict.fromkeys(value.port for value in read if value.node < 0)
    return [*ports, *(at for at in range(len(program.inputs)) if at not in ports)]


def _anywhere(program: ArrayProgram) -> list[Equation]:
    """The equations, in which the only slice of an input begins at its alignment."""
    read = Counter(o for one in program.equations for o in one.arrays)
    read.update(output.value for output in program.outputs)

    def moved(one: Equation) -> Equation:
        source = one.operands[0] if one.op == "slice" else None
        if not isinstance(source, Value) or source.node >= 0 or read[source] > 1:
            return one
        params = tuple((k, _alignment(v) if k == "start" else v) for k, v in one.params)
        return replace(one, params=params)

    return [moved(one) for one in program.equations]


def _alignment(start: object) -> object:
    """The largest power of two, of at most ``ALIGNED``, that divides a known start."""
    first = start.constant if isinstance(start, Length) else start
    return start if not isinstance(first, int) else whole(min(first & -first or ALIGNED, ALIGNED))
