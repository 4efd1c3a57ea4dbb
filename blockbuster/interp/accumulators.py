"""Folds over the iterations of a map, alone or in groups that share an exponent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Semantics, SizeOf
from blockbuster.ir.ops import Collect, Rescale, Result
from blockbuster.ir.types import Dim, Type


class Accumulators:
    """The running values of a map's results; ``types`` are those of one iteration's values.

    The first iteration gives the start, so no identity is needed unless there is none.
    """

    def __init__(
        self, results: Sequence[Result], types: Sequence[Type], semantics: Semantics, size: SizeOf
    ) -> None:
        self._results = {p: r for p, r in enumerate(results) if not isinstance(r, Collect)}
        self._types = types
        self._semantics = semantics
        self._size = size
        self._total: dict[int, Array] = {}

    def add(self, values: Sequence[Array]) -> None:
        """Fold in the values of one more iteration."""
        wide = self._semantics.accumulator
        new = {port: wide.item(values[port]) for port in self._results}
        if not self._total:
            self._total = new
            return
        old, self._total = self._total, {}
        for port, result in self._results.items():
            x, y = old[port], new[port]
            if isinstance(result, Rescale):
                x, y = self._rescaled(port, result, old), self._rescaled(port, result, new)
            self._total[port] = wide.fold(result.monoid, x, y)

    def _rescaled(self, port: int, result: Rescale, side: dict[int, Array]) -> Array:
        """A partial value, made to go with the folded lead instead of its own."""
        lead, axes = self._types[result.lead], self._types[port].axes
        own = aligned(side[result.lead], lead.axes, axes)
        folded = aligned(self._total[result.lead], lead.axes, axes)
        wide = self._semantics.accumulator
        return np.asarray(wide.expression(result.factor, (side[port], own, folded), self._size))

    def value(self, port: int, shape: Callable[[], Sequence[int]]) -> Array:
        """A finished result; over no iterations, the monoid's identity of this shape."""
        if self._total:
            return self._semantics.item(self._total[port])
        return self._semantics.identity(self._results[port].monoid, shape())


def aligned(item: Array, axes: Sequence[Dim], target: Sequence[Dim]) -> Array:
    """An item with the axes ``target``: missing ones have extent 1, others are dropped."""
    extents = dict(zip(axes, item.shape, strict=True))
    for dim, extent in extents.items():
        if dim not in target and extent != 1:
            raise ValueError(f"axis {dim} of extent {extent} is dropped: only extent 1 can be")
    return item.reshape([extents.get(d, 1) for d in target])
