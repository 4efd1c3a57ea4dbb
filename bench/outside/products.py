"""Products of other forms: batched, chained, thin, odd, transposed, masked, with sums behind."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.outside.making import case
from bench.peers.case import Array, Case


def matmul(a: Array, u: Array) -> Array:
    return a @ u


def matmul_transposed(a: Array, w: Array) -> Array:
    return torch.matmul(a, w.T)


def both_transposed(a: Array, w: Array) -> Array:
    return torch.matmul(a.T, w.T)


def matrix_vector(a: Array, c: Array) -> Array:
    return a @ c


def vector_matrix(c: Array, u: Array) -> Array:
    return c @ u


def bmm(a: Array, u: Array) -> Array:
    return torch.bmm(a, u)


def bmm_add_gelu(a: Array, u: Array, r: Array) -> Array:
    return F.gelu(torch.baddbmm(r, a, u))


def four_axes(a: Array, u: Array) -> Array:
    return torch.einsum("bijl,lk->bijk", a, u)


def tokens(x: Array, w: Array, b: Array) -> Array:
    return F.relu(F.linear(x, w, b))


def tokens_residual_norm(x: Array, w: Array, b: Array, g: Array, h: Array) -> Array:
    y = x + F.linear(x, w, b)
    return F.layer_norm(y, y.shape[-1:], g, h)


def diagonal_product(c: Array, a: Array) -> Array:
    return c[:, None] * a


def lower_product(a: Array, u: Array) -> Array:
    return torch.tril(a) @ u


def upper_of_product(a: Array, u: Array) -> Array:
    return torch.triu(a @ u)


def gram(x: Array) -> Array:
    return x.T @ x


def covariance(x: Array) -> Array:
    centered = x - x.mean(0, keepdim=True)
    return centered.T @ centered / (x.shape[0] - 1)


def squared_distances(x: Array, y: Array) -> Array:
    return (x * x).sum(1, keepdim=True) + (y * y).sum(1) - 2 * x @ y.T


def cosine_scores(x: Array, y: Array) -> Array:
    return F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).T


def chain(x: Array, u1: Array, u2: Array) -> Array:
    return x @ u1 @ u2


def low_rank(x: Array, w: Array, w_down: Array, w_up: Array) -> Array:
    """A linear layer with an adapter of low rank."""
    return F.linear(x, w) + 2.0 * F.linear(F.linear(x, w_down), w_up)


def chain_relu(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)


def three_layers(x: Array, w1: Array, w2: Array, w3: Array) -> Array:
    return torch.tanh(F.linear(torch.tanh(F.linear(torch.tanh(F.linear(x, w1)), w2)), w3))


def gated(x: Array, w_gate: Array, w_up: Array) -> Array:
    return F.linear(x, w_gate).sigmoid() * F.linear(x, w_up)


def glu(x: Array, w: Array, b: Array) -> Array:
    return F.glu(F.linear(x, w, b), dim=-1)


def bilinear(x: Array, u: Array, y: Array) -> Array:
    return torch.einsum("bi,ij,bj->b", x, u, y)


def predicted_class(x: Array, w: Array, b: Array) -> Array:
    return F.linear(x, w, b).argmax(-1)


FORMS = "products"
BEHIND = "batched product + steps"


def _products() -> Iterator[Case]:
    for m, k, n in ((2048, 8192, 2048), (8192, 64, 8192), (16, 8192, 8192), (1021, 2053, 509)):
        yield case(FORMS, matmul, "M K, K N", dict(M=m, K=k, N=n))
    yield case(FORMS, matmul_transposed, "M K, N K", dict(M=2048, K=4096, N=1024))
    yield case(FORMS, both_transposed, "K M, N K", dict(M=1024, K=4096, N=2048))
    yield case(FORMS, matrix_vector, "M K, K", dict(M=8192, K=8192))
    yield case(FORMS, matrix_vector, "M K, K", dict(M=256, K=65536))
    yield case(FORMS, vector_matrix, "K, K N", dict(K=4096, N=8192))
    yield case(FORMS, bmm, "B M K, B K N", dict(B=64, M=256, K=512, N=1024))
    yield case(FORMS, bmm, "B M K, B K N", dict(B=1024, M=16, K=64, N=48))
    yield case(FORMS, four_axes, "B I J L, L K", dict(B=8, I=128, J=256, L=256, K=768))
    yield case(FORMS, diagonal_product, "M, M N", dict(M=4096, N=4096))
    yield case(FORMS, lower_product, "M K, K N", dict(M=4096, K=4096, N=4096))
    yield case(FORMS, upper_of_product, "M K, K N", dict(M=4096, K=1024, N=4096))
    yield case(FORMS, gram, "M N", dict(M=8192, N=1024))
    yield case(FORMS, covariance, "M N", dict(M=4096, N=768))
    yield case(FORMS, squared_distances, "M K, N K", dict(M=4096, K=128, N=4096))
    yield case(FORMS, cosine_scores, "M K, N K", dict(M=4096, K=512, N=1024))
    yield case(FORMS, predicted_class, "M K, N K, N", dict(M=8192, K=1024, N=100))
    yield case(FORMS, bilinear, "B I, I J, B J", dict(B=2048, I=512, J=512))
    yield case(FORMS, matmul, "M K, K N", dict(M=2048, K=2048, N=2048), dtype="float32")
    yield case(FORMS, bmm, "B M K, B K N", dict(B=32, M=256, K=256, N=256), dtype="float32")


def _chains() -> Iterator[Case]:
    chains = "chains of products"
    yield case(chains, chain, "M K, K L, L N", dict(M=4096, K=256, L=64, N=1024))
    yield case(chains, low_rank, "M K, N K, R K, N R", dict(M=2048, K=4096, N=4096, R=16))
    layers = "M K, L K, L, N L, N"
    yield case(chains, chain_relu, layers, dict(M=512, K=1024, L=4096, N=1024))
    yield case(chains, chain_relu, layers, dict(M=16, K=784, L=300, N=10))
    yield case(chains, three_layers, "M K, L K, N L, O N", dict(M=8192, K=64, L=64, N=64, O=64))
    yield case(
        chains, three_layers, "M K, L K, N L, O N", dict(M=256, K=2048, L=1024, N=512, O=128)
    )
    yield case(chains, gated, "M K, N K, N K", dict(M=1024, K=2048, N=4096))
    yield case(chains, glu, "M K, N K, N", dict(M=1024, K=1024, N=8192))
    yield case(chains, chain_relu, layers, dict(M=128, K=512, L=2048, N=512), dtype="float32")


def _batched() -> Iterator[Case]:
    of_tokens = dict(B=32, S=77, K=768, N=768)
    yield case(BEHIND, tokens, "B S K, N K, N", of_tokens)
    yield case(BEHIND, tokens, "B S K, N K, N", dict(B=8, S=1025, K=1024, N=4096))
    yield case(BEHIND, tokens_residual_norm, "B S K, K K, K, K, K", dict(B=32, S=77, K=768))
    yield case(BEHIND, bmm_add_gelu, "B M K, B K N, B M N", dict(B=16, M=512, K=256, N=512))


CASES = (*_products(), *_chains(), *_batched())
