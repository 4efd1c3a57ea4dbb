"""The values that a plan writes to memory between kernels: bytes, reason, and what would save them.

Reports tell them behind the kernels. A value that every candidate stores is not fused; the reason
is that of its buffered edge (rules/explain.py). A value that another candidate does not store, that
a loop in chunks passes on, or that crosses from one part of the program to another is stored
because that is faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from blockbuster.emit.tile.between import Between, Dims, between, dims_between, in_bytes, width
from blockbuster.emit.tile.program import TileProgram
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules import explain
from blockbuster.rules.explain import APPLIES, Explanation
from blockbuster.rules.faults import FaultNotes
from blockbuster.selection.candidates.candidate import Choice
from blockbuster.selection.considered import Considered, in_words
from blockbuster.selection.plans import layout
from blockbuster.selection.plans.divided import Divided
from blockbuster.selection.plans.pieces import Call

if TYPE_CHECKING:
    from blockbuster.selection.plans.plan import File, Plan


WRITE = "write it with array operators, which are traced and fused"
LEFT_OUT = "no program in which they are one kernel is predicted to be faster"

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Stored:
    """Values over the same dims that kernels write for later ones.

    ``reasons`` are why, in words, ``unlock`` what would save them; ``chosen``: the program could do
    without, and is better with them. Without a reason of its own a value goes between kernels that
    others keep apart.
    """

    written: Between
    reasons: tuple[str, ...]
    unlock: str = ""
    chosen: bool = False

    def __str__(self) -> str:
        reason = "; and ".join(self.reasons)
        if self.chosen:
            return f"stores {self.written.words}: {reason}"
        if not reason:
            return f"hands on {self.written.words} from kernel to kernel"
        unlock = f"; {self.unlock}" if self.unlock else ""
        return f"did not fuse: writes {self.written.words}, since {reason}{unlock}"

    @property
    def failed(self) -> bool:
        """True if kernels failed to fuse: there is a reason, and it is not that this is faster."""
        return bool(self.reasons) and not self.chosen

    @property
    def short(self) -> str:
        """The values, their bytes and the first reason; an estimate's details are left out."""
        if self.written.chunks is not None:
            return f"stored: {self.written.partial} ({in_bytes(self.written.bytes)})"
        names = [name.split("[")[0].split(":")[0] for name in self.written.names]
        few = layout.REASONS
        said = ", ".join([*names[:few], "..."] if len(names) > few else names)
        size = f"{said} ({in_bytes(self.written.bytes)})" if names else "no array"
        if not self.reasons:
            return f"stored: {size}, from kernel to kernel"
        reason = self.reasons[0].split("; ")[0]
        return f"{'stored' if self.chosen else 'did not fuse'}: {size}: {reason}"


def what_is_stored(plan: Plan, sizes: Mapping[Dim, int]) -> tuple[str, ...]:
    """One line for each value that a step writes for a later one, the largest first.

    Of a plan from a file only functions of whole arrays are known.
    """
    found = values_stored(plan, sizes)
    few = layout.VALUES
    lines, left = [*map(str, found[:few])], found[few:]
    if not left:
        return (*lines,)
    number = "1 smaller value" if len(left) == 1 else f"{len(left)} smaller values"
    return (*lines, f"{number}: {in_bytes(sum(one.written.bytes for one in left))} in all")


def in_short(found: Sequence[Stored]) -> Iterator[str]:
    """The largest values in short, those that did not fuse first, each with what would fuse it.

    Partial results of the same loops in chunks are told together.
    """
    merged: dict[object, Stored] = {}
    for at, one in enumerate(found):
        chunks = one.written.chunks
        key = at if chunks is None else (chunks.dim, chunks.count, chunks.number)
        merged[key] = _together(merged[key], one) if key in merged else one
    ordered = sorted(merged.values(), key=lambda one: (not one.failed, -one.written.bytes))
    few = layout.VALUES_IN_SHORT
    for one in ordered[:few]:
        yield one.short
        if one.unlock:
            yield f"  to fuse it: {one.unlock}"
    if left := ordered[few:]:
        total = in_bytes(sum(one.written.bytes for one in left))
        number = "1 more value" if len(left) == 1 else f"{len(left)} more values"
        yield f"stored: {number} ({total})"


def _together(first: Stored, second: Stored) -> Stored:
    one, other = first.written, second.written
    names = (*one.names, *other.names)
    return replace(first, written=replace(one, names=names, bytes=one.bytes + other.bytes))


def values_stored(plan: Plan, sizes: Mapping[Dim, int]) -> tuple[Stored, ...]:
    """The values that steps write for later ones, the largest first."""
    shapes = shapes_of(plan, sizes)
    found = [*_around_calls(plan, shapes), *_from_part_to_part(plan, shapes)]
    for file in plan.files:
        if file.considered is not None:
            found += _in_words_of(file, stored(file.considered, file.own(sizes)))
    return tuple(sorted(found, key=lambda one: -one.written.bytes))


def _in_words_of(file: File, found: Iterable[Stored]) -> Iterable[Stored]:
    """The same with the plan's names, if the file was written for an equal part."""
    if not file.named:
        return found
    names = {**file.names, **file.named}

    def renamed(text: str) -> str:
        return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)

    return [
        replace(
            one,
            written=replace(one.written, names=tuple(map(renamed, one.written.names))),
            reasons=tuple(map(renamed, one.reasons)),
        )
        for one in found
    ]


def shapes_of(plan: Plan, sizes: Mapping[Dim, int]) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays that steps write."""
    return {
        name: tuple(1 if dim is None else sizes[size_class(dim)] for dim in axes)
        for step in plan.steps
        for name, axes in zip(step.writes, step.axes, strict=True)
    }


def _around_calls(plan: Plan, shapes: Shapes) -> Iterator[Stored]:
    """The arrays that a user's functions of whole arrays read from kernels, or write for them."""
    for call in (call for call in plan.calls if not call.is_library):
        inner = [name for name in _beside(call, shapes) if name not in _shown(plan)]
        if not inner:
            continue
        total = sum(prod(shapes[n]) * width(plan.kept[n]) for n in inner)
        where = f" ({call.where})" if call.where else ""
        shape = max((shapes[n] for n in inner), key=prod)
        reason = f"{call.name}{where} runs on whole arrays, and is not traced"
        written = Between(frozenset(), tuple(inner), shape, total)
        yield Stored(written, (reason,), WRITE if not call.only_moves else "")


def _beside(call: Call, shapes: Shapes) -> Iterable[str]:
    """The arrays that a function reads from kernels, and those that it writes."""
    return dict.fromkeys((*(name for name in call.reads if name in shapes), *call.writes))


def _shown(plan: Plan) -> list[str]:
    """The arrays in which outputs are found."""
    return [seen.array for seen in plan.results]


def _from_part_to_part(plan: Plan, shapes: Shapes) -> Iterator[Stored]:
    """The arrays that one part of the program writes and others read: a line for those that are
    alike.
    """
    divided = plan.divided
    if not isinstance(divided, Divided):
        return
    divided = divided.told
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
        found, told_of = divided.found, readers[: layout.REASONS]
        why = [found.why_apart(at, n, first) for n in told_of] if found else []
        chosen = found is not None and not any(found.must_be_apart(at, n) for n in told_of)
        words = (*names[:-1], f"{names[-1]}: {dtype}")
        size = prod(shape) * width(dtype) * len(names)
        yield Stored(Between(frozenset(), words, shape, size), tuple(why), chosen=chosen)


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
    return stored_by(best.program, best.blocks, best.graph, sizes, considered)


def stored_by(
    program: TileProgram,
    blocks: Mapping[Dim, int],
    graph: Graph,
    sizes: Mapping[Dim, int],
    considered: Considered | None = None,
) -> tuple[Stored, ...]:
    """The values that a program stores: ``graph`` in tiles, the best that was ``considered``."""
    counts = {chunks.number: chunks.count for chunks in program.chunks}
    known = completed({**sizes, **counts}, program.rules)
    found = between(program, known, blocks)
    asked = [one for one in found if one.chunks is None and _without(considered, one) is None]
    edges = [*_edges(graph)] if asked else []
    return tuple(_stored(considered, one, edges) for one in found)


def _stored(
    considered: Considered | None, written: Between, edges: Sequence[tuple[Dims, Explanation]]
) -> Stored:
    if written.chunks is not None:
        return Stored(written, (written.partial,), chosen=True)
    other = _without(considered, written)
    if considered is not None and other is not None:
        return Stored(written, (_worse(other, considered.best),), chosen=True)
    near = _nearest(edges, written.dims)
    reasons = dict.fromkeys(f"{one.reader} reads {one.producer}: {_reason(one)}" for one in near)
    unlock = next((one.unlock for one in near if one.unlock), "")
    return Stored(_named(written, near), tuple(reasons)[: layout.REASONS], unlock)


def _reason(one: Explanation) -> str:
    """The reason of an edge; a rule that applies was left out where its result is no better."""
    return LEFT_OUT if one.reason == APPLIES else one.reason


def _named(written: Between, near: Sequence[Explanation]) -> Between:
    """What is written under the names of the edges behind it, where stores have no word for it."""
    if any(name.startswith("I") for name in written.names) and near:
        names = dict.fromkeys(one.producer for one in near)
        return replace(written, names=tuple(names))
    return written


def _without(considered: Considered | None, written: Between) -> Choice | None:
    """The best of the other candidates that store nothing over these dims."""
    if considered is None:
        return None
    others = [c for c in considered.others if written.dims not in dims_between(c.program)]
    return min(others, key=lambda choice: choice.rank, default=None)


def _worse(other: Choice, best: Choice) -> str:
    """Why a candidate is not the best, in words."""
    name = f"; that is {in_words(other.name)}"
    if len(other.unsafe) > len(best.unsafe):
        return f"in a program that does not store it exponentials can overflow{name}"
    if other.price > best.price:
        times = longer(other.price / max(best.price, 1e-9))
        return f"a program that does not store it would take {times}{name}"
    return f"a program that does not store it would take the same time{name}"


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
