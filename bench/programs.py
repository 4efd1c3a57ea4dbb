"""Array programs on which kernels are tried: the three of the sources, and others.

One function has three uses: traced, it becomes a kernel; on NumPy arrays it is the oracle; on torch
tensors (``eager``) it is what a user would run instead, and in float64 the GPU's reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from blockbuster import examples
from blockbuster.frontend import functions as bb

Array = Any
INF = float("inf")


@dataclass(frozen=True)
class Workload:
    """A function, the dims of its inputs, sizes to time it at, ragged ones, and tiny ones."""

    name: str
    fn: Callable[..., Any]
    inputs: Mapping[str, str]
    sizes: Mapping[str, int]
    ragged: Mapping[str, int] = field(default_factory=dict)
    tiny: Mapping[str, int] = field(default_factory=dict)

    def sizes_of(self, kind: str) -> dict[str, int]:
        """Sizes by kind: timed, ragged (no power of two divides them) or tiny (1 to 3)."""
        if kind == "timed":
            return dict(self.sizes)
        odd = {d: max(1, min(n, 256) * 5 // 7 - (at % 3) * 2 + 1) for at, (d, n) in _at(self.sizes)}
        if kind == "ragged":
            return {d: n | 1 for d, n in odd.items()} | dict(self.ragged)
        return {d: 1 + at % 3 for at, (d, _) in _at(self.sizes)} | dict(self.tiny)


def _at(sizes: Mapping[str, int]) -> Any:
    return enumerate(sizes.items())


def logsumexp_of_product(x: Array, w: Array) -> Array:
    return bb.logsumexp(x @ w, axis=-1)


def geglu(x: Array, w: Array, v: Array) -> Array:
    return bb.gelu(x @ w) * (x @ v)


def mlp(x: Array, w: Array, b: Array, u: Array) -> Array:
    return bb.gelu(x @ w + b) @ u


def batched_attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(seen, s, -INF), axis=-1) @ v


def window_attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    distance = bb.arange(q.shape[-2])[:, None] - bb.arange(k.shape[-2])
    return bb.softmax(bb.where((distance >= 0) & (distance < 100), s, -INF), axis=-1) @ v


def grouped_attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k[:, :, None].swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v[:, :, None]


def soft_capped_attention(q: Array, k: Array, v: Array) -> Array:
    s = 20 * bb.tanh((q @ k.T) * 0.05)
    return bb.softmax(s, axis=-1) @ v


def cross_entropy(x: Array, w: Array, target: Array) -> Array:
    z = x @ w
    return bb.logsumexp(z, axis=-1) - bb.sum(bb.softmax(target, axis=-1) * z, axis=-1)


def rmsnorm_matmul(x: Array, g: Array, w: Array) -> Array:
    return bb.rms_norm(x, g) @ w


def layer_norm(x: Array, g: Array, b: Array) -> Array:
    return bb.layer_norm(x, g, b)


def softmax_rows(x: Array) -> Array:
    return bb.softmax(x, axis=-1)


def softmax_columns(x: Array) -> Array:
    return bb.softmax(x, axis=0)


def log_softmax(x: Array) -> Array:
    return bb.log_softmax(x, axis=-1)


def masked_softmax(x: Array) -> Array:
    seen = bb.arange(x.shape[0])[:, None] >= bb.arange(x.shape[1])
    return bb.softmax(bb.where(seen, x * 0.5, -INF), axis=-1)


def residual_block(x: Array, g: Array, w: Array, u: Array) -> Array:
    return x + bb.silu(bb.rms_norm(x, g) @ w) @ u


def linear_relu(x: Array, w: Array, b: Array) -> Array:
    return bb.relu(x @ w.T + b)


def three_outputs(x: Array, w: Array) -> tuple[Array, Array, Array]:
    y = x @ w
    return bb.tanh(y), bb.sum(y, axis=-1), bb.max(y, axis=0)


def vector_chain(x: Array, y: Array) -> Array:
    return bb.sigmoid(x) * y + bb.exp(-bb.abs(x)) / (1 + y * y)


def row_statistics(x: Array) -> tuple[Array, Array, Array]:
    return bb.sum(x, axis=-1), bb.max(x, axis=-1), bb.mean(bb.square(x), axis=-1)


def column_sums(x: Array) -> Array:
    return bb.sum(bb.square(x), axis=0)


def total(x: Array) -> Array:
    return bb.sum(bb.abs(x))


def transposed_sum(x: Array, y: Array) -> Array:
    return bb.exp(-bb.square(x)).T + y


def batched_matmul_bias(x: Array, w: Array, b: Array) -> Array:
    return bb.silu(x @ w + b)


def matrix_vector(a: Array, x: Array) -> Array:
    return bb.tanh(a @ x)


def pairwise_scores(x: Array, y: Array) -> Array:
    d = bb.sum(x * x, axis=-1, keepdims=True) - 2 * (x @ y.T) + bb.sum(y * y, axis=-1)
    return bb.exp(d * -0.01)


def gated_average(x: Array, g: Array) -> Array:
    a = bb.softmax(g, axis=-1)
    return bb.sum(x * a, axis=-1)


def rounded(x: Array, w: Array) -> Array:
    return bb.astype(bb.tanh(x @ w), "float16") * 3 + bb.astype(x, "bfloat16") @ w


def l2_normalized_scores(x: Array, y: Array) -> Array:
    n = x * bb.rsqrt(bb.sum(x * x, axis=-1, keepdims=True) + 1e-6)
    return n @ y.T


def swish_pair(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
    h = x @ w + b
    return bb.silu(h), bb.rms_norm(h)


OURS = (
    Workload("attention", examples.attention, dict(q="M D", k="N D", v="N L"),
             dict(M=4096, N=4096, D=64, L=64), dict(D=40, L=72)),
    Workload("layernorm-matmul", examples.layernorm_matmul, dict(x="M K", y="K N"),
             dict(M=2048, K=1024, N=1024), tiny=dict(K=24)),  # K=2: often a variance near zero
    Workload("rmsnorm-swiglu", examples.rmsnorm_swiglu, dict(x="M D", w="D K", v="D K", u="K N"),
             dict(M=512, D=256, K=512, N=256)),
    Workload("logsumexp-of-product", logsumexp_of_product, dict(x="M K", w="K N"),
             dict(M=2048, K=128, N=8192)),
    Workload("geglu", geglu, dict(x="M K", w="K N", v="K N"), dict(M=2048, K=1024, N=2048)),
    Workload("mlp", mlp, dict(x="M K", w="K H", b="H", u="H N"),
             dict(M=1024, K=64, H=256, N=64)),
    Workload("batched-attention", batched_attention,
             dict(q="B H M D", k="B H N D", v="B H N L"),
             dict(B=2, H=8, M=1024, N=1024, D=64, L=64), dict(B=2, H=3)),
    Workload("causal-attention", causal_attention,
             dict(q="B H M D", k="B H N D", v="B H N L"),
             dict(B=2, H=8, M=1024, N=1024, D=64, L=64), dict(B=2, H=3)),
    Workload("window-attention", window_attention, dict(q="H M D", k="H N D", v="H N L"),
             dict(H=8, M=1024, N=1024, D=64, L=64), dict(H=3, M=181, N=181)),
    Workload("grouped-attention", grouped_attention,
             dict(q="B H G M D", k="B H N D", v="B H N L"),
             dict(B=2, H=2, G=4, M=512, N=1024, D=128, L=128), dict(B=2, H=3, G=2)),
    Workload("soft-capped-attention", soft_capped_attention, dict(q="M D", k="N D", v="N L"),
             dict(M=2048, N=2048, D=64, L=64)),
    Workload("cross-entropy", cross_entropy, dict(x="M K", w="K V", target="M V"),
             dict(M=1024, K=128, V=8192)),
    Workload("rmsnorm-matmul", rmsnorm_matmul, dict(x="M K", g="K", w="K N"),
             dict(M=2048, K=1024, N=1024)),
    Workload("layer-norm", layer_norm, dict(x="M K", g="K", b="K"), dict(M=4096, K=1024)),
    Workload("softmax-rows", softmax_rows, dict(x="M N"), dict(M=4096, N=2048)),
    Workload("softmax-columns", softmax_columns, dict(x="M N"), dict(M=1024, N=4096)),
    Workload("log-softmax", log_softmax, dict(x="B M N"), dict(B=4, M=1024, N=1000)),
    Workload("masked-softmax", masked_softmax, dict(x="M N"), dict(M=2048, N=2048)),
    Workload("residual-block", residual_block, dict(x="M D", g="D", w="D H", u="H D"),
             dict(M=1024, D=256, H=512)),
    Workload("linear-relu", linear_relu, dict(x="M K", w="N K", b="N"),
             dict(M=2048, K=1024, N=1024)),
    Workload("three-outputs", three_outputs, dict(x="M K", w="K N"), dict(M=1024, K=256, N=512)),
    Workload("vector-chain", vector_chain, dict(x="N", y="N"), dict(N=1 << 22)),
    Workload("row-statistics", row_statistics, dict(x="M N"), dict(M=4096, N=4096)),
    Workload("column-sums", column_sums, dict(x="M N"), dict(M=4096, N=4096)),
    Workload("total", total, dict(x="M N"), dict(M=512, N=512)),
    Workload("transposed-sum", transposed_sum, dict(x="M N", y="N M"), dict(M=4096, N=2048)),
    Workload("batched-matmul-bias", batched_matmul_bias, dict(x="B M K", w="K N", b="N"),
             dict(B=8, M=256, K=512, N=512), dict(B=3)),
    Workload("matrix-vector", matrix_vector, dict(a="M K", x="K"), dict(M=4096, K=4096)),
    Workload("pairwise-scores", pairwise_scores, dict(x="M D", y="N D"),
             dict(M=2048, N=2048, D=64)),
    Workload("gated-average", gated_average, dict(x="M N", g="M N"), dict(M=4096, N=1024)),
    Workload("rounded", rounded, dict(x="M K", w="K N"), dict(M=512, K=128, N=256)),
    Workload("l2-normalized-scores", l2_normalized_scores, dict(x="M D", y="N D"),
             dict(M=1024, N=1024, D=128)),
    Workload("swish-pair", swish_pair, dict(x="M K", w="K N", b="N"),
             dict(M=1024, K=256, N=512)),
)  # fmt: skip
WORKLOADS = {w.name: w for w in OURS}


def eager(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The same function on torch tensors, in the dtype of its arguments."""
    from bench.torch_functions import TorchFunctions

    assert isinstance(fn, FunctionType)
    names = {**fn.__globals__, "bb": TorchFunctions()}
    return FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, fn.__closure__)
