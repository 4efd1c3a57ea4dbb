"""Random programs of weights over scores: softmaxes in many spellings, factors, masks, sums.

Scores are an input, or a product. Weights are a softmax of them, called by name or written out with
its own maximum, with that of a sink, or as the exponential of a logarithm; some are multiplied by
arrays, rows, columns and numbers, or masked. They end in products, or in sums as losses have.
Every choice is made by a ``random.Random``, so a seed names a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np

from blockbuster.frontend import functions as bb
from blockbuster.frontend.lower import lower
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.trace import Trace
from blockbuster.ir.graph import Graph

MOST_FACTORS = 3


class SoftmaxPrograms:
    """A generator of such programs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._trace = Trace()
        self._count = 0

    def program(self) -> ArrayProgram:
        """One program."""
        scores = self.scores()
        end = self.random.choice((self.attention, self.attention, self.loss))
        return self._trace.finish("softmaxes", [("", array) for array in end(scores)])

    def input(self, name: str, dims: str) -> Any:
        """A new input."""
        self._count += 1
        return self._trace.input(f"{name}{self._count}", dims)

    def scores(self) -> Any:
        """Scores over N for each of M."""
        kind = self.random.randrange(4)
        if kind == 0:
            return self.input("s", "M N")
        made = self.input("q", "M D") @ self.input("k", "N D").T
        if kind == 1:
            return made * 0.5
        return made if kind == 2 else bb.where(self.input("b", "M N") > 0, made, -1e9)

    def attention(self, s: Any) -> list[Any]:
        """Weighted sums of values."""
        weights = self.weights(s)
        for _ in range(self.random.randint(0, MOST_FACTORS)):
            weights = self.factored(weights)
        found = [weights @ self.input("v", "N L")]
        if self.random.random() < 0.2:
            found.append(self.factored(weights) @ self.input("v", "N L"))
        if self.random.random() < 0.2:
            found.append(weights.sum(-1))
        return found

    def weights(self, s: Any) -> Any:
        """A softmax in one of its spellings."""
        return self.random.choice([*SPELLINGS.values()])(self, s)

    def factored(self, p: Any) -> Any:
        """``p`` times, or divided by, something; or where a condition holds."""
        match self.random.randrange(6):
            case 0:
                return p * self.input("g", "M N")
            case 1:
                return p * self.input("g", "N")
            case 2:
                return p * self.input("g", "M")[:, None]
            case 3:
                return p / 0.9
            case 4:
                return bb.where(self.input("b", "M N") > 0, p, 0.0)
        return p - p * self.input("g", "M N")

    def loss(self, s: Any) -> list[Any]:
        """Sums over the logarithms of a softmax."""
        top = s.max(-1, keepdims=True)
        total = np.log(np.exp(s - top).sum(-1, keepdims=True)) + top
        logs = self.random.choice((bb.log_softmax(s, axis=-1), s - total))
        match self.random.randrange(4):
            case 0:
                return [-bb.where(self.input("b", "M N") > 0, logs, 0.0).sum(-1)]
            case 1:
                return [-(0.9 * logs.sum(-1))]
            case 2:
                return [-(np.exp(logs) * logs).sum(-1)]
        return [-(bb.softmax(s, axis=-1) * logs).sum(-1), total[:, 0]]


def _with_a_sink(made: SoftmaxPrograms, s: Any) -> Any:
    sink = made.input("c", "M")[:, None]
    top = np.maximum(s.max(-1, keepdims=True), sink)
    e = np.exp(s - top)
    return e / (e.sum(-1, keepdims=True) + np.exp(sink - top))


def _written_out(_: SoftmaxPrograms, s: Any) -> Any:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _cooled(_: SoftmaxPrograms, s: Any) -> Any:
    e = np.exp((s - s.max(-1, keepdims=True)) / 2.0)
    return e / e.sum(-1, keepdims=True)


SPELLINGS: Mapping[str, Callable[[SoftmaxPrograms, Any], Any]] = {
    "by name": lambda _, s: bb.softmax(s, axis=-1),
    "written out": _written_out,
    "with a temperature": _cooled,
    "with a sink": _with_a_sink,
    "of a logarithm": lambda _, s: np.exp(bb.log_softmax(s, axis=-1)),
}


def softmax_programs(count: int, first: int = 0) -> list[Graph]:
    """The block programs of ``count`` seeds from ``first`` on."""
    return [lower(SoftmaxPrograms(Random(first + at)).program()) for at in range(count)]
