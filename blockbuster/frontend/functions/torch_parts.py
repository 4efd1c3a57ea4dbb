"""torch's functions that take parts of arrays, or give them the shape of others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from blockbuster.frontend.functions.arrangements import (
    array_split,
    broadcast_arrays,
    dsplit,
    grid,
    hsplit,
    matrix_transpose,
    on_diagonal,
    vsplit,
)
from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.differences import torch_gradient
from blockbuster.frontend.functions.joins import chunk, unbind
from blockbuster.frontend.functions.joins import split as cut_at
from blockbuster.frontend.functions.reductions import sum
from blockbuster.frontend.functions.row import Array, Row, named, torch_row, with_method
from blockbuster.frontend.functions.shapes import broadcast_to, is_unit, reshape, view
from blockbuster.frontend.shapes import axes_of, listed
from blockbuster.frontend.sizes import fixed
from blockbuster.frontend.source import trace_error


def split(input: Array, split_size_or_sections: Any, dim: int = 0) -> tuple[Array, ...]:
    """An axis cut into parts of one size, or of these several sizes."""
    sizes = split_size_or_sections
    if not isinstance(sizes, tuple | list):
        count = fixed(input.shape[dim] // sizes)
        rest = fixed(input.shape[dim] - sizes * count)
        sizes = [sizes] * count + ([rest] if rest or not count else [])
    *ends, total = accumulate(sizes)
    if isinstance(total, int) and total != (extent := fixed(input.shape[dim])):
        hint = "sizes of parts add up to the axis"
        raise trace_error(f"torch.split of {extent} elements into {sizes}", hint=hint)
    return tuple(cut_at(input, ends, dim))


def split_with_sizes(input: Array, split_sizes: Sequence[Any], dim: int = 0) -> tuple[Array, ...]:
    """An axis cut into parts of several sizes."""
    return split(input, split_sizes, dim)


def _in_a_tuple(function: Callable[..., list[Array]], name: str) -> Callable[..., Array]:
    """``function`` as torch has it, whose parts are in a tuple."""

    @functools.wraps(function)
    def parts(*args: Any, **kwargs: Any) -> tuple[Array, ...]:
        return tuple(function(*args, **kwargs))

    return named(parts, name)


def narrow(input: Array, dim: int, start: int, length: int) -> Array:
    """``length`` elements of an axis from ``start`` on."""
    (at,) = axes_of("narrow", dim, len(input.shape))
    first = start + input.shape[at] if isinstance(start, int) and start < 0 else start
    found = cut(input, at, first, first + length)
    if isinstance(length, int) and fixed(found.shape[at]) != length:
        reason = f"narrow of {length} elements from {start} on: the axis has {input.shape[at]!r}"
        raise trace_error(reason, hint="x[..., start:] takes those that are left")
    return found


def select(input: Array, dim: int, index: int) -> Array:
    """The elements at one position of an axis, which is gone."""
    (at,) = axes_of("select", dim, len(input.shape))
    return input[(*(slice(None),) * at, index)]


def _in_shape_of(function: Callable[..., Array], name: str) -> Row:
    """The row of a method that gives an array the shape of another one."""

    def method(input: Array, other: Array) -> Array:
        return function(input, other.shape)

    meaning = f"``{function.__name__}`` to the shape of another array."
    return torch_row(named(method, name, meaning), f"Tensor.{name}")


def sum_to_size(input: Array, *size: Any) -> Array:
    """The sums along the axes that broadcasting from this shape has repeated."""
    wanted, rank = listed(size), len(input.shape)
    leading = rank - len(wanted)
    if leading < 0:
        reason = f"sum_to_size of {rank} axes to {len(wanted)}"
        raise trace_error(reason, hint="sums have no more axes than the array")
    units = [at for at, n in enumerate(wanted, start=leading) if isinstance(n, int) and n == 1]
    over = [at for at in units if not is_unit(input, at)]
    found = sum(input, over, True) if over else input
    found = sum(found, range(leading)) if leading else found
    for at in range(len(wanted)):
        if is_unit(found, at) and leading + at not in units:
            reason = f"sum_to_size of {input!r} to {(*wanted,)}: no sum has more elements"
            raise trace_error(reason, hint="sums are to 1, or keep an axis; expand repeats")
    return broadcast_to(found, wanted)


def broadcast_tensors(*tensors: Array) -> tuple[Array, ...]:
    """The same as torch spells it: of a list, too."""
    return broadcast_arrays(*listed(tensors))


def torch_meshgrid(*tensors: Array, indexing: str | None = None) -> tuple[Array, ...]:
    """``meshgrid`` with torch's default, "ij"; of a list, too."""
    return grid(listed(tensors), indexing or "ij")


def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """``on_diagonal`` as torch spells it."""
    if offset or (dim1, dim2) != (-2, -1):
        what = f"diag_embed with offset={offset}, dim1={dim1}, dim2={dim2} cannot be traced"
        raise trace_error(what, hint="leave them out; transpose the result")
    return on_diagonal(input)


ROWS = (
    torch_row(torch_gradient, "gradient"),
    with_method(split, "split", "unsafe_split"), with_method(split_with_sizes, "split_with_sizes"),
    with_method(_in_a_tuple(chunk, "torch_chunk"), "chunk", "unsafe_chunk"),
    with_method(_in_a_tuple(unbind, "torch_unbind"), "unbind"),
    with_method(_in_a_tuple(array_split, "tensor_split"), "tensor_split"),
    with_method(_in_a_tuple(hsplit, "torch_hsplit"), "hsplit"),
    with_method(_in_a_tuple(vsplit, "torch_vsplit"), "vsplit"),
    with_method(_in_a_tuple(dsplit, "torch_dsplit"), "dsplit"),
    with_method(narrow, "narrow"),
    with_method(select, "select"),
    _in_shape_of(broadcast_to, "expand_as"),
    _in_shape_of(view, "view_as"),
    _in_shape_of(reshape, "reshape_as"),
    torch_row(sum_to_size, "Tensor.sum_to_size"),
    with_method(matrix_transpose, "adjoint"), torch_row(broadcast_tensors, "broadcast_tensors"),
    torch_row(torch_meshgrid, "meshgrid"), with_method(diag_embed, "diag_embed"),
)  # fmt: skip
