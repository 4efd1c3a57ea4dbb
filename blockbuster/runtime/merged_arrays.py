"""The arrays of a call, viewed as a program with merged axes takes them.

Axes merge in an array if their strides allow it: P and Q are one axis where a step along P is as
long as |Q| steps along Q. Strides of tensors are a part of the key of a call, so a runner for a
layout needs no further check. Those of NumPy arrays are not, so their runner compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from blockbuster.frontend.merged_axes import Groups, Merged
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.types import Dim
from blockbuster.runtime.replay import Replay
from blockbuster.runtime.tensors import is_tensor

Run = Callable[[Sequence[Any]], list[Any]]
Sizes = Mapping[Dim, int]
Extents = tuple[int, ...]


class Original(Protocol):
    """The original program, compiled (compiled.py)."""

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs in order, for the inputs in order."""

    def prepared(self, key: Any, arrays: Sequence[Any]) -> tuple[Run, list[Any]]:
        """A runner for arrays of this layout, and its result for these arrays."""

    def save(self, path: str | Path) -> Path:
        """Write the program to a file."""

    def as_custom_op(self, name: str) -> Any:
        """An operator of torch's."""


def merged_extents(groups: Groups, extents: Extents, strides: Sequence[int]) -> Extents | None:
    """The extents of an array whose axes merge by groups; None if its strides do not allow it.

    >>> merged_extents((2, 1), (3, 4, 5), (20, 5, 1)), merged_extents((2, 1), (3, 4, 5), (5, 15, 1))
    ((12, 5), None)
    """
    found, at = [], 0
    for count in groups:
        axes = range(at, at + count)
        longer = [axis for axis in axes if extents[axis] != 1]  # one step: its stride says nothing
        for outer, inner in pairwise(longer):
            if strides[outer] != extents[inner] * strides[inner] and 0 not in extents:
                return None
        found.append(prod(extents[axis] for axis in axes))
        at += count
    return tuple(found)


def extents_of(merged: Merged, arrays: Sequence[Any]) -> list[Extents] | None:
    """The shapes of arrays with merged axes; None if the strides of one do not allow them."""
    found: list[Extents] = []
    for groups, array in zip(merged.inputs, arrays, strict=True):
        extents = tuple(array.shape)
        if len(groups) < len(extents):
            strides = array.stride() if is_tensor(array) else array.strides
            one = merged_extents(groups, extents, strides)
            if one is None:
                return None
            extents = one
        found.append(extents)
    return found


@dataclass(frozen=True)
class Regrouping:
    """How a plan with merged axes takes the arrays of the original program.

    ``program`` is the original, ``bind`` gives its sizes for shapes by name, or raises LaunchError.
    ``otherwise`` is the original, compiled for sizes: it takes arrays of any strides. ``sizes`` are
    those for which the plan was made.
    """

    merged: Merged
    program: ArrayProgram
    bind: Callable[[Mapping[str, Sequence[int]]], dict[Dim, int]]
    otherwise: Callable[[Sizes], Original]
    sizes: Sizes

    @property
    def original(self) -> Original:
        """The original program, compiled for the sizes for which the plan was made."""
        return self.otherwise(self.sizes)

    def extents(self, arrays: Sequence[Any]) -> list[Extents] | None:
        """The shapes of arrays with merged axes; None if the strides of one do not allow them."""
        return extents_of(self.merged, arrays)

    def viewed(self, run: Run, arrays: Sequence[Any], given: list[Extents], sizes: Sizes) -> Viewed:
        """A runner of arrays like these, by ``run``, which takes them with the extents ``given``.

        ``sizes`` are those of the original program.
        """
        inputs = [
            (at, extents, array.strides if isinstance(array, np.ndarray) else None)
            for at, (extents, array) in enumerate(zip(given, arrays, strict=True))
            if len(extents) < len(array.shape)
        ]
        outputs: list[tuple[int, Extents]] = []
        for at, groups in enumerate(self.merged.outputs):
            shape = self.program.shape_of(self.program.outputs[at].value)
            if len(groups) < len(shape):
                outputs.append((at, tuple(sizes[a] if isinstance(a, str) else a for a in shape)))
        return Viewed(run, inputs, outputs, lambda arrays: self._run(arrays, sizes))

    def _run(self, arrays: Sequence[Any], sizes: Sizes) -> list[Any] | None:
        """The results for arrays whose strides do not allow merged axes; None for others."""
        if extents_of(self.merged, arrays) is None:
            return self.otherwise(sizes).run(arrays)
        return None


class Viewed:
    """A runner for arrays of one layout that views them, and the results of ``run``, anew.

    ``inputs``: which arrays are viewed, with which extents; and their strides, where other arrays
    of the same layout may have others. Those are given to ``otherwise``, which returns None if they
    can be viewed, too.
    """

    __slots__ = ("_by_address", "_directly", "_inputs", "_otherwise", "_outputs", "run")

    def __init__(
        self,
        run: Run,
        inputs: Sequence[tuple[int, Extents, Extents | None]],
        outputs: Sequence[tuple[int, Extents]],
        otherwise: Callable[[Sequence[Any]], list[Any] | None],
    ) -> None:
        self.run = run
        self._by_address = isinstance(run, Replay) and run.by_address
        views = dict(outputs)
        self._directly = run.directly(views) if isinstance(run, Replay) and run.by_address else None
        self._inputs, self._outputs, self._otherwise = inputs, outputs, otherwise

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs, for the inputs in order."""
        if self._directly is not None:
            return self._directly(arrays)
        if self._by_address:  # views have the same addresses
            return self.returned(self.run(arrays))
        given = [*arrays]
        for at, extents, strides in self._inputs:
            array = given[at]
            if strides is None:
                given[at] = array.view(extents)
            elif array.strides == strides or (made := self._otherwise(arrays)) is None:
                given[at] = array.reshape(extents)
            else:
                return made
        return self.returned(self.run(given))

    def returned(self, results: list[Any]) -> list[Any]:
        """The results of ``run``, with the axes of the original program."""
        for at, extents in self._outputs:
            results[at] = results[at].reshape(extents)  # an axis that is split is never copied
        return results

    def viewed(self, arrays: Sequence[Any]) -> list[Any]:
        """Arrays of the layout of this runner, as ``run`` takes them."""
        given = [*arrays]
        for at, extents, _ in self._inputs:
            given[at] = given[at].reshape(extents)
        return given

    def by(self, run: Run) -> Viewed:
        """The same views around another runner."""
        return Viewed(run, self._inputs, self._outputs, self._otherwise)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the runner inside."""
        notes: tuple[str, ...] = getattr(self.run, "notes", ())
        return notes

    @property
    def assemblers(self) -> tuple[str, ...]:
        """The assemblers of the kernels of the runner inside."""
        assemblers: tuple[str, ...] = getattr(self.run, "assemblers", ())
        return assemblers
