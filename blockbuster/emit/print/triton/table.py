"""The table in an emitted file that lets tools compile its kernels without running them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from blockbuster.emit.print.triton.file import File, literal, wrapped
from blockbuster.emit.print.triton.launcher import Kernel
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.launch_spec import LaunchSpec, Number, value
from blockbuster.emit.tile.uneven_rows import KNOWN


def kernel_table(file: File, kernels: Sequence[Kernel], spec: LaunchSpec) -> str:
    """Per kernel its argument types, constants and options, and what a launch would specialize.

    Triton compiles anew for arguments that equal 1 or are multiples of 16; the table says which
    those are at the sizes the file was written for, with contiguous arrays.
    """
    lines = ["# for compiling without a GPU", "KERNELS = ["]
    arrays = {array.name: array for array in (*spec.launch.inputs, *spec.made)}
    starts = {start.kernel: start for start in spec.starts}

    def known(number: Number) -> int:
        return value(number, file.sizes, arrays)

    for kernel in kernels:
        p, start = kernel.parameters, starts[kernel.name]
        types = {file.pointer(b): MEMORY[b.dtype].pointer for b in p.buffers}
        for (buffer, tile), name in p.descriptors.items():
            types[name] = f"tensordesc<{MEMORY[buffer.dtype].pointer[1:]}{list(tile)}>"
        names = (*p.sizes.values(), *p.strides.values())
        types |= dict.fromkeys(names, "i32")
        numbers = dict(zip(names, map(known, start.numbers), strict=True))
        even = {name: math.gcd(KNOWN, *map(known, of)) for name, of in start.even}
        told = {name: known(size) for name, size in start.told}
        pointers = [file.pointer(b) for b in p.buffers]
        sixteens = [*pointers, *(name for name, n in numbers.items() if n % 16 == 0)]
        lines += [
            "    dict(",
            f"        function={kernel.name},",
            *_dict("signature", types),
            *_dict("constants", {**dict(start.lanes), **even, **told}),
            *_list("equal_to_1", [name for name, n in numbers.items() if n == 1]),
            *_list("divisible_by_16", sixteens),
            *_dict("options", kernel.options),
            "    ),",
        ]
    return "\n".join([*lines, "]"])


def _dict(name: str, entries: Mapping[str, object]) -> list[str]:
    items = [f"{literal(key)}: {literal(value)}" for key, value in entries.items()]
    return [f"        {name}={{", *wrapped(items, 12), "        },"]


def _list(name: str, entries: list[str]) -> list[str]:
    return [f"        {name}=[", *wrapped([literal(e) for e in entries], 12), "        ],"]
