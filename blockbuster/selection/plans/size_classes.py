"""Classes of sizes: sets of sizes for which the same kernels are chosen, without a new choice.

Choosing makes a schedule and a cost for every candidate, which takes some milliseconds. So one
choice is made per class, for the sizes that represent it. Two sizes of a dim are in one class if

    they round up to the same of 1, 2, 3, 4, 6, 8, 12, 16, ... (powers of two, and 1.5 times those),
    and the same of the blocks that any candidate would cut the dim into divide both; along the
    rows of arrays, the same of what lanes move at once, too.

The first condition decides the default blocks and which dims are one block; as sizes of a class
differ by less than a factor of 1.5, it roughly fixes the candidates' costs, too. The second decides
which kernels need no mask. A class is represented by its largest member, so 2^k and 1.5 * 2^k
represent themselves. Sizes that follow from others (of slices, joined axes, heads) count like all
others. If no set of sizes among the first few tried has all classes, the given sizes represent
themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product

from blockbuster.ir.lengths import Rule, completed
from blockbuster.ir.types import Dim
from blockbuster.selection.considered import Blocks
from blockbuster.selection.priors import PRIORS

Sizes = Mapping[Dim, int]

Class = tuple[tuple[int, ...], ...]
"""For each dim the size that it rounds up to, and then whether each of its blocks divides it."""


@lru_cache(1 << 13)
def rounded_up(size: int) -> int:
    """The least of 0, 1, 2, 3, 4, 6, 8, 12, ... that is not smaller.

    >>> [rounded_up(n) for n in (0, 1, 5, 7, 48, 49, 100, 4096)]
    [0, 1, 6, 8, 48, 64, 128, 4096]
    """
    if size < 3:
        return size
    power = 1 << (size - 1).bit_length()
    return power - power // 4 if 4 * size <= 3 * power else power


def class_of(sizes: Sizes, blocks: Blocks) -> Class:
    """The class of sizes, dim by dim."""
    return tuple([_class_of(size, blocks.get(dim, ())) for dim, size in sizes.items()])


@lru_cache(1 << 13)  # of most dims the next size is the last one
def _class_of(size: int, blocks: tuple[int, ...]) -> tuple[int, ...]:
    return rounded_up(size), *[not size % lanes for lanes in blocks]


def representative(sizes: Sizes, rules: Sequence[Rule], blocks: Blocks) -> dict[Dim, int] | None:
    """The sizes that stand for the class of ``sizes``, which are complete; None if none is found.

    >>> representative({"M": 1000, "N": 64}, (), {"M": (16, 64)})
    {'M': 1023, 'N': 64}
    """
    wanted = class_of(sizes, blocks)
    follow = {rule.dim for rule in rules if rule.exact}
    free = [dim for dim in sizes if dim not in follow]
    behind = {dim for rule in rules for dim in (rule.dim, *rule.length.dims)}
    each = PRIORS.sizes_of_each_dim
    members = [
        list(islice(_members(sizes[d], blocks.get(d, ())), each if d in behind else 1))
        for d in free
    ]
    for tried in islice(_nearest_first(members), PRIORS.tried_sizes):
        try:
            found = completed(dict(zip(free, tried, strict=True)), rules)
        except ValueError:  # a length would not be whole
            continue
        if found.keys() == sizes.keys():
            ordered = {dim: found[dim] for dim in sizes}
            if class_of(ordered, blocks) == wanted:
                return ordered
    return None


def _members(size: int, lanes: Sequence[int]) -> Iterator[int]:
    """The sizes in the class of ``size``, the largest first."""
    fits = [not size % n for n in lanes]
    most = rounded_up(size)
    step = max((n for n, fit in zip(lanes, fits, strict=True) if fit), default=1)
    for member in range(most - most % step, 0, -step):
        if rounded_up(member) != most:
            return
        if [not member % n for n in lanes] == fits:
            yield member


def _nearest_first(members: Sequence[Sequence[int]]) -> Iterable[tuple[int, ...]]:
    """All combinations, those of first entries before the others."""
    return (
        tuple(of[at] for of, at in zip(members, places, strict=True))
        for depth in range(PRIORS.sizes_of_each_dim)
        for places in product(*(range(min(len(of), depth + 1)) for of in members))
        if max(places, default=0) == depth
    )
