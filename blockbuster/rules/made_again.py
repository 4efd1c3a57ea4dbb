"""Fusion that recomputes large values for each of their ends, beside ``fuse``.

``fuse`` leaves a value stored if several loops read it, such as the scores that attention's
backward pass needs for three products. Here such a value is copied for each of its ends, in the
order of its reader. Then the rules start again, and each copy is fused into its loop. The result is
a derivation from the same program; selection, which knows sizes, chooses between repeating the work
and storing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim
from blockbuster.rules.base import Match, Rule
from blockbuster.rules.copy_producer import CopyProducer
from blockbuster.rules.derivation import Application, Derivation
from blockbuster.rules.ends import Dims, dims_of, first_names, stored_dims
from blockbuster.rules.faults import applied, check_rewritten, described, first_site
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
    if not derivation.final.buffered_edges():
        return None
    steps = _Steps(derivation.start)
    for count, found in enumerate(_sites(steps, CopyProducer())):
        if count == MOST_COPIES:
            return None
        steps.take(found)
    if not _any_stored(steps, derivation.final):
        return None
    for found in _sites(steps, TransposeProducer()):
        steps.take(found)
    made = steps.derivation()
    return made.followed_by(fuse_with_dims(made.final, rules, whole))


class _Steps:
    """A program being rewritten, and what was done to it."""

    def __init__(self, start: Graph) -> None:
        self.start = self.graph = start
        self.done: list[Application] = []
        self.names = first_names(start)
        self.copied = set[Dims]()

    def take(self, found: Match) -> None:
        rewritten = applied(found)
        check_rewritten(rewritten, found)
        words = described(found, found.graph)
        if "producer" in found.nodes:
            made = found.values("producer")
            self.copied |= {dims_of(self.graph, value, self.names) for value in made}
        self.done.append(Application(found.rule, (), dict(found.nodes), words))
        self.graph = rewritten

    def derivation(self) -> Derivation:
        count = len(self.done)
        checkpoints = {0: self.start, count: self.graph}
        return Derivation(self.start, tuple(self.done), (count,), checkpoints)


def _any_stored(steps: _Steps, final: Graph) -> bool:
    """Whether something is stored that has all dims of a value that would be copied."""
    stored = stored_dims(final, steps.names)
    return any(own <= dims for own in steps.copied for dims in stored)


def _sites(steps: _Steps, rule: Rule) -> Iterator[Match]:
    """The first site of the program as it is, again and again."""
    while (found := first_site(rule, steps.graph)) is not None:
        yield found
