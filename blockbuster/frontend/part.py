"""A part of an array program: some of its equations as an array program of their own.

What the part reads of others is an input, what others read of it is an output. Arrays of other
parts have the names that the whole program's listing gives them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from blockbuster.frontend.in_terms import in_terms
from blockbuster.frontend.kinds import dtype_of_kind
from blockbuster.frontend.program import (
    ArrayInput,
    ArrayOutput,
    ArrayProgram,
    Equation,
    Params,
    Shape,
)
from blockbuster.ir.extents import Lengths
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Rule, size, whole
from blockbuster.ir.types import Dim


def part(
    program: ArrayProgram,
    equations: Collection[int],
    outputs: Mapping[str, Value],
    names: Mapping[Value, str],
    taken_dims: Iterable[Dim] = (),
) -> ArrayProgram:
    """The program of ``equations`` (by position) that gives ``outputs``, by name.

    ``names``: those of the values that it reads of other parts. What neither ``equations`` nor
    inputs give must not be read. ``taken_dims``: dims of other parts, beside the program's own.
    """
    chosen = sorted(equations)
    read = [o for at in chosen for o in program.equations[at].arrays]
    used = {*read, *outputs.values()}
    outer = sorted({v for v in used if v.node not in chosen}, key=lambda v: (v.node, v.port))
    given = [_input(program, value, names) for value in outer]
    made = {value: Value(-1, port) for port, value in enumerate(outer)}
    made |= {Value(at): Value(place) for place, at in enumerate(chosen)}

    taken = [program.equations[at] for at in chosen]
    inside = [replace(one.reading(made), params=_by_result(one)) for one in taken]
    dims = dims_named([one.shape for one in given], inside)
    return ArrayProgram(
        program.name,
        tuple(given),
        tuple(inside),
        tuple(ArrayOutput(name, made[value]) for name, value in outputs.items()),
        tuple((dim, size) for dim, size in program.fixed_sizes if dim in dims),
        tuple(_rules(program, dims)),
        tuple(dict.fromkeys((*program.dims, *taken_dims))),
    )


def _rules(program: ArrayProgram, dims: Collection[Dim]) -> Iterator[Rule]:
    """The rules of the sizes of ``dims``, in terms of ``dims`` alone.

    Two sizes may follow from one that the part does not show: heads of |I| = |D| / 24 elements are
    joined to |F| = |D| / 3 by a reshape, which the part can do only if it knows that F is 8 I.
    """
    own = {rule.dim for rule in program.rules if rule.exact}
    known = [(dim, size(dim)) for dim in dims if dim not in own]
    for rule in program.rules:
        if rule.dim not in dims:
            continue
        shown = {*rule.length.dims} <= {*dims}
        length = rule.length if shown else in_terms(rule.length, known)
        if length is not None:
            yield replace(rule, length=length)
        if rule.exact:
            known.append((rule.dim, rule.length))


def _by_result(equation: Equation) -> Params:
    """The parameters of an equation with the extents of its result as the sizes of its own axes.

    Elsewhere they may be in terms of dims that the part does not show.
    """
    extents = tuple(size(a) if isinstance(a, str) else whole(a) for a in equation.shape)
    if equation.op == "reshape":
        return tuple((k, Lengths(extents) if k == "shape" else v) for k, v in equation.params)
    if equation.op in ("slice", "strided"):
        own = extents[equation.param("axis")]
        return tuple((k, own if k == "length" else v) for k, v in equation.params)
    if equation.op == "windows":
        own = {"count": extents[equation.param("axis")], "length": extents[-1]}
        return tuple((k, own.get(k, v)) for k, v in equation.params)
    return equation.params


def _input(program: ArrayProgram, value: Value, names: Mapping[Value, str]) -> ArrayInput:
    if value.node < 0:
        return program.inputs[value.port]
    dtype = dtype_of_kind(program.kind_of(value))
    return ArrayInput(names[value], program.shape_of(value), dtype)


def dims_named(shapes: Iterable[Shape], equations: Iterable[Equation]) -> tuple[Dim, ...]:
    """The dims that inputs and equations name, in shapes, numbers and parameters, each once."""
    found = [axis for shape in shapes for axis in shape if isinstance(axis, str)]
    for equation in equations:
        found += [axis for axis in equation.shape if isinstance(axis, str)]
        found += equation.dims_read
    return tuple(dict.fromkeys(found))
