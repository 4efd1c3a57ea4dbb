"""The values that a plan writes to memory between kernels: bytes, reason, and what would save them.

A report begins with them. A value that every candidate stores is not fused; the reason is that of
its buffered edge (rules/explain.py). A value that another candidate does not store, that a loop in
chunks passes on, or that crosses from one part of the program to another is stored by choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from blockbuster.emit.tile.between import Between, Dims, between, dims_between, in_bytes, width
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules import explain
from blockbuster.rules.explain import Explanation
from blockbuster.rules.faults import FaultNotes
from blockbuster.selection.candidates.candidate import Choice
from blockbuster.selection.considered import Considered
from blockbuster.selection.plans.divided import Divided
from blockbuster.selection.plans.pieces import Call

if TYPE_CHECKING:
    from blockbuster.selection.plans.plan import Plan

MOST = 8  # values that are told one by one
REASONS = 2  # of one value that are told

Shapes = Mapping[str, tuple[int, ...]]


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


def what_is_stored(plan: Plan, sizes: Mapping[Dim, int]) -> tuple[str, ...]:
    """One line for each value that a step writes for a later one, the largest first.

    Of a plan from a file only functions of whole arrays are known.
    """
    shapes = shapes_of(plan, sizes)
    found = [*_around_calls(plan, shapes), *_from_part_to_part(plan, shapes)]
    for file in plan.files:
        if file.considered is not None:
            found += [(one.written.bytes, str(one)) for one in stored(file.considered, sizes)]
    ordered = [line for _, line in sorted(found, key=lambda entry: -entry[0])]
    if len(ordered) > MOST:
        rest = sorted((number for number, _ in found), reverse=True)[MOST:]
        values = "1 smaller value" if len(rest) == 1 else f"{len(rest)} smaller values"
        ordered[MOST:] = [f"{values}: {in_bytes(sum(rest))} in all"]
    return tuple(ordered)


def shapes_of(plan: Plan, sizes: Mapping[Dim, int]) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays that steps write."""
    return {
        name: tuple(1 if dim is None else sizes[size_class(dim)] for dim in axes)
        for step in plan.steps
        for name, axes in zip(step.writes, step.axes, strict=True)
    }


def _around_calls(plan: Plan, shapes: Shapes) -> Iterator[tuple[int, str]]:
    """The arrays that a user's functions of whole arrays read from kernels, or write for them."""
    for call in (call for call in plan.calls if not call.is_library):
        inner = [name for name in _beside(call, shapes) if name not in _shown(plan)]
        total = sum(prod(shapes[n]) * width(plan.kept[n]) for n in inner)
        where = f" ({call.where})" if call.where else ""
        sizes_of = dict.fromkeys(" x ".join(map(str, shapes[n])) or "1" for n in inner)
        what = f"{' and '.join(sizes_of)} ({', '.join(inner)}; {in_bytes(total)})"
        written = f"writes {what}" if inner else "runs by itself"
        reason = f"{call.name}{where} is a function of whole arrays: rules do not look inside it"
        yield total, f"NOT FUSED: {written} because {reason}"


def _beside(call: Call, shapes: Shapes) -> Iterable[str]:
    """The arrays that a function reads from kernels, and those that it writes."""
    return dict.fromkeys((*(name for name in call.reads if name in shapes), *call.writes))


def _shown(plan: Plan) -> list[str]:
    """The arrays in which outputs are found."""
    return [seen.array for seen in plan.results]


def _from_part_to_part(plan: Plan, shapes: Shapes) -> Iterator[tuple[int, str]]:
    """The arrays that one part of the program writes and others read: a line for those that are
    alike.
    """
    divided = plan.divided
    if not isinstance(divided, Divided):
        return
    users = (call for call in plan.calls if not call.is_library)
    told = {name for call in users for name in _beside(call, shapes)}
    writes = [[n for step in part.pieces.steps for n in step.writes] for part in divided.parts]
    reads = reads_of_parts(plan, divided)
    alike: dict[tuple[int, tuple[int, ...], tuple[int, ...], str], list[str]] = {}
    for at, written in enumerate(writes):
        for name in (name for name in written if name not in told):
            readers = tuple(n for n, own in enumerate(reads) if n != at and name in own)
            if readers:
                alike.setdefault((at, readers, shapes[name], plan.kept[name]), []).append(name)
    first = [own[0] for own in writes]
    for (at, readers, shape, dtype), names in alike.items():
        found, told_of = divided.found, readers[:REASONS]
        why = [found.why_apart(at, n, first) for n in told_of] if found else []
        chosen = found is not None and not any(found.must_be_apart(at, n) for n in told_of)
        words = (*names[:-1], f"{names[-1]}: {dtype}")
        size = prod(shape) * width(dtype) * len(names)
        written_there = Between(frozenset(), words, shape, size)
        yield size, str(Stored(written_there, "; and ".join(why), chosen=chosen))


def reads_of_parts(plan: Plan, divided: Divided) -> list[tuple[str, ...]]:
    """The arrays that each part of a plan reads of others, or is given."""
    left, found = iter(plan.steps), []
    for part in divided.parts:
        steps = [next(left) for _ in part.pieces.steps]
        own = {name for step in steps for name in step.writes}
        read = dict.fromkeys(name for step in steps for name in step.reads)
        found.append(tuple(name for name in read if name not in own))
    return found


def kernels_in_words(plan: Plan) -> str:
    """How many kernels a plan has, and calls of a library: "2 kernels and 1 library call"."""
    kernels = "1 kernel" if plan.kernels == 1 else f"{plan.kernels} kernels"
    count = sum(call.is_library for call in plan.calls)
    calls = "1 library call" if count == 1 else f"{count} library calls"
    if not count:
        return kernels
    return f"{kernels} and {calls}" if plan.kernels else calls


def sizes_in_words(sizes: Mapping[Dim, int]) -> str:
    """Sizes as text.

    >>> sizes_in_words({"M": 1024, "K": 64})
    'M = 1024, K = 64'
    """
    return ", ".join(f"{dim} = {size}" for dim, size in sizes.items())


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
    without = f"{other.name} does not store it, but"
    if len(other.unsafe) > len(best.unsafe):
        return f"{without} its exponentials can overflow"
    if other.price > best.price:
        return f"{without} takes {longer(other.price / max(best.price, 1e-9))}"
    return f"{without} is predicted to take the same time"


def longer(times: float) -> str:
    """How much longer something takes, in words.

    >>> longer(1.0004), longer(1.25), longer(6.66), longer(670.4)
    ('less than 1% longer', '25% longer', '6.7 times as long', '670 times as long')
    """
    if times < 2.0:
        share = round(100 * (times - 1.0))
        return f"{share}% longer" if share else "less than 1% longer"
    return f"{times:.1f} times as long" if times < 10 else f"{times:,.0f} times as long"


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
