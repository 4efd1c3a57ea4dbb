"""Broad random array programs: views, masks, norms, batch dims, sizes of 1, several outputs.

A program grows step by step, beside NumPy arrays and beside a trace of it. A step is taken if NumPy
computes it from the arrays, its numbers stay moderate, and tracing accepts it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

import numpy as np

from blockbuster.errors import TraceError
from blockbuster.frontend.trace import trace
from blockbuster.testing.arrays import ArrayFunction
from tests.random_programs.broad_operators import (
    OPAQUE,
    OPERATORS,
    PAIRS,
    POINTWISE,
    REDUCTIONS,
    RELATIONS,
)
from tests.random_programs.broad_views import concat, heads, indexed, spread, turned, windowed

Array = Any
Options = tuple[Any, ...]
Drawn = tuple[str, tuple[int, ...], Options]

LARGEST = 1e3
MOST_AXES = 4
MOST_ELEMENTS = 600
TRIES = 12  # draws for one step
WITH_ITSELF = ("gram", "gram_of_columns", "with_transpose", "plus_transpose")
DTYPES = ("float16", "float32", "float64", "bfloat16")


class BroadFunction(ArrayFunction):
    """A function of arrays as data, whose steps have options: axes, bounds, dtypes."""

    operators: ClassVar[Mapping[str, Callable[..., Any]]] = OPERATORS


@dataclass(frozen=True)
class Example:
    """A function, and arrays that it takes."""

    function: BroadFunction
    arrays: dict[str, Array] = field(compare=False)

    @property
    def is_rounded(self) -> bool:
        """True if the function casts to a dtype narrower than float64."""
        return any(name == "astype" and o != ("float64",) for name, _, o in self.function.steps)


def broad_example(
    random: Random, *, most_steps: int = 8, empty: bool = False, opaque: bool = True
) -> Example:
    """A random function and arrays for it; ``empty``: dims may have no elements.

    ``opaque``: functions that no rule looks into, such as ``np.sort``, may occur.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
        return Growing(random, empty=empty, opaque=opaque).example(most_steps)


class Growing:
    """A program so far: its values as arrays and as traced arrays."""

    def __init__(self, random: Random, *, empty: bool, opaque: bool) -> None:
        self.random = random
        self.opaque = opaque
        extents = (1, 2, 2, 3, 3, 4, 5) + ((0,) if empty else ())
        self.sizes = {dim: random.choice(extents) for dim in "BMNK"}
        self.given: dict[str, str] = {}
        self.arrays: list[Array] = []
        self.steps: list[Drawn] = []
        self.numbers = np.random.default_rng(random.randrange(2**32))

    def example(self, most_steps: int) -> Example:
        self.given = self.inputs()
        given = len(self.given)
        wanted = self.random.randint(1, most_steps)
        for _ in range(3 * wanted):
            if len(self.steps) < wanted:
                self.grow()
        if not self.steps:
            self.take(("scaled", (0,), (2.0, 1.0)))
        made = range(given, len(self.arrays))
        more = self.random.choice((0, 0, 0, 1, 2))
        chosen = [made[-1], *self.random.sample(made[:-1], min(len(made) - 1, more))]
        return Example(self.function(*dict.fromkeys(chosen)), self.inputs_by_name())

    def function(self, *outputs: int, more: tuple[Drawn, ...] = ()) -> BroadFunction:
        """The steps so far, and ``more``."""
        return BroadFunction(self.given, (*self.steps, *more), outputs)

    def inputs_by_name(self) -> dict[str, Array]:
        return dict(zip(self.given, self.arrays, strict=False))

    def inputs(self) -> dict[str, str]:
        """One to four arrays over the dims, some axes of one element or of a fixed number."""
        found: dict[str, str] = {}
        for name in ("x", "y", "z", "w")[: self.random.randint(1, 4)]:
            rank = self.random.choice((1, 2, 2, 2, 2, 3, 3, 4))
            words = [self.random.choice("BMMNNKK") for _ in range(rank)]
            words = [
                self.random.choice("1124") if self.random.random() < 0.08 else w for w in words
            ]
            shape = [self.sizes[w] if w in self.sizes else int(w) for w in words]
            found[name] = " ".join(words)
            self.arrays.append(self.numbers.uniform(-2, 2, shape))
        return found

    def grow(self) -> None:
        """One more step, if one of some draws can be taken."""
        for _ in range(TRIES):
            drawn = self.random.choice(DRAWS)(self)
            if drawn is not None and self.take(drawn):
                return

    def take(self, drawn: Drawn) -> bool:
        """Append a step. False where NumPy or tracing refuses it, or its numbers are too large."""
        name, operands, options = drawn
        try:
            made = np.asarray(OPERATORS[name](*(self.arrays[i] for i in operands), *options))
        except (ValueError, IndexError, TraceError):  # shapes do not fit, a maximum of nothing
            return False
        if made.ndim > MOST_AXES or made.size > MOST_ELEMENTS:
            return False
        if made.dtype.kind != "b" and not (np.abs(made) < LARGEST).all():
            return False
        grown = self.function(len(self.arrays), more=(drawn,))
        try:
            trace(grown, **self.given).bind(self.inputs_by_name())
        except TraceError:
            return False
        except ValueError:  # the step ties sizes that these arrays do not have
            return False
        self.steps.append(drawn)
        self.arrays.append(made if made.dtype.kind == "b" else made.astype(float))
        return True

    # what operands are drawn from ------------------------------------------------

    def value(self, kind: str = "f", rank: int = 0) -> int | None:
        """A value of at least ``rank`` axes, often late; ``f``: numbers, ``b``: masks."""
        found = [i for i, a in enumerate(self.arrays) if a.dtype.kind == kind and a.ndim >= rank]
        if not found:
            return None
        return self.random.choice(found[-3:] if self.random.random() < 0.6 else found)

    def alike(self, first: int, kind: str = "f") -> Iterator[int]:
        """The values that broadcast against value ``first``."""
        for i, array in enumerate(self.arrays):
            pairs = zip(array.shape[::-1], self.arrays[first].shape[::-1], strict=False)
            if array.dtype.kind == kind and all(a == b or 1 in (a, b) for a, b in pairs):
                yield i

    def shape(self, at: int) -> tuple[int, ...]:
        return tuple(self.arrays[at].shape)

    def axis(self, at: int) -> int:
        rank = len(self.shape(at))
        return self.random.randrange(-rank, rank)

    def any_of(self, names: Mapping[str, Any]) -> str:
        return self.random.choice(list(names))

    def positions(self, at: int) -> Options:
        """Axes and the factors of their positions."""
        rank = len(self.shape(at))
        axes = self.random.sample(range(rank), self.random.randint(1, min(2, rank)))
        return tuple(axes), tuple(self.random.choice((1, 1, 1, -1, -1, 2, 0.5)) for _ in axes)

    def mask(self, at: int) -> Options:
        bound = self.random.choice((0, 0, 1, 1, 2, -1, 0.5, 3))
        return (*self.positions(at), self.any_of(RELATIONS), bound)


# one draw of each kind; None where the values at hand have no operands for it ------------


def _pointwise(to: Growing) -> Drawn | None:
    at = to.value()
    return None if at is None else (to.any_of(POINTWISE), (at,), ())


def _pair(to: Growing) -> Drawn | None:
    at = to.value()
    if at is None:
        return None
    pair = [at, to.random.choice(list(to.alike(at)))]
    to.random.shuffle(pair)
    return to.any_of(PAIRS), tuple(pair), ()


def _with_number(to: Growing) -> Drawn | None:
    at = to.value(rank=1)
    if at is None:
        return None
    numbers = (0.5, -1.0, 2.0, 0.125, 0.0)
    choices: tuple[tuple[str, Options], ...] = (
        ("scaled", (to.random.choice(numbers), to.random.choice(numbers))),
        ("divided", (to.random.choice(numbers),)),
        ("by_size", (to.axis(at), to.random.choice((1, -0.5, -1)))),
        ("with_positions", to.positions(at)),
        ("affine", to.positions(at)),
    )
    name, options = to.random.choice(choices)
    return name, (at,), options


def _reduction(to: Growing) -> Drawn | None:
    at = to.value(rank=1)
    if at is None:
        return None
    name, keeps = to.any_of(REDUCTIONS), to.random.random() < 0.5
    rank = len(to.shape(at))
    if name == "logsumexp" or to.random.random() < 0.7:
        return name, (at,), (to.axis(at), keeps)
    several = tuple(sorted(to.random.sample(range(rank), to.random.randint(1, rank))))
    return name, (at,), (to.random.choice((None, several)), keeps)


def _softmax(to: Growing) -> Drawn | None:
    at = to.value(rank=1)
    if at is None:
        return None
    if to.random.random() < 0.2:
        return "log_softmax", (at,), (to.axis(at),)
    return "softmax", (at,), (to.axis(at), to.random.random() < 0.3)


def _norm(to: Growing) -> Drawn | None:
    at = to.value(rank=1)
    if at is None:
        return None
    name, count = to.random.choice((("rms_norm", 1), ("layer_norm", 2)))
    weights = [i for i in to.alike(at) if to.arrays[i].ndim <= 1]
    some = to.random.random() < 0.4 and len(weights) > 0
    return name, (at, *(to.random.choices(weights, k=count) if some else ())), ()


def _matmul(to: Growing) -> Drawn | None:
    at = to.value(rank=1)
    if at is None:
        return None
    name = to.random.choice(("matmul", "matmul", "matmul_transposed", "attention", *WITH_ITSELF))
    if name in WITH_ITSELF:
        return (name, (at,), ()) if len(to.shape(at)) > 1 else None
    if name == "attention":
        k = to.random.choice(list(to.alike(at)))
        return name, (at, k, to.random.choice(list(to.alike(k)))), ()
    side = -1 if name == "matmul_transposed" else -2
    inner = to.shape(at)[-1]
    fitting = [i for i, a in enumerate(to.arrays) if a.ndim and a.shape[side:][0] == inner]
    others = [i for i in fitting if to.arrays[i].dtype.kind == "f"]
    return (name, (at, to.random.choice(others)), ()) if others else None


def _mask(to: Growing) -> Drawn | None:
    at = to.value(rank=1)
    if at is None:
        return None
    if to.random.random() < 0.2:
        return "compared", (at,), (to.random.choice("<>"), to.random.choice((0.37, -0.21, 1.13)))
    name = to.random.choice(("condition", "masked", "masked", "masked_softmax"))
    fill = (to.random.choice((-1.0, 0.0, 0.5)),) if name == "masked" else ()
    return name, (at,), (*to.mask(at), *fill)


def _choice(to: Growing) -> Drawn | None:
    mask = to.value("b")
    if mask is None:
        return _mask(to)
    kind = to.random.choice(("where", "where", "chosen", "chosen_not", *2 * ("logical",)))
    if kind == "logical":
        others = list(to.alike(mask, "b"))
        name = to.random.choice(("both", "either", "not"))
        return (name, (mask,) if name == "not" else (mask, to.random.choice(others)), ())
    fitting = list(to.alike(mask))
    if not fitting:
        return None
    if kind == "where":
        return kind, (mask, to.random.choice(fitting), to.random.choice(fitting)), ()
    return kind, (mask, to.random.choice(fitting)), (to.random.choice((-1.0, 0.0, 0.5)),)


def _cast(to: Growing) -> Drawn | None:
    at = to.value()
    return None if at is None else ("astype", (at,), (to.random.choice(DTYPES),))


def _opaque(to: Growing) -> Drawn | None:
    at = to.value(rank=1)
    if at is None or not to.opaque:
        return None
    return to.any_of(OPAQUE), (at,), (to.axis(at),)


DRAWS: tuple[Callable[[Growing], Drawn | None], ...] = (
    *2 * (_pointwise, _pair, _with_number), *3 * (_reduction, _matmul, indexed, _mask),
    *2 * (_softmax, _norm, _choice, turned, spread, concat, heads), _cast, _opaque, windowed,
)  # fmt: skip
"""Kinds of steps, each as often as it is to be drawn."""
