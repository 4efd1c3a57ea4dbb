"""A product and steps behind it: those that people know by name, and some drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from random import Random

import torch.nn.functional as F

from bench.outside.making import case
from bench.outside.steps import (
    ACTIVATIONS,
    ARITHMETICS,
    BY_NAME,
    COLUMNS,
    FEWER,
    FOLDS,
    NORMS,
    ONE,
    POOLS,
    SAME,
    STEPS,
    Step,
)
from bench.peers.case import Array, Case


@dataclass(frozen=True)
class Product:
    """A way to write the rows (M, N) that steps are applied to, of arrays with these dims."""

    name: str
    apply: Callable[..., Array]
    arrays: Mapping[str, str]


LAYER = dict(x="M K", w="N K", b="N")
PRODUCTS = (
    Product("linear", F.linear, LAYER),
    Product("linear", lambda x, w, b: x @ w.T + b, LAYER),
    Product("matmul", lambda x, u: x @ u, dict(x="M K", u="K N")),
    Product("no-bias", F.linear, dict(x="M K", w="N K")),
)


def behind(product: Product, steps: Sequence[Step]) -> tuple[Callable[..., Array], str]:
    """The function that applies steps in turn, and the dims of its parameters."""
    arrays, taken = dict(product.arrays), []
    for at, step in enumerate(steps, start=1):
        taken.append((step.apply, len(arrays), len(arrays) + len(step.arrays)))
        arrays |= {f"{name}{at}": dims for name, dims in step.arrays.items()}
    first = len(product.arrays)

    def program(*given: Array) -> Array:
        y = product.apply(*given[:first])
        for apply, start, stop in taken:
            y = apply(y, *given[start:stop])
        return y

    kind = Parameter.POSITIONAL_OR_KEYWORD
    program.__signature__ = Signature([Parameter(n, kind) for n in arrays])
    return program, ", ".join(arrays.values())


def layer(
    words: str, sizes: Mapping[str, int], *, product: Product = PRODUCTS[0], seed: str = "",
    dtype: str = "float16",
) -> Case:  # fmt: skip
    """A product and the steps of these names behind it."""
    steps = [BY_NAME[word] for word in words.split()]
    fn, dims = behind(product, steps)
    short = {"K": 32, "M": 24} | {"N": 512 if "norm-of-256" in words else 64}
    few = short if any(cuts(step) for step in steps) else {}
    name = "-".join((*filter(None, [seed]), product.name, *words.split()))
    return case(family_of(steps), fn, dims, sizes, name=name, few=few, dtype=dtype)


def cuts(step: Step) -> bool:
    """Whether it cuts rows into pieces of a fixed number of columns, or into as many pieces."""
    return any(letter.isdigit() for letter in step.name)


def family_of(steps: Sequence[Step]) -> str:
    """The table's row: by what is hardest to fuse."""
    kinds = {step.kind for step in steps}
    for kind in ("pool", "norm", "fold"):
        if kind in kinds:
            return f"product + {kind}"
    return "product + pointwise"


# by name --------------------------------------------------------------------------

LARGE = dict(M=1024, K=8192, N=8192)
WIDE = dict(M=1024, K=4096, N=4096)
TALL = dict(M=8192, K=512, N=1024)
FEW = dict(M=16, K=4096, N=4096)
MIDDLE = dict(M=128, K=1024, N=512)
ODD = dict(M=300, K=1000, N=777)
EXPANDING = dict(M=2048, K=1024, N=4096)

NAMED: tuple[tuple[str, Mapping[str, int]], ...] = (
    ("scale leaky-relu", LARGE), ("divide gelu", LARGE), ("subtract-multiply relu", LARGE),
    ("mish mish", LARGE), ("swish scale", LARGE), ("add-bias relu", LARGE),
    ("scale hardtanh gelu", LARGE), ("swish divide clamp tanh clamp", LARGE),
    ("scale residual clamp logsumexp mish", LARGE), ("sigmoid logsumexp", LARGE),
    ("sigmoid sum", LARGE), ("divide sum scale", LARGE), ("gelu softmax", LARGE),
    ("group-norm-16 hardtanh", LARGE), ("scale batch-norm", LARGE), ("max-pool-2 sum scale", LARGE),
    ("avg-pool-16 gelu scale max", LARGE), ("swish add-bias group-norm-16", LARGE),
    ("batch-norm gelu relu", LARGE), ("batch-norm scale softmax", LARGE),
    ("max subtract-multiply gelu", WIDE), ("group-norm-16 leaky-relu sum", WIDE),
    ("group-norm-16 min add-bias", WIDE), ("add-bias hardtanh mish group-norm-16", WIDE),
    ("instance-norm residual gate", WIDE), ("sum max mean logsumexp logsumexp", WIDE),
    ("batch-norm add-bias divide swish", WIDE), ("group-norm-16 swish scale swish", WIDE),
    ("layer-norm", WIDE), ("layer-norm relu", TALL), ("rms-norm gelu", TALL),
    ("residual layer-norm", TALL), ("residual rms-norm-by-hand", EXPANDING),
    ("norm-of-64", WIDE), ("norm-of-256", EXPANDING), ("group-norm-2 silu", MIDDLE),
    ("max-of-8", WIDE), ("max-pool-4 relu", EXPANDING), ("avg-pool-4 tanh", MIDDLE),
    ("softmax", TALL), ("log-softmax", ODD), ("normalize", TALL), ("layer-norm-by-hand elu", ODD),
    ("mean-of-columns", TALL), ("max-of-columns", ODD), ("softmax-of-columns", MIDDLE),
    ("logsumexp-of-columns", WIDE), ("relu sum-of-columns", EXPANDING), ("length", EXPANDING),
    ("softplus tanh", FEW), ("hardswish", FEW), ("gelu-tanh", FEW), ("rms-norm", FEW),
    ("softmax gate", FEW), ("min", ODD), ("sigmoid gate residual", ODD), ("elu", TALL),
    ("mish-by-hand", EXPANDING), ("silu scale-rows", TALL),
)  # fmt: skip
IN_FLOAT32: tuple[tuple[str, Mapping[str, int]], ...] = (
    ("scale leaky-relu", WIDE), ("group-norm-16 hardtanh", WIDE), ("max-pool-2 sum scale", WIDE),
    ("gelu softmax", EXPANDING), ("mish mish", TALL), ("layer-norm", ODD), ("logsumexp", TALL),
    ("batch-norm scale softmax", MIDDLE), ("norm-of-64", TALL), ("residual rms-norm", FEW),
)  # fmt: skip


def _named() -> Iterator[Case]:
    for at, (words, sizes) in enumerate(NAMED):
        yield layer(words, sizes, product=PRODUCTS[at % len(PRODUCTS)])
    for words, sizes in IN_FLOAT32:
        yield layer(words, sizes, dtype="float32")


# by a seed ------------------------------------------------------------------------

SEEDS = ("apple", "birch", "cedar", "daisy")
DRAWN = 8  # programs of a seed
SHAPES = (
    LARGE, WIDE, TALL, FEW, MIDDLE, EXPANDING, dict(M=64, K=256, N=2048),
    dict(M=4096, K=64, N=256), dict(M=777, K=1536, N=1536), dict(M=32, K=8192, N=1024),
)  # fmt: skip
NEXT: Mapping[str, tuple[Step, ...]] = {
    SAME: (*ACTIVATIONS, *ARITHMETICS, *NORMS, *NORMS, *POOLS, *FOLDS, *COLUMNS),
    FEWER: (*ACTIVATIONS, *FOLDS),
    ONE: ACTIVATIONS,
}
"""What may follow on so many columns; steps with arrays need them all."""


def drawn(seed: str, count: int = DRAWN) -> tuple[Case, ...]:
    """The programs of a seed, which may be any word: one to four steps behind a product."""
    random = Random(f"outside {seed}")
    return tuple(_drawn(random, f"{seed}{at}") for at in range(count))


def _drawn(random: Random, name: str) -> Case:
    sizes, product = random.choice(SHAPES), random.choice(PRODUCTS)
    leaves, words = SAME, []
    for _ in range(random.choice((1, 2, 2, 3, 3, 4))):
        step = random.choice(NEXT[leaves])
        words.append(step.name)
        leaves = step.leaves if step.leaves != SAME else leaves
    dtype = random.choice(("float16",) * 4 + ("float32",))
    return layer(" ".join(words), sizes, product=product, seed=name, dtype=dtype)


assert len(BY_NAME) == len(STEPS), "two steps have one name"
CASES = (*_named(), *(one for seed in SEEDS for one in drawn(seed)))
