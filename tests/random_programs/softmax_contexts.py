"""Softmax-like functions in random contexts, for the property that none of them is ever unsafe.

A context draws scores (an input or a product, scaled, biased, masked), changes their axes
(transposes, merges, splits them), and applies a function that does not overflow in NumPy (softmax,
a logarithm of sums, softplus, or one of these written out with its maximum). It then reads the
result in random ways: by reductions along and across the normalized axis, through other axes,
twice, by another such function, by a product. The program is a plain function, so that NumPy can
compute it eagerly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any

import numpy as np

from blockbuster import frontend as bb

Array = Any
Step = Callable[[Array, Mapping[str, Array]], Array]
Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = ((3, 4), (2, 3, 4), (2, 2, 3, 2), (1, 5), (4, 1, 3), (6,), (2, 4, 4))
MOST_READERS = 4


@dataclass(frozen=True)
class Context:
    """A function of named arrays, and the words that say what it does.

    Arrays of NumPy run it eagerly; it can be traced and compiled as any function can.
    """

    inputs: Mapping[str, Shape]
    steps: tuple[Step, ...]
    words: tuple[str, ...]
    __name__ = "context"

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in self.inputs])

    def __call__(self, *args: Array, **named: Array) -> Array:
        arrays = dict(zip(self.inputs, args, strict=False)) | named
        value = arrays["x"]
        for step in self.steps:
            value = step(value, arrays)
        return value

    def __str__(self) -> str:
        return " | ".join(self.words)

    def drawn(self, scale: float, seed: int) -> dict[str, np.ndarray]:
        """Inputs in float64: scores of this size, factors near one."""
        random = np.random.default_rng(seed)
        return {
            name: random.standard_normal(shape) * (scale if name == "x" else 1.0)
            for name, shape in self.inputs.items()
        }


@dataclass
class _Draw:
    """A context being drawn: what the value looks like so far."""

    random: Random
    shape: Shape
    inputs: dict[str, Shape] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def then(self, words: str, step: Step) -> None:
        """Apply a step, and see what shape it gives."""
        zeros = {name: np.ones(shape) for name, shape in self.inputs.items()}
        with np.errstate(all="ignore"):
            self.shape = np.shape(step(np.ones(self.shape), zeros))
        self.steps.append(step)
        self.words.append(words)

    def axis(self) -> int:
        """An axis, from either end."""
        return self.random.randrange(-len(self.shape), len(self.shape))

    def given(self, shape: Shape) -> str:
        """A new input of this shape."""
        name = f"g{len(self.inputs)}"
        self.inputs[name] = shape
        return name

    def broadcast(self) -> Shape:
        """A shape that broadcasts against the value's."""
        start = self.random.randrange(len(self.shape) + 1)
        return tuple(n if self.random.random() < 0.7 else 1 for n in self.shape[start:])


def context(seed: int) -> Context:
    """The context of a seed."""
    random = Random(seed)
    shape = random.choice(SHAPES)
    draw = _Draw(random, shape, {"x": shape})
    for _ in range(random.randrange(3)):
        random.choice((_scaled, _biased, _masked, _multiplied, _read_otherwise))(draw)
    _stable_function(draw)
    for _ in range(random.randint(1, MOST_READERS)):
        random.choice(READERS)(draw)
    return Context(draw.inputs, tuple(draw.steps), tuple(draw.words))


# scores ---------------------------------------------------------------------------


def _scaled(draw: _Draw) -> None:
    by = draw.random.choice((0.5, -1.0, 2.0))
    draw.then(f"x * {by}", lambda x, _: x * by)


def _biased(draw: _Draw) -> None:
    name = draw.given(draw.broadcast())
    draw.then("x + bias", lambda x, given: x + given[name])


def _masked(draw: _Draw) -> None:
    name, value = draw.given(draw.shape), draw.random.choice((-np.inf, -1e9, -1e4))
    if np.isinf(value) and 1 in draw.shape:
        value = -1e9  # a row of one element that is masked is NaN in eager
    draw.then(f"where(g > -2, x, {value})", lambda x, g: bb.where(g[name] > -2.0, x, value))


def _multiplied(draw: _Draw) -> None:
    if len(draw.shape) < 2:
        return
    name = draw.given((draw.shape[-1], 3))
    draw.then("@ w", lambda x, given: x @ given[name])


# other axes -----------------------------------------------------------------------


def _read_otherwise(draw: _Draw) -> None:
    if draw.shape:
        draw.random.choice(VIEWS)(draw)


def _transposed(draw: _Draw) -> None:
    order = draw.random.sample(range(len(draw.shape)), len(draw.shape))
    draw.then(f"transpose {order}", lambda x, _: bb.transpose(x, order))


def _merged(draw: _Draw) -> None:
    if len(draw.shape) < 2:
        return
    at = draw.random.randrange(len(draw.shape) - 1)
    joined = (*draw.shape[:at], draw.shape[at] * draw.shape[at + 1], *draw.shape[at + 2 :])
    draw.then(f"reshape {joined}", lambda x, _: x.reshape(joined))


def _split(draw: _Draw) -> None:
    at = draw.random.randrange(len(draw.shape))
    extent = draw.shape[at]
    outer = draw.random.choice([n for n in range(1, extent + 1) if extent % n == 0])
    parts = (*draw.shape[:at], outer, extent // outer, *draw.shape[at + 1 :])
    draw.then(f"reshape {parts}", lambda x, _: x.reshape(parts))


def _flattened(draw: _Draw) -> None:
    whole = (prod(draw.shape),)
    draw.then("flatten", lambda x, _: x.reshape(whole))


VIEWS = (_transposed, _merged, _split, _flattened)


# functions that are safe in eager ---------------------------------------------------


def _written_out(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _log_written_out(x: Array, axis: int) -> Array:
    top = x.max(axis, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(axis, keepdims=True))


def _sum_written_out(x: Array, axis: int) -> Array:
    top = x.max(axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis)) + top.squeeze(axis)


def _entropy(x: Array, axis: int) -> Array:
    logs = bb.log_softmax(x, axis=axis)
    return -(bb.softmax(x, axis=axis) * bb.maximum(logs, -1e30)).sum(axis)


ALONG: Mapping[str, Callable[[Array, int], Array]] = {
    "softmax": lambda x, axis: bb.softmax(x, axis=axis),
    "softmax, safe": lambda x, axis: bb.softmax(x, axis=axis, safe=True),
    "softmin": lambda x, axis: bb.softmax(-x, axis=axis),
    "log_softmax": lambda x, axis: bb.log_softmax(x, axis=axis),
    "logsumexp": lambda x, axis: bb.logsumexp(x, axis=axis),
    "logsumexp, keepdims": lambda x, axis: bb.logsumexp(x, axis=axis, keepdims=True),
    "x - logsumexp": lambda x, axis: x - bb.logsumexp(x, axis=axis, keepdims=True),
    "exp(log_softmax)": lambda x, axis: np.exp(bb.log_softmax(x, axis=axis)),
    "softmax by hand": _written_out,
    "log_softmax by hand": _log_written_out,
    "logsumexp by hand": _sum_written_out,
    "entropy": _entropy,
}
POINTWISE: Mapping[str, Callable[[Array], Array]] = {
    "softplus by hand": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "logaddexp": lambda x: np.logaddexp(x, 1.0),
    "sigmoid": bb.sigmoid,
    "silu": bb.silu,
    "tanh": np.tanh,
    "gelu": bb.gelu,
}


def _stable_function(draw: _Draw) -> None:
    if draw.shape and draw.random.random() < 0.85:
        name, axis = draw.random.choice([*ALONG]), draw.axis()
        draw.then(f"{name}, axis {axis}", lambda x, _: ALONG[name](x, axis))
    else:
        name = draw.random.choice([*POINTWISE])
        draw.then(name, lambda x, _: POINTWISE[name](x))


# readers --------------------------------------------------------------------------


def _reduced(draw: _Draw) -> None:
    if not draw.shape:
        return
    fn, axis = draw.random.choice(("sum", "mean", "max", "min")), draw.axis()
    keep = draw.random.random() < 0.4
    draw.then(f"{fn} {axis}", lambda x, _: getattr(np, fn)(x, axis=axis, keepdims=keep))


def _reduced_whole(draw: _Draw) -> None:
    fn = draw.random.choice(("sum", "mean"))
    draw.then(f"{fn} of all", lambda x, _: getattr(np, fn)(x))


def _factored(draw: _Draw) -> None:
    name = draw.given(draw.broadcast())
    draw.then("y * g", lambda x, given: x * given[name])


def _hidden(draw: _Draw) -> None:
    name = draw.given(draw.shape)
    draw.then("where(g > 0, y, 0)", lambda x, given: bb.where(given[name] > 0, x, 0.0))


def _squared(draw: _Draw) -> None:
    draw.then("y * y", lambda x, _: x * x)


def _twice(draw: _Draw) -> None:
    if not draw.shape:
        return
    axis = draw.axis()
    fn = draw.random.choice(("sum", "max", "mean"))
    draw.then(f"y - {fn} {axis}", lambda x, _: x - getattr(np, fn)(x, axis=axis, keepdims=True))


def _beside_scores(draw: _Draw) -> None:
    if draw.shape == draw.inputs["x"]:
        draw.then("y * tanh(x)", lambda y, given: y * np.tanh(given["x"]))


READERS = (
    _reduced, _reduced, _reduced, _reduced_whole, _factored, _hidden, _squared, _multiplied, _twice,
    _beside_scores, _read_otherwise, _read_otherwise, _stable_function,
)  # fmt: skip
