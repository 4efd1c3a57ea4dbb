"""Closed forms as data for the page's own arithmetic: polynomials over a list of symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.value_dtypes import output_dtypes
from blockbuster.interp.observers import Tensor
from blockbuster.ir.dtypes import OWN, own_dtypes
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.traffic.closed import ClosedTraffic, closed_traffic
from blockbuster.selection.traffic.closed_forms import ClosedForm
from blockbuster.view.explorer.places import place_name

KINDS = "SBF"  # of a symbol: size, number of blocks, elements of the first block
Term = list[int]
"""A coefficient and its symbols; dim i has the symbols 3 i + the place of its kind in ``KINDS``."""


@dataclass
class Table:
    """Polynomials, each once, by number."""

    dims: Sequence[Dim]
    rows: dict[tuple[tuple[int, ...], ...], int] = field(default_factory=dict)

    def number(self, polynomial: ClosedForm) -> int:
        """The place of ``polynomial`` in the table; it is added if it is new."""
        row = tuple(
            (times, *(self._symbol(s.kind, s.dim) for s in symbols))
            for symbols, times in polynomial.terms
        )
        return self.rows.setdefault(row, len(self.rows))

    def data(self) -> list[list[Term]]:
        """The rows as plain lists."""
        return [[list(term) for term in row] for row in self.rows]

    def _symbol(self, kind: str, dim: Dim) -> int:
        return len(KINDS) * self.dims.index(size_class(dim)) + KINDS.index(kind)


def costs(graph: Graph, table: Table, names: Mapping[str, str]) -> dict[str, Any]:
    """The traffic, arithmetic and footprint of a program, as numbers of polynomials in ``table``.

    ``names`` gives the name of the node at a place, as the text form prints it.
    """
    closed, own = closed_traffic(graph), _own_dtypes(graph)
    return {
        "edges": [place_name((*path, at)) for path, _, at in graph.buffered_edges()],
        "tensors": _tensors(closed, table, names, own),
        "flops": {unit: table.number(form) for unit, form in closed.flops.items()},
        "dots": table.number(closed.dots),
        "footprint": [table.number(form) for form in closed.footprint],
    }


def _own_dtypes(graph: Graph) -> dict[Tensor, str]:
    """The dtypes of arrays of masks and integers, which no choice of floats changes."""
    found = {Tensor(name): dtype for name, dtype in own_dtypes(graph).items()}
    made = {name: d for name, d in output_dtypes(graph, FLOAT).items() if d in OWN}
    for name, output in zip(graph.output_names, graph.outputs, strict=True):
        if name in made:
            at, dtype = output.value, made[name]
            found[Tensor(name)] = dtype
            if at.node >= 0:
                hints = graph.nodes[at.node].hints
                found[Tensor(hints[at.port] if hints else "", (at.node,), at.port)] = dtype
    return found


def _tensors(
    closed: ClosedTraffic, table: Table, names: Mapping[str, str], own: Mapping[Tensor, str]
) -> list[dict[str, Any]]:
    rows = []
    for tensor, moved in closed.tensors.items():
        place = place_name(tensor.path)
        end = "output" if moved.stores.terms else "input"
        forms = (moved.loads, moved.stores, moved.loaded_elements, moved.stored_elements)
        rows.append(
            {
                "hint": tensor.name,
                "name": _name(tensor, names.get(place, "")),
                "kind": "interior" if moved.loads.terms and moved.stores.terms else end,
                "place": place,
                "own": own.get(tensor, ""),
                "forms": [table.number(form) for form in forms],
            }
        )
    return rows


def _name(tensor: Tensor, printed: str) -> str:
    """The printed name of the result, which is unlike all others; the source's name for inputs."""
    results = printed.split(", ") if printed else []
    return results[tensor.port] if tensor.port < len(results) else tensor.name


def paired(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[list[int | None]]:
    """Which tensor of ``after`` each tensor of ``before`` became, by places in the two lists.

    Inputs go by name; the others are aligned in order, by name and by what they move.
    """
    inputs = {t["name"]: i for i, t in enumerate(after) if t["kind"] == "input"}
    pairs: list[list[int | None]] = []
    for i, tensor in enumerate(before):
        if tensor["kind"] == "input" and tensor["name"] in inputs:
            pairs.append([i, inputs.pop(tensor["name"])])
    old = [i for i, t in enumerate(before) if i not in {pair[0] for pair in pairs}]
    new = [i for i, t in enumerate(after) if i not in {pair[1] for pair in pairs}]
    return pairs + _aligned(before, after, old, new)


def _aligned(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    old: list[int],
    new: list[int],
) -> list[list[int | None]]:
    def key(tensor: Mapping[str, Any]) -> tuple[Any, ...]:
        return (tensor["hint"], *tensor["forms"])

    matcher = SequenceMatcher(
        None, [key(before[i]) for i in old], [key(after[i]) for i in new], autojunk=False
    )
    pairs: list[list[int | None]] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            pairs += [[i, j] for i, j in zip(old[a:b], new[c:d], strict=True)]
            continue
        left = new[c:d]
        for i in old[a:b]:
            same = next((j for j in left if after[j]["hint"] == before[i]["hint"]), None)
            left = [j for j in left if j != same]
            pairs.append([i, same])
        pairs += [[None, j] for j in left]
    return pairs
