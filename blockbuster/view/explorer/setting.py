"""The initial setting of a page: sizes and blocks of dims, dtype and machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import lcm
from pathlib import Path
from typing import Any

from blockbuster.errors import message
from blockbuster.interp.binding import dims_of
from blockbuster.ir.fitting import fitted
from blockbuster.ir.graph import Graph
from blockbuster.ir.length_symbols import Clamp
from blockbuster.ir.lengths import Length
from blockbuster.ir.list_only import list_only
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.view.explorer.widths import usual_sizes

BLOCKS = 4  # of a dim, where neither the caller nor a schedule says it


@dataclass(frozen=True)
class Setting:
    """Sizes and numbers of blocks by dim, the dtype of the kernel, seeds of proofs.

    ``machine``: the GPU for which the kernel is chosen, and on which it is simulated.
    """

    sizes: Mapping[Dim, int] = field(default_factory=dict)
    blocks: Mapping[Dim, int] = field(default_factory=dict)
    dtype: str = "float16"
    machine: str | Path | Machine = "h200"
    trials: int = 8
    seed: int = 0


def sizes_of(graph: Graph, setting: Setting) -> dict[Dim, int]:
    """The size of every dim: as the setting says, else realistic ones (widths.py).

    Raises ValueError for unknown dims and for sizes that the program does not allow.
    """
    names = tuple(dict.fromkeys(map(size_class, dims_of(graph))))
    for what, given in (("sizes", setting.sizes), ("blocks", setting.blocks)):
        for dim, number in given.items():
            if dim not in names:
                hint = f"the dims are {', '.join(names)}"
                raise ValueError(message(f"unknown dim {dim} in {what}", hint=hint))
            if number < 1:
                raise ValueError(f"{what} has {number} for {dim}, expected at least 1")
    found = fitted({**usual_sizes(graph, names), **setting.sizes}, graph.size_rules)
    for dim, number in setting.sizes.items():
        if found[dim] != number:
            rules = "; ".join(map(str, graph.size_rules))
            raise ValueError(message(f"{dim} cannot be {number} here", hint=rules))
    return {dim: found[dim] for dim in names}


def dims_data(
    graph: Graph, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]
) -> list[dict[str, Any]]:
    """Every dim with its size and number of blocks, and whether the page may change them."""
    units = list_only(graph)
    follow = {rule.dim for rule in graph.size_rules if rule.exact}
    return [
        {
            "name": dim,
            "size": size,
            "blocks": _count(size, blocks.get(dim, BLOCKS), dim in units),
            "unit": dim in units,
            "follows": dim in follow,
            "step": _step(graph, dim),
        }
        for dim, size in sizes.items()
    ]


def _count(size: int, wanted: int, unit: bool) -> int:
    """The nearest number of equal blocks (the last may be smaller) that there can be."""
    return size if unit else -(-size // -(-size // min(wanted, size)))


def _step(graph: Graph, dim: Dim) -> int:
    """What the size of a dim must be a multiple of."""
    terms = [term for rule in graph.size_rules for term in rule.length.terms]
    read = ((Length((term,)).dims, term[1]) for term in terms)
    return lcm(*(share.denominator for dims, share in read if dim in dims))


def rules_of_sizes(graph: Graph) -> list[dict[str, Any]]:
    """The sizes that follow from others: dim = sum of (times, factors) / divisor, or at least that.

    A divisor is a number or, where sizes divide, a length in the same form.
    """
    return [
        {"dim": rule.dim, "exact": rule.exact, **_terms(rule.length)} for rule in graph.size_rules
    ]


def _terms(length: Length) -> dict[str, Any]:
    """A length as the page computes it: a factor is a size, or a clamped length."""
    top, under = length.fraction
    found = [
        [int(times), [_terms(s.of) if isinstance(s, Clamp) else s for s in symbols]]
        for symbols, times in top.terms
    ]
    divisor = _terms(under) if under.constant is None else under.constant
    return {"terms": found, "divisor": divisor}
