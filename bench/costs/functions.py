"""Machine instructions per element of each scalar function; needs no GPU.

    python -m bench.costs.functions

Each function is applied to rows, with eight and sixteen elements per lane. The instructions that
the second kernel issues more, beyond those of a negation, are divided by eight. The tables of
costs/scalars.py are these numbers, rounded, and one more for roots, where negating is part of a
conversion.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

import blockbuster as bb
from bench.costs.binary import binary_of
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of

Array = Any
TARGET, WARPS, LANES = "sm_90", 4, 32
ELEMENTS = (8, 16)  # of a lane

FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "neg": lambda x: -x,
    "exp": bb.exp,
    "log": bb.log,
    "sqrt": bb.sqrt,
    "rsqrt": bb.rsqrt,
    "tanh": bb.tanh,
    "sigmoid": bb.sigmoid,
    "silu": bb.silu,
    "gelu": bb.gelu,
    "erf": bb.erf,
    "floor": bb.floor,
    "round": bb.round,
    "sin": bb.sin,
    "cos": bb.cos,
    "log1p": bb.log1p,
    "expm1": bb.expm1,
    "atan": bb.atan,
    "div": lambda x: 2.0 / x,
    "pow": lambda x: bb.abs(x) ** 1.7,
    "pow of two": lambda x: 2.0**x,
}


def counted(fn: Callable[[Array], Array], elements: int) -> tuple[int, int]:
    """Instructions that a warp issues, and those of special units."""
    graph = bb.fuse(bb.lower(bb.trace(fn, x="M N"))).final
    columns = elements * WARPS * LANES
    text = f"block M 1, N {columns}\nwarps {WARPS}\n"
    kernel = bb.emit(graph, dict(M=64, N=4 * columns), "float16", TARGET, schedule=text)
    (entry,) = load_module(kernel.source).KERNELS
    code = binary_of(entry, target_of(TARGET)).straight
    return code.issue, code.count("special")


def each(fn: Callable[[Array], Array]) -> tuple[float, float]:
    """The same for one element more of a lane."""
    few, many = (counted(fn, elements) for elements in ELEMENTS)
    more = ELEMENTS[1] - ELEMENTS[0]
    return (many[0] - few[0]) / more, (many[1] - few[1]) / more


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    usual = each(FUNCTIONS["neg"])
    for name, fn in FUNCTIONS.items():
        issued, special = (mine - other for mine, other in zip(each(fn), usual, strict=True))
        print(f"{name:10} {issued:5.1f} instructions, {special:.0f} of special units")
    return 0


if __name__ == "__main__":
    sys.exit(main())
