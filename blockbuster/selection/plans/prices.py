"""The price of a part: the predicted time of its kernels and calls, of launches, and of copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from blockbuster.costs.coefficients import FITTED
from blockbuster.emit.tile.layouts import WORD
from blockbuster.frontend.library_calls import LibraryAttention, LibraryConvolution, LibraryProduct
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.machines.library import Convolution, library_of
from blockbuster.selection.considered import Considered
from blockbuster.selection.cost import launch_by_host
from blockbuster.selection.parts.partition import Price
from blockbuster.selection.plans.part import Part
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.whole_part import WholePart
from blockbuster.selection.priors import PRIORS


def price(
    part: Part, considered: Sequence[Considered], sizes: Mapping[Dim, int], machine: Machine
) -> Price:
    """The price of a part at ``sizes`` (by size class), with the best of what was considered.

    Each kernel counts a launch by the host: that is what calls outside of CUDA graphs pay.
    """
    if isinstance(part, WholePart):
        return part.price(sizes, machine)
    count = sum(one.best.kernels for one in considered)
    taken = sum(one.best.price for one in considered) + count * launch_by_host(machine)
    taken += calls_us(part, sizes, machine)
    count += sum(step.is_library for step in part.pieces.steps if isinstance(step, Call))
    unsafe = sum(len(one.best.unsafe) for one in considered)
    return Price(taken, unsafe, count, rough=any(one.rest for one in considered))


def predicted(
    part: Part, considered: Sequence[Considered], sizes: Mapping[Dim, int], machine: Machine
) -> float:
    """The microseconds that are told of a part: its price, without the factors on its kernels'
    times by which candidates are ranked, and without kernels that are kept from call to call.
    """
    if isinstance(part, WholePart):
        return part.price(sizes, machine).us
    return sum(one.best.predicted for one in considered) + calls_us(part, sizes, machine)


def calls_us(part: Part, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Microseconds of a part's copies and calls of a library, launched by the host."""
    sizes = completed(sizes, part.size_rules)  # lowering made dims of a part's own
    taken = 0.0
    for call in (step for step in part.pieces.steps if isinstance(step, Call)):
        if call.only_moves:
            taken += copy_us(call, sizes, machine)
        elif call.is_library:
            taken += library_us(part, call, sizes, machine) + launch_by_host(machine)
    return taken


def library_us(part: Part, call: Call, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Microseconds of a library's call at ``sizes`` (by size class), launched in a graph.

    A machine's rate is what long runs of products sustain, and a table's calls ran briefly, at a
    higher clock: they are told as they would run beside what the closed form tells of kernels.
    """
    library = library_of(machine)
    assert library is not None, "else no part has such a call"

    def extents(axes: Sequence[Dim | None]) -> list[int]:
        return [sizes[size_class(dim)] if dim else 1 for dim in axes]

    arrays = ((part.pieces.inputs[seen.array], seen.order) for seen in call.operands)
    shapes = [extents([axes[at] for at in order if at is not None]) for axes, order in arrays]
    x, w = shapes[:2]
    made = prod(extents(call.axes[0]))
    if isinstance(call.fn, LibraryProduct):
        m, n, k = call.fn.extents(x, w)
        taken, operations = library.product_us(m, n, k), 2.0 * made * k
    elif isinstance(call.fn, LibraryAttention):
        of_rows = call.fn.extents(x, w, shapes[2])
        taken = library.attention_us(*of_rows, is_causal=call.fn.is_causal)
        taken = max(taken, PRIORS.attention_by_host_us)
        operations = 4.0 * prod(of_rows[:-1]) / (2 if call.fn.is_causal else 1)
    else:
        assert isinstance(call.fn, LibraryConvolution), "the other call"
        of = Convolution(*call.fn.extents(x, w, made), call.fn.channels_last, bool(call.fn.more))
        taken, operations = library.convolution_us(of), of.operations
        if call.fn.moves_filters:
            taken += _moved_us(prod(w), machine)
    slower = 1.0 / machine.rate("matrix", "float16") - 1.0 / library.rate
    return taken + 1e6 * operations * max(slower, 0.0)


def copy_us(call: Call, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Microseconds of a copy. Other functions of whole arrays take the same in every plan."""
    elements = sum(prod(sizes[size_class(dim)] for dim in axes if dim) for axes in call.axes)
    return _moved_us(elements, machine, WORD)


def _moved_us(elements: int, machine: Machine, width: int = WORD // 2) -> float:
    """Microseconds of a kernel that writes elements of so many bytes in another order."""
    moving = 2 * width * elements / machine.memory.bandwidth
    return (machine.launch.plain + FITTED.start + moving) * 1e6
