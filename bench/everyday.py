"""Everyday code of language models: fusion must depend on what it computes, not on its wording.

Every program is written as people write it: dims have equal names where people give them equal
names, heads and batches come first, masks are made from ``arange``. ``kernels`` is the number of
its kernels for sm_90 at ``sizes``, ``why`` the reason if that is more than one.

    python -m bench.everyday                what each becomes: kernels, largest workspace
    python -m bench.everyday --only causal
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import blockbuster
from blockbuster.emit.tile.between import in_bytes
from blockbuster.frontend import functions as bb
from blockbuster.runtime.compiled import Compiled
from blockbuster.selection.plans.stored import stored

Array = Any
INF = float("inf")


@dataclass(frozen=True)
class Everyday:
    """A function, the dims of its inputs, large sizes, small ragged ones, and what it becomes.

    ``bytes``: of its largest intermediate in global memory at ``sizes`` in float16, at most.
    ``whole``: inputs that hold whole numbers below so much, such as the document of each token.
    ``shares``: inputs that are 0 or 1, with the share of ones.
    """

    name: str
    fn: Callable[..., Any]
    inputs: Mapping[str, str]
    sizes: Mapping[str, int]
    small: Mapping[str, int]
    kernels: int = 1
    bytes: int = 0
    why: str = ""
    whole: Mapping[str, int] | None = None
    shares: Mapping[str, float] | None = None

    def sizes_of(self, kind: str) -> dict[str, int]:
        """Sizes by kind, large or small: of the dims that the inputs name, fixed ones included."""
        known = self.sizes if kind == "large" else self.small
        named = dict.fromkeys(word for dims in self.inputs.values() for word in dims.split())
        found = {}
        for word in named:
            dim, _, fixed = word.partition("=")
            if not dim.isdigit():
                found[dim] = int(fixed) if fixed else known[dim]
        return found

    def shapes(self, kind: str) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs."""
        sizes = self.sizes_of(kind)
        words = {n: [w.partition("=")[0] for w in dims.split()] for n, dims in self.inputs.items()}
        return {
            n: tuple(int(w) if w.isdigit() else sizes[w] for w in dims) for n, dims in words.items()
        }

    def compiled(self, dtype: str = "float16", machine: str = "h200") -> Compiled:
        """The program at its large sizes, as kernels of ours alone."""
        program = blockbuster.trace(self.fn, **self.inputs)
        sizes = self.sizes_of("large")
        return blockbuster.compile(program, sizes, dtype, machine, library=False)


# attention -----------------------------------------------------------------------


def transposed(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def scores(q: Array, k: Array) -> Array:
    return (q @ transposed(k)) * q.shape[-1] ** -0.5


def positions(q: Array, k: Array) -> tuple[Array, Array]:
    """The position of each query, as a column, and of each key."""
    return bb.arange(q.shape[-2])[:, None], bb.arange(k.shape[-2])


def full(q: Array, k: Array, v: Array) -> Array:
    return bb.softmax(scores(q, k), axis=-1) @ v


def masked(q: Array, k: Array, v: Array, seen: Array) -> Array:
    return bb.softmax(bb.where(seen, scores(q, k), -INF), axis=-1) @ v


def causal(q: Array, k: Array, v: Array) -> Array:
    i, j = positions(q, k)
    return masked(q, k, v, i >= j)


def window(q: Array, k: Array, v: Array) -> Array:
    i, j = positions(q, k)
    return masked(q, k, v, (i >= j) & (i - j < 256))


def prefix(q: Array, k: Array, v: Array) -> Array:
    i, j = positions(q, k)
    return masked(q, k, v, (i >= j) | (j < 100))


def segments(q: Array, k: Array, v: Array, document: Array) -> Array:
    """Each token sees those before it in its own document; ``document`` is (B, S)."""
    i, j = positions(q, k)
    heads = (slice(None), *(None,) * (len(q.shape) - 3))
    document = document[heads]
    same = document[..., :, None] == document[..., None, :]
    return masked(q, k, v, same & (i >= j))


def rotated(x: Array, cos: Array, sin: Array) -> Array:
    a, b = x[..., :64], x[..., 64:]
    return bb.concat([a * cos - b * sin, a * sin + b * cos], axis=-1)


def takes(fn: Callable[..., Array]) -> int:
    """How many arrays a function takes."""
    return len(signature(fn).parameters)


def grouped(attend: Callable[..., Array]) -> Callable[..., Array]:
    """Several query heads (q: B, H, G, S, D) read one key head (B, H, S, D)."""

    def attention(q: Array, k: Array, v: Array) -> Array:
        return attend(q, k[:, :, None], v[:, :, None])

    def in_documents(q: Array, k: Array, v: Array, document: Array) -> Array:
        return attend(q, k[:, :, None], v[:, :, None], document)

    return attention if takes(attend) == 3 else in_documents


def turned(attend: Callable[..., Array]) -> Callable[..., Array]:
    """Queries and keys are rotated by their positions first."""

    def attention(q: Array, k: Array, v: Array, cos: Array, sin: Array) -> Array:
        return attend(rotated(q, cos, sin), rotated(k, cos, sin), v)

    def in_documents(
        q: Array, k: Array, v: Array, cos: Array, sin: Array, document: Array
    ) -> Array:
        return attend(rotated(q, cos, sin), rotated(k, cos, sin), v, document)

    return attention if takes(attend) == 3 else in_documents


def alibi(q: Array, k: Array, v: Array, slope: Array) -> Array:
    i, j = positions(q, k)
    s = scores(q, k) + slope[:, None, None] * (j - i)
    return bb.softmax(bb.where(i >= j, s, -INF), axis=-1) @ v


def biased(q: Array, k: Array, v: Array, bias: Array) -> Array:
    return bb.softmax(scores(q, k) + bias, axis=-1) @ v


def capped(q: Array, k: Array, v: Array) -> Array:
    i, j = positions(q, k)
    s = 50.0 * bb.tanh(scores(q, k) / 50.0)
    return bb.softmax(bb.where(i >= j, s, -INF), axis=-1) @ v


def with_sinks(q: Array, k: Array, v: Array, sink: Array) -> Array:
    """A score per head that takes a part of the softmax and has no value."""
    s, sink = scores(q, k), sink[:, None, None]
    top = bb.maximum(bb.max(s, axis=-1, keepdims=True), sink)
    e = bb.exp(s - top)
    return (e @ v) / (bb.sum(e, axis=-1, keepdims=True) + bb.exp(sink - top))


def with_dropout(q: Array, k: Array, v: Array, keep: Array) -> Array:
    p = bb.softmax(scores(q, k), axis=-1)
    return (p * keep / (1 - 0.1)) @ v


def cosine(q: Array, k: Array, v: Array) -> Array:
    def unit(x: Array) -> Array:
        return x * bb.rsqrt(bb.sum(x * x, axis=-1, keepdims=True) + 1e-6)

    return bb.softmax((unit(q) @ transposed(unit(k))) * 10.0, axis=-1) @ v


def backward(q: Array, k: Array, v: Array, do: Array) -> tuple[Array, ...]:
    """The gradients of q, k and v from that of the result."""
    p = bb.softmax(scores(q, k), axis=-1)
    dp = do @ transposed(v)
    ds = p * (dp - bb.sum(dp * p, axis=-1, keepdims=True)) * q.shape[-1] ** -0.5
    return ds @ k, transposed(ds) @ q, transposed(p) @ do


def causal_backward(q: Array, k: Array, v: Array, do: Array) -> tuple[Array, ...]:
    i, j = positions(q, k)
    p = bb.softmax(bb.where(i >= j, scores(q, k), -INF), axis=-1)
    dp = do @ transposed(v)
    ds = p * (dp - bb.sum(dp * p, axis=-1, keepdims=True)) * q.shape[-1] ** -0.5
    return ds @ k, transposed(ds) @ q, transposed(p) @ do


# norms and losses ----------------------------------------------------------------


def residual_rms_norm(x: Array, r: Array, w: Array) -> tuple[Array, Array]:
    y = x + r
    return bb.rms_norm(y, w), y


def residual_layer_norm(x: Array, r: Array, g: Array, b: Array) -> tuple[Array, Array]:
    y = x + r
    return bb.layer_norm(y, g, b), y


def smoothed_cross_entropy(x: Array, w: Array, target: Array) -> Array:
    """The loss of each row, a tenth of the weight spread over all classes."""
    logs = bb.log_softmax(x @ w, axis=-1)
    hot = bb.arange(w.shape[-1]) == target[:, None]
    right = bb.sum(bb.where(hot, logs, 0.0), axis=-1)
    return -(0.9 * right + 0.1 * bb.mean(logs, axis=-1))


HEADS = dict(B=2, H=16, S=2048, D=128)
GROUPS = dict(B=2, H=4, G=4, S=2048, D=128)
FEW, FEW_GROUPS = dict(B=2, H=3, S=75, D=20), dict(B=2, H=2, G=3, S=75, D=20)
BATCHED = dict.fromkeys("qkv", "B H S D")
GROUPED = dict(q="B H G S D", k="B H S D", v="B H S D")
CROSS = dict(q="B H M D", k="B H N D", v="B H N D")
APART = dict(B=2, H=16, M=2048, N=2048, D=128)
FEW_APART = dict(B=2, H=3, M=75, N=83, D=20)
TABLES = dict(cos="S 64", sin="S 64")
MASKS = dict(causal=causal, window=window, prefix=prefix, segments=segments)


SCAN = "another kernel finds the first and last keys that the queries of a block may see"
TURNED = "rotated keys are made once, for the four query heads that read them"
TURNED_ONCE = "rotated keys are made once, for all blocks of queries that read them"
SCANNED = dict(kernels=2, bytes=8192, why=SCAN, whole=dict(document=7))
STORED_KEYS = 2 * 4 * 2048 * 128 * 2  # of four heads; of sixteen four times as much


def _masks() -> list[Everyday]:
    made = []
    for name, attend in MASKS.items():
        by_data = attend is segments
        more = dict(document="B S") if by_data else {}
        for word, fn, inputs, sizes, small in (
            ("", attend, BATCHED, HEADS, FEW),
            ("grouped-", grouped(attend), GROUPED, GROUPS, FEW_GROUPS),
        ):
            becomes: dict[str, Any] = dict(SCANNED) if by_data else {}
            made.append(Everyday(word + name, fn, inputs | more, sizes, small, **becomes))
            becomes |= dict(kernels=becomes.get("kernels", 1) + 1)
            becomes["bytes"] = STORED_KEYS if word else 4 * STORED_KEYS
            why = TURNED if word else TURNED_ONCE
            becomes["why"] = "; ".join(filter(None, (why, becomes.get("why"))))
            fixed = {key: dims.replace("D", "D=128") for key, dims in inputs.items()}
            few = {**small, "D": 128}
            name_of = f"rotated-{word}{name}"
            both = {**fixed, **TABLES, **more}
            made.append(Everyday(name_of, turned(fn), both, sizes, few, **becomes))
    return made


PRODUCTS = dict(q="B H M D", k="B H N D", v="B H N D", do="B H M D")
ROWS, FEW_ROWS = dict(M=4096, D=4096), dict(M=37, D=300)

LENGTHS: dict[str, Any] = dict(
    kernels=3,
    bytes=2 * 16 * 2048 * 4,
    why="the lengths of queries and keys are made once: a loop of dots that also sums waits for it",
)
STATISTICS: dict[str, Any] = dict(
    kernels=2,
    bytes=3 * 2 * 16 * 2048 * 4,
    why="sums over keys come before sums over queries, which read three numbers a query",
)

EVERYDAY: tuple[Everyday, ...] = (
    Everyday("full", full, CROSS, APART, FEW_APART),
    Everyday(
        "one-head", full, dict(q="M D", k="N D", v="N D"), dict(M=16384, N=2048, D=128), FEW_APART
    ),
    *_masks(),
    Everyday("alibi", alibi, BATCHED | dict(slope="H"), HEADS, FEW),
    Everyday("bias", biased, CROSS | dict(bias="B H M N"), APART, FEW_APART),
    Everyday("bias-per-head", biased, CROSS | dict(bias="H M N"), APART, FEW_APART),
    Everyday("soft-cap", capped, BATCHED, HEADS, FEW),
    Everyday("sinks", with_sinks, CROSS | dict(sink="H"), APART, FEW_APART),
    Everyday(
        "dropout",
        with_dropout,
        CROSS | dict(keep="B H M N"),
        APART,
        FEW_APART,
        shares=dict(keep=0.9),
    ),
    Everyday("cosine", cosine, CROSS, APART, FEW_APART, **LENGTHS),
    Everyday("backward", backward, PRODUCTS, APART, FEW_APART, **STATISTICS),
    Everyday("causal-backward", causal_backward, PRODUCTS, APART, FEW_APART, **STATISTICS),
    Everyday("residual-rms-norm", residual_rms_norm, dict(x="M D", r="M D", w="D"), ROWS, FEW_ROWS),
    Everyday(
        "residual-layer-norm",
        residual_layer_norm,
        dict(x="M D", r="M D", g="D", b="D"),
        ROWS,
        FEW_ROWS,
    ),
    Everyday(
        "smoothed-cross-entropy",
        smoothed_cross_entropy,
        dict(x="T D", w="D V", target="T"),
        dict(T=8192, D=1024, V=32768),
        dict(T=37, D=20, V=300),
        kernels=3,
        bytes=2 * 8192 * 4 * 4,
        why="each half of the classes gives its sums: rows alone are too few for all processors;"
        " log-sum-exps are taken off each score, or digits would cancel: the product is made twice",
        whole=dict(target=300),
    ),
)


BY_NAME = {program.name: program for program in EVERYDAY}


def largest_intermediate(compiled: Compiled) -> int:
    """The most bytes that kernels write for later ones over the same dims."""
    plan = compiled.plan
    return max(
        (
            one.written.bytes
            for file in plan.files
            if file.considered is not None
            for one in stored(file.considered, plan.sizes)
        ),
        default=0,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="What everyday programs become.")
    parser.add_argument("--only", default="", help="names, separated by commas")
    chosen = [name for name in parser.parse_args().only.split(",") if name] or list(BY_NAME)
    for name in chosen:
        program = BY_NAME[name]
        compiled = program.compiled()
        number = "1 kernel" if compiled.plan.kernels == 1 else f"{compiled.plan.kernels} kernels"
        size = in_bytes(largest_intermediate(compiled))
        print(f"{name:28} {number:10} {size:10} {program.why}".rstrip(), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
