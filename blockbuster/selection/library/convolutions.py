"""Convolutions that a library computes: contractions of which groups, channels and places fit one.

forward      y[n, g, k, h] = sum over c and r of x[n, g, c, step * h + r] * w[g, k, c, r]
transposed   y[n, g, k, step * h + q] = sum over c, t of x[n, g, c, h - t] w[g, c, k, step * t + q]

A group and what is in it are one axis of an array, and so are a place h and its phases q.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blockbuster.frontend.library_calls import LibraryConvolution
from blockbuster.frontend.program import ArrayProgram, Shape
from blockbuster.ir.lengths import ONE, product_of
from blockbuster.selection.library.contractions import Contraction, contractions
from blockbuster.selection.library.extents import Extents
from blockbuster.selection.library.match import Match
from blockbuster.selection.library.origins import Index, Origins
from blockbuster.selection.library.places import Geometry, Run

MOST_AXES = 3
"""The axes along which torch convolves, at most."""

Axes = tuple[int, ...]
Variables = tuple[int, ...]


def matched_convolution(program: ArrayProgram, extents: Extents, at: int) -> Match | None:
    """The call for the products of equation ``at`` and as much of what is made of them as may be;
    None if they are no convolution.
    """
    found = None
    for one in contractions(program, extents, at):
        shape = program.equations[one.at].shape
        for x, w in (one.sides, one.sides[::-1]):
            roles = _roles(one, x, w)
            match = _Fit(extents, one, shape, x, w, roles).match() if roles else None
            found = match or found
    return found


@dataclass(frozen=True)
class _Roles:
    """The axes of x that hold images, channels and places; the variables of the group and of its
    channels, if there are several of these, and those by which x alone and w alone are read.
    """

    images: int
    channels: int
    places: Axes
    group: Variables
    channel: Variables
    of_x: Variables
    of_w: Variables


def _roles(of: Contraction, x: Origins, w: Origins) -> _Roles | None:
    """What variables are, with one input as the images, the other as the filters."""
    of_x, of_w = (dict.fromkeys(v for i in side.axes for v in i.axes) for side in (x, w))
    made = {variable for run in of.axes for variable in run}
    both = [variable for variable in of_x if variable in of_w]
    summed = [variable for variable in (*of_x, *of_w) if variable not in made]
    shared = [axis for axis, index in enumerate(x.axes) if index.terms and {*index.axes} <= {*both}]
    group = tuple(variable for variable in both if variable in made)
    if not summed or not {*summed} <= {*both} or len(group) > 1 or len(shared) != 1:
        return None
    own = tuple(variable for variable in of_x if variable not in both)
    plain = [axis for axis in x.long if x.axes[axis] in _alone(own)]
    places = tuple(axis for axis in x.long if axis not in (*shared, *plain[:1]))
    if not plain or len(places) not in range(1, MOST_AXES + 1):
        return None
    channel = tuple(v for v in x.axes[shared[0]].axes if v not in made)
    return _Roles(
        plain[0], shared[0], places, group, channel,
        own, tuple(variable for variable in of_w if variable not in both),
    )  # fmt: skip


def _alone(variables: Variables) -> list[Index]:
    return [Index(((variable, 1),)) for variable in variables]


@dataclass(frozen=True)
class _Fit:
    """A contraction of the images ``x`` by the filters ``w``, whose result has this ``shape``."""

    extents: Extents
    of: Contraction
    shape: Shape
    x: Origins
    w: Origins
    roles: _Roles

    def match(self) -> Match | None:
        """The call, if all axes fit one."""
        roles = self.roles
        found = [run for axis in roles.places if (run := self._run(axis)) is not None]
        places = self._places(found) if len(found) == len(roles.places) else None
        if places is None or not any((run.tap, run.phase) != (None, None) for run in found):
            return None  # of one tap: a product, and a second form of many parts to be priced
        phases = [run.phase for run in found]
        filters = tuple(v for v in roles.of_w if v not in phases)
        outer, inner = roles.group + filters, roles.channel
        if any(run.is_turned for run in found):
            outer, inner = roles.group + roles.channel, filters
        images = self.x.axes[roles.images].axes
        merged = self._merged((images, roles.group + filters, *(run.made for run in found)))
        read = self._along(self.x, roles.group + roles.channel), self._along(self.x, images)
        w_axes = self._filters((outer, inner), found)
        if read != ((roles.channels,), (roles.images,)) or merged is None or w_axes is None:
            return None
        return self._call(places, w_axes, merged, turned=any(run.is_turned for run in found))

    def _call(
        self, places: list[Geometry], w_axes: tuple[Axes, ...], merged: list[Axes], *, turned: bool
    ) -> Match | None:
        """The call whose result has the library's axes ``merged`` as they are in the contraction's,
        but with the channels last if they are so in ``x``; None if merging would move elements.
        """
        roles, rank = self.roles, len(places) + 2
        x_axes = [*map(self.x.long.index, (roles.images, roles.channels, *roles.places))]
        is_last = x_axes[1] == rank - 1
        lies = (0, *range(2, rank), 1) if is_last else tuple(range(rank))
        made = sorted(merged, key=lambda run: lies.index(run[0]))
        groups = product_of(self.of.lengths[v] for v in roles.group).constant
        if tuple(axis for run in made for axis in run) != lies or groups is None:
            return None
        call = LibraryConvolution(
            tuple(x_axes), w_axes,
            tuple(one.step for one in places), tuple(one.dilation for one in places),
            tuple(one.before for one in places), groups,
            tuple(one.more for one in places) if turned else (), tuple(made),
        )  # fmt: skip
        order = tuple(made.index(run) for run in merged)
        shape = tuple(self.shape[merged.index(run)] for run in made)
        return Match(self.of.at, call, (self.x.port, self.w.port), shape, order)

    def _run(self, axis: int) -> Run | None:
        """The place along an axis of x, with the tap and the phase that one axis of w shares with
        it, or with its axis of the result.
        """
        index, own = self.x.axes[axis], self.roles.of_x
        taps = [v for v in index.axes if v not in own]
        if len(taps) > 1 or len(index.axes) != len(taps) + 1 or {*taps} & {*self.roles.group}:
            return None
        (place,) = (v for v in index.axes if v in own)
        at, run = next((at, run) for at, run in enumerate(self.of.axes) if place in run)
        behind = run[run.index(place) + 1 :][:1]
        beside = [i for i in self.w.axes if {*i.axes} & {*(taps or behind)}]
        phase = [v for v in behind if v in self.roles.of_w and any(v in i.axes for i in beside)]
        axes = [a for a, i in enumerate(self.w.axes) if {*i.axes} & {*taps, *phase}]
        if len(axes) > 1:
            return None
        made = (place, *phase)
        whole = product_of(self.of.lengths[v] for v in made)
        return Run(
            place, taps[0] if taps else None, phase[0] if phase else None,
            index, self.w.axes[axes[0]] if axes else Index(), axes[0] if axes else None,
            self.extents.of(self.x.extents[axis]),
            self.extents.of(self.shape[at]) if run == made else whole,
            self.extents.of(self.w.extents[axes[0]]) if axes else ONE, self.of.lengths,
        )  # fmt: skip

    def _places(self, runs: list[Run]) -> list[Geometry] | None:
        turned = any(run.is_turned for run in runs)
        found = [run.transposed() if turned else run.forward() for run in runs]
        places = [place for place in found if place is not None]
        return places if len(places) == len(runs) else None

    def _along(self, side: Origins, variables: Variables) -> Axes | None:
        """The axis of ``side`` that runs along these, the last of them fastest, from end to end; no
        axis for no variables. None if there is no such axis.
        """
        if not variables:
            return ()
        inner = product_of(self.of.lengths[v] for v in variables[1:]).constant
        if len(variables) > 2 or inner is None:
            return None
        index = Index.of({variables[0]: inner} | dict.fromkeys(variables[1:], 1))
        whole = product_of(self.of.lengths[v] for v in variables)
        return next((
            (axis,) for axis, read in enumerate(side.axes)
            if read == index and self.extents.of(side.extents[axis]) == whole
        ), None)  # fmt: skip

    def _filters(
        self, channels: tuple[Variables, Variables], runs: list[Run]
    ) -> tuple[Axes, ...] | None:
        """The axes of w, without those of one element, in torch's order; an axis that it lacks has
        one element. None if they are other axes.
        """
        found = [*(self._along(self.w, variables) for variables in channels)]
        found += [() if run.axis is None else (run.axis,) for run in runs]
        axes = [axis for one in found for axis in one or ()]
        if None in found or not found[0] or sorted(axes) != self.w.long:
            return None
        return tuple(tuple(map(self.w.long.index, one)) for one in found if one is not None)

    def _merged(self, blocks: tuple[Variables, ...]) -> list[Axes] | None:
        """The axes of the library's result in each axis of the contraction's; None if they are in
        none, or if other axes than places are cut.
        """
        found = []
        for axis, run in enumerate(self.of.axes):
            merged = tuple(self._split(run, blocks))
            if not merged or sum(len(blocks[at]) for at in merged) != len(run):
                return None
            whole = self.extents.of(self.shape[axis]) == product_of(self.of.lengths[v] for v in run)
            if not whole and (len(merged) > 1 or merged[0] < 2):
                return None
            found.append(merged)
        return found

    @staticmethod
    def _split(run: Variables, blocks: tuple[Variables, ...]) -> Iterator[int]:
        """The blocks that stand side by side in a run, as far as they do."""
        while run:
            fits = [at for at, one in enumerate(blocks) if one and run[: len(one)] == one]
            if not fits:
                return
            yield fits[0]
            run = run[len(blocks[fits[0]]) :]
