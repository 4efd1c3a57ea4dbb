"""The shape that a user requests of a reshape, in terms of sizes, and what it implies for them.

If the shapes fit only for the size that an example has, that size becomes fixed. A dim of unknown
size that replaces several axes gets their product as its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.regrouping import parts_of
from blockbuster.frontend.sizes import scalar
from blockbuster.frontend.source import Refused
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.extents import Lengths
from blockbuster.ir.lengths import ONE, Length, inverse, product_of, size

_FORM = "entries are ints, sizes such as x.shape[0], their products and quotients, or one -1"


def wanted(dims: DimTable, shape: Shape, entries: Sequence[Any]) -> Lengths:
    """The extents that ``entries`` ask for of an array of ``shape``.

    Raises Refused, with the shape that was asked for, if the array has another number of elements,
    or none that can be told.
    """
    new = [_extent(dims, entry) for entry in entries]
    if new.count(None) > 1:
        raise Refused("-1 stands twice", "one axis takes the elements that are left")
    text = f"({', '.join('-1' if n is None else dims.in_words(n) for n in new)})"
    known = [n if n is not None else _rest(dims, shape, new, text) for n in new]
    old = [dims.length(axis) for axis in shape]
    apart = product_of(old) - product_of(known)
    if apart.clamps and not dims.usual(apart).terms:
        dims.settle(apart)
    elif apart.terms:
        _tie(dims, shape, known, text)
    found = [dims.normal(n) for n in known]
    for length in found:
        if not dims.is_whole(length):
            raise Refused(f"to {text}: {dims.in_words(length)} is no whole number", _FORM)
    return Lengths(tuple(found))


def _extent(dims: DimTable, entry: object) -> Length | None:
    """The extent that an entry of a shape asks for; None for -1."""
    expr = scalar(entry) if not isinstance(entry, bool) else None
    length = length_of(expr) if expr is not None else None
    if length is None:
        raise Refused(f"{entry!r} as the extent of an axis", _FORM)
    found = dims.normal(length)
    number = found.constant
    if not found.dims and (number is None or number < -1):
        raise Refused(f"{entry!r} as the extent of an axis", "it is at least 0; or -1, once")
    return None if number == -1 else found


def _rest(dims: DimTable, shape: Shape, new: Sequence[Length | None], text: str) -> Length:
    """The extent that is left for -1."""
    for fix in (False, True):
        if fix:
            dims.fix(dim for n in new if n for dim in n.dims)
        total = product_of(dims.length(axis) for axis in shape)
        given = product_of(dims.normal(n) for n in new if n is not None)
        if not given.terms:
            raise Refused(f"to {text}: beside an axis of no elements -1 may be any number")
        found = total.over(given)
        if found is not None and (found.dims or found.constant is not None):
            return found
        if found is not None:
            reason = f"to {text}: {dims.in_words(total)} elements are no multiple of"
            raise Refused(f"{reason} {dims.in_words(given)}")
    if len(given.terms) == 1:
        return total * inverse(given)
    hint = "write the extent for -1, or give the sizes numbers: bb.trace takes fixed ones, D=64"
    raise Refused(f"to {text}: what is left for -1 does not follow from the sizes", hint)


def _tie(dims: DimTable, shape: Shape, new: Sequence[Length], text: str) -> None:
    """Make two shapes have equally many elements by what that says of sizes."""
    old = [dims.length(axis) for axis in shape]
    same = dims.equal(product_of(old), product_of(new))
    front = next(i for i, (a, b) in enumerate([*zip(old, new, strict=False), (0, 1)]) if a != b)
    behind = zip(reversed(old[front:]), reversed(new[front:]), strict=False)
    back = next(i for i, (a, b) in enumerate([*behind, (0, 1)]) if a != b)
    axes, lengths = shape[front : len(old) - back], new[front : len(new) - back]
    if same is not False and len(axes) == 1:
        dims.unify(axes[0], dims.derived(product_of(lengths), "elements", product_of(lengths)))
    elif same is not False and len(lengths) == 1 and _dim_of(dims, lengths[0]):
        total = product_of(dims.length(axis) for axis in axes)
        dims.unify(_dim_of(dims, lengths[0]) or 1, dims.derived(total, "elements", total))
    elif same:
        dims.fix(dim for length in (*old, *new) for dim in length.dims)
    else:
        counts = (dims.in_words(product_of(lengths)) for lengths in (old, new))
        hint = "take the extents from x.shape, or give the sizes numbers: D=64"
        reason = f"to {text}: {' and '.join(counts)} elements"
        raise Refused(f"{reason} {'differ' if same is False else 'may differ'}", hint)


def _dim_of(dims: DimTable, length: Length) -> Axis | None:
    """The dim whose size a length is."""
    (dim,) = length.dims if len(length.dims) == 1 else (None,)
    return dims.find(dim) if dim is not None and dim in dims and length == size(dim) else None


def reshaped(dims: DimTable, shape: Shape, lengths: Lengths) -> Shape:
    """The axes of an array of ``shape`` with other extents: old dims where they stay whole."""
    old = [dims.length(axis) for axis in shape]
    parts = parts_of(old, lengths.extents) or ()
    axes: list[Axis] = []
    for new, length in enumerate(lengths.extents):
        mine = [part for part in parts if part.new == new]
        key = tuple(
            (dims.find(shape[part.old]), part.length, *(p.length for p in parts[:at]))
            for at, part in enumerate(parts)
            if part.new == new
        )
        if length == ONE:
            axes.append(1)
        elif len(mine) == 1 and mine[0].length == old[mine[0].old]:
            axes.append(dims.find(shape[mine[0].old]))
        else:
            own = _dim_of(dims, length)
            axes.append(own or dims.derived(length, "part", length, key or (new, *shape)))
    return tuple(axes)
