"""Blocks of what products give, where the last two axes are others than theirs.

    norm per head: q[m,h,d] = sum_k x[m,k] w[k,h,d], divided by the root of its mean square along d

A product has blocks of rows and columns, here of m and d, for each h. The last two axes are h and
d: in blocks of these, what follows would read single rows of the product. So what is computed of a
product element by element, or folded along its axes, is blocked along the axes of the product, as
far as no axis would be in blocks here and a loop over single elements there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blockbuster.frontend.interleaved import Axes, blocked_along, meet, spread
from blockbuster.frontend.layout import Layout
from blockbuster.frontend.primitives import Apply, Contract, Count, Fold, Primitive, Round, Source
from blockbuster.frontend.whole_lines import MOST

KINDS = Source | Apply | Round | Count | Fold | Contract


def beside_products(
    layouts: Sequence[Layout], primitives: Sequence[Primitive], live: Sequence[bool]
) -> tuple[list[Layout], list[Primitive]]:
    """The layouts, and the primitives with their folds, in blocks along the axes of products."""
    unchanged = list(layouts), list(primitives)
    of = [at for at, primitive in enumerate(primitives) if live[at]]
    if any(not isinstance(primitives[at].op, KINDS) for at in of):
        return unchanged
    blocked = [{level.axis for level in layout if level.blocked} for layout in layouts]
    chosen: Axes = [set() for _ in primitives]
    for at in of:
        if isinstance(primitives[at].op, Contract):
            chosen[at].update(blocked[at])
    by_element = [at for at in of if isinstance(primitives[at].op, Apply | Round | Fold)]
    spread(chosen, primitives, by_element)
    moved = [at for at in by_element if chosen[at] and chosen[at] != blocked[at]]
    behind = _behind_products(primitives, of)
    for at in by_element:
        fold = primitives[at].op
        if not isinstance(fold, Fold):
            continue
        (*_, ref) = primitives[at].operands
        own = ref.axes[fold.axis]
        beside = ref.value not in behind and own in blocked[ref.value]
        if own is not None and (at in moved or (beside and chosen[ref.value])):
            chosen[ref.value].add(own)
    if not moved:
        return unchanged
    spread(chosen, primitives, by_element)
    kept = [axes or before for axes, before in zip(chosen, blocked, strict=True)]
    found = blocked_along(kept, layouts)
    torn = any(isinstance(primitives[at].op, Contract) and kept[at] != blocked[at] for at in of)
    if torn or max(len(kept[at]) for at in of) > MOST:
        return unchanged
    return unchanged if meet(found, of) else (found, _folding(primitives, kept, by_element))


def _behind_products(primitives: Sequence[Primitive], of: Sequence[int]) -> set[int]:
    """The values that are computed of products: what is beside them keeps its folds in blocks."""
    found = set[int]()
    for at in of:
        reads = (ref.value for ref in primitives[at].operands)
        if isinstance(primitives[at].op, Contract) or not found.isdisjoint(reads):
            found.add(at)
    return found


def _folding(primitives: Sequence[Primitive], kept: Axes, of: Sequence[int]) -> list[Primitive]:
    """The primitives with folds in blocks where the axes that they fold are."""
    made = list(primitives)
    for at in of:
        fold, (*_, ref) = made[at].op, made[at].operands
        if isinstance(fold, Fold) and ref.axes[fold.axis] in kept[ref.value]:
            made[at] = replace(made[at], op=replace(fold, in_blocks=True))
    return made
