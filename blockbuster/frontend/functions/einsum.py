"""Einstein sums, written as transposes, sums and products of pairs: rules see ordinary matmuls."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from blockbuster.frontend.array import TracedArray, reduce_axes
from blockbuster.frontend.contractions import LETTERS, along_windows, shows_windows
from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.functions.shapes import is_unit
from blockbuster.frontend.kinds import FLOAT, dtype_of_kind
from blockbuster.frontend.source import trace_error

_USUAL = 32
"""The extent that decides the order of pairs for an axis of unknown size."""


@dataclass(frozen=True, eq=False)
class Lettered:
    """An array with a letter for each axis. Sums have its dtype, as in NumPy's einsum."""

    array: Array
    letters: str

    @property
    def units(self) -> str:
        """The letters of the axes that are known to have one element."""
        return "".join(c for place, c in enumerate(self.letters) if is_unit(self.array, place))

    def without(self, units: Sequence[str]) -> Lettered:
        """The array without axes of one element."""
        if not units:
            return self
        array = self.array[tuple(0 if c in units else slice(None) for c in self.letters)]
        return Lettered(array, "".join(c for c in self.letters if c not in units))

    def summed(self, kept: str) -> Lettered:
        """The array summed over the letters that are not ``kept``."""
        axes = tuple(i for i, letter in enumerate(self.letters) if letter not in kept)
        if not axes:
            return self
        left = "".join(letter for letter in self.letters if letter in kept)
        total = reduce_axes("sum", self.array, axes, False)
        if isinstance(self.array, TracedArray) and self.array.kind != FLOAT:
            total = total.astype(dtype_of_kind(self.array.kind))
        return Lettered(total, left)

    def with_one_axis(self, run: str) -> Lettered:
        """The array with the axes of a run of letters as one axis, which has the last of them."""
        at, shape = self.letters.index(run), [*self.array.shape]
        shape[at : at + len(run)] = [functools.reduce(operator.mul, shape[at : at + len(run)])]
        return Lettered(self.array.reshape(shape), self.letters.replace(run, run[-1]))

    def arranged(self, letters: str) -> Array:
        """The array with its axes in the order ``letters``; axes of one element for others."""
        own = [letter for letter in letters if letter in self.letters]
        order = tuple(self.letters.index(letter) for letter in own)
        array = self.array
        if order != tuple(range(len(order))):
            array = array.transpose(order)
        if len(own) == len(letters):
            return array
        return array[tuple(slice(None) if letter in own else None for letter in letters)]


def einsum_traced(
    subscripts: str, operands: Sequence[Array], *, broadcasts: bool = True, taps: str | None = ""
) -> Array:
    """``numpy.einsum`` of operands of which at least one is traced.

    ``broadcasts``: an axis of one element meets any others of its letter. ``taps``: letters along
    windows, which are summed by loops; None if views are to be asked. Raises TraceError for
    subscripts that do not fit, and for a letter that stands twice in one operand: no block program
    reads a diagonal.
    """
    terms, output = _parsed(subscripts, operands)
    left = [Lettered(x, letters) for x, letters in zip(operands, terms, strict=True)]
    left = _without_units(left) if broadcasts else left
    if taps is None:
        taps = "".join(along_windows(x.array, x.letters) for x in left)
    for places in _path(left, output):
        taken = [left[place] for place in places]
        left = [one for place, one in enumerate(left) if place not in places]
        made = taken[0]
        for place, following in enumerate(taken[1:], start=2):
            others = "".join(x.letters for x in (*left, *taken[place:]))
            made = _product(made, following, output + others, output, taps)
        left.append(made)
    return left[0].summed(output).arranged(output)


def _without_units(operands: Sequence[Lettered]) -> list[Lettered]:
    """The operands without axes of one element whose letter has more elements elsewhere."""
    longer = {letter for x in operands for letter in x.letters if letter not in x.units}
    return [x.without([letter for letter in x.units if letter in longer]) for x in operands]


def _product(a: Lettered, b: Lettered, kept: str, output: str, taps: str) -> Lettered:
    """The product of two arrays, summed over the letters that nothing else reads.

    Where no letter is summed on matrix units, the axes keep the order of the array that has them
    all, so that a computed one is stored once. Letters that are summed together, and stand side by
    side in both arrays, are one axis, but for windows, which would be copied for it. ``taps`` stand
    in front: the last axes are blocks of tiles, and windows have few elements.
    """
    a, b = a.summed(kept + b.letters), b.summed(kept + a.letters)
    shared = [letter for letter in a.letters if letter in b.letters]
    batch = sorted((s for s in shared if s in kept), key=lambda s: (output + s).index(s))
    folded = [s for s in shared if s not in kept]
    rows = [letter for letter in a.letters if letter not in shared]
    columns = [letter for letter in b.letters if letter not in shared]
    vectors = len(a.letters) == 1 or len(b.letters) == 1
    if not folded or not ((rows and columns) or vectors):
        first = [letter for letter in folded if letter in taps]
        last = [letter for letter in folded if letter not in taps]
        every = "".join((*first, *batch, *rows, *columns, *last))
        wider = max(a.letters, b.letters, key=len)
        every = wider if len(wider) == len(every) and not first else every
        product = Lettered(a.arranged(every) * b.arranged(every), every)
        return product.summed(kept)
    run = "".join(folded)
    together = all(run in x.letters and not shows_windows(x.array) for x in (a, b))
    if len(run) > 1 and together and not taps:
        return _product(a.with_one_axis(run), b.with_one_axis(run), kept, output, taps)
    # all but one of the summed letters count as batches until they are summed
    folded.sort(key=lambda letter: letter not in taps)
    inner = folded[-1]
    outer = sorted((*rows[:-1], *columns[:-1]), key=lambda s: (output + s).index(s))
    over = "".join((*folded[:-1], *batch, *outer))
    left, right = "".join(rows[-1:]), "".join(columns[-1:])
    first = a.array if len(a.letters) == 1 else a.arranged(f"{over}{left}{inner}")
    second = b.array if len(b.letters) == 1 else b.arranged(f"{over}{inner}{right}")
    made = first @ second
    return Lettered(made, over + left + right).summed(kept)


def _parsed(subscripts: str, operands: Sequence[Array]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with letters in place of ellipses."""
    text = subscripts.replace(" ", "")
    if not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", text) or any(
        term.replace("...", "", 1).count(".") for term in re.split(",|->", text)
    ):
        raise _refused(subscripts, "subscripts are letters, commas, ->, and an ellipsis a term")
    before, arrow, after = text.partition("->")
    given = before.split(",")
    if len(given) != len(operands):
        raise _refused(subscripts, f"it names {len(given)} operands, and {len(operands)} are given")
    free = [letter for letter in LETTERS if letter not in text]
    ranks = [len(x.shape) - len(t.replace("...", "")) for x, t in zip(operands, given, strict=True)]
    more = "".join(free[: max([r for r, t in zip(ranks, given, strict=True) if "..." in t] or [0])])
    terms = [
        term.replace("...", more[len(more) - rank :] if rank > 0 else "")
        for term, rank in zip(given, ranks, strict=True)
    ]
    for term, x in zip(terms, operands, strict=True):
        _check_term(subscripts, term, len(x.shape))
    if not arrow:
        read = "".join(terms)
        after = "".join(sorted(c for c in set(read) if read.count(c) == 1 and c not in more))
        after = "..." + after
    output = after.replace("...", more)
    unknown = [letter for letter in output if letter not in "".join(terms)]
    if unknown or len(set(output)) < len(output):
        raise _refused(subscripts, "letters of the result stand once there, and in an operand")
    return terms, output


def _check_term(subscripts: str, term: str, rank: int) -> None:
    if len(term) != rank or "." in term:
        raise _refused(subscripts, f"{term!r} has {len(term)} letters for {rank} axes")
    twice = [letter for letter in term if term.count(letter) > 1]
    if twice:
        raise trace_error(
            f"einsum {subscripts!r} reads a diagonal: {twice[0]!r} stands twice in {term!r}",
            hint="a mask can choose it: bb.where(i[:, None] == i, x, 0) with i = bb.arange(n)",
        )


def _path(operands: Sequence[Lettered], output: str) -> list[tuple[int, ...]]:
    """Which operands meet, step by step: NumPy's greedy order, of three the best of all orders."""
    if len(operands) <= 2:
        return [tuple(range(len(operands)))]
    extents: Mapping[str, int] = {
        letter: extent
        for x in operands
        for letter, extent in zip(x.letters, _extents(x.array), strict=True)
        if extent is not None
    }
    if len(operands) == 3:
        return _path_of_three([x.letters for x in operands], output, extents)
    stand_ins = [
        np.broadcast_to(np.float32(0), [extents.get(letter, _USUAL) for letter in x.letters])
        for x in operands
    ]
    text = f"{','.join(x.letters for x in operands)}->{output}"
    path, _ = np.einsum_path(text, *stand_ins, optimize=("greedy", 2**62))
    return [tuple(places) for places in path[1:]]


def _extents(array: Array) -> list[int | None]:
    """The extents of axes where they are known, of an example perhaps: any order is right."""
    if isinstance(array, TracedArray):
        return [array.trace.dims.extent(axis) for axis in array.axes]
    return [*array.shape]


def _path_of_three(
    terms: Sequence[str], output: str, extents: Mapping[str, int]
) -> list[tuple[int, ...]]:
    """The order of fewest multiplications; of several, the one that sums most letters at last.

    Where sizes are not known, a sum over many letters is a long one, for matrix units.
    """

    def cost(pair: tuple[int, ...]) -> tuple[int, int]:
        left = terms[3 - sum(pair)]
        met = dict.fromkeys(terms[pair[0]] + terms[pair[1]])
        last = dict.fromkeys((*left, *(c for c in met if c in output)))
        count = sum(math.prod(extents.get(c, _USUAL) for c in letters) for letters in (met, last))
        return count, len(output) - len(last)

    first = min(((0, 1), (0, 2), (1, 2)), key=cost)
    return [first, (1, 0) if 0 in first else (0, 1)]  # the product stands behind what is left


def _refused(subscripts: str, reason: str) -> Exception:
    return trace_error(f"einsum {subscripts!r}: {reason}", hint='write "mk,kn->mn" for a @ b')


def is_traced(operands: Sequence[Array]) -> bool:
    """True if an operand is traced."""
    return any(isinstance(x, TracedArray) for x in operands)
