"""A family's plans by class of sizes: a new size of a known class only needs a lookup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from blockbuster.errors import EmitError
from blockbuster.ir.lengths import Rule
from blockbuster.ir.types import Dim
from blockbuster.selection.considered import Blocks, blocks_of, merged_blocks
from blockbuster.selection.plans.size_classes import Sizes, representative, rounded_up
from blockbuster.selection.priors import PRIORS

if TYPE_CHECKING:
    from blockbuster.selection.plans.divided import Divided
    from blockbuster.selection.plans.plan import Plan

_Key = TypeVar("_Key")
_Entry = TypeVar("_Entry")


Consider = Callable[[Sizes, bool], "Divided"]
Again = Callable[["Divided", Sizes, bool], "Divided | None"]
Make = Callable[[Sizes, "Divided", bool], "Plan"]


@dataclass(frozen=True, eq=False)
class _Group:
    """Sizes that round up to the same: the blocks of candidates, and the plans of classes, by which
    of the blocks divide which dims.

    ``stands`` are the sizes for which the program was ``divided``.
    """

    stands: Sizes | None = None
    divided: Divided | None = None
    plans: dict[tuple[bool, ...], Plan | None] = field(default_factory=dict)

    @cached_property
    def blocks(self) -> Blocks:
        """By how many lanes candidates cut dims."""
        if self.divided is None:
            return {}
        called = {dim: (lanes,) for dim, lanes in self.divided.loaded_whole.items()}
        return merged_blocks([self.divided.blocks(), called])

    @cached_property
    def cuts(self) -> Sequence[tuple[Dim, int]]:
        """The same, one by one, for dims whose sizes are asked for."""
        return [(dim, lanes) for dim in self.stands or () for lanes in self.blocks.get(dim, ())]


class PlanClasses:
    """The plans chosen for classes of sizes; ``forget`` one if a candidate is excluded.

    ``consider`` chooses for some sizes (and for one kernel, if possible); ``again`` takes the same
    choice at other sizes, if it can; ``make`` makes the plan. ``along_rows``: dims of the rows of
    arrays, whose sizes are told apart by how much lanes can move at once: odd rows have choices of
    their own.
    """

    def __init__(
        self,
        consider: Consider,
        again: Again,
        make: Make,
        rules: Sequence[Rule],
        along_rows: Sequence[Dim] = (),
    ) -> None:
        self._consider, self._again, self._make, self._rules = consider, again, make, rules
        self._rows: Blocks = dict.fromkeys(along_rows, PRIORS.elements_at_once)
        self._groups: dict[tuple[bool, tuple[int, ...], int], _Group] = {}
        self._exact: dict[tuple[bool, tuple[int, ...]], Plan] = {}

    def forget(self) -> None:
        """Choose anew for every class."""
        self._groups.clear()
        self._exact.clear()

    def plan(self, sizes: Sizes, one_kernel: bool) -> Plan:
        """The plan for the class of ``sizes``, which are complete, or for these alone."""
        group = self._group(sizes, one_kernel)
        key = tuple([not sizes[dim] % lanes for dim, lanes in group.cuts])
        if key not in group.plans:
            _keep(group.plans, key, self._chosen(sizes, group, one_kernel))
        return group.plans[key] or self._alone(sizes, group, one_kernel)

    def _group(self, sizes: Sizes, one_kernel: bool) -> _Group:
        aligned = 0  # the largest of 1 and elements_at_once that divides each, without a call
        for dim in self._rows:
            aligned = 16 * aligned + ((sizes[dim] | 8) & -(sizes[dim] | 8))
        key = one_kernel, tuple(map(rounded_up, sizes.values())), aligned
        group = self._groups.get(key)
        if group is None:
            stands = representative(sizes, self._rules, self._rows)
            found = self._tried(stands, one_kernel) if stands else None
            group = _Group(stands, found) if found else _Group()
            _keep(self._groups, key, group)
        return group

    def _tried(self, sizes: Sizes, one_kernel: bool) -> Divided | None:
        try:
            return self._consider(sizes, one_kernel)
        except EmitError:  # the sizes that were asked for may do: they say so themselves
            return None

    def _chosen(self, sizes: Sizes, group: _Group, one_kernel: bool) -> Plan | None:
        """The plan for what stands for the class; None if each size is on its own."""
        both = {*group.blocks, *self._rows}
        blocks = {d: (*group.blocks.get(d, ()), *self._rows.get(d, ())) for d in both}
        stands = representative(sizes, self._rules, blocks)
        if stands is None:
            return None
        if stands == group.stands:
            chosen = group.divided
        else:
            before = group.divided
            known = self._again(before, stands, one_kernel) if before else None
            chosen = known or self._tried(stands, one_kernel)
        new = chosen.blocks(lambda one: blocks_of([one.best])) if chosen else {}
        if any(not {*lanes} <= {*group.blocks.get(dim, ())} for dim, lanes in new.items()):
            return None  # a block that the class does not tell: it may divide some of its sizes
        return self._make(stands, chosen, one_kernel) if chosen else None

    def _alone(self, sizes: Sizes, group: _Group, one_kernel: bool) -> Plan:
        key = one_kernel, tuple(sizes.values())
        if key not in self._exact:
            known = group.divided if group.stands == sizes else None
            chosen = known or self._consider(sizes, one_kernel)
            _keep(self._exact, key, self._make(sizes, chosen, one_kernel))
        return self._exact[key]


def _keep(memory: dict[_Key, _Entry], key: _Key, value: _Entry) -> None:
    if len(memory) >= PRIORS.kept_classes:
        del memory[next(iter(memory))]
    memory[key] = value
