"""The contest: the best few candidates get the schedules that suit them best; then the best wins.

With default schedules, candidates are further apart, or in another order, than with their best
ones. But a search for a schedule takes a tenth of a second or two, so only candidates that may win
are varied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, isclose

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.program import TileProgram
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.candidates.candidate import (
    Choice,
    Key,
    Setting,
    candidate,
    dims_of_equal,
    replayed_candidate,
)
from blockbuster.selection.considered import Considered, Refusals, is_tie
from blockbuster.selection.cost import Cost
from blockbuster.selection.decisions.beside import beside
from blockbuster.selection.decisions.by_descriptors import by_descriptors
from blockbuster.selection.decisions.grouped_grid import grouped
from blockbuster.selection.decisions.packed import packed
from blockbuster.selection.decisions.persistent import persistent
from blockbuster.selection.decisions.under_way import finer_steps, under_way
from blockbuster.selection.nearby.variation import Variation, preferred
from blockbuster.selection.nearby.variations import variations
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

MODELLED = ("sm_80", "sm_90")
"""Targets whose matrix units the closed form knows: others keep the default schedule."""


_DIM = re.compile(r"[^\s,;#]+")  # a word of a schedule that may be a dim


def contest(
    choices: Sequence[Choice], setting: Setting, refused: Mapping[Key, str], refusals: Refusals
) -> list[Choice]:
    """``choices``, the best of them with the best schedules near their own.

    What a compiler ``refused`` stays out and is noted in ``refusals``, and with one kernel asked
    for, loops in chunks stay out too.
    """
    found = {choice.key: choice for choice in choices}
    best: Choice | None = None
    varied: list[tuple[Choice, Choice]] = []  # by default, and at their best
    for choice in sorted(choices, key=lambda one: one.rank)[: PRIORS.contenders]:
        if best is not None and not _may_win(choice, best):
            continue
        alike = (at_best for other, at_best in varied if _do_the_same(choice, other))
        made = next((_scheduled_like(choice, at_best) for at_best in alike), None)
        if made is None or made.key in refused:
            made = _at_its_best(choice, setting, refused, best, refusals)
        varied.append((choice, made))
        found[choice.key] = made
        best = made if best is None else best_of((best, made))
    return list(found.values())


def _do_the_same(choice: Choice, other: Choice) -> bool:
    """True if the default kernels of two choices do the same work, in whatever order."""
    return bool(choice.cost and other.cost and choice.cost.works == other.cost.works)


def _scheduled_like(choice: Choice, other: Choice) -> Choice | None:
    """``choice`` with the schedule of another, whose default kernels do the same; None if that
    gives other kernels here.
    """
    if choice.scheduled is None or not (choice.usual and other.usual):
        return None
    twin = _on_program(other, choice.scheduled.start, {})
    if twin is None or twin.scheduled is None or twin.cost is None:
        return None
    return replace(choice.made_as(candidate(twin.scheduled, twin.cost)), schedules=other.schedules)


def best_of(choices: Sequence[Choice]) -> Choice:
    """The cheapest of those with the fewest exponentials that can overflow; ties as they say."""
    first = min(choices, key=lambda choice: choice.rank)
    equals = [one for one in choices if is_tie(first, one)]
    return min(equals, key=lambda one: (*one.tie, one.price))


def recorded(found: Sequence[Choice], refusals: Refusals, faults: Iterable[str]) -> Considered:
    """The record of a choice among those that were ``found``."""
    best = best_of(found)
    others = tuple(choice for choice in found if choice is not best)
    instead = best.name if refusals.by_compiler else ""
    return Considered(best, others, (*faults, *refusals.errors), instead)


def before_contest(
    found: Sequence[Choice],
    setting: Setting,
    refused: Mapping[Key, str],
    refusals: Refusals,
    faults: Iterable[str],
) -> Considered:
    """The record of a choice among those that were ``found``; the contest is what it leaves out."""

    def rest(_: float) -> Considered:
        with collection_paused():
            return recorded(contest(found, setting, refused, refusals), refusals, faults)

    default, least = recorded(found, refusals, faults), min(one.least for one in found)
    return replace(default, rest=rest, least=least)


def best_schedule(default: Scheduled) -> Scheduled:
    """The best schedule near the default one, or that itself where it is kept."""
    try:
        cost = priced(default)
    except ValueError:  # a program does not fit, which its compiler says
        return default
    if why_default(default, cost):
        return default
    found = preferred(variations(default))
    return _laid_out(found[0]) if found else by_descriptors(default, cost)


def _laid_out(one: Variation) -> Scheduled:
    """A chosen schedule with what the closed form does not tell apart."""
    made = finer_steps(under_way(grouped(one.scheduled)))
    described = by_descriptors(made, priced(one.scheduled))  # as it was when it was priced
    return packed(beside(persistent(described)))


def why_default(scheduled: Scheduled, cost: Cost | None) -> str:
    """Why a program keeps its default schedule, or ""."""
    if cost is None:
        return "the closed form knows no time for it"
    if scheduled.target.name not in MODELLED:
        return f"the closed form does not know the matrix units of {scheduled.target.name}"
    operations = sum(sum(work.operations.values()) for work in cost.works)
    few = cost.moved < PRIORS.few_bytes and operations < PRIORS.few_operations
    if few and cost.microseconds < PRIORS.slow_factor * cost.launching:
        return "it has too little to do"
    if any(phase.dots and _exact(phase.operations) for work in cost.works for phase in work.phases):
        return "the closed form does not tell dots of float32 apart"
    return ""


def _exact(operations: Collection[tuple[str, str]]) -> bool:
    return not any(unit == "matrix" for unit, _ in operations)


def _may_win(choice: Choice, best: Choice) -> bool:
    """False if no schedule of ``choice`` can be better than ``best``."""
    if choice.cost is None or len(choice.unsafe) > len(best.unsafe):
        return False
    return choice.cost.least * choice.weight < best.price


def _at_its_best(
    choice: Choice,
    setting: Setting,
    refused: Mapping[Key, str],
    best: Choice | None,
    refusals: Refusals,
) -> Choice:
    """``choice`` with the best schedule near its own that a compiler has not refused.

    ``best``: the best that is known of other candidates. ``refusals`` get what it refused.
    """
    if choice.scheduled is None or not choice.usual:
        return choice
    if reason := why_default(choice.scheduled, choice.cost):
        return replace(choice, schedules=f"the default schedule: {reason}")
    other = best.price / choice.weight if best else inf
    found = variations(choice.scheduled, in_chunks=setting.in_chunks, other=other)
    if not found:
        return _described(choice, refused)
    for one in preferred(found)[: PRIORS.schedules_tried]:
        words = f"the best of {len(found)} schedules by the closed form"
        laid_out = _laid_out(one)
        made = replace(choice.made_as(candidate(laid_out, priced(laid_out))), schedules=words)
        if made.key in refused:
            refusals.note_refused(made, refused[made.key])
        elif setting.in_chunks or made.kernels == choice.kernels:
            return made
    return choice


def _described(choice: Choice, refused: Mapping[Key, str]) -> Choice:
    """``choice`` by descriptors, where no schedule near its own is estimated to fit."""
    if choice.cost is None or choice.scheduled is None:
        return choice
    described = by_descriptors(choice.scheduled, choice.cost)
    made = choice.made_as(candidate(described, choice.cost))
    words = "the default schedule: those near it are estimated to want more than a program can have"
    return replace(choice if made.key in refused else made, schedules=words)


def at_other_sizes(choice: Choice, sizes: Mapping[Dim, int]) -> Choice | None:
    """``choice`` with its schedule replayed at other sizes (by size class), so that it is the same.

    None for one of the CPU's, and where a move does not apply at these sizes.
    """
    if choice.scheduled is None:
        return None
    own = choice.scheduled
    found = replayed_candidate(own.start, sizes, own.target, own.schedule, packed)
    return choice.made_as(found) if found else None


def on_equal_program(choice: Choice, start: TileProgram) -> Choice | None:
    """``choice`` with its moves on an equal program, whose arrays and dims have other names.

    None for one of the CPU's, and where the moves do not give the same: a kernel of the same price.
    """
    if choice.scheduled is None:
        return None
    return _on_program(choice, start, dims_of_equal(choice.scheduled.start, start))


def _on_program(choice: Choice, start: TileProgram, names: Mapping[Dim, Dim]) -> Choice | None:
    """``choice`` with its moves on an equal program, where dims of its own have other ``names``.

    None where that does not give the same, and if two dims would take one name.
    """
    own = choice.scheduled
    classes = {size_class(dim): size_class(name) for dim, name in names.items()}
    if own is None or len({*classes.values()}) < len(classes):
        return None
    sizes = {classes.get(dim, dim): size for dim, size in own.known.items()}
    text = _DIM.sub(lambda word: names.get(word[0], word[0]), own.schedule)
    made = replayed_candidate(start, sizes, own.target, text)
    if made is None:
        return None
    found = choice.made_as(made)
    same = isclose(found.price, choice.price) and found.kernels == choice.kernels
    return found if same and found.moved == choice.moved else None
