"""The parts of everyday programs: attention, norms, losses, gated units, residuals, reductions.

A part draws its options from ``random``, so the same seed builds the same program. It asks ``need``
for its inputs by name and roles of axes, and leaves the choice between spellings to ``say``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster import frontend as bb

if TYPE_CHECKING:
    from tests.random_programs.sayings import Spelling

Array = Any
Need = Callable[[str, str], Array]
"""An input of this name, with axes of these roles."""

Part = Callable[[Random, "Spelling", Need], Any]

LISTS = ("", "", "B ", "H ", "B H ")
ACTIVATIONS: tuple[Callable[[Array], Array], ...] = (bb.silu, bb.gelu, bb.relu, np.tanh)


def _source(random: Random, say: Spelling, need: Need, word: str, roles: str) -> Array:
    """An array that is given, or a simple function of given ones."""
    kind = random.choice(("given", "given", "given", "sum", "scaled", "product"))
    if kind == "sum":
        return say.plus(need(word, roles), need(f"{word}_r", roles))
    if kind == "scaled":
        return say.times(need(word, roles), need(f"{word}_g", roles.split()[-1]))
    if kind == "product":
        *outer, last = roles.split()
        return need(word, " ".join((*outer, "K"))) @ need(f"{word}_w", f"K {last}")
    return need(word, roles)


def _normed(random: Random, say: Spelling, need: Need, x: Array, width: str) -> Array:
    """A norm of the rows, built in or written out."""
    kind = random.choice(("rms", "layer", "rms by hand", "layer by hand", "length"))
    if kind == "rms":
        return bb.rms_norm(x, need("g", width), eps=1e-5)
    if kind == "layer":
        return bb.layer_norm(x, need("g", width), need("c", width), eps=1e-5)
    if kind == "rms by hand":
        root = np.sqrt(say.folded(np.mean, say.times(x, x)) + 1e-5)
        return say.times(x / root, need("g", width))
    if kind == "layer by hand":
        c = x - say.folded(np.mean, x)
        return c / np.sqrt(say.folded(np.mean, c**2) + 1e-5)
    return x / np.sqrt(say.folded(np.sum, x**2) + 1e-5)


def _masked(random: Random, say: Spelling, need: Need, s: Array) -> Array:
    """Scores with a mask of positions, of documents, or none."""
    kind = random.choice(("none", "none", "causal", "window", "prefix", "segments", "given"))
    if kind == "none":
        return s
    if kind == "given":
        return say.kept(need("mask", "M N") > 0, s, -np.inf)
    if kind == "segments":
        mask = say.column(need("a", "M")) == say.row(need("b", "N"))
        return say.kept(mask, s, -np.inf)
    i, j = say.column(bb.arange(s.shape[-2])), say.row(bb.arange(s.shape[-1]))
    mask = say.below(i, j)
    if kind == "window":
        mask = say.both(mask, i - j < 4)
    if kind == "prefix":
        mask = mask | (j < 3)
    return say.kept(mask, s, -np.inf)


def attention(random: Random, say: Spelling, need: Need) -> Array:
    """softmax(q @ k.T) @ v: lists, scale, cap, bias, mask, factors behind, residuals."""
    lists = random.choice(LISTS)
    q = _source(random, say, need, "q", f"{lists}M D")
    k = _source(random, say, need, "k", f"{lists}N D")
    shared = random.random() < 0.25
    v = k if shared else _source(random, say, need, "v", f"{lists}N L")
    s = q @ say.turned(k)
    if random.random() < 0.6:
        s = say.times(s, q.shape[-1] ** -0.5)
    if random.random() < 0.2:
        s = 5.0 * np.tanh(s / 5.0)
    bias = random.choice(("none", "none", "matrix", "row", "column"))
    if bias == "matrix":
        s = say.plus(s, need("bias", "M N"))
    elif bias != "none":
        v_bias = need("bias", "N" if bias == "row" else "M")
        s = say.plus(s, say.row(v_bias) if bias == "row" else say.column(v_bias))
    p = bb.softmax(_masked(random, say, need, s), axis=-1)
    o = p @ v
    if random.random() < 0.15:
        o = o @ need("wo", "L E" if not shared else "D E")
    elif random.random() < 0.2:
        o = say.plus(o, need("r", f"{lists}M L" if not shared else f"{lists}M D"))
    return o


def itself(random: Random, say: Spelling, need: Need) -> Array:
    """Attention of an array to itself."""
    lists = random.choice(LISTS)
    x = _source(random, say, need, "x", f"{lists}M D")
    if random.random() < 0.4:
        q, k, v = (
            x @ need(word, f"D {out}") for word, out in (("wq", "E"), ("wk", "E"), ("wv", "L"))
        )
        x = None
    else:
        q = k = v = x
    s = say.times(q @ say.turned(k), q.shape[-1] ** -0.5)
    if random.random() < 0.5:
        i = bb.arange(s.shape[-2])
        s = say.kept(say.below(say.column(i), say.row(i)), s, -np.inf)
    o = bb.softmax(s, axis=-1) @ v
    return say.plus(o, x) if x is not None and random.random() < 0.3 else o


def normed_product(random: Random, say: Spelling, need: Need) -> Array:
    """A norm, a product or two, an activation, a residual."""
    lists = random.choice(LISTS)
    x = _source(random, say, need, "x", f"{lists}M D")
    h = _normed(random, say, need, x, "D")
    y = h @ need("w", "D F")
    if random.random() < 0.5:
        y = say.times(random.choice(ACTIVATIONS)(y), h @ need("u", "D F"))
    elif random.random() < 0.5:
        y = random.choice(ACTIVATIONS)(say.plus(y, need("b", "F")))
    if random.random() < 0.4:
        y = y @ need("d", "F D")
        return say.plus(x, y) if random.random() < 0.5 else y
    return y


def residual_norm(random: Random, say: Spelling, need: Need) -> Any:
    """A residual and its norm, one or both returned."""
    lists = random.choice(LISTS)
    x = say.plus(need("x", f"{lists}M D"), need("r", f"{lists}M D"))
    y = _normed(random, say, need, x, "D")
    return (y, x) if random.random() < 0.6 else y


def layer(random: Random, say: Spelling, need: Need) -> Any:
    """A layer of a language model: a norm, attention to itself, a residual, perhaps a gate."""
    lists = random.choice(("", "B "))
    x = need("x", f"{lists}M D")
    if random.random() < 0.4:
        x = say.plus(x, need("r", f"{lists}M D"))
    h = bb.rms_norm(x, need("g", "D")) if random.random() < 0.7 else x
    q, k, v = (h @ need(word, "D E") for word in ("wq", "wk", "wv"))
    s = say.times(q @ say.turned(k), q.shape[-1] ** -0.5)
    if random.random() < 0.6:
        i = bb.arange(s.shape[-2])
        s = say.kept(say.below(say.column(i), say.row(i)), s, -np.inf)
    y = say.plus(x, bb.softmax(s, axis=-1) @ v @ need("wo", "E D"))
    if random.random() < 0.4:
        return y
    z = _normed(random, say, need, y, "D")
    gate = say.times(bb.silu(z @ need("w1", "D F")), z @ need("w2", "D F"))
    return say.plus(y, gate @ need("w3", "F D"))


def weights(random: Random, say: Spelling, need: Need) -> Any:
    """Attention that also gives its weights, their sums or its scores."""
    s = need("q", "M D") @ say.turned(need("k", "N D"))
    p = bb.softmax(say.times(s, 0.125), axis=-1)
    o = p @ need("v", "N L")
    kind = random.choice(("weights", "columns", "scores", "entropy"))
    if kind == "weights":
        return o, p
    if kind == "columns":
        return o, p.sum(0)
    if kind == "scores":
        return o, bb.logsumexp(s, axis=-1)
    return o, -say.times(p, np.log(say.plus(p, 1e-6))).sum(-1)


def loss(random: Random, say: Spelling, need: Need) -> Array:
    """A cross-entropy, a squared error, a divergence."""
    kind = random.choice(("entropy", "square", "divergence", "nll"))
    if kind == "square":
        d = need("x", "M D") - _source(random, say, need, "y", "M D")
        return say.times(d, d).mean(-1).mean()
    if kind == "divergence":
        p, q = bb.softmax(need("x", "M N")), need("y", "M N")
        return say.times(p, bb.log_softmax(need("x2", "M N")) - bb.log_softmax(q)).sum(-1)
    z = need("x", "M D") @ need("w", "D F") if random.random() < 0.6 else need("z", "M F")
    hot = say.column(need("t", "M")) == say.row(bb.arange(z.shape[-1]))
    if kind == "nll":
        return -say.kept(hot, bb.log_softmax(z, axis=-1), 0.0).sum(-1)
    return bb.logsumexp(z, axis=-1) - say.kept(hot, z, 0.0).sum(-1)


def reduction(random: Random, say: Spelling, need: Need) -> Any:
    """Sums, means and maxima along rows or columns, also of products."""
    lists = random.choice(LISTS)
    x = _source(random, say, need, "x", f"{lists}M D")
    kind = random.choice(("rows", "columns", "scaled rows", "softmax of columns", "gram", "both"))
    if kind == "rows":
        return x / say.folded(np.sum, np.abs(x))
    if kind == "columns":
        return x - x.mean(axis=-2, keepdims=True)
    if kind == "scaled rows":
        return say.times(x, say.column(need("g", "M"))).sum(-2)
    if kind == "softmax of columns":
        return bb.softmax(x, axis=-2)
    if kind == "gram":
        return say.turned(x) @ x
    return x.sum(-1), x.max(-2)


def chain(random: Random, say: Spelling, need: Need) -> Array:
    """Two or three products in a row, of which dims may have one size."""
    x = need("x", "M D") @ need("a", "D L")
    if random.random() < 0.5:
        x = random.choice(ACTIVATIONS)(x)
    x = x @ need("b", "L E")
    if random.random() < 0.5:
        x = say.times(x, need("g", "E")) @ need("c", "E D")
    return x


PARTS: Mapping[str, Part] = {
    "attention": attention,
    "attention_": attention,
    "itself": itself,
    "normed_product": normed_product,
    "residual_norm": residual_norm,
    "layer": layer,
    "weights": weights,
    "loss": loss,
    "reduction": reduction,
    "chain": chain,
}
