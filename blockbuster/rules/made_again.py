"""Fusion that recomputes large values for each of their ends, beside ``fuse``.

``fuse`` leaves a value stored if several loops read it, such as the scores that attention's
backward pass needs for three products. Here such a value is copied for each of its ends, in the
order of its reader. Then the rules start again, and each copy is fused into its loop. The result is
a derivation from the same program; selection, which knows sizes, chooses between repeating the work
and storing.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.ir.types import Dim
from blockbuster.rules.base import Rule
from blockbuster.rules.copy_producer import CopyProducer
from blockbuster.rules.derivation import Derivation
from blockbuster.rules.ends import Dims, dims_of, first_names, stored_dims
from blockbuster.rules.faults import first_site
from blockbuster.rules.transpose_producer import TransposeProducer
from blockbuster.rules.whole_dim import fuse_with_dims

MOST_COPIES = 64
"""Copies after which a program is left as it is. Attention's backward pass takes 20; a program that
takes more than three times as many is long, and reads what it made in many places."""


def made_again(
    derivation: Derivation, rules: Sequence[Rule], *, whole: Sequence[Dim] = ()
) -> Derivation | None:
    """The start of ``derivation`` with larger values copied for each end, fused with ``rules``.

    Each of the dims ``whole`` is one block (whole_dim.py). None if nothing is stored that could be
    copied, or more than ``MOST_COPIES`` would be needed.
    """
    names = first_names(derivation.start)
    stored = stored_dims(derivation.final, names)
    if not stored:
        return None
    start, copied = derivation.start, set[Dims]()
    made = Derivation(start, (), (0,), {0: start})
    while (found := first_site(CopyProducer(), made.final)) is not None:
        if len(made.applications) == MOST_COPIES:
            return None
        copied |= {dims_of(made.final, value, names) for value in found.values("producer")}
        made = made.then(found)
    if not any(own <= dims for own in copied for dims in stored):
        return None  # nothing is stored that has all dims of a copied value
    while (found := first_site(TransposeProducer(), made.final)) is not None:
        made = made.then(found)
    return made.followed_by(fuse_with_dims(made.final, rules, whole))
