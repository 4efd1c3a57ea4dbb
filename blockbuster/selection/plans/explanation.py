"""Why a program became the kernels of a plan, in words: ``Plan.explain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING

from blockbuster.costs.report import CLOSED_FORM, in_us
from blockbuster.errors import message
from blockbuster.ir.types import size_class
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.considered import Considered
from blockbuster.selection.parts.partition import Best
from blockbuster.selection.plans import layout
from blockbuster.selection.plans.divided import Divided
from blockbuster.selection.plans.operators import computes
from blockbuster.selection.plans.stored import (
    kernels_in_words,
    longer,
    reads_of_parts,
    sizes_in_words,
    what_is_stored,
)
from blockbuster.selection.plans.whole_part import WholePart
from blockbuster.selection.plans.why_apart import Found
from blockbuster.selection.priors import PRIORS

if TYPE_CHECKING:
    from blockbuster.selection.plans.plan import Plan

MEASURED = "as measured"  # of calls of a library: by tables (machines/library.py)


@dataclass(frozen=True)
class Told:
    """A part of a plan in words.

    ``computes``: its operators with their lines; ``us``: its predicted microseconds, None if there
    is no prediction; ``limited_by``: what limits each of its files. ``whole``: it runs on whole
    arrays, operator by operator. ``library``: the calls of a library in it.
    ``by``: the fuser whose program it is.
    """

    computes: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    kernels: int
    us: float | None
    limited_by: tuple[str, ...]
    whole: bool = False
    library: tuple[str, ...] = ()
    by: str = ""

    def __str__(self) -> str:
        count = "no kernel" if not self.kernels else f"{self.kernels} kernels"
        if self.library and self.kernels:
            count = f"{'a kernel' if self.kernels == 1 else count} behind the library's call"
        elif self.library:
            count = "the library"
        number = f" in {count}" if self.kernels != 1 or self.library else ""
        limits = f", limited by {' and '.join(self.limited_by)}" if self.limited_by else ""
        by = f" {MEASURED}" if self.library and not self.kernels else ""
        time = f"{in_us(self.us)}{by}{limits}; " if self.us is not None else ""
        arrays = f"reads {', '.join(self.reads)}; writes {', '.join(self.writes)}"
        form = f" by {self.by}" if self.by else " on whole arrays" if self.whole else ""
        return f"{self.computes}{number}{form}: {time}{arrays}"


@dataclass(frozen=True)
class Explanation:
    """The parts of a plan, what is stored between its kernels and why, and how it was found.

    ``machine``: the one by whose numbers times are predicted.
    """

    head: str
    machine: str
    parts: tuple[Told, ...]
    stored: tuple[str, ...]
    search: tuple[str, ...]
    sizes: str = ""

    def __str__(self) -> str:
        numbered = [(f"  {at}. ", str(told)) for at, told in enumerate(self.parts, 1)]
        behind = filter(None, (*self.stored, *self.search, self.sizes))
        lines = [("", self.head), *numbered, *(("  ", one) for one in behind)]
        return "".join(f"{line}\n" for mark, text in lines for line in layout.wrapped(mark, text))


def explanation(plan: Plan) -> Explanation:
    """Why a program became these kernels. Raises ValueError for a plan from a file."""
    divided = divided_of(plan)
    parts = tuple(_told(plan, divided))
    head = f"{plan.name}: {kernels_in_words(plan)} for {plan.target}, {plan.dtype}"
    machine = divided.machine.name
    head += "; " + time if (time := time_in_words(plan, divided)) else ""
    calls = dict.fromkeys(
        call.name for call in plan.calls if not (call.only_moves or call.is_library)
    )
    head += f", without {', '.join(calls)}" if calls else ""
    stored = what_is_stored(plan, plan.sizes)
    sizes = f"for {sizes_in_words(plan.sizes)}" if plan.sizes else ""
    return Explanation(head, machine, parts, stored, tuple(_search(plan, divided.told)), sizes)


def time_in_words(plan: Plan, divided: Divided) -> str:
    """The predicted time of a plan: "35.5 us predicted on h200 (closed form, cold cache)"."""
    total = sum(divided.times(plan.sizes))
    by = "model of NumPy's calls" if divided.machine.kind == CPU else CLOSED_FORM
    by += f"; library {MEASURED}" if any(call.is_library for call in plan.calls) else ""
    return f"{in_us(total)} predicted on {divided.machine.name} ({by})" if isfinite(total) else ""


def divided_of(plan: Plan) -> Divided:
    """The parts of a plan. Raises ValueError for a plan from a file, which has forgotten them."""
    if not isinstance(plan.divided, Divided):
        what = "a plan that was loaded has forgotten how its kernels were chosen"
        raise ValueError(message(what, hint="bb.select chooses again"))
    return plan.divided


def lower_bound(plan: Plan) -> float:
    """Microseconds that no plan of the same program goes below; see ``Plan.lower_bound_us``."""
    divided = divided_of(plan).told
    found = divided.found
    if divided.optimal or (found is not None and found.best.every and _is_for(plan, found)):
        return plan.total_us
    if found is not None:
        return min(_bound(plan, divided, found), plan.total_us)
    if len(divided.parts) == 1:
        return plan.total_us
    what = f"no bound is known for this plan: {divided.why}"
    raise ValueError(message(what, hint="bb.select finds one"))


def _bound(plan: Plan, divided: Divided, found: Found) -> float:
    """The bound of the search; at other sizes than those of the search, the bound at these."""
    if _is_for(plan, found):
        return found.best.bound
    return found.bound_at(plan.sizes, [price.us for price in divided.prices(plan.sizes)])


def _is_for(plan: Plan, found: Found) -> bool:
    """True if the parts were chosen for the very sizes of a plan."""
    return {size_class(dim): size for dim, size in plan.sizes.items()} == dict(found.sizes)


def _told(plan: Plan, divided: Divided) -> Iterator[Told]:
    reads = reads_of_parts(plan, divided)
    times = divided.times(plan.sizes)
    for (part, considered), read, us in zip(divided.by_part, reads, times, strict=True):
        steps = part.pieces.steps
        kernels = sum(one.best.kernels for one in considered) or int(isinstance(part, WholePart))
        known = any(call.only_moves or call.is_library for call in part.calls)
        timed = isfinite(us) and bool(kernels or known)
        yield Told(
            computes(part.program.equations),
            read,
            tuple(name for step in steps for name in step.writes),
            kernels,
            us if timed else None,
            tuple(dict.fromkeys(_limits(considered))),
            isinstance(part, WholePart),
            tuple(call.name for call in part.calls if call.is_library),
            part.by,
        )


def _limits(considered: Iterable[Considered]) -> Iterator[str]:
    return (one.best.cost.report.critical for one in considered if one.best.cost is not None)


def _search(plan: Plan, divided: Divided) -> Iterator[str]:
    """How the parts were found, and how much better others could be."""
    yield from divided.notes
    found = divided.found
    if found is None:
        known = f"{divided.why}; no such plan takes less"
        yield known if divided.optimal else f"no parts were searched for: {divided.why}"
        return
    best, count = found.best, len(found.units)
    if not _is_for(plan, found):
        yield f"the parts were chosen for {sizes_in_words(found.sizes)}"
    if len(best.parts) == 1:
        yield f"one part: {_whole(best)}"
    yield from _refused(found)
    number = "1 part was" if len(best.prices) == 1 else f"{len(best.prices)} parts were"
    number = f"all {number}" if best.every else number
    limit = "" if count <= best.cap else f", of at most {best.cap} group{'s' * (best.cap > 1)}"
    bound = lower_bound(plan)
    least = f"no plan takes less than {in_us(bound)}" if isfinite(bound) else "no bound"
    gap = _gap(plan.total_us, bound)
    groups = f"the operators are {count} groups that stay together"
    yield f"search: {groups}; {number} priced{limit}; {least}{gap}"


def _gap(taken: float, bound: float) -> str:
    """How far a plan may be above the best one, in words; empty if that is not worth telling."""
    if not 0.0 < bound < inf or taken / bound - 1.0 < layout.GAP:
        return ""
    if taken < 2.0 * bound:
        return f": this one is at most {taken / bound - 1.0:.1%} above"
    counted = "the bound counts only the bytes and operations that no plan can avoid"
    return f": this one takes {in_us(taken)}, {longer(taken / bound)}; {counted}"


def _whole(best: Best) -> str:
    """Why a program that could be divided is one part."""
    if best.smaller == inf:
        return "no plan of several parts has kernels"
    if best.smaller >= best.total:
        return f"divided, it takes at least {in_us(best.smaller)}"
    if best.near is not None:
        more = PRIORS.whole_program_factor - 1.0
        return f"divided, it takes {in_us(best.near)}, and {more:.0%} more counts as the same"
    return "divided, it is not estimated to take less"


def _refused(found: Found) -> Iterator[str]:
    """The parts that have no kernels, and why."""
    refused = [*found.refused.items()]
    for bits, reason in refused[: layout.REFUSALS]:
        equations = found.units.program.equations
        own = [equations[at] for at in found.units.equations(bits)]
        yield f"no kernel for {computes(own)}: {reason}"
    left = len(refused) - layout.REFUSALS
    if left > 0:
        yield f"no kernel for {left} other part{'s' * (left > 1)}"
