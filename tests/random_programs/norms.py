"""Random norm programs: normalizations in front of matrix products, as in transformer blocks.

One to three rounds, each of [RMSNorm | LayerNorm | softmax | vector scale or shift | none |
LayerNorm by hand, twice as often], with or without weights, then one to three matmuls of it, half
of them through an activation, combined by products and sums. A LayerNorm by hand is of E[x^2] -
E[x]^2; without weights it divides by the deviation behind the matmuls. In a fifth of the rounds
something else reads the normalized value, too: a later round comes back to its dim, where it is
added, or it is returned beside the result. Every choice is made by a ``random.Random``, so a seed
names a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from blockbuster.frontend import functions as bb
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.lower import lower
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.trace import Trace
from blockbuster.interp.binding import dims_of
from blockbuster.ir.graph import Graph
from blockbuster.rules import Rule, fuse
from tests.interp.counted import graph_traffic

DIMS = ("K", "N", "L", "P")
KINDS = ("rms_norm", "layer_norm", "softmax", "scale", "shift", "none", "by hand", "by hand")
ACTIVATIONS = (bb.silu, bb.tanh)
MOST_ROUNDS = MOST_MATMULS = 3
KEPT_ALIVE = 0.2


class NormPrograms:
    """A generator of random norm programs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._trace = Trace()
        self._count = 0

    def program(self) -> ArrayProgram:
        """One program."""
        fresh = iter(DIMS)
        dim = next(fresh)
        value = self.input("x", f"M {dim}")
        kept: list[tuple[TracedArray, str]] = []
        for _ in range(self.random.randint(1, MOST_ROUNDS)):
            normalized, after = self.normalized(value, dim)
            if normalized is not value and self.random.random() < KEPT_ALIVE:
                kept.append((normalized, dim))
            back = [own for _, own in kept if own != dim and self.random.random() < 0.5]
            dim, old = back[0] if back else next(fresh), dim
            value = self.products(normalized, old, dim)
            value = value if after is None else value * after
            for residual in [r for r, own in kept if own == dim]:
                value = value + residual
            kept = [(r, own) for r, own in kept if own != dim]
        return self._trace.finish("norms", [("", a) for a in (value, *(r for r, _ in kept))])

    def input(self, name: str, dims: str) -> TracedArray:
        """A new input."""
        self._count += 1
        return self._trace.input(f"{name}{self._count}", dims)

    def normalized(self, x: TracedArray, dim: str) -> tuple[Any, Any]:
        """``x`` through a normalization, or as it is; and what the products are to be scaled by."""
        kind, weighted = self.random.choice(KINDS), self.random.random() < 0.5
        match kind:
            case "rms_norm":
                return bb.rms_norm(x, self.weight(dim) if weighted else None), None
            case "layer_norm":
                gamma = self.weight(dim) if weighted else None
                beta = self.input("b", dim) if weighted else None
                return bb.layer_norm(x, gamma, beta), None
            case "by hand":
                mean = bb.mean(x, axis=-1, keepdims=True)
                squares = bb.mean(bb.square(x), axis=-1, keepdims=True)
                root = bb.rsqrt(squares - bb.square(mean) + 1e-5)
                if weighted:
                    return (x - mean) * root * self.weight(dim) + self.input("b", dim), None
                return x - mean, root
            case "softmax":
                return bb.softmax(x), None
            case "scale":
                return x * self.vector(dim), None
            case "shift":
                return x + self.vector(dim), None
        return x, None

    def weight(self, dim: str) -> Any:
        """The weights of a norm: an input, or 1 more, as some models store them."""
        given = self.input("g", dim)
        return given if self._count % 2 else given + 1

    def vector(self, dim: str) -> TracedArray:
        """A vector of rows or of columns, as an operand for a block."""
        if self.random.random() < 0.5:
            return self.input("c", "M")[:, None]
        return self.input("c", dim)

    def products(self, x: TracedArray, old: str, new: str) -> TracedArray:
        """One to three matmuls of ``x``, some through an activation, combined."""
        found = []
        for _ in range(self.random.randint(1, MOST_MATMULS)):
            y = x @ self.input("w", f"{old} {new}")
            active = self.random.random() < 0.5
            found.append(self.random.choice(ACTIVATIONS)(y) if active else y)
        total = found[0]
        for other in found[1:]:
            total = total * other if self.random.random() < 0.5 else total + other
        return total


def norm_programs(count: int, first: int = 0) -> list[Graph]:
    """The block programs of ``count`` seeds from ``first`` on."""
    return [lower(NormPrograms(Random(first + at)).program()) for at in range(count)]


@dataclass(frozen=True)
class Quality:
    """The remaining traffic: interior buffered edges at the end, loads of the best snapshot."""

    edges: int
    loads: int


def quality(graph: Graph, rules: Sequence[Rule], blocks: int = 3) -> Quality:
    """The quality of ``rules`` on ``graph``; loads are counted at ``blocks`` blocks per dim."""
    derivation = fuse(graph, rules)
    dims = dict.fromkeys(dims_of(graph), blocks)
    loads = (graph_traffic(snapshot, dims, dims).loads for snapshot in derivation.snapshots)
    return Quality(len(derivation.final.buffered_edges()), min(loads))
