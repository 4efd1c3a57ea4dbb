"""The raw space, and the four rules that prune it (MCFuser, section III-C).

A rule returns in words why it drops a candidate, or "". Rules 1 and 2 are about expressions, rules
3 and 4 about tile sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from blockbuster.tiling.candidate import Body, Candidate, bound
from blockbuster.tiling.chain import Chain
from blockbuster.tiling.expression import Expression, expressions
from blockbuster.tiling.placement import kept_along

LEAST = 16
"""Elements along each side of the smallest product of the matrix units."""

PADDING = 0.05
"""The part of a dim that padding may add, where its size is no power of two."""

SLACK = 1.2
"""How far the estimate of shared memory may exceed what there is."""


@dataclass(frozen=True)
class Counts:
    """How many expressions and tile sizes there are at first, and after rules 1, 2, 3 and 4."""

    expressions: tuple[int, ...]
    tiles: tuple[int, ...]

    @property
    def candidates(self) -> tuple[int, ...]:
        """How many candidates there are: every expression with all tile sizes."""
        return tuple(a * b for a, b in zip(self.expressions, self.tiles, strict=True))


@dataclass(frozen=True)
class Space:
    """The candidates that are left: bodies, each with every choice of tiles that rule 4 allows."""

    chain: Chain
    candidates: tuple[Candidate, ...]
    counts: Counts


def tile_sizes(size: int) -> tuple[int, ...]:
    """The raw tile sizes of a dim: the multiples of 16, up to the first that covers it."""
    return tuple(range(LEAST, -(-size // LEAST) * LEAST + 1, LEAST))


def distinct(chain: Chain, found: Iterable[Expression]) -> tuple[Body, ...]:
    """Rule 1: expressions that leave the same loops to a thread block are one."""
    return tuple(dict.fromkeys(bound(chain, expression) for expression in found))


def overwhelms(chain: Chain, body: Body) -> str:
    """Rule 2: a sum around the loops of an intermediate tensor keeps all of its tiles."""
    for operator in chain.operators[:-1]:
        kept = kept_along(chain, operator, body.expression)
        if kept:
            return (
                f"{operator.result.name} sums over {', '.join(operator.reduced)} around "
                f"{', '.join(kept)}: all its tiles along {', '.join(kept)} are kept"
            )
    return ""


def pads(size: int, tile: int) -> str:
    """Rule 3: a power of two is not padded, any other size by less than 5%."""
    padding = (-size % tile) / size
    if not padding:
        return ""
    if size & (size - 1) == 0:
        return f"{size} is a power of two, and {tile} does not divide it"
    return f"tiles of {tile} pad {size} by {padding:.0%}" if padding >= PADDING else ""


def shared_bytes(chain: Chain, found: Candidate) -> int:
    """Equation 1: a tile of every tensor of the chain, in bytes."""
    return chain.item_bytes * sum(found.elements(tensor) for tensor in chain.tensors)


def too_large(chain: Chain, found: Candidate, limit: int) -> str:
    """Rule 4: the estimate is above 1.2 times the ``limit`` of a block's shared memory."""
    estimate = shared_bytes(chain, found)
    if estimate > SLACK * limit:
        return f"about {estimate} bytes of shared memory, above {SLACK} times {limit}"
    return ""


def pruned(chain: Chain, limit: int, *, among: Sequence[Expression] | None = None) -> Space:
    """The space of ``chain`` after all rules, with the counts after each.

    ``limit``: bytes of shared memory that one thread block may have. ``among``: the expressions to
    begin with, all by default; ``deep(chain)`` for the source's ablation.
    """
    raw = expressions(chain) if among is None else tuple(among)
    bodies = distinct(chain, raw)
    fitting = tuple(body for body in bodies if not overwhelms(chain, body))
    sizes = [tile_sizes(chain.sizes[loop]) for loop in chain.loops]
    unpadded = [
        [tile for tile in options if not pads(chain.sizes[loop], tile)]
        for loop, options in zip(chain.loops, sizes, strict=True)
    ]
    tuples = [tuple(zip(chain.loops, tiles, strict=True)) for tiles in product(*unpadded)]
    usable = [tiles for tiles in tuples if _fits(chain, fitting, tiles, limit)]
    every = math.prod(map(len, sizes))
    counts = Counts(
        expressions=(len(raw), len(bodies), len(fitting), len(fitting), len(fitting)),
        tiles=(every, every, every, len(tuples), len(usable)),
    )
    kept = tuple(Candidate(body, tiles) for body in fitting for tiles in usable)
    return Space(chain, kept, counts)


def _fits(
    chain: Chain, bodies: Sequence[Body], tiles: tuple[tuple[str, int], ...], limit: int
) -> bool:
    """Whether rule 4 allows these tiles; equation 1 does not look at the body."""
    return bool(bodies) and not too_large(chain, Candidate(bodies[0], tiles), limit)
