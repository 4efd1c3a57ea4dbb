"""Random programs that search: places and values of extrema, largest weights, lengths by parts.

The searched array is an input, a product, or distances, perhaps masked; it is searched along its
rows or its columns. Every choice is made by a ``random.Random``, so a seed names a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np

from blockbuster.frontend import functions as bb
from blockbuster.frontend.lower import lower
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.trace import Trace
from blockbuster.ir.graph import Graph


def search_program(random: Random) -> ArrayProgram:
    """One program."""
    trace = Trace()
    searched = random.choice([*SEARCHED.values()])(trace)
    if random.random() < 0.3:
        searched = bb.where(trace.input("b", "M N") > 0, searched, -np.inf)
    axis = random.choice((-1, -1, 0))
    ends = random.sample([*ENDS], random.choice((1, 1, 2)))
    found = [(f"out{at}", ENDS[end](trace, searched, axis)) for at, end in enumerate(ends)]
    return trace.finish("searches", found)


def search_programs(count: int, first: int = 0) -> list[Graph]:
    """The block programs of ``count`` seeds from ``first`` on."""
    return [lower(search_program(Random(first + at))) for at in range(count)]


def _distances(trace: Trace) -> Any:
    x, c = trace.input("x", "M D"), trace.input("c", "N D")
    return bb.sum(c * c, axis=-1) - 2 * (x @ c.T)


def _there(trace: Trace, s: Any, axis: int) -> Any:
    """The sum of what stands at the maximum."""
    top = bb.max(s, axis=axis, keepdims=True)
    return bb.sum(bb.where(s == top, trace.input("v", "M N"), 0.0), axis=axis)


def _largest_part(_: Trace, s: Any, axis: int) -> Any:
    """The largest element of a normed row or column, by its absolute value."""
    root = bb.rsqrt(bb.mean(s * s, axis=axis, keepdims=True) + 1)
    return bb.max(bb.abs(s * root), axis=axis)


def _length(_: Trace, s: Any, axis: int) -> Any:
    """The length of each row or column, of parts of its magnitude."""
    top = bb.maximum(bb.max(bb.abs(s), axis=axis, keepdims=True), 0.5)
    return bb.sqrt(bb.sum(bb.square(s / top), axis=axis))


SEARCHED: Mapping[str, Callable[[Trace], Any]] = {
    "an input": lambda trace: trace.input("s", "M N"),
    "a product": lambda trace: trace.input("x", "M D") @ trace.input("w", "D N"),
    "distances": _distances,
}

ENDS: Mapping[str, Callable[[Trace, Any, int], Any]] = {
    "argmax": lambda _, s, axis: bb.argmax(s, axis=axis),
    "argmin": lambda _, s, axis: bb.argmin(s, axis=axis),
    "what stands there": _there,
    "largest weight": lambda _, s, axis: bb.max(bb.softmax(s, axis=axis), axis=axis),
    "largest part of a norm": _largest_part,
    "length": _length,
}
