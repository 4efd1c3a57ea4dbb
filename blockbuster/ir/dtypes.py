"""The dtypes of arrays that are not floating-point, and the float that only inputs have."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from blockbuster.ir.graph import Graph, Read

TRUTH = "bool"
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
OWN = (TRUTH, *INTEGERS)
"""Dtypes that an array keeps, whatever floating dtype a program is compiled for."""

FLOAT8, HALF = "float8_e4m3fn", "float16"
"""A float of 8 bits, four of them of the exponent; and the narrowest float of results.

Arrays of ``FLOAT8`` are inputs: they are read, and what is computed of them is wider. Every number
of it is a number of all wider floats.
"""


def deciding(floats: Iterable[str]) -> list[str]:
    """Of the dtypes of floats, those that decide where they meet; each once.

    ``FLOAT8`` does not count beside others, and alone it is as ``HALF``.

    >>> deciding([FLOAT8, "bfloat16"]), deciding([FLOAT8]), deciding(["float16", "float32"])
    (['bfloat16'], ['float16'], ['float16', 'float32'])
    """
    distinct = list(dict.fromkeys(floats))
    return [name for name in distinct if name != FLOAT8] or [HALF] * bool(distinct)


def met(dtypes: Iterable[str]) -> str:
    """The dtype in which dtypes meet: their own if they are one, else a wider.

    Truths do not count beside numbers, nor integers beside floats.

    >>> met(["float16", "float16"]), met(["float16", "bfloat16"]), met(["bool", "float16"])
    ('float16', 'float32', 'float16')
    """
    distinct = dict.fromkeys(dtypes)
    integers = [name for name in distinct if name in INTEGERS]
    numbers = deciding(name for name in distinct if name not in OWN)
    if len(numbers) == 1:
        return numbers[0]
    if not numbers:
        return np.result_type(*map(np.dtype, integers)).name if integers else TRUTH
    return "float64" if "float64" in numbers else "float32"


def own_dtypes(graph: Graph) -> dict[str, str]:
    """The dtypes of the arrays of masks and integers that a program reads, by name."""
    views = [given.view for given in graph.inputs if isinstance(given.view, Read)]
    return {view.source: view.dtype for view in views if view.dtype}
