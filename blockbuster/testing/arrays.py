"""Random array programs: two to nine array operators over a few named dims."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from blockbuster.frontend import functions

Axes = tuple[str, ...]

bb: Any = functions  # which looks its names up in the table

# operators that keep the shape of one array, and of two of one shape
SAME_SHAPE: dict[str, Callable[..., Any]] = {
    "tanh": bb.tanh,
    "silu": bb.silu,
    "relu": bb.relu,
    "scaled": lambda x: x * 0.5 + 1,
    "decayed": lambda x: bb.exp(-bb.abs(x)),
    "softmax": lambda x: bb.softmax(bb.tanh(x)),
    "safe_softmax": lambda x: bb.softmax(x, safe=True),
    "rms_norm": lambda x: bb.rms_norm(x, eps=0.1),
    "layer_norm": lambda x: bb.layer_norm(x, eps=0.1),
    "centered": lambda x: x - bb.mean(x, axis=-1, keepdims=True),
    "masked": lambda x: bb.where(
        bb.arange(x.shape[-2])[:, None] >= bb.arange(x.shape[-1]), x, -1.0
    ),
}
PAIRS: dict[str, Callable[..., Any]] = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y}
PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": lambda x, y: bb.tanh(x @ y),
    "matmul_transposed": lambda x, y: bb.tanh(x @ _turned(y)),
}
FOLDS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: bb.sum(x, axis=-1),
    "max": lambda x: bb.max(x, axis=-1),
}
OPERATORS = {**SAME_SHAPE, **PAIRS, **PRODUCTS, **FOLDS, "transpose": lambda x: _turned(x)}


def _turned(x: Any) -> Any:
    axes = tuple(range(len(x.shape)))
    return bb.transpose(x, (*axes[:-2], axes[-1], axes[-2]))


@dataclass(frozen=True)
class ArrayFunction:
    """A function of arrays as data: operators applied to earlier values, inputs first.

    A step is the name of an operator, the positions of its operands, and perhaps a tuple of other
    arguments. The function can be called, traced (``trace(f, **f.inputs)``) and printed.
    """

    inputs: dict[str, str]
    steps: tuple[tuple[Any, ...], ...]
    outputs: tuple[int, ...]
    __name__ = "array_function"
    operators: ClassVar[Mapping[str, Callable[..., Any]]] = OPERATORS

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in self.inputs])

    def __call__(self, *args: Any, **named: Any) -> Any:
        values = [*args, *(named[name] for name in list(self.inputs)[len(args) :])]
        for name, operands, *options in self.steps:
            given = (values[i] for i in operands)
            values.append(self.operators[name](*given, *(o for more in options for o in more)))
        results = tuple(values[i] for i in self.outputs)
        return results if len(results) > 1 else results[0]


def random_array_function(random: Random) -> ArrayFunction:
    """Two to four matrices, with or without a batch dim, and two to nine operators on them."""
    batch = "B " if random.random() < 0.2 else ""
    inputs: dict[str, str] = {}
    shapes: list[Axes] = []
    for name in ("x", "y", "z", "w")[: random.randint(2, 4)]:
        axes = (random.choice("MN"), random.choice("KN"))
        shapes.append(axes if axes[0] != axes[1] else (axes[0], "K"))
        inputs[name] = batch + " ".join(shapes[-1])
    given = len(shapes)
    steps: list[tuple[str, tuple[int, ...]]] = []
    for _ in range(random.randint(2, 9)):
        name, operands, shape = random.choice(_choices(random, shapes))
        steps.append((name, operands))
        shapes.append(shape)
    if random.random() < 0.3:
        whole = [i for i, shape in enumerate(shapes) if shape]
        steps.append((random.choice(list(FOLDS)), (random.choice(whole),)))
        shapes.append(())
    made = range(given, len(shapes))
    chosen = [made[-1], *random.sample(made[:-1], min(len(made) - 1, random.choice((0, 0, 1, 2))))]
    return ArrayFunction(inputs, tuple(steps), tuple(dict.fromkeys(chosen)))


def _choices(random: Random, shapes: list[Axes]) -> list[tuple[str, tuple[int, ...], Axes]]:
    """One candidate of each kind that the values at hand allow; products count three times."""
    found: list[tuple[str, tuple[int, ...], Axes]] = []
    at = random.randrange(len(shapes))
    found.append((random.choice(list(SAME_SHAPE)), (at,), shapes[at]))
    found.append(("transpose", (at,), shapes[at][::-1]))
    pairs = [(i, j) for i in range(len(shapes)) for j in range(len(shapes))]
    alike = [(i, j) for i, j in pairs if shapes[i] == shapes[j]]
    i, j = random.choice(alike)
    found.append((random.choice(list(PAIRS)), (i, j), shapes[i]))
    for name, side in (("matmul", 0), ("matmul_transposed", 1)):
        fitting = [(i, j) for i, j in pairs if shapes[i][1] == shapes[j][side]]
        if fitting:
            i, j = random.choice(fitting)
            found += 2 * [(name, (i, j), (shapes[i][0], shapes[j][1 - side]))]
    return found


NORMS = ("rms_norm", "layer_norm", "softmax", "centered", "scaled", "tanh")
ACTIVATIONS = ("tanh", "silu", "relu")


def random_norm_function(random: Random) -> ArrayFunction:
    """One or two rounds: a norm, one to three matmuls of it, activations, sums and products.

    At times something else needs the normalized value too: it is a result of its own, or a matmul
    takes it with itself (x @ x.T).
    """
    widths = [random.randint(1, 3) for _ in range(random.randint(1, 2))]
    inputs = {"x": "M K"}
    for level, width in enumerate(widths):
        dims = ("K N", "N L")[level]
        inputs |= {f"w{level}{product}": dims for product in range(width)}
    steps: list[tuple[str, tuple[int, ...]]] = []
    kept: list[int] = []

    def add(name: str, *operands: int) -> int:
        steps.append((name, operands))
        return len(inputs) + len(steps) - 1

    at, weights = 0, iter(range(1, len(inputs)))
    for width in widths:
        normal = add(random.choice(NORMS), at)
        if random.random() < 0.2:
            itself = random.random() < 0.5
            kept.append(normal if itself else add("matmul_transposed", normal, normal))
        products = [add("matmul", normal, next(weights)) for _ in range(width)]
        if random.random() < 0.5:
            products[0] = add(random.choice(ACTIVATIONS), products[0])
        at = products[0]
        for other in products[1:]:
            at = add(random.choice(list(PAIRS)), at, other)
    return ArrayFunction(inputs, tuple(steps), (at, *kept))
