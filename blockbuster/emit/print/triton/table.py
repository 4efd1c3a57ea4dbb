"""The table in an emitted file that lets tools compile its kernels without running them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from blockbuster.emit.print.triton.even import even_numbers, even_strides
from blockbuster.emit.print.triton.file import EVEN_PARTS, File, literal, wrapped
from blockbuster.emit.print.triton.launcher import Kernel
from blockbuster.emit.tile.dataflow import dim_along
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.program import Buffer
from blockbuster.emit.tile.uneven_rows import KNOWN
from blockbuster.ir.types import size_class


def kernel_table(file: File, kernels: list[Kernel]) -> str:
    """Per kernel its argument types, constants and options, and what a launch would specialize.

    Triton compiles anew for arguments that equal 1 or are multiples of 16; the table says which
    those are at the sizes the file was written for, with contiguous arrays.
    """
    lines = ["# for compiling without a GPU", "KERNELS = ["]
    for kernel in kernels:
        p = kernel.parameters
        types = {file.pointer(b): MEMORY[b.dtype].pointer for b in p.buffers}
        for (buffer, tile), name in p.descriptors.items():
            types[name] = f"tensordesc<{MEMORY[buffer.dtype].pointer[1:]}{list(tile)}>"
        types |= dict.fromkeys((*p.sizes.values(), *p.strides.values()), "i32")
        numbers = dict(_numbers(file, kernel))
        pointers = [file.pointer(b) for b in p.buffers]
        sixteens = [*pointers, *(name for name, n in numbers.items() if n % 16 == 0)]
        lines += [
            "    dict(",
            f"        function={kernel.name},",
            *_dict("signature", types),
            *_dict("constants", dict(_constants(file, kernel, numbers))),
            *_list("equal_to_1", [name for name, n in numbers.items() if n == 1]),
            *_list("divisible_by_16", sixteens),
            *_dict("options", kernel.options),
            "    ),",
        ]
    return "\n".join([*lines, "]"])


def _constants(file: File, kernel: Kernel, numbers: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The lanes of blocks, and what divides the numbers of rows."""
    p = kernel.parameters
    for dim, name in p.blocks.items():
        yield name, kernel.tiling.blocks[dim]
    for dim in p.rows:
        strides = [p.strides[key] for key in even_strides(p, dim)]
        found = [numbers[name] for name in even_numbers(p, dim, strides)]
        yield file.even(dim), math.gcd(KNOWN, *found)
    if p.parts:
        yield EVEN_PARTS, math.gcd(KNOWN, *(length.value(file.sizes) for length in p.parts))


def _numbers(file: File, kernel: Kernel) -> Iterator[tuple[str, int]]:
    """The values of sizes and strides at the sizes the file was written for."""

    def extent(buffer: Buffer, at: int) -> int:
        axis = buffer.axes[at]
        dim = dim_along(kernel.nest.body, buffer, at) if axis.per_block else axis.dim
        if dim is None:
            return 1
        size = file.sizes[size_class(dim)]
        return -(-size // kernel.tiling.block(dim)) if axis.per_block else size

    for dim, name in kernel.parameters.sizes.items():
        yield name, file.sizes[dim]
    for (buffer, axis), name in kernel.parameters.strides.items():
        within = [extent(buffer, inner) for inner in range(axis + 1, len(buffer.axes))]
        if within:
            within[-1] = -(-within[-1] // buffer.pitch) * buffer.pitch
        yield name, math.prod(within)


def _dict(name: str, entries: Mapping[str, object]) -> list[str]:
    items = [f"{literal(key)}: {literal(value)}" for key, value in entries.items()]
    return [f"        {name}={{", *wrapped(items, 12), "        },"]


def _list(name: str, entries: list[str]) -> list[str]:
    return [f"        {name}=[", *wrapped([literal(e) for e in entries], 12), "        ],"]
