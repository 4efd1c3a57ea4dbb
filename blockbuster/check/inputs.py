"""The inputs that a kernel is checked on: the given ones, varied in values, layouts and sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from blockbuster.errors import message
from blockbuster.runtime.tensors import dtype_name

Array = Any  # a NumPy array or a torch tensor
Arrays = Mapping[str, Array]

SIGNED = ("negative", "positive")
VARIANTS = ("random", "peaked", "extreme", *SIGNED, "strided", "unaligned")
EXTREME = {"float16": 8.0}  # what inputs are multiplied by; others: 100
SPECIAL = 16  # Triton compiles a version of a kernel for sizes that are multiples of this


def varied(arrays: Arrays, variant: str) -> dict[str, Array]:
    """Inputs with some elements large, with all large, far below or above 0, or with gaps."""
    return {n: _varied(a, variant) if is_float(a) else a for n, a in arrays.items()}


def has_both_signs(arrays: Arrays) -> bool:
    """True if some input has values of both signs: then it may have values of one sign, too."""
    return any(is_float(array) and _has_both(array) for array in arrays.values())


def _has_both(array: Array) -> bool:
    finite = abs(array) < math.inf
    return bool(((array < 0) & finite).any()) and bool((array > 0).any())


def redrawn(arrays: Arrays, seed: int) -> dict[str, Array]:
    """Other inputs of the same kind: zeros, signs and what is infinite stay, rounding is new."""
    random = np.random.default_rng(seed)
    return {n: _scaled(a, random) if is_float(a) else a for n, a in arrays.items()}


def _scaled(array: Array, random: np.random.Generator) -> Array:
    by = random.uniform(0.75, 1.25, tuple(array.shape))
    if isinstance(array, np.ndarray):
        return np.asarray(array * by, array.dtype)
    return array * array.new_tensor(by)


def _varied(array: Array, variant: str) -> Array:
    if variant == "peaked":
        finite = abs(array[abs(array) < math.inf])
        peaked = _full(array, array.shape)
        peaked[...] = array
        if math.prod(finite.shape):
            peaked[abs(array) > 2.4 * finite.mean()] *= 20
        return peaked
    if variant == "extreme":
        large = array * EXTREME.get(dtype_name(array), 100.0)
        return np.asarray(large) if isinstance(array, np.ndarray) else large  # not NumPy's scalars
    if variant in SIGNED and _has_both(array):
        # far from 0, so that a 0 which a kernel puts beside the values decides
        size, signed = abs(array), _full(array, array.shape)
        far = size + size[size < math.inf].mean()
        signed[...] = far if variant == "positive" else -far * EXTREME.get(dtype_name(array), 100.0)
        kept = (array == 0) | (size == math.inf)  # masks
        signed[kept] = array[kept]
        return signed
    if variant == "strided":
        wide = _full(array, [2 * n + 1 for n in array.shape])
        view = wide[(..., *(slice(1, None, 2) for _ in array.shape))]
        view[...] = array
        return view
    return array


def is_float(array: Array) -> bool:
    """True for floating-point numbers."""
    return "float" in dtype_name(array)


def _full(like: Array, shape: Sequence[int]) -> Array:
    """A new array of NaN (of ones where the dtype has none), of the kind and dtype of another."""
    value = math.nan if is_float(like) else 1
    if isinstance(like, np.ndarray):
        return np.full(shape, value, like.dtype)
    return like.new_full(tuple(shape), value)


def doubled(arrays: Arrays) -> dict[str, Array]:
    """Copies in float64; of arrays that hold no floating-point numbers, in their dtype."""
    return {n: _doubled(a) if is_float(a) else a for n, a in copied(arrays).items()}


def _doubled(array: Array) -> Array:
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()


def copied(arrays: Arrays) -> dict[str, Array]:
    """Copies, for a function that may change what it gets."""
    return {n: a.copy() if isinstance(a, np.ndarray) else a.clone() for n, a in arrays.items()}


# sizes ---------------------------------------------------------------------------


def check_dims(
    sets: Sequence[Arrays], dims: Mapping[str, str] | None, multiples: Mapping[str, int] | None
) -> None:
    """ValueError unless ``dims`` names the axes of inputs, and ``multiples`` some of the dims."""
    for at, arrays in enumerate(sets):
        sizes = _sizes(at, arrays, dims or {})
        for dim, multiple in (multiples or {}).items():
            if dim not in sizes:
                hint = f"known: {', '.join(sizes)}" if sizes else 'say dims={"x": "M K"}'
                raise ValueError(message(f"unknown dim {dim!r} in multiples", hint=hint))
            if multiple < 1 or sizes[dim] % multiple:
                what = f"{dim} is {sizes[dim]} in inputs {at}, which is no multiple of {multiple}"
                raise ValueError(message(what, hint="inputs have sizes that are legal"))


def _sizes(at: int, arrays: Arrays, dims: Mapping[str, str]) -> dict[str, int]:
    """The sizes of the dims in a set of inputs. ValueError where these do not fit."""
    found: dict[str, int] = {}
    for name, text in dims.items():
        words = text.split()
        if name not in arrays:
            what = f"dims names {name}, which is not among inputs {at}"
            raise ValueError(message(what, hint=f"known: {', '.join(arrays)}"))
        shape = tuple(arrays[name].shape)
        if len(words) != len(shape):
            what = f"dims has {text!r} for {name}, whose shape is {shape}"
            raise ValueError(message(what, hint="one word for each axis: a name, or its size"))
        for word, size in zip(words, shape, strict=True):
            expected = int(word) if word.isdecimal() else found.setdefault(word, size)
            if expected != size:
                what = f"{word} is {expected}, but {size} in {name} of inputs {at}"
                raise ValueError(message(what, hint="a name stands for one size"))
    return {word: size for word, size in found.items() if not word.isdecimal()}


def cuts(
    arrays: Arrays, dims: Mapping[str, str] | None, multiples: Mapping[str, int] | None
) -> Iterator[tuple[str, Arrays]]:
    """The inputs as they are, and cut to other legal sizes; the text says to which.

    All dims get a size that is a multiple of 16, then one that is none, then the smallest; then
    each dim alone the smallest, beside sizes that are no multiples of 16.
    """
    yield "", arrays
    sizes = _sizes(0, arrays, dims or {})
    legal = {dim: (multiples or {}).get(dim, 1) for dim in sizes}
    least = {dim: min(legal[dim], size) for dim, size in sizes.items()}
    special = {dim: _special(size, legal[dim]) for dim, size in sizes.items()}
    ragged = {dim: _ragged(size, legal[dim]) for dim, size in sizes.items()}
    alone = [ragged | {dim: least[dim]} for dim in sizes]
    done = [sizes]
    for chosen in (special, ragged, least, *alone):
        if chosen not in done:
            done.append(chosen)
            yield ", ".join(f"{d} {n}" for d, n in chosen.items()), _cut(arrays, dims or {}, chosen)


def _special(size: int, multiple: int) -> int:
    """The largest legal size that is a multiple of 16, if there is one up to ``size``."""
    both = math.lcm(multiple, SPECIAL)
    return size // both * both or size


def _ragged(size: int, multiple: int) -> int:
    """The largest legal size up to ``size`` that is no multiple of 16, if there is one."""
    found = size if size % SPECIAL else size - multiple
    return found if found > 0 and found % SPECIAL else size


def _cut(arrays: Arrays, dims: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, Array]:
    """The first elements along each dim, in memory of their own."""
    pieces = {
        name: array[tuple(slice(sizes.get(word)) for word in dims.get(name, "").split())]
        for name, array in arrays.items()
    }
    return {
        n: np.array(a, order="C") if isinstance(a, np.ndarray) else a.contiguous()
        for n, a in pieces.items()
    }


def sizes_not_tried(sets: Sequence[Arrays]) -> Iterator[str]:
    """A note on inputs that have no size for which a tile has to be masked."""
    sizes = [size for arrays in sets for array in arrays.values() for size in array.shape]
    if any(size > 1 for size in sizes) and not any(s % SPECIAL for s in sizes if s > 1):
        yield (
            f"sizes that are no multiples of {SPECIAL}: no input has one; give ragged inputs, or"
            " name the axes, as dims={'x': 'M K'}, and smaller sizes are tried"
        )
