"""Functions that traced arrays refuse, by name, with the reason and a replacement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CUSTOM = "bb.custom(fn, x, shape=x.shape) takes any function of whole arrays"


@dataclass(frozen=True)
class Refusal:
    """Functions or methods that cannot be traced.

    ``names`` are as NumPy or torch write them behind ``np.``, ``torch.`` or a dot. ``reason``
    completes "np.median cannot be traced: ...". ``instead`` says what gives the same.
    """

    names: tuple[str, ...]
    reason: str
    instead: str


_ONE_AFTER_ANOTHER = "its elements are found one after another, which no loop over blocks can do"
_ORDER = "it puts elements in order, and bb has no function for it"
_LENGTH = "how many elements the result has depends on values"
_VALUES = "a traced array has no values"
_MEMORY = "a traced array has no place in memory"
_ROTATION = (
    "write the real and the imaginary part: with a, b = x[..., 0::2], x[..., 1::2] a rotation is"
    " torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)"
)

REFUSED: tuple[Refusal, ...] = (
    Refusal(
        ("linalg.inv", "linalg.pinv", "linalg.solve", "linalg.lstsq", "linalg.det",
         "linalg.slogdet", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.eigvalsh",
         "linalg.svd", "linalg.svdvals", "linalg.qr", "linalg.cholesky", "linalg.matrix_rank",
         "linalg.cond", "linalg.tensorinv", "linalg.tensorsolve"),
        _ONE_AFTER_ANOTHER, f"{CUSTOM}: fn=np.linalg.inv, for example"),
    Refusal(
        ("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.fft2", "fft.ifft2", "fft.rfft2",
         "fft.irfft2", "fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn", "fft.hfft",
         "fft.ihfft"),
        "its numbers are complex", f"{CUSTOM}, if the result is real"),
    Refusal(("fft.fftshift", "fft.ifftshift"), "it belongs to Fourier transforms", CUSTOM),
    Refusal(
        ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero",
         "flatnonzero", "argwhere", "extract", "compress", "union1d", "intersect1d", "setdiff1d",
         "setxor1d", "trim_zeros", "masked_select"),
        _LENGTH, "bb.where(mask, x, 0) keeps the shape, and bb.sum(mask) counts"),
    Refusal(("delete", "insert", "append"), "it copies piece by piece",
            "bb.concat joins pieces: bb.concat([x[:a], y, x[a:]], axis=0)"),
    Refusal(("isin",), "bb has no function for it", "use bb.any(x[..., None] == values, axis=-1)"),
    Refusal(("partition", "argpartition"), "the order of its elements is not defined",
            "bb.topk(x, k) gives the k largest in order and their positions, largest=False the"
            " smallest"),
    Refusal(("lexsort", "sort_complex"), _ORDER,
            f"bb.sort(x) and np.argsort(x) order the elements of an axis; {CUSTOM}"),
    Refusal(("nanmedian", "nanquantile", "nanpercentile", "mode"), _ORDER, CUSTOM),
    Refusal(("searchsorted", "digitize", "bincount", "histogram", "histogram2d", "histogramdd",
             "histogram_bin_edges"), "each element decides where it counts",
            "bb.sum(x[..., None] == values, axis=0) counts the elements of each value"),
    Refusal(("interp",), "each element decides where it reads", CUSTOM),
    Refusal(("choose", "select", "piecewise"), "branches are functions of positions",
            "use bb.where(condition, x, y), nested for more than two"),
    Refusal(("put", "place", "putmask", "fill_diagonal", "put_along_axis", "itemset", "resize",
             "setfield", "setflags", "scatter_reduce", "scatter_reduce_", "index_put_",
             "index_fill_", "masked_scatter_"),
            "it changes elements at positions that are values",
            "x = bb.where(mask, new, x) replaces elements"),
    Refusal(("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "log_normal_",
             "cauchy_", "geometric_", "rand_like", "randn_like", "randint_like", "bernoulli",
             "multinomial"),
            "it draws random numbers", "draw them before, and pass them as an argument"),
    Refusal(("grid_sample", "max_unpool2d"), "windows of an axis lie where data says",
             "bb.custom calls a function of whole arrays"),
    Refusal(("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
             "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices",
             "adaptive_max_pool3d_with_indices"),
            "the positions of maxima in images are not found",
            "return_indices=False gives the maxima alone"),
    Refusal(("nancumsum", "nancumprod"), "NaN is left out",
            "put a neutral number in its place first: bb.cumsum(bb.where(bb.isnan(x), 0, x), -1)"),
    Refusal(("nanargmax", "nanargmin"), "NaN is left out",
            "put an infinity in its place first: bb.argmax(bb.where(bb.isnan(x), -np.inf, x), -1)"),
    Refusal(("cbrt",), "bb has no function for it", "use bb.sign(x) * bb.abs(x) ** (1 / 3)"),
    Refusal(("_is_all_true",), "torch.distributions looks at the values of its parameters",
            "leave that out: Categorical(logits=x, validate_args=False)"),
    Refusal(("copysign",), "kernels do not tell -0 from 0",
            "use bb.where(y < 0, -bb.abs(x), bb.abs(x))"),
    Refusal(("signbit",), "kernels do not tell -0 from 0", "use x < 0"),
    Refusal(("frexp", "ldexp", "modf", "nextafter", "spacing"),
            "kernels do not take numbers apart", CUSTOM),
    Refusal(("gcd", "lcm"), _ONE_AFTER_ANOTHER, CUSTOM),
    Refusal(("bitwise_count",), "kernels do not count bits",
            "add up (x >> i) & 1 for each bit i"),
    Refusal(("erfc",), "kernels have no function for it",
            "use 1 - bb.erf(x), which loses digits from about x = 1 on"),
    Refusal(("erfinv", "lgamma", "digamma", "special.i0", "i0"),
            "kernels have no function for it", CUSTOM),
    Refusal(("pdist",), "it picks elements of a matrix one by one",
            "torch.cdist(x, x) is the whole matrix of distances"),
    Refusal(("new_tensor",), "a tensor is made of values",
            "use torch.tensor(values, dtype=x.dtype, device=x.device), or a number as it is"),
    Refusal(("renorm",), "bb has no function for it",
            "n = x.norm(dim=-1, keepdim=True); torch.where(n > most, x * (most / n), x)"),
    Refusal(("cartesian_prod", "combinations"), "it is a grid and a join",
            "torch.stack([g.ravel() for g in torch.meshgrid(a, b, indexing='ij')], -1)"),
    Refusal(("constant_pad_nd",), "it is F.pad", "use F.pad(x, pad, value=value)"),
    Refusal(("block_diag",), "it is a join of joins",
            "pad each with F.pad, and add them: F.pad(a, (0, n, 0, m)) + F.pad(b, (n, 0, m, 0))"),
    Refusal(("vander",), "it is a power of positions", "x[:, None] ** torch.arange(n)"),
    Refusal(("ediff1d", "unwrap"), "it is made of several slices",
            "take differences of slices: x[..., 1:] - x[..., :-1]"),
    Refusal(("polyval",), "bb has no function for it",
            "write it by Horner's rule: (a * x + b) * x + c"),
    Refusal(("diagflat", "linalg.diagonal", "linalg.trace"),
            "no block program reads a diagonal",
            "bb.sum(bb.where(bb.arange(n)[:, None] == bb.arange(n), x, 0), axis=-1)"),
    Refusal(("allclose", "array_equal", "array_equiv"), _VALUES,
            "compare what the jitted function returns: np.allclose(f(x), wanted)"),
    Refusal(("real", "imag", "conj", "conjugate", "angle", "iscomplex", "isreal", "iscomplexobj"),
            "arrays are real", "leave it out"),
    Refusal(("complex", "polar", "view_as_complex", "view_as_real"), "arrays are real", _ROTATION),
    Refusal(("apply_along_axis", "apply_over_axes"),
            "it calls a function of Python's for each element",
            "write it with functions of bb on whole arrays"),
    Refusal(("item", "tolist", "tobytes", "tofile", "dump", "dumps", "numpy", "array_str",
             "array_repr", "array2string", "save", "savez", "savetxt"),
            _VALUES, "return the array, and read what the jitted function returns"),
    Refusal(("data", "base", "flags", "flat", "strides", "ctypes", "itemsize", "nbytes",
             "byteswap", "getfield", "data_ptr", "stride", "storage", "is_contiguous",
             "shares_memory", "may_share_memory"), _MEMORY, "leave it out of the traced function"),
    Refusal(("cuda",), "arrays are where the arguments are", "leave the device out"),
    Refusal(("backward", "grad", "requires_grad", "requires_grad_", "grad_fn"),
            "programs have no gradients", "differentiate with torch, outside the traced function"),
)  # fmt: skip

OF_TENSORS = Refusal(
    (
        "__setitem__",
        "__iadd__",
        "__isub__",
        "__imul__",
        "__idiv__",
        "__itruediv__",
        "__ifloordiv__",
        "__imod__",
        "__iand__",
        "__ior__",
        "__ixor__",
        "__ilshift__",
        "__irshift__",
    ),
    "a tensor that is not traced takes no traced values",
    "make it of a traced one, w = torch.ones_like(x), or a new one: w = w + x for w += x",
)
"""What torch calls when a tensor would change that is not traced."""

BY_NAME: Mapping[str, Refusal] = {name: refusal for refusal in REFUSED for name in refusal.names}

_PREFIXES = ("Tensor.", "nn.functional.", "special.")


def words(what: str, name: str) -> tuple[str, str]:
    """Why ``what``, the function or method ``name``, cannot be traced, and what to use."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    known = OF_TENSORS if name in OF_TENSORS.names else BY_NAME.get(name)
    if known is None:
        return f"{what} cannot be traced", CUSTOM
    return f"{what} cannot be traced: {known.reason}", known.instead
