"""Random array programs whose adjacent axes often merge: each operator that has to tell is drawn.

The last value is the result, sometimes with another one. Dims are words until a value has an axis
whose length follows from others; it is then written "?".
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import blockbuster as bb
from blockbuster.frontend.array import TracedArray

Axis = str | int
FOLDS = (bb.sum, bb.mean, bb.max, bb.min, bb.var)
Step = Callable[[dict[str, Any]], Any]


@dataclass
class MergingProgram:
    """A function of arrays, in steps, and the dim strings of its inputs."""

    random: Random
    inputs: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    shapes: list[tuple[Axis, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        axes = tuple("ABCDE"[: self.random.choice((3, 3, 4, 4, 5))])
        self.given("x", axes)
        self.shapes.append(axes)
        self.steps.append(lambda known: known["x"])
        for number in range(self.random.randint(1, 6)):
            at = self.random.randrange(max(len(self.shapes) - 3, 0), len(self.shapes))
            if self.shapes[at]:
                self.random.choice(DRAWS)(self, at, number)
        self.outputs = [len(self.steps) - 1, *self.random.sample(range(len(self.steps)), 1)]
        self.outputs = self.outputs[: self.random.choice((1, 1, 2))]

    def __call__(self, **arrays: TracedArray) -> tuple[TracedArray, ...]:
        known: dict[str, Any] = dict(arrays)
        for number, step in enumerate(self.steps):
            known[f"#{number}"] = step(known)
        return tuple(known[f"#{number}"] for number in self.outputs)

    __name__ = "drawn"

    def given(self, name: str, axes: tuple[Axis, ...]) -> str:
        self.inputs[name] = " ".join(map(str, axes))
        return name

    def step(self, at: int, fn: Callable[..., Any], axes: tuple[Axis, ...], *names: str) -> None:
        """A step that applies ``fn`` to value ``at`` and to inputs."""
        taken = (f"#{at}", *names)
        self.steps.append(lambda known: fn(*(known[name] for name in taken)))
        self.shapes.append(axes)

    def is_known(self, *axes: Axis) -> bool:
        return "?" not in axes


def _pointwise(p: MergingProgram, at: int, _: int) -> None:
    p.step(at, p.random.choice((lambda x: bb.exp(-bb.abs(x)), bb.relu, bb.square)), p.shapes[at])


def _sizes(p: MergingProgram, at: int, _: int) -> None:
    axes = p.shapes[at]
    i, j = (p.random.randrange(len(axes)) for _ in range(2))
    p.step(at, lambda x: x * (x.shape[i] * x.shape[j]) / x.shape[0], axes)


def _minus_another(p: MergingProgram, at: int, _: int) -> None:
    axes = p.shapes[at]
    same = [n for n, other in enumerate(p.shapes) if other == axes and p.is_known(*axes)]
    if same:
        other = f"#{p.random.choice(same)}"
        p.step(at, lambda x, y: x - y, axes, other)


def _around_the_mean(p: MergingProgram, at: int, _: int) -> None:
    axes = p.shapes[at]
    over = _adjacent(p.random, len(axes))
    p.step(at, lambda x: x - bb.mean(x, over, keepdims=True), axes)


def _weighted(p: MergingProgram, at: int, number: int) -> None:
    axes = p.shapes[at][p.random.randrange(len(p.shapes[at])) :]
    axes = tuple(axis if p.random.random() < 0.8 else 1 for axis in axes)
    if p.is_known(*axes):
        p.step(at, lambda x, w: x * w, p.shapes[at], p.given(f"b{number}", axes))


def _adjacent(random: Random, rank: int) -> tuple[int, ...]:
    first = random.randrange(rank)
    return tuple(range(first, random.randint(first, rank - 1) + 1))


def _fold(p: MergingProgram, at: int, _: int) -> None:
    axes, keeps = p.shapes[at], p.random.random() < 0.5
    over = _adjacent(p.random, len(axes))
    if p.random.random() < 0.2:
        over = tuple(p.random.sample(range(len(axes)), p.random.randint(1, len(axes))))
    kept = tuple(1 if i in over else a for i, a in enumerate(axes) if keeps or i not in over)
    fold = p.random.choice(FOLDS)
    p.step(at, lambda x: fold(x, over, keeps), kept)


def _along(p: MergingProgram, at: int, _: int) -> None:
    axis = p.random.randrange(-len(p.shapes[at]), len(p.shapes[at]))
    fn = p.random.choice((bb.softmax, bb.log_softmax))
    p.step(at, lambda x: fn(x, axis), p.shapes[at])


def _logsumexp(p: MergingProgram, at: int, _: int) -> None:
    axis = p.random.randrange(len(p.shapes[at]))
    axes = p.shapes[at][:axis] + p.shapes[at][axis + 1 :]
    p.step(at, lambda x: bb.logsumexp(x, axis), axes)


def _norm(p: MergingProgram, at: int, number: int) -> None:
    last = p.shapes[at][-1]
    if p.is_known(last):
        fn = p.random.choice((bb.rms_norm, bb.layer_norm))
        p.step(at, fn, p.shapes[at], p.given(f"g{number}", (last,)))


def _linear(p: MergingProgram, at: int, number: int) -> None:
    *rows, inner = p.shapes[at]
    if rows and p.is_known(inner):
        columns = p.random.choice(("N", inner))
        weight = p.given(f"w{number}", (inner, columns))
        p.step(at, lambda x, w: x @ w, (*rows, columns), weight)


def _batched(p: MergingProgram, at: int, number: int) -> None:
    axes = p.shapes[at]
    if len(axes) < 3 or not p.is_known(*axes):
        return
    *lead, rows, inner = axes
    batch = tuple(axis if p.random.random() < 0.7 else 1 for axis in lead)
    if p.random.random() < 0.5:
        other = p.given(f"w{number}", (*batch, inner, "N"))
        p.step(at, lambda x, w: x @ w, (*lead, rows, "N"), other)
    else:
        other = p.given(f"w{number}", (*batch, "N", rows))
        p.step(at, lambda x, w: w @ x, (*lead, "N", inner), other)


def _transposed(p: MergingProgram, at: int, _: int) -> None:
    axes = p.shapes[at]
    turn = p.random.randrange(len(axes))
    order = [*range(turn, len(axes)), *range(turn)]
    if p.random.random() < 0.5:
        p.random.shuffle(order)
    p.step(at, lambda x: bb.transpose(x, tuple(order)), tuple(axes[i] for i in order))


def _unit(p: MergingProgram, at: int, _: int) -> None:
    axes, place = p.shapes[at], p.random.randint(0, len(p.shapes[at]))
    p.step(at, lambda x: bb.expand_dims(x, place), (*axes[:place], 1, *axes[place:]))


def _sliced(p: MergingProgram, at: int, _: int) -> None:
    axes, axis = p.shapes[at], p.random.randrange(len(p.shapes[at]))
    cut = p.random.choice((slice(1, None), slice(None, None, 2), slice(None, -1)))
    if axes[axis] != 1:
        key = (*(slice(None),) * axis, cut)
        p.step(at, lambda x: x[key], (*axes[:axis], "?", *axes[axis + 1 :]))


def _joined(p: MergingProgram, at: int, _: int) -> None:
    axes, axis = p.shapes[at], p.random.randrange(len(p.shapes[at]))
    p.step(at, lambda x: bb.concat((x, x), axis), (*axes[:axis], "?", *axes[axis + 1 :]))


def _flattened(p: MergingProgram, at: int, _: int) -> None:
    axes = p.shapes[at]
    over, back = _adjacent(p.random, len(axes)), p.random.random() < 0.5
    along = p.random.choice((0, over[0], -1))

    def fn(x: TracedArray) -> TracedArray:
        flat = bb.reshape(x, (*x.shape[: over[0]], -1, *x.shape[over[-1] + 1 :]))
        return bb.reshape(bb.softmax(flat, along), x.shape) if back else flat

    p.step(at, fn, axes if back else (*axes[: over[0]], "?", *axes[over[-1] + 1 :]))


def _cast(p: MergingProgram, at: int, _: int) -> None:
    p.step(at, lambda x: x.astype("float32"), p.shapes[at])


def _positions(p: MergingProgram, at: int, _: int) -> None:
    axis = p.random.randrange(len(p.shapes[at]))
    along = (..., *(None,) * (len(p.shapes[at]) - 1 - axis))
    if p.shapes[at][axis] != 1:
        p.step(at, lambda x: x * bb.arange(x.shape[axis])[along], p.shapes[at])


DRAWS = (
    _pointwise, _sizes, _minus_another, _around_the_mean, _around_the_mean, _weighted, _weighted,
    _fold, _fold, _fold, _along, _logsumexp, _norm, _linear, _linear, _batched, _transposed, _unit,
    _sliced, _joined, _flattened, _flattened, _cast, _positions,
)  # fmt: skip
