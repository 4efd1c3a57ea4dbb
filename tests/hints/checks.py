"""Hints of ``check_kernel`` and of its inputs, results and texts."""

from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

import blockbuster as bb
from tests.hints.tried import Tried

X = np.ones((2, 4), np.float32)
FEW = {"runs": 1, "draws": 1, "own_process": False}


def plus(x):
    return x + 1


def checked(kernel=plus, reference=plus, inputs=None, **change):
    given = {"x": X} if inputs is None else inputs
    return lambda: bb.check_kernel(kernel, reference, given, **FEW | change)


right = cache(checked())


def scaled(x, factor):
    return x * factor


def two(x, out=None, more=None):
    return x + 1, x + 2


def times_j(x):
    return x * 1j


CASES = (
    Tried("take at least one of each", checked(runs=0), right),
    Tried("an error over the largest result", checked(tolerance=-1.0), checked(tolerance=1e-3)),
    Tried("the seconds that one call", checked(time_limit=0), checked(time_limit=60)),
    Tried('{"x": array}', checked(inputs=X), right),
    Tried("at least one set of inputs", checked(inputs=[]), checked(inputs=[{"x": X}])),
    Tried("a list of such dicts", checked(inputs=[X]), checked(inputs=[{"x": X}])),
    Tried("functools.partial(kernel, factor=value)",
          checked(scaled, scaled, {"x": X, "factor": 2.0}),
          checked(partial(scaled, factor=2.0), partial(scaled, factor=2.0))),
    Tried("pass x.astype(np.float32)", checked(inputs={"x": X.astype(object)}),
          checked(inputs={"x": X.astype(object).astype(np.float32)})),
    Tried("source=path.read_text()", checked(source=Path(__file__)),
          checked(source=Path(__file__).read_text(encoding="utf-8"))),
    Tried("the text of the kernel's file", checked(source="kernels/of mine.py"),
          checked(source=Path(__file__).read_text(encoding="utf-8"))),
    Tried("write it in torch", checked(plus, lambda x: np.add(x, None), {"x": torch.ones(3)}),
          checked(inputs={"x": torch.ones(3)})),
    Tried("complex numbers as two arrays", checked(times_j, times_j),
          checked(lambda x: (0 * x, x), lambda x: (0 * x, x))),
    Tried("it has to return new arrays", checked(lambda x: None), right),
    Tried("the same arrays in the same order", checked(lambda x: (x, x)), right),
    Tried("the arguments of all results", checked(two, two, outputs=["out"]),
          checked(two, two, outputs=["out", "more"])),
    Tried("known: M, K", checked(dims={"x": "M K"}, multiples={"N": 2}),
          checked(dims={"x": "M K"}, multiples={"K": 2})),
    Tried("sizes that are legal", checked(dims={"x": "M K"}, multiples={"K": 3}),
          checked(dims={"x": "M K"}, multiples={"K": 4})),
    Tried("known: x", checked(dims={"y": "M K"}), checked(dims={"x": "M K"})),
    Tried("one word for each axis", checked(dims={"x": "M"}), checked(dims={"x": "M K"})),
    Tried("a name stands for one size", checked(dims={"x": "M M"}), checked(dims={"x": "M 4"})),
)  # fmt: skip
