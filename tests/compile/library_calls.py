"""Calls of NumPy's and torch's functions for arrays of any dtype, with axes and without.

One call or more for each row of the table of functions that takes arrays of several dtypes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import blockbuster as bb

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]

WITHOUT_AXES: tuple[Shape, ...] = ((),)
WITH_AXES: tuple[Shape, ...] = (
    (3,), (1,), (0,), (2, 3), (1, 3), (3, 1), (0, 3), (3, 0), (2, 3, 4), (2, 1, 4), (2, 0, 4),
)  # fmt: skip
MATRICES = tuple(shape for shape in WITH_AXES if len(shape) > 1)
ONE = tuple((shape,) for shape in (*WITHOUT_AXES, *WITH_AXES))
AXES = tuple((shape,) for shape in WITH_AXES)
PLANES = tuple((shape,) for shape in MATRICES)
SAME = tuple((shape, shape) for shape in (*WITHOUT_AXES, *WITH_AXES))
PAIRS: tuple[Shapes, ...] = (
    *SAME, ((2, 3), (3,)), ((2, 3), (1,)), ((3,), ()), ((3, 1), (1, 3)), ((2, 0), (2, 1)),
)  # fmt: skip
PRODUCTS: tuple[Shapes, ...] = (
    ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((1, 3), (3, 1)),
    ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((1, 1), (1, 1)),
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A function of arrays of these shapes; ``positive``: of numbers above 0."""

    library: str
    name: str
    function: Callable[..., Any]
    shapes: tuple[Shapes, ...] = ONE
    positive: bool = False

    def __str__(self) -> str:
        return f"{self.library}-{self.name}"


def _named(name: str) -> Callable[..., Any]:
    """A function of torch's, in the module where it is: those in C have no signatures."""
    found = getattr(torch, name, None) or getattr(F, name)
    return lambda *arrays: found(*arrays)


POSITIVE = ("log", "sqrt", "log1p", "log2", "log10", "reciprocal", "rsqrt")

NUMPY_UNARY = (
    "exp", "log", "sqrt", "tanh", "absolute", "square", "reciprocal", "floor", "ceil", "trunc",
    "sin", "cos", "tan", "log1p", "expm1", "exp2", "log2", "log10", "sign", "isnan", "isinf",
    "isfinite", "negative", "logical_not", "zeros_like", "ones_like", "ravel", "flip", "squeeze",
)  # fmt: skip
TORCH_UNARY = (
    "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "erf", "abs", "square", "reciprocal",
    "floor", "ceil", "trunc", "round", "sin", "cos", "tan", "log1p", "expm1", "sign", "exp2",
    "log2", "log10", "isnan", "isinf", "isfinite", "neg", "logical_not", "zeros_like", "ones_like",
)  # fmt: skip
NUMPY_REDUCTIONS = (
    "sum", "max", "min", "mean", "var", "std", "any", "all", "count_nonzero", "prod", "ptp",
)  # fmt: skip
TORCH_REDUCTIONS = ("sum", "amax", "amin", "mean", "var", "std", "any", "all", "count_nonzero")
ALONG = ("argmax", "argmin", "cumsum", "cumprod")

TWO: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "<": operator.lt, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
WITH_NUMBERS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, ">": operator.gt, "==": operator.eq,
    "reversed -": lambda x, c: c - x,
}  # fmt: skip
NUMBERS = (0, 1, 3, 0.5, 2.0, True)


def _over(function: Any, **named: Any) -> Callable[..., Any]:
    return lambda x: function(x, **named)


def _numpy() -> list[Call]:
    def one(name: str, function: Any, shapes: tuple[Shapes, ...] = ONE, positive: bool = False):
        return Call("numpy", name, function, shapes, positive)

    named = [one(n, getattr(np, n), ONE, n in POSITIVE) for n in NUMPY_UNARY]
    reduced = [
        one(f"{n} {a}", _over(getattr(np, n), **({} if a == "all" else {"axis": a})), shapes)
        for n in NUMPY_REDUCTIONS
        for a, shapes in (("all", ONE), (-1, AXES), (0, AXES), ((), ONE), ((0, 1), PLANES))
    ]
    along = [one(f"{n} {a}", _over(getattr(np, n), axis=a), AXES) for n in ALONG for a in (0, -1)]
    pairs = [one(name, function, PAIRS, name == "/") for name, function in TWO.items()]
    two = ("maximum", "minimum", "logaddexp", "hypot", "logical_and", "logical_or")
    pairs += [one(n, getattr(np, n), PAIRS) for n in two]
    numbers = [
        one(f"{name} {c!r}", lambda x, f=f, c=c: f(x, c)) for name, f in WITH_NUMBERS.items()
        for c in NUMBERS
    ]  # fmt: skip
    return [*named, *reduced, *along, *pairs, *numbers, *_joins(one), *_numpy_products(one)]


def _joins(one: Any) -> list[Call]:
    return [
        one("where", lambda x, y: np.where(x > y, x, y), PAIRS),
        one("clip", lambda x: np.clip(x, 1, 2)),
        one("argmax of all", np.argmax), one("sort", np.sort, AXES),
        one("stack", lambda x: np.stack([x, x], -1)),
        one("flip of a stack", lambda x: np.flip(np.stack([x, x]), 0)),
        one("concatenate", lambda x: np.concatenate([x, x], -1), AXES),
        one("with floats", lambda x: np.concatenate([x, x * 0.5], -1), AXES),
        one("vstack", lambda x: np.vstack([x, x])), one("hstack", lambda x: np.hstack([x, x])),
        one("roll", lambda x: np.roll(x, 1), AXES),
        one("roll 0", lambda x: np.roll(x, -1, 0), AXES),
        one("tile", lambda x: np.tile(x, (2, 1))), one("repeat", lambda x: np.repeat(x, 2)),
        one("pad", lambda x: np.pad(x, 1, constant_values=2.5), AXES),
        one("pad a side", lambda x: np.pad(x, ((0, 0), (1, 0)), constant_values=2.5), (((2, 3),),)),
        one("diff", np.diff, (((3,),), ((2, 3),), ((2, 3, 4),))),
        one("take", lambda x: np.take(x, np.array([-1, 0]), -1), (((3,),), ((2, 3),), ((3, 1),))),
        one("full_like", lambda x: np.full_like(x, 2.5)),
        one("full_like of a dtype", lambda x: np.full_like(x, 2.5, dtype=np.int16)),
        one("tril", np.tril, PLANES), one("triu", lambda x: np.triu(x, 1), PLANES),
        one("diagonal", np.diagonal, PLANES[:5]), one("trace", np.trace, PLANES[:5]),
        one("one row each", lambda x: x[np.arange(2), np.array([0, 1])], (((2, 3),),)),
        one("average", np.average), one("float_power", lambda x: np.float_power(x, 2)),
    ]  # fmt: skip


def _numpy_products(one: Any) -> list[Call]:
    sums = ("ij->ji", "ij->i", "ij->", "i,i->", "ij,jk->ik", "ij,ij->ij", "i,j->ij", "ij,j->i")
    extents = {"i": 2, "j": 3, "k": 4}

    def shapes_of(text: str) -> tuple[Shapes, ...]:
        terms = text.partition("->")[0].split(",")
        whole = tuple(tuple(extents[c] for c in term) for term in terms)
        return whole, tuple(tuple(1 if c == "j" else extents[c] for c in t) for t in terms)

    return [
        one("matmul", np.matmul, PRODUCTS), one("dot", np.dot, PRODUCTS),
        one("inner", lambda x, y: np.inner(x, y.T), PRODUCTS),
        one("tensordot", lambda x, y: np.tensordot(x, y, 1), PRODUCTS),
        one("outer", np.outer, (((3,), (2,)), ((0,), (2,)), ((1,), (1,)))),
        one("vdot", np.vdot, (((3,), (3,)), ((2, 3), (3, 2)), ((3, 1), (1, 3)), ((), ()))),
        *(one(f"einsum {s}", lambda *x, s=s: np.einsum(s, *x), shapes_of(s)) for s in sums),
        *(
            one(f"norm {o}", lambda x, o=o: np.linalg.norm(x, o, axis=-1), AXES)
            for o in (None, 0, 1, 2, 3, np.inf, -np.inf)
        ),
        one("norm of all", np.linalg.norm),
    ]


def _torch() -> list[Call]:
    def one(name: str, function: Any, shapes: tuple[Shapes, ...] = ONE, positive: bool = False):
        return Call("torch", name, function, shapes, positive)

    named = [one(n, _named(n), ONE, n in POSITIVE) for n in TORCH_UNARY]
    reduced = [
        one(f"{n} {a}", _over(getattr(torch, n), **({} if a == "all" else {"dim": a})), shapes)
        for n in TORCH_REDUCTIONS
        for a, shapes in (("all", ONE), (-1, AXES), (0, AXES), ((), ONE), ((0, 1), PLANES))
    ]
    along = [one(f"{n} {a}", _over(getattr(torch, n), dim=a), AXES) for n in ALONG for a in (0, -1)]
    pairs = [one(name, function, PAIRS, name == "/") for name, function in TWO.items()]
    numbers = [
        one(f"{name} {c!r}", lambda x, f=f, c=c: f(x, c)) for name, f in WITH_NUMBERS.items()
        for c in NUMBERS
    ]  # fmt: skip
    others = [
        one("maximum", _named("maximum"), PAIRS), one("prod", _named("prod")),
        one("prod -1", _over(torch.prod, dim=-1), AXES),
        one("logsumexp", _over(torch.logsumexp, dim=-1), AXES),
        one("softmax", _over(bb.softmax, axis=-1), (((3,),), ((2, 3),), ((3, 1),))),
        one("largest", lambda x: torch.topk(x, 2).values, (((3,),), ((2, 3),), ((2, 1, 4),))),
        one("smallest", lambda x: torch.topk(x, 2, largest=False)[0], (((3,),), ((2, 3),))),
        one("where", lambda x, y: torch.where(x > y, x, y), PAIRS),
        one("tril", _named("tril"), PLANES), one("flip", lambda x: torch.flip(x, (0,)), AXES),
        one("cat", lambda x: torch.cat([x, x], -1), AXES),
        one("full_like", lambda x: torch.full_like(x, 2)),
        one("float_power", lambda x: torch.float_power(x, 2)),
        one("beside a sum", lambda x, y: x * y.sum(), SAME),
        one("matmul", _named("matmul"), PRODUCTS),
    ]
    return [*named, *reduced, *along, *pairs, *numbers, *others]


CALLS = [*_numpy(), *_torch()]
