"""Random programs of every kind, each made from a ``random.Random`` only: a seed names one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.ir.graph import Graph
from blockbuster.testing.arrays import random_array_function, random_norm_function
from blockbuster.testing.matrices import MatrixPrograms
from blockbuster.testing.planted import planted
from blockbuster.testing.planted_sites import SITES
from blockbuster.testing.programs import BlockPrograms

Generator = Callable[[Random], Graph]


def blocks(random: Random) -> Graph:
    """Nested maps of any shape, typed, one to three outputs, batch dims, arrays read twice."""
    return BlockPrograms(random, whole=random.random() < 0.5).graph()


def matrices(random: Random) -> Graph:
    """Whole matrices: matmuls, scales, shifts and sums of rows, some softmaxes."""
    return MatrixPrograms(
        random, whole=random.random() < 0.5, exponentials=random.random() < 0.3
    ).graph()


def arrays(random: Random) -> Graph:
    """Array programs, lowered: square ones (A @ A.T), masks, norms, batch dims."""
    function = random_array_function(random)
    return lower(trace(function, **function.inputs))


def norms(random: Random) -> Graph:
    """Array programs, lowered: a norm, matmuls of it, and what combines them."""
    function = random_norm_function(random)
    return lower(trace(function, **function.inputs))


def planted_anywhere(random: Random) -> Graph:
    """A site of any rule in a random program."""
    return planted(random.choice(SITES[random.choice(list(SITES))]), random)


GENERATORS: Mapping[str, Generator] = {
    "blocks": blocks,
    "matrices": matrices,
    "arrays": arrays,
    "norms": norms,
    "planted": planted_anywhere,
}


def program_for(
    rule: str, at: int, random: Random, examples: Sequence[str] = (), kinds: Sequence[str] = ()
) -> tuple[str, Graph]:
    """Program ``at`` of those to try ``rule`` on, and its kind: every other one has a planted site.

    Sites are what is known of the rule by its name, and ``examples``, in turn. ``kinds`` name the
    other generators to draw from, by default all.
    """
    sites = (*SITES.get(rule, ()), *examples)
    if sites and at % 2 == 0:
        return f"a planted site of {rule}", planted(sites[at // 2 % len(sites)], random)
    name = random.choice(list(kinds or GENERATORS))
    return name, GENERATORS[name](random)
