"""Attention and the blocks of language models, written as their authors write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F

from bench.outside.making import below, case
from bench.peers.case import Array, Case

HEADS = 8


def heads(x: Array, count: int = HEADS) -> Array:
    """(B, S, E) as (B, heads, S, depth)."""
    return x.view(x.shape[0], x.shape[1], count, x.shape[2] // count).transpose(1, 2)


def merged(y: Array) -> Array:
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)


def causal(scores: Array) -> Array:
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    return scores.masked_fill(~seen, float("-inf"))


def attend(q: Array, k: Array, v: Array) -> Array:
    return F.scaled_dot_product_attention(q, k, v)


def attend_causally(q: Array, k: Array, v: Array) -> Array:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attend_by_hand(q: Array, k: Array, v: Array) -> Array:
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    return F.softmax(causal(scores), dim=-1) @ v


def relu_attention(q: Array, k: Array, v: Array) -> Array:
    scores = causal((q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1))))
    return F.relu(scores) @ v


def attend_with_bias(q: Array, k: Array, v: Array, bias: Array) -> Array:
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5 + bias
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)


def linear_attention(q: Array, k: Array, v: Array) -> Array:
    q, k = F.elu(q) + 1, (F.elu(k) + 1) / k.shape[2]
    context = torch.einsum("bhnd,bhne->bhde", k, v)
    norm = 1.0 / torch.einsum("bhnd,bhd->bhn", q, k.sum(dim=2))
    return torch.einsum("bhnd,bhde,bhn->bhne", q, context, norm)


def cross_attention(x: Array, y: Array, w_q: Array, w_k: Array, w_v: Array) -> Array:
    q, k, v = heads(F.linear(x, w_q)), heads(F.linear(y, w_k)), heads(F.linear(y, w_v))
    return merged(F.scaled_dot_product_attention(q, k, v))


def self_attention(x: Array, w: Array, b: Array, w_out: Array, c: Array) -> Array:
    """A layer of GPT: one product for queries, keys and values."""
    q, k, v = (heads(part) for part in F.linear(x, w, b).chunk(3, dim=-1))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(merged(y), w_out, c)


def normed_queries(x: Array, w: Array, g: Array) -> Array:
    """An RMS norm of each head of a projection."""
    q = F.linear(x, w).unflatten(-1, (-1, g.shape[0]))
    return F.rms_norm(q, (g.shape[0],), g).transpose(1, 2)


def rotated(x: Array, cos: Array, sin: Array) -> Array:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def rotated_pairs(x: Array, cos: Array, sin: Array) -> Array:
    even, odd = x[..., ::2], x[..., 1::2]
    pairs = (even * cos - odd * sin, even * sin + odd * cos)
    return torch.stack(pairs, dim=-1).flatten(-2)


def rotated_queries_and_keys(
    x: Array, w_q: Array, w_k: Array, cos: Array, sin: Array
) -> tuple[Array, Array]:
    q, k = heads(F.linear(x, w_q), 32), heads(F.linear(x, w_k), HEADS)
    return rotated(q, cos, sin), rotated(k, cos, sin)


def grouped_attention(q: Array, k: Array, v: Array) -> Array:
    """Four heads of queries for each head of keys."""
    k, v = k.repeat_interleave(4, dim=1), v.repeat_interleave(4, dim=1)
    return F.scaled_dot_product_attention(q, k, v)


def grouped_step(q: Array, k: Array, v: Array) -> Array:
    """One new position; heads of queries in groups, as (B, H, G, D)."""
    scores = torch.einsum("bhgd,bhsd->bhgs", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("bhgs,bhsd->bhgd", torch.softmax(scores, -1), v)


def gated_network(x: Array, g: Array, w_gate: Array, w_up: Array, w_down: Array) -> Array:
    n = F.rms_norm(x, (x.shape[-1],), g)
    return x + F.linear(F.silu(F.linear(n, w_gate)) * F.linear(n, w_up), w_down)


def network(x: Array, g: Array, h: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    n = F.layer_norm(x, (x.shape[-1],), g, h)
    return x + F.linear(F.gelu(F.linear(n, w1, b1), approximate="tanh"), w2, b2)


def post_norm(x: Array, w1: Array, b1: Array, w2: Array, b2: Array, g: Array, h: Array) -> Array:
    y = F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)
    return F.layer_norm(x + y, (x.shape[-1],), g, h)


def added_norm(x: Array, residual: Array, g: Array) -> tuple[Array, Array]:
    y = x + residual
    wide = y.float()
    scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return scaled.type_as(x) * g, y


def embedded(labels: Array, table: Array, places: Array, g: Array, h: Array) -> Array:
    y = F.embedding(labels, table) + places
    return F.layer_norm(y, (y.shape[-1],), g, h)


def vocabulary(x: Array, g: Array, w: Array) -> Array:
    return 30.0 * torch.tanh(F.linear(F.rms_norm(x, (x.shape[-1],), g), w) / 30.0)


# whole blocks ---------------------------------------------------------------------


def decoder_block(
    x: Array, g1: Array, w_q: Array, w_k: Array, w_v: Array, cos: Array, sin: Array, w_out: Array,
    g2: Array, w_gate: Array, w_up: Array, w_down: Array,
) -> Array:  # fmt: skip
    """A layer of Llama: four heads of queries for each head of keys and values."""
    n = F.rms_norm(x, (x.shape[-1],), g1)
    count = x.shape[-1] // cos.shape[-1]
    q, k = heads(F.linear(n, w_q), count), heads(F.linear(n, w_k), count // 4)
    v = heads(F.linear(n, w_v), count // 4)
    k, v = rotated(k, cos, sin).repeat_interleave(4, 1), v.repeat_interleave(4, 1)
    y = F.scaled_dot_product_attention(rotated(q, cos, sin), k, v, is_causal=True)
    return gated_network(x + F.linear(merged(y), w_out), g2, w_gate, w_up, w_down)


def decoder_step(
    x: Array, g1: Array, w_q: Array, keys: Array, values: Array, w_out: Array,
    g2: Array, w_gate: Array, w_up: Array, w_down: Array,
) -> Array:  # fmt: skip
    """The same for one new position, whose key and value stand with the earlier ones."""
    n = F.rms_norm(x, (x.shape[-1],), g1)
    q = F.linear(n, w_q).view(x.shape[0], keys.shape[1], -1, keys.shape[-1])
    y = grouped_step(q, keys, values).reshape(x.shape)
    return gated_network(x + F.linear(y, w_out), g2, w_gate, w_up, w_down)


def encoder_block(
    x: Array, g1: Array, h1: Array, w: Array, w_out: Array,
    g2: Array, h2: Array, w1: Array, b1: Array, w2: Array, b2: Array,
) -> Array:  # fmt: skip
    """A layer of a vision transformer."""
    n = F.layer_norm(x, (x.shape[-1],), g1, h1)
    q, k, v = F.linear(n, w).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    x = x + F.linear(merged(F.scaled_dot_product_attention(q, k, v)), w_out)
    return network(x, g2, h2, w1, b1, w2, b2)


ATTENTION, LANGUAGE, BLOCKS = "attention", "language models", "whole blocks"
QKV = "B H S D, B H S D, B H S D"
OTHER_KEYS = "B H S D, B H T D, B H T D"


def _attention() -> Iterator[Case]:
    yield case(ATTENTION, attend, QKV, dict(B=32, H=8, S=77, D=64))
    yield case(ATTENTION, attend_causally, QKV, dict(B=4, H=16, S=1024, D=64))
    yield case(ATTENTION, attend_by_hand, QKV, dict(B=8, H=12, S=1024, D=64))
    yield case(ATTENTION, relu_attention, QKV, dict(B=8, H=12, S=512, D=64))
    yield case(ATTENTION, attend, OTHER_KEYS, dict(B=4, H=8, S=4096, T=77, D=40))
    yield case(ATTENTION, attend_with_bias, f"{QKV}, H S S", dict(B=4, H=12, S=512, D=64))
    yield case(ATTENTION, linear_attention, QKV, dict(B=4, H=8, S=4096, D=64))
    yield case(
        ATTENTION, cross_attention, "B S E, B T E, E E, E E, E E",
        dict(B=4, S=1024, T=77, E=512), few=dict(E=64),
    )  # fmt: skip
    of_layer = "B S E, 3E E, 3E, E E, E"
    yield sized(self_attention, of_layer, dict(B=8, S=512, E=768), HEADS * 4)
    yield sized(self_attention, of_layer, dict(B=2, S=77, E=1024), HEADS * 4)
    grouped = "B 4H S D, B H S D, B H S D"
    yield sized(grouped_attention, grouped, dict(B=2, H=8, S=1024, D=128), 0)
    yield case(ATTENTION, grouped_step, "B H G D, B H S D, B H S D",
               dict(B=16, H=8, G=4, S=4096, D=128))  # fmt: skip
    yield case(ATTENTION, attend, QKV, dict(B=8, H=8, S=256, D=64), dtype="float32")


def sized(fn: Callable[..., Any], dims: str, sizes: dict[str, int], least: int) -> Case:
    """A case in whose dims a multiple, such as 3E, is a dim of its own."""
    few = {dim: 2 if dim in "BH" else 16 for dim in sizes} | ({"E": least} if least else {})
    for word in dims.replace(",", " ").split():
        if word[0].isdigit():
            times, dim = int(word[0]), word[1:]
            sizes, few = sizes | {word: times * sizes[dim]}, few | {word: times * few[dim]}
    return case(ATTENTION, fn, dims, sizes, few=few)


def _language() -> Iterator[Case]:
    few = dict(E=64, N=256, D=8)
    yield case(LANGUAGE, normed_queries, "B S E, N E, D", dict(B=2, S=1024, E=2048, N=2048, D=64),
               few=few)  # fmt: skip
    yield case(LANGUAGE, normed_queries, "B S E, N E, D", dict(B=1, S=1024, E=4096, N=4096, D=128),
               few=few)  # fmt: skip
    rotary = dict(B=4, H=32, S=1024, D=128)
    yield case(LANGUAGE, rotated, "B H S D, S D, S D", rotary, few=dict(D=16))
    yield case(
        LANGUAGE, rotated_pairs, "B H S D, S P, S P", dict(B=4, H=8, S=512, D=64, P=32),
        few=dict(D=16, P=8),
    )  # fmt: skip
    yield case(
        LANGUAGE, rotated_queries_and_keys, "B S E, N E, L E, S D, S D",
        dict(B=2, S=1024, E=2048, N=2048, L=512, D=64), few=dict(E=32, N=256, L=64, D=8),
    )  # fmt: skip
    for rows, width in ((1, 4096), (64, 2048), (2048, 2048)):
        sizes = dict(B=1, S=rows, E=width, F=width * 11 // 4)
        yield case(LANGUAGE, gated_network, "B S E, E, F E, F E, E F", sizes)
    mlp = "B S E, E, E, F E, F, E F, E"
    yield case(LANGUAGE, network, mlp, dict(B=8, S=512, E=768, F=3072))
    yield case(LANGUAGE, network, mlp, dict(B=16, S=77, E=512, F=2048), dtype="float32")
    yield case(LANGUAGE, post_norm, "B S E, F E, F, E F, E, E, E", dict(B=32, S=77, E=512, F=2048))
    yield case(LANGUAGE, added_norm, "M E, M E, E", dict(M=4096, E=4096))
    labels = dict(own=dict(labels="int64"), special=dict(labels=below(16)))
    yield case(
        LANGUAGE, embedded, "B S, V E, S E, E, E", dict(B=16, S=512, V=1000, E=768), **labels
    )
    yield case(LANGUAGE, vocabulary, "M E, E, V E", dict(M=512, E=2048, V=32000))


def _blocks() -> Iterator[Case]:
    few = dict(E=64, N=16, S=16, D=16, F=48, H=1)
    decoder = "B S E, E, E E, N E, N E, S D, S D, E E, E, F E, F E, E F"
    for rows, width in product((128, 2048), (2048, 4096)):
        sizes = dict(B=1, S=rows, E=width, N=width // 4, D=128, F=width * 11 // 4)
        yield case(BLOCKS, decoder_block, decoder, sizes, few=few)
    step = "B E, E, E E, B H T D, B H T D, E E, E, F E, F E, E F"
    for batch, width in product((1, 16), (2048, 4096)):
        sizes = dict(B=batch, E=width, H=width // 512, T=4096, D=128, F=width * 11 // 4)
        yield case(BLOCKS, decoder_step, step, sizes, few=few)
    encoder = "B S E, E, E, J E, E E, E, E, F E, F, E F, E"
    sizes = dict(B=16, S=197, E=768, J=2304, F=3072)
    yield case(BLOCKS, encoder_block, encoder, sizes, few=few | dict(J=192))


CASES = (*_attention(), *_language(), *_blocks())
