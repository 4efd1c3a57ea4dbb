"""A program that a function was traced to, what its plans are chosen by, and what was compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from blockbuster.errors import FusionError
from blockbuster.frontend.arguments import Shape
from blockbuster.frontend.merged_axes import Merged
from blockbuster.frontend.program import ArrayProgram
from blockbuster.runtime.compiled import Compiled
from blockbuster.runtime.first_launch import Compare
from blockbuster.runtime.merged_arrays import Regrouping, extents_of
from blockbuster.selection.plans.family import Family
from blockbuster.selection.plans.plan import Plan, Sizes
from blockbuster.selection.plans.report import not_one_kernel
from blockbuster.tuning.setting import Tuning, saved_with


@dataclass(frozen=True)
class Traced:
    """A traced program. ``merged`` is the same program with fewer axes, if axes of it merge, for
    arrays whose strides allow that.
    """

    family: Family
    shape: Shape
    program: ArrayProgram
    compare: Compare | None
    tuning: Tuning
    compiled: list[Compiled] = field(default_factory=list)
    merged: tuple[Merged, Traced] | None = None

    @property
    def forms(self) -> tuple[Traced, ...]:
        """This program, and the one with merged axes."""
        return (self, self.merged[1]) if self.merged else (self,)

    def plan(self, sizes: Sizes, *, one_kernel: bool) -> Plan:
        """The plan for the class of these sizes. Raises FusionError if it had to be one kernel."""
        like = functools.partial(self.family.like, sizes, one_kernel=one_kernel)
        saved = saved_with(self.shape, self.program)
        plan = self.tuning.plan(self.family, like, saved, one=one_kernel)
        if one_kernel and (plan.kernels > 1 or plan.calls):
            raise FusionError(not_one_kernel(plan, sizes))
        return plan

    def form_for(
        self,
        arrays: Sequence[Any],
        sizes: Sizes,
        compiled_at: Callable[[Traced, Sizes], Compiled],
    ) -> tuple[Traced, Sizes, Regrouping | None]:
        """The form of the program that is run for arrays, its sizes, and how it takes the arrays.

        ``compiled_at`` compiles this form, for arrays that come later with other strides.
        """
        extents = extents_of(self.merged[0], arrays) if self.merged else None
        if self.merged is None or extents is None:
            return self, sizes, None
        merged, form = self.merged
        bound = form.family.bind(dict(zip(self.family.inputs, extents, strict=True)))
        otherwise = functools.partial(compiled_at, self)
        return form, bound, Regrouping(merged, self.program, self.family.bind, otherwise, sizes)
