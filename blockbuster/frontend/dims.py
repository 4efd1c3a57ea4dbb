"""The dims of a trace: operations decide which axes are one dim.

A union-find that lives as long as one trace. Named dims unify only with themselves; the unnamed
axes of example arrays unify with what they meet. Raw dims are words: a name, or ``?0``, ``?1``, ...
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import count, product
from string import ascii_uppercase

from blockbuster.frontend.program import Axis, Shape, show_shape
from blockbuster.frontend.size_facts import axis_named
from blockbuster.frontend.size_table import SizeTable, asked_by, fixing, is_named, raw_size
from blockbuster.frontend.source import Refused, trace_error, user_line
from blockbuster.ir.lengths import ONE, ZERO, Length, Rule, clamped, inverse, number, size, whole
from blockbuster.ir.origin import SourceLine
from blockbuster.ir.types import Dim


class DimTable(SizeTable):
    """Which raw dims are the same: operations make them so.

    ``of_examples_alone``: the program is for arrays of the examples' sizes alone.
    """

    def __init__(self, *, of_examples_alone: bool = False, one_class: bool = False) -> None:
        super().__init__(one_class=one_class)
        self._alone = of_examples_alone
        self._rules: list[tuple[Dim, Length]] = []  # what else was found of sizes
        self._derived: dict[Hashable, Axis] = {}
        self._expected: dict[Length, SourceLine | None] = {}
        """Quotients that have to be whole, and the line that uses each."""
        self._lines: dict[Dim, str] = {}
        """The lines that ask for dims whose lengths are quotients."""

    def named(self, name: Dim, size: int | None = None) -> Dim:
        """The dim called ``name``; ``size`` fixes its number of elements."""
        self._parent.setdefault(name, name)
        if size is not None:
            if self._extent.setdefault(name, size) != size:
                raise Refused(f"{name} has sizes {self._extent[name]} and {size}")
            self._fixed[name] = None
            self._in_axes[name] = whole(size)
        return name

    def unnamed(self, extent: int, *, fixed: bool) -> Dim:
        """A fresh dim of ``extent`` elements; ``fixed`` if the program is for that size only."""
        raw = f"?{len(self._parent)}"
        self._parent[raw] = raw
        self._extent[raw] = extent
        self._in_axes[raw] = whole(extent)
        if fixed:
            self._fixed[raw] = None
        return raw

    def of_example(self, extent: int) -> Axis:
        """A fresh dim for the next axis of the examples: the program is for other sizes, too,
        unless it is for these alone.
        """
        raw = self.unnamed(extent, fixed=self._alone)
        axis = axis_named(len(self._axes))
        self._axes[axis] = extent
        self._in_axes[raw] = size(axis)
        if not self._alone:
            return raw
        self._asked("equal", raw_size(raw), whole(extent))  # it has to be of that size
        return raw if extent != 1 else 1

    def derived(self, length: Length, *key: Hashable) -> Axis:
        """The dim of ``length`` elements, the same for the same ``key``; 1 for one element."""
        if key not in self._derived:
            exact = self.normal(length)
            self._derived[key] = 1 if exact.constant == 1 else self._with_length(exact)
        return self._derived[key]

    def _with_length(self, length: Length) -> Dim:
        raw = f"?{len(self._parent)}"
        self._parent[raw] = raw
        self._lengths[raw] = length
        if not length.is_integral:
            self._lines[raw] = asked_by()
        if all(dim in self._extent for dim in length.dims):
            if not self._asked("whole", length, ZERO):
                raise Refused(f"{self.in_words(length)} is no whole number")
            self._extent[raw] = length.value(self._extent)
            self._in_axes[raw] = length.replaced(self._in_axes.__getitem__)
        if length.constant is not None:
            self._fixed[raw] = None
        return raw

    def divided(self, top: Length, bottom: Length) -> tuple[Length, int | None] | None:
        """Quotient and rest of sizes. The rest is None if it has to be 0, as the user says.

        None if the divisor is a sum of sizes that are not known, or 0.
        """
        a, b = self.normal(top), self.normal(bottom)
        if a.constant is not None and b.constant:
            return whole(a.constant // b.constant), a.constant % b.constant
        quotient = a.over(b)
        if quotient is not None and quotient.is_integral:
            return quotient, 0
        self.fix(b.dims)
        by = self.normal(b)
        if not all(dim in self._extent for dim in (*a.dims, *by.dims)):
            part = self.normal(a).over(by)
            if part is None and len(by.terms) == 1 and by.never_negative:
                part = self.normal(a) * inverse(by)
            return None if part is None else (part, None)
        if not by.constant or self.normal(a).constant is not None:
            return self.divided(a, by) if by.constant else None
        rest = a.value(self._extent) % by.constant
        exact = (self.normal(a) - whole(rest)) * inverse(by)
        self.is_whole(exact)  # so the program is for sizes with this rest
        return exact, rest

    def fix(self, dims: Iterable[Dim]) -> None:
        """Fix the sizes of examples: the program is for these alone."""
        for dim in dims:
            extent = self.extent(dim)
            if extent is not None:
                self.unify(dim, self.derived(whole(extent), "fixed", self.find(dim)))

    def expect_whole(self, quotients: Iterable[Length]) -> None:
        """Note that the user's line takes these for whole numbers."""
        for quotient in quotients:
            self._expected.setdefault(quotient, user_line())

    def check_whole(self, shapes: Iterable[Shape]) -> None:
        """Raise TraceError where no axis of ``shapes`` says that an expected number is whole."""
        axes = dict.fromkeys(axis for shape in shapes for axis in shape)
        known = [length for axis in axes for length in _whole_in(self.length(axis))]
        for quotient, where in self._expected.items():
            exact = self.normal(quotient)
            if not any((exact - length).is_integral for length in (ZERO, *known)):
                reason = (
                    f"{self.in_words(exact)} of a size that is not known may be no whole number"
                )
                unknown = fixing(map(self.word, exact.dims))
                hint = f"use /; {unknown}; or return an array that has an axis of this length"
                raise trace_error(reason, hint=hint, where=where)

    def unify(self, left: Axis, right: Axis) -> Axis:
        """Make two axes one dim. Raises Refused if names or sizes differ."""
        a, b = self.find(left), self.find(right)
        if a == b:
            return a
        if not isinstance(a, str) or not isinstance(b, str):
            unit = b if isinstance(b, str) else a
            if not self._is(unit, 1):
                raise self._differ(a, b)
            self._parent[str(unit)] = 1
            return 1
        if is_named(a) and is_named(b):
            raise self._differ(a, b, "axes with two names are never equal: give both one name")
        known = a in self._extent and b in self._extent
        if known and not self._asked("equal", raw_size(a), raw_size(b)):
            raise self._differ(a, b)
        if (a in self._lengths or b in self._lengths) and self._are_apart(a, b):
            raise self._differ(a, b)
        lengths = [self.length(d) for d in (a, b) if d in self._lengths]
        root, leaf = (a, b) if is_named(a) or not is_named(b) else (b, a)
        if root in self._lengths:  # not in terms of itself, nor of what is about to be itself
            self._lengths[root] = self.length(root)
            if leaf in self._lengths[root].dims:
                del self._lengths[root]  # stated again below
        self._parent[leaf] = root
        if leaf in self._lines:
            self._lines.setdefault(root, self._lines[leaf])
        if leaf in self._extent:
            self._extent.setdefault(root, self._extent[leaf])
            self._in_axes.setdefault(root, self._in_axes[leaf])
        for length in lengths:
            self._state(root, length)
        if leaf in self._fixed:
            self._fixed[root] = None
        if root in self._fixed and self._one_class:  # a product of sizes that is a number
            self.fix(dim for length in lengths for dim in length.dims)
        return root

    def _are_apart(self, a: Axis, b: Axis) -> bool:
        """True if two axes never have the same extent.

        If they have the same extent for all large sizes, large sizes are assumed.
        """
        apart = self.length(a) - self.length(b)
        if apart.clamps and not self.usual(apart).terms:
            self.settle(apart)
        return bool((self.usual(apart) if apart.clamps else apart).constant)

    def _state(self, dim: Dim, length: Length) -> None:
        """Note that ``dim`` has this length: its own, or a rule if it has another."""
        exact = self.normal(length)
        if exact == self.length(dim):
            return
        same = _equal_dims(exact - self.length(dim))
        if same and not all(map(is_named, same)):
            self.unify(*same)
        elif dim not in self._lengths and dim not in self._fixed and dim not in exact.dims:
            self._lengths[dim] = exact
        elif (multiple := _multiple(exact - self.length(dim))) and multiple[0] not in self._fixed:
            self._lengths[multiple[0]] = multiple[1]
        else:
            self._rules.append((dim, exact))

    def broadcast(self, left: Axis, right: Axis) -> Axis:
        """The axis of the result where two axes meet: an extent of 1 gives way."""
        a, b = self.find(left), self.find(right)
        if a == 1 or b == 1:
            return b if a == 1 else a
        if a != b and self._gives_way(a, b):
            self._parent[str(a)] = 1
            return b
        if a != b and self._gives_way(b, a):
            self._parent[str(b)] = 1
            return a
        return self.unify(a, b)

    def _gives_way(self, axis: Axis, other: Axis) -> bool:
        """True for an example's axis of extent 1 that meets a longer one, and for ``x[:1]``."""
        assert isinstance(axis, str)
        assert isinstance(other, str)
        if self.becomes_one(axis):
            return True
        return not is_named(axis) and self._is(axis, 1) and not self._is(other, 1)

    def _differ(self, a: Axis, b: Axis, hint: str = "") -> Refused:
        return Refused(f"{self.word(a)} and {self.word(b)} differ", hint)

    def show(self, shape: Shape) -> str:
        """A shape as the user knows it."""
        return show_shape(tuple(self.word(axis) for axis in shape))

    def final_names(self, shapes: Iterable[Shape]) -> dict[Dim, Axis]:
        """The final name (or 1) of every raw dim; unnamed ones are A, B, ... as they appear."""
        fresh = (w for w in letters() if w not in self._parent)
        names: dict[Axis, Axis] = {1: 1}
        for shape in shapes:
            for axis in self.shape(shape):
                if axis not in names:
                    named = not isinstance(axis, str) or is_named(axis)
                    names[axis] = axis if named else next(fresh)
        return {raw: names[self.find(raw)] for raw in self._parent if self.find(raw) in names}

    def fixed_sizes(self, names: dict[Dim, Axis]) -> dict[Dim, int]:
        """The sizes that were fixed, under final names."""
        return {
            str(names[raw]): self._extent[raw]
            for raw in names
            if self.find(raw) == raw and raw in self._fixed
        }

    def size_rules(self, names: Mapping[Dim, Axis]) -> tuple[Rule, ...]:
        """The rules for sizes that follow from others, under final names; then what is assumed."""

        def named(dim: Dim) -> Length:
            axis = names[dim]
            return size(axis) if isinstance(axis, str) else ONE

        found: dict[Rule, None] = {}
        lengths = [(raw, self._lengths[raw]) for raw in names if raw in self._lengths]
        for raw, length in (*lengths, *self._rules):
            dim = names.get(str(self.find(raw)), 1)
            exact = self.normal(length)
            if isinstance(dim, str) and all(d in names for d in exact.dims):
                rule = Rule(dim, exact.replaced(named), because=self._lines.get(raw, ""))
                if rule.length != size(dim):
                    found[rule] = None
        for length, because in self._assumed.items():
            exact = self.normal(length)
            if all(d in names for d in exact.dims):
                found.update(dict.fromkeys(_at_least(exact.replaced(named), because)))
        return tuple(found)


def _at_least(length: Length, because: str) -> Iterator[Rule]:
    """The rule for one dim that keeps a length at least 0; none if it always is."""
    for symbols, share in () if length.never_negative else length.terms:
        if len(symbols) == 1 and isinstance(symbols[0], str) and share > 0:
            least = clamped(size(symbols[0]) - length * number(1 / share), rounds=True)
            yield Rule(symbols[0], least, exact=False, because=because)
            return


def _whole_in(length: Length) -> Iterator[Length]:
    """The lengths that have to be whole where this one is the extent of an axis."""
    yield length
    for clamp in length.clamps:
        if not clamp.rounds:
            yield from _whole_in(clamp.of)


def _equal_dims(apart: Length) -> tuple[Dim, ...]:
    """The two dims that have one size if ``apart`` is 0, as in 4 * D - 4 * E; else none."""
    if len(apart.terms) != 2 or apart.terms[0][1] != -apart.terms[1][1]:
        return ()
    (left, _), (right, _) = apart.terms
    one = [symbol for symbol in left if symbol not in right]
    other = [symbol for symbol in right if symbol not in left]
    alone = len(one) == len(other) == 1 and len(left) == len(right)
    dims = tuple(symbol for symbol in (*one, *other) if isinstance(symbol, str))
    return dims if alone and len(dims) == 2 else ()


def _multiple(apart: Length) -> tuple[Dim, Length] | None:
    """The dim that is a multiple of another if ``apart`` is 0, as in D / 2 - 2 * E; else None."""
    if len(apart.terms) != 2:
        return None
    for (symbols, share), (others, times) in (apart.terms, apart.terms[::-1]):
        quotient = -times / share
        alone = len(symbols) == len(others) == 1 and quotient.denominator == 1 and quotient > 1
        if alone and isinstance(symbols[0], str) and isinstance(others[0], str):
            return symbols[0], size(others[0]) * whole(int(quotient))
    return None


def letters() -> Iterator[str]:
    """A, B, ..., Z, AA, AB, ...: names for dims that the user gave none."""
    for length in count(1):
        yield from ("".join(word) for word in product(ascii_uppercase, repeat=length))
