"""The dtypes of arrays that are not floating-point: masks and integers."""

from __future__ import annotations

from blockbuster.ir.graph import Graph, Read

TRUTH = "bool"
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
OWN = (TRUTH, *INTEGERS)
"""Dtypes that an array keeps, whatever floating dtype a program is compiled for."""


def own_dtypes(graph: Graph) -> dict[str, str]:
    """The dtypes of the arrays of masks and integers that a program reads, by name."""
    views = [given.view for given in graph.inputs if isinstance(given.view, Read)]
    return {view.source: view.dtype for view in views if view.dtype}
