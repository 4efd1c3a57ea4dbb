"""What a plan's calls take: of a library by the tables of their times (machines/library.py), and
copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from blockbuster.costs.coefficients import FITTED
from blockbuster.emit.tile.layouts import WORD
from blockbuster.frontend.library_calls import (
    LibraryAttention,
    LibraryConvolution,
    LibraryProduct,
    LibraryScaled,
)
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.machines.library import IN_ONE_LOAD, WIDE, Convolution, Library, library_of
from blockbuster.selection.plans.part import Part
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.priors import PRIORS

Axes = list[Dim | None]


def library_us(part: Part, call: Call, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Microseconds of a library's call at ``sizes`` (by size class), launched in a graph.

    A machine's rate is what long runs of products sustain, and a table's calls ran briefly, at a
    higher clock. So no product on matrix units is told to be faster than such runs; one that does
    not keep the units busy takes what the table says. Attention and convolutions take longer by
    what the rates differ, as the closed form tells kernels.
    """
    library = library_of(machine)
    assert library is not None, "else no part has such a call"
    fn, dtype = call.fn, _dtype(part, call)
    shapes = [
        [sizes[size_class(dim)] if dim else 1 for dim in axes] for axes in _operands(part, call)
    ]
    x, w = shapes[:2]
    if isinstance(fn, LibraryProduct | LibraryScaled):
        return _product_us(fn, x, w, dtype, library, machine)
    if isinstance(fn, LibraryAttention):
        of_rows = fn.extents(x, w, shapes[2])
        taken = library.attention_us(*of_rows, is_causal=fn.is_causal, dtype=dtype)
        taken = max(taken, PRIORS.attention_by_host_us)
        operations = 4.0 * prod(of_rows[:-1]) / (2 if fn.is_causal else 1)
    else:
        assert isinstance(fn, LibraryConvolution), "the other call"
        made = prod(sizes[size_class(dim)] for dim in call.axes[0] if dim)
        places = Convolution(*fn.extents(x, w, made), fn.channels_last, bool(fn.more))
        taken, operations = library.convolution_us(places), places.operations
        taken += moved_us(prod(w), machine) if fn.moves_filters else 0.0
    slower = 1.0 / machine.rate("matrix", "float16") - 1.0 / library.rate if dtype != WIDE else 0.0
    return taken + 1e6 * operations * max(slower, 0.0)


def _product_us(
    fn: LibraryProduct | LibraryScaled,
    x: Sequence[int],
    w: Sequence[int],
    dtype: str,
    library: Library,
    machine: Machine,
) -> float:
    """Microseconds of a product of arrays of these shapes."""
    if isinstance(fn, LibraryScaled):
        batch, (m, n, k) = 1, fn.extents(x, w)
        taken, rate = library.scaled_us(m, n, k, by_rows=fn.by_rows), library.scaled_rate
    else:
        batch, m, n, k = fn.extents(x, w)
        taken, rate = library.product_us(batch, m, n, k, dtype), library.rate
    if dtype == WIDE:
        return taken
    sustained = rate * min(1.0, machine.rate("matrix", "float16") / library.rate)
    return max(taken, 2e6 * batch * m * n * k / sustained)


def loaded_whole(part: Part, call: Call) -> Iterator[tuple[Dim, int]]:
    """The dims of which a product's time depends on whether so many elements divide them."""
    fn = call.fn
    if isinstance(fn, LibraryProduct | LibraryScaled):
        x, w, *_ = _operands(part, call)
        along = (
            (x[-1], w[0]) if isinstance(fn, LibraryScaled) else (x[fn.x_axes[-1]], w[fn.w_axes[-1]])
        )
        yield from (
            (size_class(d), IN_ONE_LOAD[_dtype(part, call)]) for d in along if d is not None
        )


def _operands(part: Part, call: Call) -> list[Axes]:
    """The axes of the arrays that a call is given."""
    arrays = ((part.pieces.inputs[seen.array], seen.order) for seen in call.operands)
    return [[axes[at] for at in order if at is not None] for axes, order in arrays]


def _dtype(part: Part, call: Call) -> str:
    """The dtype of a call's first operand."""
    return part.dtype_given(call.operands[0].array)


def copy_us(call: Call, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Microseconds of a copy. Other functions of whole arrays take the same in every plan."""
    elements = sum(prod(sizes[size_class(dim)] for dim in axes if dim) for axes in call.axes)
    return moved_us(elements, machine, WORD)


def moved_us(elements: int, machine: Machine, width: int = WORD // 2) -> float:
    """Microseconds of a kernel that writes elements of so many bytes in another order."""
    moving = 2 * width * elements / machine.memory.bandwidth
    return (machine.launch.plain + FITTED.start + moving) * 1e6
