"""Layers that are equal but for names, and their plans in Triton's interpreter, against eager.

Run with TRITON_INTERPRET=1: it prints the largest error of each case. It is no test by itself.
"""

import json

import numpy as np
import torch

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import size_class

COUNT, HEAD = 3, 64


def feed_forward(x, *weights):
    """Layers of two products, with weights of their own."""
    for at in range(0, len(weights), 2):
        x = x + np.maximum(x @ weights[at], 0.0) @ weights[at + 1]
    return x


def attending(x, *weights):
    """Layers of attention, whose heads are dims that lowering makes."""

    def heads(t):
        return t.reshape(t.shape[0], t.shape[1] // HEAD, HEAD).transpose(1, 0, 2)

    for at in range(0, len(weights), 4):
        q, k, v = (heads(x @ w) for w in weights[at : at + 3])
        scores = q @ k.transpose(0, 2, 1) * HEAD**-0.5
        e = np.exp(scores - scores.max(-1, keepdims=True))
        y = (e / e.sum(-1, keepdims=True)) @ v
        x = x + y.transpose(1, 0, 2).reshape(x.shape) @ weights[at + 3]
    return x


LAYERS = [shape for at in range(COUNT) for shape in (f"D F{at}", f"F{at} D")]
CASES = {
    "feed forward": (feed_forward, LAYERS, (4096, 2048, 2048)),
    "attending": (attending, ["D D"] * 4 * 2, ()),
}


def compiled(name, dtype="float16"):
    """A case for an H100, without calls of a library."""
    function, weights, inner = CASES[name]
    named = {f"w{at}": shape for at, shape in enumerate(weights)}
    names = ", ".join(("x", *named))
    program = bb.trace(eval(f"lambda {names}: f({names})", {"f": function}), x="M D", **named)
    sizes = {"M": 8191, "D": 512} | {f"F{at}": size for at, size in enumerate(inner)}
    return bb.compile(program, sizes, dtype, "h100", library=False)


def small(name, rng):
    """Arrays of other sizes, which each layer of ``feed_forward`` has of its own."""
    sizes = {"M": 9, "D": 512, "F0": 192, "F1": 128, "F2": 64}
    shapes = [[sizes[dim] for dim in shape.split()] for shape in ("M D", *CASES[name][1])]
    return [(rng.standard_normal(shape) * 0.05).astype(np.float32) for shape in shapes]


def run(plan, arrays):
    """The output of a plan whose files run in the interpreter."""
    known = {n: torch.from_numpy(a) for n, a in zip(plan.inputs, arrays, strict=True)}
    sizes = completed(plan.bind({n: tuple(t.shape) for n, t in known.items()}), plan.rules)
    for file in plan.files:
        module = load_module(file.text)
        own = file.own(sizes)
        free = {dim: own[size_class(dim)] for dim in module.FREE}
        made = module.launch(*(known[name] for name in file.reads), **free)
        known |= zip(file.writes, made if isinstance(made, tuple) else (made,), strict=True)
    (seen,) = plan.results
    return known[seen.array].numpy()


def worst(name):
    arrays = small(name, np.random.default_rng(0))
    right = CASES[name][0](*(array.astype(np.float64) for array in arrays))
    return float(np.abs(run(compiled(name, "float32").plan, arrays) - right).max())


if __name__ == "__main__":
    print(json.dumps({name: worst(name) for name in CASES}))
