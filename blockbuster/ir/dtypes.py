"""The dtypes that arrays may have beside floating ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blockbuster.ir.graph import Graph

TRUTH = "bool"
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
OWN = (TRUTH, *INTEGERS)
"""Dtypes that an array keeps, whatever floating dtype a program is compiled for."""


def own_dtypes(graph: Graph) -> dict[str, str]:
    """The dtypes of the arrays of masks and integers that a program reads, by name."""
    views = [given.view for given in graph.inputs]
    return {v.source: v.dtype for v in views if getattr(v, "dtype", "")}
