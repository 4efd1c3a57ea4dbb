"""Which traced arrays share memory, and what a change in place of one of them does to the others.

An array program has no memory: each of its operations makes a new value. A Python program has it:
several names hold one array, a view shows a part of another array, and a change made through one of
them is seen through all. So a traced array stands for an array in memory, and its value may be
replaced. A change is noted in the memory that an array shares with its views, and each of them
takes it over when it is read next: the array that was there first puts the elements of a changed
view back, and views are read from it again. A change that nothing reads records nothing.

Some operations return a view in one library and a copy in the other, or decide by the layout of the
array, which a trace does not know. The operand and the result of such an operation are kin: once
one of them has changed, reading the other raises TraceError.

Invariant: whoever asks a traced array for its value gets the value that it has at this point of the
user's program, or a TraceError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from blockbuster.frontend.program import Shape
from blockbuster.frontend.source import Refused, trace_error, user_line
from blockbuster.frontend.torch import is_tensor
from blockbuster.ir.graph import Value
from blockbuster.ir.origin import SourceLine

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray
    from blockbuster.frontend.trace import Trace

COPY = "change a copy: y = x.copy(), or x.clone() of a tensor"


@dataclass(frozen=True)
class Now:
    """The value of a traced array until its next change."""

    value: Value
    axes: Shape
    kind: str


@dataclass(frozen=True)
class View:
    """How a view is read from ``base``, and how its elements are put back.

    ``back`` takes the base and the view, and returns the base with the view's elements. It is None
    for views that cannot be changed, and raises Refused for changes that no program can express.
    """

    base: Held
    read: Callable[[TracedArray], TracedArray]
    back: Callable[[TracedArray, TracedArray], TracedArray] | None

    def of(self, base: Now) -> Now:
        """What the view shows of ``base``."""
        return self.read(self._array(base)).current()

    def put_back(self, base: Now, new: Now) -> Now:
        """``base`` with ``new`` in place of the elements that the view shows."""
        assert self.back is not None
        made = self.back(self._array(base), self._array(new)).current()
        for old, axis in zip(base.axes, made.axes, strict=True):
            self.base.trace.dims.unify(old, axis)
        return made

    def _array(self, now: Now) -> Any:
        return type(self.base)(self.base.trace, now.value, now.axes, now.kind)


@dataclass(frozen=True)
class _Change:
    """The value that was written to an array or to a view, and the user's line."""

    number: int
    target: Held
    now: Now
    where: SourceLine | None


class Memory:
    """What an array, the root, and all its views share.

    ``owner`` is what the user calls the array if it is the caller's. ``number`` counts changes.
    """

    def __init__(self, root: Held) -> None:
        self.root = root
        self.owner = ""
        self.number = 0
        self._changes: list[_Change] = []
        self._kin: list[tuple[Memory, str]] = []
        self._lost: tuple[str, SourceLine | None, Held | None] | None = None

    def join(self, other: Memory, why: str) -> None:
        """Note that ``other`` may be this same memory; ``why`` is a sentence that says so."""
        self._kin.append((other, why))
        other._kin.append((self, why))

    def claim(self, made: Held | None = None) -> None:
        """Allow a change: kin cannot be read from now on; see ``lose``. Raises TraceError if this
        memory is the caller's, or may be.
        """
        kin = [*self.all_kin()]
        for memory, why in [(self, ""), *kin]:
            if memory.owner:
                may = "may change" if why else "changes"
                reason = f"this {may} {memory.owner} in place: callers' arrays stay as they are"
                hint = f"make a new array, y = y + 1 for y += 1, or {COPY}"
                raise trace_error(f"{reason}; {why}" if why else reason, hint=hint)
        for memory, why in kin:
            memory.lose(why, made)

    def all_kin(self) -> Iterator[tuple[Memory, str]]:
        """The memories that may be the same as this one, directly or through others, and why."""
        seen, ahead = {id(self): self}, [self]
        for memory in ahead:  # it grows
            for other, why in memory._kin:
                if id(other) not in seen:
                    seen[id(other)] = other
                    ahead.append(other)
                    yield other, why

    def lose(self, why: str, made: Held | None) -> None:
        """Forbid reading this memory from now on, because the user's line may have changed it.

        ``made`` is the result of that line.
        """
        self._lost = self._lost or (why, user_line(), made)

    def regain(self, made: Held) -> None:
        """Allow reading this memory again if the line that forbade it now assigns ``made`` to it.

        ``x[0] += 1`` first changes ``x[0]``, a view or a number, and then assigns it to ``x[0]``.
        """
        if self._lost and self._lost[2] is made:
            self._lost = None

    def check(self) -> None:
        """Raise TraceError if the values in this memory are not known any more."""
        if self._lost:
            why, where, _ = self._lost
            hint = f"read it before that line, or {COPY}"
            raise trace_error(f"an array is read that {where} may have changed: {why}", hint=hint)

    def write(self, target: Held, now: Now) -> None:
        """Note that the array, or a view of it, has a new value."""
        if target is self.root:
            self._changes.clear()
        elif self._changes and self._changes[-1].target is target:
            self._changes.pop()  # overwritten
        self.number += 1
        self._changes.append(_Change(self.number, target, now, user_line()))

    def update(self, array: Held) -> None:
        """Bring the root, and the views that lead from it to ``array``, up to date."""
        root, last = self.root, self._changes[-1]
        for change in self._changes:
            if change.number > root.seen:
                root.now = self._recorded(change, partial(_put_back, root.now, change))
        root.seen = self.number
        for link, view in array.path():
            if link.seen != self.number:
                link.now = self._recorded(last, partial(view.of, view.base.now))
                link.seen = self.number

    def _recorded(self, change: _Change, work: Callable[[], Now]) -> Now:
        """Run ``work``; errors and new equations name the line of the change."""
        trace = self.root.trace
        before, trace.line = trace.line, change.where
        try:
            return work()
        except Refused as refused:
            raise trace_error(refused.reason, hint=refused.hint, where=change.where) from None
        finally:
            trace.line = before


def _put_back(root: Now, change: _Change) -> Now:
    """The root as it is after a change."""
    views = [view for _, view in change.target.path()]
    bases = [root]
    for view in views[:-1]:
        bases.append(view.of(bases[-1]))
    now = change.now
    for base, view in zip(reversed(bases), reversed(views), strict=False):
        now = view.put_back(base, now)
    return now


class Held:
    """An array in memory: ``now`` is its value after ``seen`` changes of that memory."""

    def __init__(self, trace: Trace, value: Value, axes: Shape, kind: str) -> None:
        self.trace = trace
        self.now = Now(value, axes, kind)
        self.seen = 0
        self.memory = Memory(self)
        self.shows: View | None = None
        self.is_number: bool | None = None
        """For a single element that an index took: whether NumPy returns a number for it."""
        self.taken_as: tuple[Held, tuple[Any, ...]] | None = None
        """The array and the key if ``array[key]`` is this one."""

    def current(self) -> Now:
        """The value at this point of the user's program. Raises TraceError if it is not known."""
        self.memory.check()
        if self.seen != self.memory.number:
            self.memory.update(self)
        return self.now

    def path(self) -> list[tuple[Held, View]]:
        """The views from the root of the memory to this array, which is the last of them."""
        found: list[tuple[Held, View]] = []
        link = self
        while link.shows is not None:
            found.append((link, link.shows))
            link = link.shows.base
        return found[::-1]


def is_held(x: object) -> TypeGuard[TracedArray]:
    """True for traced arrays."""
    return isinstance(x, Held)


def write(x: Held, now: Now) -> None:
    """Change ``x`` in place. Raises TraceError if NumPy or torch would not, or if a caller's array
    would change.
    """
    x.current()
    if any(view.back is None for _, view in x.path()):
        reason = "what broadcast_to, expand and diagonal show cannot change in place"
        raise trace_error(reason, hint=COPY)
    x.memory.claim()
    x.memory.write(x, now)
    x.now, x.seen = now, x.memory.number


def own(x: Any) -> Any:
    """A copy of an array or a tensor; a traced array in memory of its own."""
    if not isinstance(x, Held):
        return x.clone() if is_tensor(x) else np.copy(x)
    now = x.current()
    return type(x)(x.trace, now.value, now.axes, now.kind)


def shown(made: Any, base: Any, read: Callable[[Any], Any], back: Any = None) -> Any:
    """``made``, which ``read`` gives for ``base``, as a view of ``base``: see ``View``."""
    if not isinstance(made, Held) or not isinstance(base, Held):
        return made
    base.current()
    found = own(made)
    found.memory, found.seen = base.memory, base.memory.number
    found.shows = View(base, read, back)
    return found


def perhaps(made: Any, x: Any, why: str) -> Any:
    """``made`` of ``x`` as an array that may be ``x`` or a view of it; ``why`` is a sentence."""
    if not isinstance(made, Held) or not isinstance(x, Held):
        return made
    found = own(made)
    x.memory.join(found.memory, why)
    return found
