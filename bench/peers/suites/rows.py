"""Programs limited by memory: rows, losses, Performer, and programs that no other suite names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.everyday import BY_NAME as EVERYDAY
from bench.gpu.everyday import eager as everyday_eager
from bench.peers.case import EAGER, Array, Case
from bench.peers.contestants import by_hand, called, compiled, ours, usual
from bench.peers.suites.matmuls import case
from bench.programs import WORKLOADS, eager


def length(functions: Any, x: Array) -> Array:
    """The Euclidean length of each row, without overflow."""
    top = functions.max(functions.abs(x), axis=-1, keepdims=True)
    return top[..., 0] * functions.sqrt(functions.sum((x / top) ** 2, axis=-1))


def rms_norm_row_max(functions: Any, x: Array, w: Array) -> Array:
    """The scale by which a normed row is quantized to fp8."""
    y = functions.rms_norm(x) * w
    return functions.max(functions.abs(y), axis=-1) / 448.0


def softmax(functions: Any, x: Array) -> Array:
    return functions.softmax(x, axis=-1)


def layer_norm(functions: Any, x: Array, g: Array, b: Array) -> Array:
    return functions.layer_norm(x, g, b)


def rms_norm(functions: Any, x: Array, w: Array) -> Array:
    return functions.rms_norm(x, w)


ROW = dict(x="M N")
OF_ROWS = (
    ("length", length, ROW, "rows.NORM_FORMS"),
    ("rms-norm-row-max", rms_norm_row_max, dict(x="M N", w="N"), None),
    ("softmax", softmax, ROW, "rows.SOFTMAX_FORMS"),
    ("layer-norm", layer_norm, dict(x="M N", g="N", b="N"), None),
    ("rms-norm", rms_norm, dict(x="M N", w="N"), None),
)
QUICK_ROWS = (
    ("length", 256, 1 << 17), ("rms-norm-row-max", 256, 1 << 17), ("softmax", 256, 1 << 14),
    ("layer-norm", 256, 1 << 12),
)  # fmt: skip


def _stable_length(x: Array) -> Array:
    top = x.abs().amax(-1, keepdim=True).float()
    return (top[:, 0] * ((x.float() / top) ** 2).sum(-1).sqrt()).to(x.dtype)


def _rows() -> Iterator[Case]:
    for n in (1 << 17, 1 << 14, 1 << 12, 1 << 10):
        for m in (256, 32):
            for name, fn, inputs, place in OF_ROWS:
                hand = (by_hand(place, 1 if name == "length" else 0),) if place and n > 8192 else ()
                if name == "softmax" and n > 1 << 16:
                    hand = ()  # the row would not fit into registers
                scaled = (
                    called("eager, float32", _stable_length),
                    compiled("torch.compile, float32", _stable_length),
                )
                yield case(
                    "rows", "rows", f"{name}-{m}x{n}", fn, inputs, dict(M=m, N=n),
                    (*hand, *(scaled if name == "length" else ())), matrices=(),
                    quick=(name, m, n) in QUICK_ROWS,
                    more=(name, m, n) in (("softmax", 256, 1 << 14), ("layer-norm", 256, 1 << 12)),
                )  # fmt: skip
    yield case(
        "rows", "rows", "softmax-256x16384-bfloat16", softmax, ROW, dict(M=256, N=1 << 14),
        matrices=(), dtype="bfloat16",
    )  # fmt: skip


# losses ---------------------------------------------------------------------------


def cross_entropy(functions: Any, z: Array, target: Array) -> Array:
    """The loss of each row of logits, from the shares of the classes."""
    return functions.logsumexp(z, axis=-1) - functions.sum(target * z, axis=-1)


def divergence(functions: Any, z: Array, target: Array) -> Array:
    """Kullback and Leibler's, of two rows of logits."""
    p = functions.log_softmax(target, axis=-1)
    return functions.sum(functions.exp(p) * (p - functions.log_softmax(z, axis=-1)), axis=-1)


def _smoothed_target(random: Any, shape: tuple[int, ...]) -> Array:
    import torch

    return torch.randint(300, shape, generator=random, device=random.device)


def _shares(random: Any, shape: tuple[int, ...]) -> Array:
    import torch

    return torch.softmax(4 * torch.randn(shape, generator=random, device=random.device), -1)


def _losses() -> Iterator[Case]:
    logits = dict(z="T V", target="T V")
    for t, v in ((4096, 32768), (1024, 131072), (8192, 4096)):
        for name, fn in (("cross-entropy", cross_entropy), ("divergence", divergence)):
            yield case(
                "losses", "losses", f"{name}-{t}x{v}", fn, logits, dict(T=t, V=v), matrices=(),
                special=dict(target=_shares) if fn is cross_entropy else {},
                quick=t == 4096, more=v == 32768,
            )  # fmt: skip
    yield everyday(
        "smoothed-cross-entropy", suite="losses", family="losses of products", quick=True,
        special=dict(target=_smoothed_target),
    )  # fmt: skip
    yield other("cross-entropy", suite="losses", family="losses of products", quick=True)
    yield other("logsumexp-of-product", suite="losses", family="losses of products")


# Performer ------------------------------------------------------------------------


def performer(functions: Any, q: Array, k: Array, v: Array, p: Array) -> Array:
    """Attention by positive random features: linear in the number of positions."""

    def features(x: Array, axes: Any) -> Array:
        x = x * x.shape[-1] ** -0.25
        u = x @ p.swapaxes(-1, -2)
        squares = 0.5 * functions.sum(x * x, axis=-1, keepdims=True)
        return functions.exp(u - squares - functions.max(u, axis=axes, keepdims=True)) + 1e-4

    fq, fk = features(q, -1), features(k, (-1, -2))
    return (fq @ (fk.swapaxes(-1, -2) @ v)) / (fq @ functions.sum(fk, axis=-2)[..., None])


def _by_float32(q: Array, k: Array, v: Array, p: Array) -> Array:
    """The same in float16 with exponents and sums in float32, as one writes it in torch."""

    def features(x: Array, axes: tuple[int, ...]) -> Array:
        import torch

        x = x * x.shape[-1] ** -0.25
        u = (x @ p.t()).float()
        squares = 0.5 * (x.float() ** 2).sum(-1, keepdim=True)
        return torch.exp(u - squares - u.amax(axes, keepdim=True)).to(q.dtype) + 1e-4

    fq, fk = features(q, (-1,)), features(k, (-1, -2))
    total = fq.float() @ fk.float().sum(-2)[..., None]
    return (fq @ (fk.transpose(-1, -2) @ v)) / total.to(q.dtype)


def _performer() -> Iterator[Case]:
    inputs = dict(q="H S D", k="H S D", v="H S D", p="F D")
    others = (
        called("eager, float32", _by_float32),
        compiled("torch.compile, float32", _by_float32),
    )
    for s in (2048, 8192, 512, 32768):
        yield case(
            "performer", "Performer", f"performer-{s}", performer, inputs,
            dict(H=16, S=s, D=64, F=256), others, matrices=(), quick=s in (2048, 8192),
            more=s in (2048, 8192),
        )  # fmt: skip


# programs that the other suites do not name ---------------------------------------


def other(name: str, *, suite: str = "others", family: str = "others", **settings: Any) -> Case:
    """A program of bench/programs.py at its sizes."""
    one = WORKLOADS[name]
    plain = eager(one.fn)
    return Case(
        suite, family, name, one.fn, plain, one.inputs, one.sizes, one.sizes_of("ragged"),
        (ours(one.fn), *usual(plain)), **settings,
    )  # fmt: skip


def everyday(name: str, *, suite: str = "others", family: str = "others", **settings: Any) -> Case:
    """A program of bench/everyday.py at its large sizes."""
    one = EVERYDAY[name]

    def plain(*arrays: Array) -> Any:
        return everyday_eager(one.fn, arrays[0].device.type)(*arrays)

    special = settings.pop("special", {})
    sizes, few = one.sizes_of("large"), one.sizes_of("small")
    words = {name: dims.split() for name, dims in one.inputs.items()}
    inputs = {name: " ".join(w.partition("=")[0] for w in dims) for name, dims in words.items()}
    return Case(
        suite, family, name, one.fn, plain, inputs, sizes, few,
        (ours(one.fn), called(EAGER, plain), compiled("torch.compile", plain)),
        matrices=("w",), special=special, **settings,
    )  # fmt: skip


def _kept(random: Any, shape: tuple[int, ...]) -> Array:
    import torch

    return (torch.rand(shape, generator=random, device=random.device) < 0.9).float()


def _small(random: Any, shape: tuple[int, ...]) -> Array:
    """An eighth of the usual size: the sum of all absolute values is a number of float16."""
    import torch

    return torch.randn(shape, generator=random, device=random.device) / 8


QUICK_OTHERS = ("geglu", "residual-block", "softmax-columns", "pairwise-scores", "swish-pair")
OTHERS = (
    "geglu", "mlp", "linear-relu", "residual-block", "rmsnorm-swiglu", "softmax-columns",
    "log-softmax", "masked-softmax", "three-outputs", "vector-chain", "row-statistics",
    "column-sums", "total", "transposed-sum", "batched-matmul-bias", "matrix-vector",
    "pairwise-scores", "gated-average", "l2-normalized-scores", "swish-pair",
    "grouped-attention", "soft-capped-attention",
)  # fmt: skip


def _others() -> Iterator[Case]:
    for name in OTHERS:
        special = dict(x=_small) if name == "total" else {}
        yield other(name, quick=name in QUICK_OTHERS, special=special)
    for name in ("bias", "sinks", "cosine", "backward", "residual-rms-norm", "rotated-causal"):
        yield everyday(name)
    yield everyday("dropout", special=dict(keep=_kept))


CASES = (*_rows(), *_losses(), *_performer(), *_others())
