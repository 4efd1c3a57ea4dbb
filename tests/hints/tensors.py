"""Hints about functions of NumPy and torch, and their arguments."""

import numpy as np
import torch
import torch.nn.functional as F

import blockbuster as bb
from tests.hints.tried import Tried, traced

IMAGE = {"x": "2 4 H=8 W=8"}
WEIGHTED = {**IMAGE, "w": "6 4 3 3"}
HEADS = {"q": "2 4 8 16", "k": "2 4 8 16", "v": "2 4 8 16"}
INTS = {"x": "M N", "labels": "int64: M"}


def heads(x, kv, **more):
    """nn.MultiheadAttention's function, with two heads of 4 features."""
    w, b = torch.ones(24, 8), torch.ones(24)
    given = dict(training=False) | more
    return F.multi_head_attention_forward(
        x, kv, kv, 8, 2, w, b, None, None, False, 0.0, torch.ones(8, 8), torch.ones(8), **given
    )[0]


COMPLEX = np.ones(2, np.complex64)
PARTS = COMPLEX.real, COMPLEX.imag
EIGHTS = [*[torch.ones(16, 16).to(torch.float8_e4m3fn)] * 2, torch.tensor(1.0)]
plus_one = bb.jit(lambda x: x + 1)


def scaled_product(x, w, scale, dtype=None):
    jitted = bb.jit(lambda x, w, s: torch._scaled_mm(x, w.T, s, s, out_dtype=dtype))
    return jitted(x, w, scale)


def windows_in_place(copied):
    def fn(x):
        y = x + 0
        parts = copied(np.lib.stride_tricks.sliding_window_view(y, 2))
        parts += 1
        return y

    return fn


def set_in(made):
    def fn(x):
        w = made(x)
        w[0] = x[1]
        return w

    return fn


def first_row(dtype):
    def fn(x):
        y = x + 0
        y[0] = x[1].astype(dtype) if dtype else x[1]
        return y

    return fn


TOKENS = {"x": "5 3 8", "kv": "5 3 8"}
SHAPES = (
    traced("at least one window, of", lambda x: np.convolve(x, x[:0]),
           lambda x: np.convolve(x, x[:1]), x="8"),
    traced("make a new array, or cast it", first_row(np.float64), first_row(None)),
    traced("into 1 or more", lambda x: np.array_split(x, 0)[0],
           lambda x: np.array_split(x, 2)[0], x="4 N"),
    traced("it needs one", lambda x: np.hsplit(bb.sum(x), 1)[0], lambda x: np.hsplit(x, 1)[0],
           x="4"),
    traced("split takes any axis", lambda x: np.vsplit(x[0], 2)[0],
           lambda x: np.split(x[0], 2)[0], x="4 4"),
    traced('"xy" or "ij"', lambda x: np.meshgrid(x, x, indexing="yx")[0],
           lambda x: np.meshgrid(x, x, indexing="xy")[0], x="M"),
    traced("a vector with k=0", lambda x: np.diag(x, 1), lambda x: np.diag(x), x="4"),
    traced("a vector with k=0", lambda x: np.diag(x, 1), fixed={"x": "4 4"}, x="4"),
    traced('write "mk,kn->mn"', lambda x: bb.einsum(x, x), lambda x: bb.einsum("mk,kn->mn", x, x),
           x="4 4"),
    traced('write "mk,kn->mn"', lambda x: bb.einsum("mkl->m", x),
           lambda x: bb.einsum("mk,kn->mn", x, x), x="4 4"),
    traced("bb.where(i[:, None] == i, x, 0)", lambda x: bb.einsum("ii->i", x),
           lambda x: bb.sum(bb.where(bb.arange(4)[:, None] == bb.arange(4), x, 0), axis=1),
           x="4 4"),
    traced("sums stand in parentheses",
           lambda x, w: bb.einsum("hc,rc->hr", x, w, pad={"h": (1, 1)}),
           lambda x, w: bb.einsum("(h+r)c,rck->hk", x, w, pad={"h": (1, 1)}, sizes={"h": 4}),
           x="4 4", w="3 4", fixed={"w": "3 4 5"}, then=""),
    traced("an extended spec names every axis", lambda x, w: bb.einsum("...(h+r)c,rc->h", x, w),
           lambda x, w: bb.einsum("(h+r)c,rc->h", x, w), x="4 4", w="3 4"),
    traced("sizes={'h': ...}", lambda x, w: bb.einsum("(h+r)c,rhc->h", x, w),
           lambda x, w: bb.einsum("(h+r)c,rhc->h", x, w, sizes={"h": 2}), x="4 4", w="3 4 4",
           then="'h' has"),
    traced("or pad the letter", lambda x, w: bb.einsum("(h+r)c,rhc->h", x, w),
           lambda x, w: bb.einsum("(h+r)c,rhc->h", x, w, pad={"h": (1, 1)}), x="4 4", w="3 4 4"),
    traced("numbers in a spec are whole", lambda x: bb.einsum("(n*h)c->h", x, n=1.5),
           lambda x: bb.einsum("(n*h)c->h", x, n=2), x="4 4"),
    traced("a[..., :, None] * b[..., None, :]", lambda x: bb.outer(x, x),
           lambda x: x[..., :, None] * x[..., None, :]),
    traced("ord='fro'", lambda x: bb.norm(x, "nuc"), lambda x: bb.norm(x, "fro")),
    traced("norms of vectors have one axis", lambda x: bb.norm(x, 3),
           lambda x: bb.norm(x, 1, axis=0)),
    traced("join one to the others", lambda x: bb.max(x, 0),
           lambda x: bb.max(bb.concat([x, bb.zeros((1, 3))], axis=0), 0), x=np.zeros((0, 3))),
    traced("reduce another axis", lambda x: bb.max(x, 0), lambda x: bb.max(x, 1),
           x=np.zeros((0, 3))),
    traced("it takes two vectors", lambda x: np.convolve(x, x), lambda x: np.convolve(x[0], x[0]),
           x="4 4"),
    traced('"valid", "same" or "full"', lambda x: np.convolve(x, x, mode="some"),
           lambda x: np.convolve(x, x, mode="same"), x="4"),
    traced("it takes x, axis", lambda x: np.var(x, dtype=float), lambda x: np.var(x, axis=0)),
    traced("it takes (x:", lambda x: x.clamp(1, 2, 3), lambda x: x.clamp(1, 2)),
    traced("it is constant", lambda x: np.pad(x, 1, mode="mean"),
           lambda x: np.pad(x, 1, mode="edge")),
    traced("give numbers", lambda x: np.pad(x, ((x.shape[1], 0), (0, 0)), mode="edge"),
           lambda x: np.pad(x, ((2, 0), (0, 0)), mode="edge")),
    traced("reach no farther", lambda x: np.pad(x, 4, mode="reflect"),
           lambda x: np.pad(x, 3, mode="reflect"), x="4"),
    traced("x='A B=64'", lambda x: np.pad(x, ((0, 0), (0, 60)), mode="wrap"),
           fixed={"x": "M N=64"}),
    traced("search pieces", lambda x: bb.argmax(x), lambda x: bb.argmax(x[: 2**20]),
           x=f"{2**25}"),
    traced("windows are smaller", lambda x: x.unfold(0, 9, 1),
           lambda x: x.unfold(0, 3, 1), x="4"),
    traced("size is a whole number of at least 1", lambda x: x.unfold(0, 0, 1),
           lambda x: x.unfold(0, 1, 1), x="4"),
)  # fmt: skip

LAYERS = (
    traced("channels, then places", lambda x, w: F.conv2d(x, w[0]),
           lambda x, w: F.conv2d(x, w), **WEIGHTED),
    traced("groups divide both", lambda x, w: F.conv2d(x, w, groups=3),
           lambda x, w: F.conv2d(x, w[:, :2], groups=2), **WEIGHTED),
    traced("axis 1 of x holds", lambda x, w: F.conv2d(x.permute(0, 2, 3, 1), w),
           lambda x, w: F.conv2d(x, w), **WEIGHTED),
    traced("whole number of at least 1", lambda x, w: F.conv2d(x, w, stride=0),
           lambda x, w: F.conv2d(x, w), **WEIGHTED),
    traced('"R=3"', lambda x, w: F.conv_transpose2d(x, w), fixed={"w": "4 6 R=3 3"}, x="2 4 8 8",
           w="4 6 R 3"),
    traced("with 2 more axes", lambda x, w: F.conv2d(x[0, 0], w), lambda x, w: F.conv2d(x[0], w),
           **WEIGHTED),
    traced('"same" where the stride is 1', lambda x, w: F.conv2d(x, w, padding="some"),
           lambda x, w: F.conv2d(x, w, padding="same"), **WEIGHTED),
    traced("smaller than the stride", lambda x, w: F.conv_transpose2d(x, w, output_padding=1),
           lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1), x="2 4 8 8",
           w="4 6 3 3"),
    traced("lie side by side", lambda x: F.fold(x, (8, 8), 3),
           lambda x: F.fold(x, (8, 8), 2, stride=2),
           x="2 16 16"),
    traced("a multiple of 9", lambda x: F.pixel_shuffle(x, 3), fixed={"x": "2 9 8 8"}, **IMAGE),
    traced("multiples of 3", lambda x: F.pixel_unshuffle(x, 3), fixed={"x": "2 4 9 9"}, **IMAGE),
    traced("groups divide the channels", lambda x: torch.channel_shuffle(x, 3),
           lambda x: torch.channel_shuffle(x, 2), **IMAGE),
    traced("take x.float()", lambda x: F.adaptive_max_pool2d(x.long(), 3),
           lambda x: F.adaptive_max_pool2d(x.float(), 3), **IMAGE),
    traced("take x.float()", lambda x: F.interpolate(x.long(), scale_factor=2, mode="bilinear"),
           lambda x: F.interpolate(x.long().float(), scale_factor=2, mode="bilinear"), **IMAGE),
    traced("at most half of a window", lambda x: F.max_pool2d(x, 2, padding=2),
           lambda x: F.max_pool2d(x, 2, padding=1), **IMAGE),
    traced('"H=16"', lambda x: F.max_pool2d(x, 2, ceil_mode=True), x="2 4 H W",
           fixed={"x": "2 4 H=16 W=16"}),
    traced("it is not 0", lambda x: F.avg_pool2d(x, 2, divisor_override=0),
           lambda x: F.avg_pool2d(x, 2, divisor_override=3), **IMAGE),
    traced("leave max_norm out", lambda x, w: F.embedding(x, w, max_norm=1.0),
           lambda x, w: F.embedding(x, w),
           x="int64: M", w="V E"),
    traced("pass x.shape[-1:]", lambda x: F.layer_norm(x, (9,)),
           lambda x: F.layer_norm(x, x.shape[-1:]), x="4 8"),
    traced("running_mean and running_var", lambda x: F.batch_norm(x, None, None),
           lambda x: F.batch_norm(x, None, None, training=True), x="4 8"),
    traced("model.eval()", lambda x, m: F.batch_norm(x, m, m, training=True),
           lambda x, m: F.batch_norm(x, m, m), x="4 8", m="8"),
    traced("x.unsqueeze(1)", lambda x: F.instance_norm(x),
           lambda x: F.instance_norm(x.unsqueeze(1)), x="4 8"),
    traced("leave the norm out", lambda x: F.instance_norm(x), lambda x: x * 1, x="4 8 1"),
    traced("pass dropout_p=0.0", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, None, 0.1),
           lambda q, k, v: F.scaled_dot_product_attention(q, k, v), **HEADS),
    traced("a mask of two axes", lambda q, k, v, m: F.scaled_dot_product_attention(
        q, k[:, :2], v[:, :2], m, enable_gqa=True),
              lambda q, k, v, m: F.scaled_dot_product_attention(
        q, k[:, :2], v[:, :2], m[0, 0], enable_gqa=True), **HEADS, m="2 4 8 8"),
    traced("model.eval(), or pass dropout_p", lambda x, kv: F.multi_head_attention_forward(
               x, kv, kv, 8, 2, torch.ones(24, 8), None, None, None, False, 0.5,
               torch.ones(8, 8), None)[0], lambda x, kv: heads(x, kv), **TOKENS),
    traced("leave them out", lambda x, kv: heads(x, kv, static_k=kv, static_v=kv),
           lambda x, kv: heads(x, kv), **TOKENS),
    traced("pass the causal mask, too", lambda x, kv: heads(x, kv, is_causal=True),
           lambda x, kv: heads(x, kv, is_causal=True, attn_mask=torch.ones(5, 5).triu(1).bool(),
                               need_weights=False), **TOKENS),
    traced("(tokens, features) or", lambda x, kv: heads(x[None], kv), lambda x, kv: heads(x, kv),
           **TOKENS),
    traced("a multiple of heads", lambda x, kv: heads(x[..., :6], kv), lambda x, kv: heads(x, kv),
           **TOKENS),
    traced("it has 2 or 3 axes", lambda x, kv: heads(x, kv, attn_mask=torch.ones(5)),
           lambda x, kv: heads(x, kv, attn_mask=torch.ones(5, 5)), **TOKENS),
    traced("masks are (queries, keys)", lambda x, kv: heads(x, kv, attn_mask=torch.ones(5, 1)),
           lambda x, kv: heads(x, kv, attn_mask=torch.ones(5, 5)), **TOKENS),
)  # fmt: skip

OTHERS = (
    traced("for torch.vmap, write the axis",
           lambda x: torch.vmap(lambda row: row * row.sum())(x),
           lambda x: x * x.sum(-1, keepdim=True)),
    traced('"none" or "tanh"', lambda x: F.gelu(x, approximate="erf"),
           lambda x: F.gelu(x, approximate="tanh")),
    traced("lambd is 0 or more", lambda x: F.softshrink(x, -1.0), lambda x: F.softshrink(x, 1.0)),
    traced("one for each channel", lambda x, w: F.prelu(x, w), lambda x, w: F.prelu(x, w[0]),
           x="4 8", w="1 8"),
    traced("model.eval()", lambda x: F.rrelu(x, training=True), lambda x: F.rrelu(x)),
    traced("model.eval()", lambda x: F.dropout(x, 0.5), lambda x: F.dropout(x, 0.5, False) + 1),
    traced("s * torch.arange(n)", lambda x: x + torch.arange(0, x.shape[1], 0.5)[: x.shape[1]],
           lambda x: x + 0.5 * torch.arange(x.shape[1])),
    traced("make integers of masks: x.int()",
           lambda x: torch.div(x > 0, 2, rounding_mode="trunc"),
           lambda x: torch.div((x > 0).int(), 2, rounding_mode="trunc")),
    traced("modes: floor, trunc", lambda x: torch.div(x, 2.0, rounding_mode="up"),
           lambda x: torch.div(x, 2.0, rounding_mode="trunc")),
    traced("torch.floor(x / y)", lambda x: torch.div(x, 2.0, rounding_mode="floor"),
           lambda x: torch.floor(x / 2.0)),
    traced("name a dtype", lambda x: x.type(), lambda x: x.type(torch.float16)),
    traced(".to(torch.float16) casts", lambda x: x.to("cuda"), lambda x: x.to(torch.float16)),
    traced("leave the device out", lambda x: x.cuda(), lambda x: x + 1),
    traced("x.mT", lambda x: torch.t(x), lambda x: x.mT, x="2 M N"),
    traced("one_hot(x, 10)", lambda x: F.one_hot(x), lambda x: F.one_hot(x, 10), x="int64: M"),
    traced("at most the elements", lambda x: torch.topk(x, 9)[0], lambda x: torch.topk(x, 8)[0],
           x="4 8"),
    traced("the first is k=1", lambda x: torch.kthvalue(x, 0)[0],
           lambda x: torch.kthvalue(x, 1)[0], x="4 8"),
    traced("parts add up", lambda x: torch.split(x, [1, 2])[0], lambda x: torch.split(x, [1, 3])[0],
           x="4 8"),
    traced("x[..., start:]", lambda x: torch.narrow(x, -1, 6, 9), lambda x: x[..., 6:], x="4 8"),
    traced("no more axes", lambda x: x.sum_to_size(2, 4, 8),
           lambda x: x.sum_to_size(4, 8), x="4 8"),
    traced("expand repeats", lambda x: x.sum_to_size(4, 8), lambda x: x.expand(4, 8), x="4 1"),
    traced("transpose the result", lambda x: torch.diag_embed(x, 1),
           lambda x: torch.diag_embed(x).mT,
           x="4"),
    traced("torch.matmul takes", lambda x: torch.mv(x, x), lambda x: torch.matmul(x, x), x="4 4"),
    traced("ord='fro' is", lambda x: torch.linalg.matrix_norm(x, "nuc"),
           lambda x: torch.linalg.matrix_norm(x, "fro")),
    traced("p is a number, or 'fro'", lambda x: torch.norm(x, "nuc"),
           lambda x: torch.norm(x, "fro")),
    traced('"none", "mean" or "sum"',
           lambda x: F.mse_loss(x, x, reduction="max"),
                 lambda x: F.mse_loss(x, x, reduction="sum")),
    traced("two vectors a target of no axes", lambda x, t: F.cosine_embedding_loss(x, x, t[0]),
           lambda x, t: F.cosine_embedding_loss(x, x, t), x="4 8", t="4"),
    traced("p is 1 or 2", lambda x, labels: F.multi_margin_loss(x, labels, p=3),
           lambda x, labels: F.multi_margin_loss(x, labels, p=2), x="4 8", labels="int64: 4"),
    traced("as one tuple, torch.zeros((n, m))", lambda x: x + torch.zeros(x.shape[0], x.shape[1]),
           lambda x: x + torch.zeros((x.shape[0], x.shape[1]))),
    traced("w = torch.ones_like(x)", set_in(lambda x: torch.tensor([1.0, 2.0, 3.0])),
           set_in(torch.ones_like), x="3"),
)  # fmt: skip

PLACED = {"x": "4 8", "i": "int64: 4 2", "y": "4 2"}
LAYER = {"x": "5 3 8", "h": "1 3 6", "w": "6 8", "u": "6 6"}


def layer(x, h, w, u, *more):
    return torch.rnn_tanh(x, h, [w, u, *more], False, 1, 0.0, False, False, False)[0]


BY_LIBRARY = (
    traced("pad them", lambda x, h, w, u: torch.rnn_tanh(
        x, h, h, [w, u], False, 1, 0.0, False, False),
           lambda x, h, w, u: layer(x, h, w, u), **LAYER),
    traced("proj_size=0", lambda x, h, w, u: layer(x, h, w, u, u),
           lambda x, h, w, u: layer(x, h, w, u), **LAYER),
    traced("torch.scatter_add adds up", lambda x, i, y: x.scatter(1, i, y, reduce="multiply"),
           lambda x, i, y: torch.scatter_add(x, 1, i, y), **PLACED),
    traced("positions are a vector", lambda x, i, y: x.index_add(1, i, y),
           lambda x, i, y: x.index_add(1, i[0], y), **PLACED),
    traced("index[:, None]", lambda x, i, y: x.scatter(1, i[:, 0], 1.0),
           lambda x, i, y: x.scatter(1, i[:, 0][:, None], 1.0), **PLACED),
    traced("positions are integers", lambda x, i, y: x.scatter(1, y, y),
           lambda x, i, y: x.scatter(1, y.long(), y), **PLACED),
    traced("source.to(x.dtype)", lambda x, i, y: x.scatter(1, i, i),
           lambda x, i, y: x.scatter(1, i, i.to(x.dtype)), **PLACED),
    traced("times a mask leaves some out", lambda x, i, y: F.embedding_bag(i, x, padding_idx=0),
           lambda x, i, y: (F.embedding(i, x) * (i != 0)[..., None]).sum(1), **PLACED),
    traced("modes: sum, mean, max", lambda x, i, y: F.embedding_bag(i, x, mode="min"),
           lambda x, i, y: F.embedding_bag(i, x, mode="max"), **PLACED),
)  # fmt: skip

SIZES_AND_DTYPES = (
    traced("write the dims as one text", lambda x: x @ x.T, x=(32, 16), fixed={"x": "32 16"}),
    traced("it takes matrices", lambda x: (x + 1).fill_diagonal_(0.0), x="2 4 4",
           fixed={"x": "4 4"}),
    traced("y.clone() of a tensor", windows_in_place(lambda y: y), windows_in_place(np.copy),
           x="M"),
    traced("sizes take part in arithmetic", lambda x: torch.tensor(x.shape[0]) * x,
           lambda x: x.shape[0] * x),
    Tried("out_dtype=torch.bfloat16", lambda: scaled_product(*EIGHTS),
          lambda: scaled_product(*EIGHTS, torch.float32)),
    Tried("x.real, x.imag", lambda: plus_one(COMPLEX), lambda: bb.jit(np.hypot)(*PARTS)),
    Tried("x.real, x.imag", lambda: plus_one(torch.tensor(COMPLEX)),
          lambda: bb.jit(lambda x, y: torch.hypot(x, y))(*map(torch.tensor, PARTS))),
    Tried("an array of numbers", lambda: plus_one(np.array(["1"])),
          lambda: plus_one(np.array([1]))),
    Tried("x.resolve_neg()", lambda: plus_one(torch.tensor([1 + 2j]).conj().imag),
          lambda: plus_one(torch.tensor([1 + 2j]).conj().imag.resolve_neg())),
    Tried("bring them to one device", lambda: bb.jit(np.add)(PARTS[0], torch.ones(2)),
          lambda: bb.jit(np.add)(PARTS[0], torch.ones(2).numpy())),
)  # fmt: skip

CASES = (*SHAPES, *LAYERS, *OTHERS, *BY_LIBRARY, *SIZES_AND_DTYPES)
