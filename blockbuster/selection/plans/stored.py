"""The values that a plan writes to memory between kernels: bytes, reason, and what would save them.

A report begins with them. A value that every candidate stores is not fused; the reason is that of
its buffered edge (rules/explain.py). A value that another candidate does not store, or that a loop
in chunks passes on, is stored by choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from blockbuster.emit.tile.between import Between, Dims, between, dims_between
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules import explain
from blockbuster.rules.explain import Explanation
from blockbuster.rules.faults import FaultNotes
from blockbuster.selection.candidates.candidate import Choice
from blockbuster.selection.considered import Considered

REASONS = 2  # of one value that are told


@dataclass(frozen=True)
class Stored:
    """Values over the same dims that kernels write for later ones.

    ``reason`` is why, in words, ``unlock`` what would save them; ``chosen``: the program could do
    without, and is better with them. Without a reason of its own a value goes between kernels that
    others keep apart.
    """

    written: Between
    reason: str
    unlock: str = ""
    chosen: bool = False

    def __str__(self) -> str:
        if self.chosen:
            return f"stores {self.written.words}, by choice: {self.reason}"
        if not self.reason:
            return f"hands on {self.written.words} from kernel to kernel"
        unlock = f"; {self.unlock}" if self.unlock else ""
        return f"NOT FUSED: writes {self.written.words} because {self.reason}{unlock}"


def stored(considered: Considered, sizes: Mapping[Dim, int]) -> tuple[Stored, ...]:
    """The values that the best choice stores for these sizes (by size class), the largest first."""
    best = considered.best
    counts = {chunks.number: chunks.count for chunks in best.program.chunks}
    known = completed({**sizes, **counts}, best.program.rules)
    found = between(best.program, known, best.blocks)
    asked = [one for one in found if one.chunks is None and _without(considered, one) is None]
    edges = [*_edges(best.graph)] if asked else []
    return tuple(_stored(considered, one, edges) for one in found)


def _stored(
    considered: Considered, written: Between, edges: Sequence[tuple[Dims, Explanation]]
) -> Stored:
    if written.chunks is not None:
        return Stored(written, written.partial, chosen=True)
    other = _without(considered, written)
    if other is not None:
        return Stored(written, _worse(other, considered.best), chosen=True)
    near = _nearest(edges, written.dims)
    reasons = dict.fromkeys(f"{one.reader} reads {one.producer}: {one.why}" for one in near)
    unlock = next((one.unlock for one in near if one.unlock), "")
    return Stored(_named(written, near), "; and ".join([*reasons][:REASONS]), unlock)


def _named(written: Between, near: Sequence[Explanation]) -> Between:
    """What is written under the names of the edges behind it, where stores have no word for it."""
    if any(name.startswith("I") for name in written.names) and near:
        names = dict.fromkeys(one.producer for one in near)
        return replace(written, names=tuple(names))
    return written


def _without(considered: Considered, written: Between) -> Choice | None:
    """The best of the other candidates that store nothing over these dims."""
    others = [c for c in considered.others if written.dims not in dims_between(c.program)]
    return min(others, key=lambda choice: choice.rank, default=None)


def _worse(other: Choice, best: Choice) -> str:
    """Why a candidate is not the best, in words."""
    without = f"{other.name} does without and"
    if len(other.unsafe) > len(best.unsafe):
        return f"{without} can overflow"
    if other.price > best.price:
        times = other.price / max(best.price, 1)
        return f"{without} costs {times:.2g} times as much"
    return f"{without} is no better"


def _edges(graph: Graph) -> Iterator[tuple[Dims, Explanation]]:
    """The interior buffered edges: the dims of their values, and why they are there."""
    explained = explain(graph, on_fault=FaultNotes().keep)  # those of the choice say it already
    for (path, value, _), explanation in zip(graph.buffered_edges(), explained, strict=True):
        type = graph.at(path).type_of(value)
        yield frozenset(map(size_class, (*type.lists, *type.axes))), explanation


def _nearest(edges: Sequence[tuple[Dims, Explanation]], dims: Dims) -> list[Explanation]:
    """The edges over exactly these dims, else over the most of them: loops around add others."""
    most = max((len(of) for of, _ in edges if of <= dims), default=0)
    return [one for of, one in edges if of <= dims and len(of) == most]
