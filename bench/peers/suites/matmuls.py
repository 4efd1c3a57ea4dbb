"""Programs limited by matrix products: norms before them, feed-forward blocks, chains, and alone.

Array code takes its functions as the first argument, so that ours and torch run the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench.peers.case import Array, Case, Contestant
from bench.peers.contestants import (
    EFFICIENT,
    bound,
    by_hand,
    called,
    compiled,
    ours,
    sdpa,
    usual,
)
from bench.peers.suites.attention import FULL, batched, exact, program
from bench.peers.suites.attention import plain as plain_attention
from bench.torch_functions import TorchFunctions
from blockbuster.frontend import functions as bb


def matmul(_: Any, x: Array, w: Array) -> Array:
    return x @ w


def layer_norm_matmul(functions: Any, x: Array, y: Array) -> Array:
    return functions.layer_norm(x) @ y


def rms_norm_matmul(functions: Any, x: Array, y: Array) -> Array:
    return functions.rms_norm(x, eps=1e-5) @ y


def ffn(functions: Any, x: Array, w: Array, v: Array, u: Array) -> Array:
    n = functions.rms_norm(x)
    return (functions.silu(n @ w) * (n @ v)) @ u


def chain(_: Any, x: Array, w: Array, u: Array) -> Array:
    return (x @ w) @ u


def linear(_: Any, x: Array, w: Array, b: Array) -> Array:
    return x @ w + b


def both(fn: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The array code with our functions, and with torch's on the device of its arguments."""

    def mine(*arrays: Array) -> Any:
        return fn(bb, *arrays)

    def plain(*arrays: Array) -> Any:
        return fn(TorchFunctions(arrays[0].device.type), *arrays)

    return mine, plain


def case(
    suite: str,
    family: str,
    name: str,
    fn: Callable[..., Any],
    inputs: dict[str, str],
    sizes: dict[str, int],
    others: tuple[Contestant, ...] = (),
    *,
    more: bool = False,
    **settings: Any,
) -> Case:
    """A case of array code, with the usual peers and ``others``."""
    mine, plain = both(fn)
    dims = dict.fromkeys(dim for words in inputs.values() for dim in words.split())
    few = {dim: 2 if dim == "B" else 24 + 8 * at for at, dim in enumerate(dims)}
    made = (ours(mine), *usual(plain, searched=more), *others)
    settings = dict(few=few) | settings
    return Case(
        suite, family, name, mine, plain, inputs, sizes, contestants=made, **settings
    )  # fmt: skip


# norms before a product -----------------------------------------------------------

WIDTHS = ((4096, 4096), (1024, 1024), (1024, 4096), (4096, 1024))
ROWS = (2048, 16, 8192, 128, 1)
NORMED = dict(x="M K", y="K N")


def _norm_matmul() -> Iterator[Case]:
    def alone(x: Array, y: Array) -> Array:
        return x @ y

    for word, fn, place in (
        ("layer", layer_norm_matmul, "normed_matmul.LAYER_NORM_FORMS"),
        ("rms", rms_norm_matmul, "normed_matmul.RMS_NORM_FORMS"),
    ):
        for k, n in WIDTHS if word == "layer" else WIDTHS[:1]:
            for m in ROWS:
                others = (bound("matmul alone", alone), by_hand(place, 1))
                quick = (m, k, n) in ((2048, 4096, 4096), (16, 4096, 4096), (8192, 1024, 1024))
                yield case(
                    "norm_matmul", f"{word} norm + matmul", f"{word}-{m}x{k}x{n}", fn, NORMED,
                    dict(M=m, K=k, N=n), others if m >= 128 else others[:1],
                    quick=quick and (word == "layer" or m == 2048),
                    more=(m == 16 and k == n == 4096) or (m, k, n) == (2048, 4096, 4096),
                )  # fmt: skip
    yield case(
        "norm_matmul", "layer norm + matmul", "layer-2048x4096x4096-bfloat16", layer_norm_matmul,
        NORMED, dict(M=2048, K=4096, N=4096), (bound("matmul alone", alone),), dtype="bfloat16",
    )  # fmt: skip


# feed-forward blocks --------------------------------------------------------------

BLOCKS = {
    "llama3-8b": (4096, 14336), "llama3.2-1b": (2048, 8192), "small512": (512, 1536),
    "odd512": (512, 1365), "small256": (256, 688),
}  # fmt: skip
FFN = dict(x="M D", w="D K", v="D K", u="K D")
QUICK_BLOCKS = (("llama3-8b", 16), ("llama3-8b", 2048), ("llama3.2-1b", 128), ("small512", 128))


def _merged(x: Array, both_weights: Array, u: Array) -> Array:
    import torch.nn.functional as F

    a, b = (F.rms_norm(x, x.shape[-1:], eps=1e-6) @ both_weights).chunk(2, -1)
    return (F.silu(a) * b) @ u


def _merge(x: Array, w: Array, v: Array, u: Array) -> tuple[Array, ...]:
    """The two weights as one, made once: what a careful user does."""
    import torch

    return x, torch.cat([w, v], 1), u


def _products(x: Array, both_weights: Array, u: Array) -> Array:
    return (x @ both_weights)[:, : u.shape[0]] @ u


def _ffn() -> Iterator[Case]:
    merged = (
        called("eager, merged", _merged, prepared=_merge),
        compiled("torch.compile, merged", _merged, prepared=_merge),
        called("products alone", _products, prepared=_merge, kind="bound"),
    )
    for name, (d, k) in BLOCKS.items():
        for m in ROWS:
            family = "FFN, M <= 128" if m <= 128 else "FFN, M >= 2048"
            yield case(
                "ffn", family, f"{name}-{m}", ffn, FFN, dict(M=m, D=d, K=k), merged,
                quick=(name, m) in QUICK_BLOCKS,
                more=(name, m) in (("llama3-8b", 16), ("small512", 2048)),
            )  # fmt: skip
    yield case(
        "ffn", "FFN, M >= 2048", "llama3-8b-2048-bfloat16", ffn, FFN,
        dict(M=2048, D=4096, K=14336), merged, dtype="bfloat16",
    )  # fmt: skip


# chains and single products -------------------------------------------------------

CHAINS = {
    "G1": (1, 512, 256, 64, 64), "G2": (1, 512, 256, 64, 128), "G3": (1, 512, 256, 64, 256),
    "G4": (1, 512, 512, 256, 256), "G5": (1, 512, 512, 512, 256), "G6": (1, 512, 512, 1024, 256),
    "G7": (1, 512, 512, 128, 128), "G8": (1, 1024, 512, 128, 128), "G9": (1, 2048, 512, 128, 128),
    "G10": (1, 1024, 1024, 128, 128), "G11": (4, 1024, 1024, 128, 128),
    "G12": (8, 1024, 1024, 128, 128),
}  # fmt: skip
CHAIN = dict(x="M K", w="K N", u="N H")
CHAIN_OF_BATCHES = dict(x="B M K", w="B K N", u="B N H")


def _gemm_chain() -> Iterator[Case]:
    for name, (b, m, n, k, h) in CHAINS.items():
        hand = by_hand("chain.G1_FORMS" if k == 64 else "chain.G4_FORMS", 0 if name == "G1" else 3)
        inputs = CHAIN if b == 1 else CHAIN_OF_BATCHES
        sizes = dict(M=m, N=n, K=k, H=h) | ({} if b == 1 else dict(B=b))
        yield case(
            "gemm_chain", "GEMM chains", name, chain, inputs, sizes, (hand,) if b == 1 else (),
            graph=True, quick=name in ("G1", "G4", "G10", "G12"), more=name in ("G1", "G9"),
        )  # fmt: skip
    yield case(
        "gemm_chain", "GEMM chains", "G4-bfloat16", chain, CHAIN,
        dict(M=512, N=512, K=256, H=256), graph=True, dtype="bfloat16",
    )  # fmt: skip


PRODUCT = dict(x="M K", w="K N")
PRODUCTS = dict(x="B M K", w="B K N")


def _gemm() -> Iterator[Case]:
    hand = (by_hand("matmul.FORMS", 1),)
    for m, k, n in ((4096,) * 3, (2048, 4096, 4096), (2048,) * 3, (8192,) * 3, (8192, 1024, 1024)):
        yield case(
            "gemm", "GEMM", f"{m}x{k}x{n}", matmul, PRODUCT, dict(M=m, K=k, N=n), hand,
            quick=(m, n) in ((4096, 4096), (2048, 4096)), more=m == n,
        )  # fmt: skip
    yield case(
        "gemm", "GEMM", "4096x4096x4096-bfloat16", matmul, PRODUCT, dict(M=4096, K=4096, N=4096),
        dtype="bfloat16",
    )  # fmt: skip
    batches = (8, 2048, 128, 2048), (16, 1024, 64, 1024), (64, 512, 128, 512), (4, 4096, 256, 4096)
    for b, m, k, n in batches:
        yield case(
            "gemm", "shallow GEMM", f"{b}x{m}x{k}x{n}", matmul, PRODUCTS, dict(B=b, M=m, K=k, N=n),
            graph=True,
        )  # fmt: skip
    for m, k, n in ((8192, 128, 4096), (8192, 256, 4096), (4096, 512, 4096), (8192, 512, 8192)):
        yield case(
            "gemm", "shallow GEMM", f"{m}x{k}x{n}", matmul, PRODUCT, dict(M=m, K=k, N=n),
            graph=True,
        )  # fmt: skip


# in float32, with tf32 off --------------------------------------------------------

HEADS = dict(q="H M D", k="H N D", v="H N D")


def _efficient(q: Array, k: Array, v: Array) -> Any:
    return batched(q, k, v), {}


def _float32() -> Iterator[Case]:
    for m, k, n in ((2048, 1024, 1024), (1024,) * 3, (4096,) * 3, (512, 4096, 512)):
        yield case(
            "float32", "float32 linear", f"linear-{m}x{k}x{n}", linear,
            dict(x="M K", w="K N", b="N"), dict(M=m, K=k, N=n), dtype="float32",
            quick=(m, k) in ((2048, 1024), (4096, 4096)),
        )  # fmt: skip
    mine, plain = program(bb, FULL, grouped=False), plain_attention(FULL, grouped=False)
    for heads, m, d in ((8, 2048, 64), (16, 1024, 64), (8, 2048, 128)):
        made = (ours(mine), *usual(plain), sdpa("SDPA efficient", EFFICIENT, _efficient))
        yield Case(
            "float32", "float32 attention", f"attention-{heads}x{m}x{d}", mine, plain, HEADS,
            dict(H=heads, M=m, N=m, D=d), dict(H=2, M=40, N=56, D=16), made, dtype="float32",
            exact=lambda *arrays: exact(FULL, *arrays), matrices=(), quick=(m, d) == (2048, 64),
        )  # fmt: skip


CASES = (*_norm_matmul(), *_ffn(), *_gemm_chain(), *_gemm(), *_float32())
