"""What to write for functions that are refused: each replacement, beside the function itself."""

import numpy as np
import torch

import blockbuster as bb

X = np.array([[1.5, -0.5, 0.0], [2.0, 0.25, -1.25]])
Y = np.array([[0.5, 2.0, -1.0], [-2.0, 1.0, 3.0]])
WHOLE = np.array([[3, 5, 2], [1, 0, 5]])
SQUARE = X @ X.T
VECTOR = np.array([0.5, -2.0, 3.0, 1.0])
NAN = np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, 0.5]])


def custom(fn, shape=None):
    """``fn`` as a function of whole arrays, whose result has the shape of the first one."""
    return lambda x, *more: bb.custom(fn, x, *more, shape=shape(x) if shape else x.shape)


def bits(x):
    total = 0
    for i in range(8):
        total = total + ((x >> i) & 1)
    return total


def turned_pairs(x, angle):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    turned = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2)


def turned(x, angle):
    a, b, cos, sin = x[..., 0::2], x[..., 1::2], torch.cos(angle), torch.sin(angle)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def renormed(x):
    n = x.norm(dim=-1, keepdim=True)
    return torch.where(n > 1, x * (1 / n), x)


def without(x):
    """Without row 1, which `delete` leaves out."""
    return bb.concat([x[:1], x[2:]], axis=0)


def blocks(a, b):
    F = torch.nn.functional
    n, m = b.shape[1], b.shape[0]
    return F.pad(a, (0, n, 0, m)) + F.pad(b, (a.shape[1], 0, a.shape[0], 0))


def tensor(x):
    return torch.from_numpy(np.asarray(x))


def lgamma(x):
    return torch.lgamma(torch.tensor(x)).numpy()


T, S = tensor(X), tensor(SQUARE)

REPLACED = (
    ("linalg.inv", np.linalg.inv, custom(np.linalg.inv), SQUARE),
    ("fft.fft", lambda x: np.fft.fft(x).real, custom(lambda x: np.fft.fft(x).real), X),
    ("fft.fftshift", np.fft.fftshift, custom(np.fft.fftshift), X),
    ("nonzero", lambda x: np.sum(x[np.nonzero(x > 0)]), lambda x: bb.sum(bb.where(x > 0, x, 0)), X),
    ("delete", lambda x: np.delete(x, 1, 0), without, X),
    ("isin", lambda x: np.isin(x, [2, 5]),
     lambda x: bb.any(x[..., None] == np.array([2, 5]), axis=-1), WHOLE),
    ("partition", lambda x: np.partition(x, 1)[..., :1],
     lambda x: bb.topk(x, 1, largest=False)[0], X),
    ("lexsort", lambda x: np.lexsort((x,)), lambda x: np.argsort(x), X),
    ("argpartition", lambda x: np.argpartition(x, 1)[..., :1],
     lambda x: bb.topk(x, 1, largest=False)[1], X),
    ("nanmedian", lambda x: np.nanmedian(x, axis=-1, keepdims=True) + 0 * x,
     custom(lambda x: np.nanmedian(x, axis=-1, keepdims=True) + 0 * x), X),
    ("bincount", lambda x: np.bincount(x.ravel(), minlength=6),
     lambda x: bb.sum(x.reshape(-1)[..., None] == np.arange(6), axis=0), WHOLE),
    ("interp", lambda x: np.interp(x, [0, 1], [2, 4]),
     custom(lambda x: np.interp(x, [0, 1], [2, 4])), X),
    ("select", lambda x: np.select([x > 1, x > 0], [x, -x], 0.0),
     lambda x: bb.where(x > 1, x, bb.where(x > 0, -x, 0.0)), X),
    ("putmask", lambda x: np.where(x > 1, 7.0, x), lambda x: bb.where(x > 1, 7.0, x), X),
    ("uniform_", lambda x, noise: x + noise, lambda x, noise: x + noise, X, Y),
    ("grid_sample", np.sort, custom(np.sort), X),
    ("max_pool2d_with_indices",
     lambda x: torch.nn.functional.max_pool1d(x, 3, return_indices=True)[0],
     lambda x: torch.nn.functional.max_pool1d(x, 3, return_indices=False), T),
    ("nancumsum", lambda x: np.nancumsum(x, -1),
     lambda x: bb.cumsum(bb.where(bb.isnan(x), 0, x), -1), NAN),
    ("nanargmax", lambda x: np.nanargmax(x, -1),
     lambda x: bb.argmax(bb.where(bb.isnan(x), -np.inf, x), -1), NAN),
    ("cbrt", np.cbrt, lambda x: bb.sign(x) * bb.abs(x) ** (1 / 3), X),
    ("_is_all_true", lambda x: torch.distributions.Categorical(logits=x).entropy(),
     lambda x: torch.distributions.Categorical(logits=x, validate_args=False).entropy(),
     torch.tensor([[0.5, 1.0, 2.0]], dtype=torch.float64)),
    ("copysign", np.copysign, lambda x, y: bb.where(y < 0, -bb.abs(x), bb.abs(x)), X, Y),
    ("signbit", np.signbit, lambda x: x < 0, X),
    ("modf", lambda x: np.modf(x)[0], custom(lambda x: np.modf(x)[0]), X),
    ("gcd", lambda x: np.gcd(x, 6), lambda x: bb.custom(
        lambda a: np.gcd(a.astype(int), 6), x, shape=x.shape), WHOLE),
    ("bitwise_count", np.bitwise_count, bits, WHOLE),
    ("erfc", torch.special.erfc, lambda x: 1 - bb.erf(x), T),
    ("lgamma", lgamma, custom(lgamma), X + 2),
    ("pdist", lambda x: torch.nn.functional.pdist(x).sum(),
     lambda x: torch.cdist(x, x).sum() / 2, T),
    ("new_tensor", lambda x: x + x.new_tensor([1, 2, 3]),
     lambda x: x + torch.tensor([1, 2, 3], dtype=x.dtype, device=x.device), T),
    ("renorm", lambda x: x / x.norm(dim=-1, keepdim=True).clamp(min=1), renormed, T),
    ("cartesian_prod", lambda a: torch.cartesian_prod(a, a), lambda a: torch.stack(
        [g.ravel() for g in torch.meshgrid(a, a, indexing="ij")], -1), tensor(VECTOR)),
    ("constant_pad_nd", lambda x: torch.constant_pad_nd(x, (1, 1), 3.0),
     lambda x: torch.nn.functional.pad(x, (1, 1), value=3.0), T),
    ("block_diag", lambda a, b: torch.block_diag(a, b), blocks, T, S),
    ("vander", lambda x: torch.vander(x, 3, increasing=True),
     lambda x: x[:, None] ** torch.arange(3), tensor(VECTOR)),
    ("ediff1d", np.ediff1d, lambda x: x[..., 1:] - x[..., :-1], VECTOR),
    ("polyval", lambda x: np.polyval([2, 3, 4], x), lambda x: (2 * x + 3) * x + 4, X),
    ("linalg.diagonal", np.diagonal,
     lambda x: bb.sum(bb.where(bb.arange(2)[:, None] == bb.arange(2), x, 0), axis=-1), SQUARE),
    ("real", np.real, lambda x: x * 1, X),
    ("view_as_complex", turned_pairs, turned, tensor(VECTOR), tensor(VECTOR[:2])),
    ("apply_along_axis", lambda x: np.apply_along_axis(np.sum, 0, x), lambda x: bb.sum(x, 0), X),
)  # fmt: skip
"""A refused name, the function, what its hint says, and arguments."""

NO_VALUES = ("allclose", "item", "data", "cuda", "backward")
"""Names whose hint is to leave them out, or to do it with what the jitted function returns."""
