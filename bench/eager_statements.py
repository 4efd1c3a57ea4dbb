"""The statements of random eager programs (eager_source.py): each draws one line of text.

A line names variables at hand. It need not run: the program keeps it only if the library takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bench.eager_source import Growing

Draw = Callable[["Growing"], str]
"""One statement, or "" where the variables at hand have no operands for it."""


def kind(value: Any) -> str:
    """The kind of its dtype, as NumPy has it: f, i, u or b."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind
    word = str(value.dtype).removeprefix("torch.")
    return {"f": "f", "b": "b", "u": "u", "i": "i"}.get(word[0], "?") if word != "bool" else "b"


def _slice(to: Growing, extent: int) -> str:
    """A slice of any start, stop and step, or one position."""
    if to.random.random() < 0.3 and extent:
        return str(to.random.randrange(-extent, extent))
    start, stop = (to.pick("", "", str(to.random.randint(-extent - 2, extent + 2))) for _ in "12")
    step = to.pick("", "", "", ":2", ":-1", ":3", ":-2")
    return f"{start}:{stop}{step}"


def indexed(to: Growing) -> str:
    """A view by slices, positions, None and an ellipsis."""
    name = to.name(rank=1)
    if not name:
        return ""
    shape = to.values[name].shape
    count = to.random.randint(1, len(shape))
    ahead = to.random.random() < 0.3 and count < len(shape)
    key = [_slice(to, n) for n in (shape[-count:] if ahead else shape[:count])]
    if to.library == "torch":
        key = [k.replace(":-1", ":2").replace(":-2", ":3") if k.count(":") == 2 else k for k in key]
    key = ["...", *key] if ahead else key
    if to.random.random() < 0.2:
        key.insert(to.random.randint(0, len(key)), "None")
    return f"{to.fresh()} = {name}[{', '.join(key)}]"


def unary(to: Growing) -> str:
    """A function of one array."""
    name, lib = to.name(), to.library
    # NumPy's square of one truth value has another dtype than that of an array of them
    square = f"{name} ** 2" if kind(to.values[name]) != "b" else f"{name} * 3"
    clip = f"np.clip({name}, -1, 1)" if lib == "np" else f"{name}.clamp(-1, 1)"
    text = to.pick(
        f"-{name}", f"abs({name})", f"{lib}.exp({name})", f"{lib}.tanh({name})", square,
        f"{lib}.sqrt(abs({name}))", f"{lib}.square({name})", f"{lib}.sign({name})", clip,
        f"{lib}.floor({name})", f"{lib}.sin({name})", f"{lib}.log1p(abs({name}))", f"~{name}",
        f"1 / (1 + {name} * {name})", f"{lib}.where({name} > 0, {name}, 0)",
        f"{lib}.where({name} > 0, {name}, {to.number(name)})", f"{name} * {name} - {name} * {name}",
    )  # fmt: skip
    return f"{to.fresh()} = {text}"


COMPARISONS = (">", "<=", "==", "!=")


def binary(to: Growing) -> str:
    """An operator between arrays, or an array and a number."""
    name = to.name()
    sign = to.pick("+", "-", "*", "/", "//", "%", "+", "-", "*", ">", "<=", "==", "!=", "&", "|")
    other = to.beside(name) if to.random.random() < 0.6 else to.number(name)
    pair = [name, other]
    if sign in COMPARISONS and to.rounding_decides(*pair):
        return ""
    to.random.shuffle(pair)
    return f"{to.fresh()} = {pair[0]} {sign} {pair[1]}"


def chosen(to: Growing) -> str:
    """A choice by a mask, an extremum of two."""
    mask = to.name("b")
    name = to.beside(mask) if mask else to.name()
    other = to.beside(name) if to.random.random() < 0.5 else to.number(name)
    lib = to.library
    if not mask:
        return f"{to.fresh()} = {lib}.{to.pick('maximum', 'minimum')}({name}, {to.beside(name)})"
    return f"{to.fresh()} = {lib}.where({mask}, {name}, {other})"


def in_place(to: Growing) -> str:
    """A statement that changes an array that has other names, or parts."""
    name = to.name(made=True)
    if not name:
        return ""
    other = to.beside(name) if to.random.random() < 0.5 else to.number(name)
    sign = to.pick("+=", "-=", "*=", "+=", "*=", "/=", "//=")
    kinds = [f"{name} {sign} {other}", f"{name} {sign} {other}", f"{to.fresh()} = {name}"]
    if len(to.values[name].shape) > 0:
        key = _slice(to, to.values[name].shape[0])
        kinds += [f"{name}[{key}] = {to.number(name)}", f"{name}[{key}] {sign} {to.number(name)}"]
    if to.library == "torch":
        kinds += [f"{name}.{to.pick('mul_', 'add_', 'sub_')}({other})", f"{name}.relu_()"]
    return to.pick(*kinds)


def reduced(to: Growing) -> str:
    """A reduction along an axis, several or all."""
    name = to.name(rank=0)
    axis: Any = to.axis(name) if to.values[name].shape else None
    rank = len(to.values[name].shape)
    if to.random.random() < 0.2:
        axis = tuple(to.random.sample(range(rank), to.random.randint(0, rank)))
    if to.random.random() < 0.15:
        axis = None
    keep = to.random.random() < 0.4
    if to.library == "np":
        fn = to.pick("sum", "mean", "max", "min", "prod", "any", "all", "var", "std", "sum", "max")
        how = f"axis={axis}" + (", keepdims=True" if keep else "")
        text = to.pick(f"np.{fn}({name}, {how})", f"{name}.{fn}({how})")
        return f"{to.fresh()} = {text}"
    fn = to.pick("sum", "mean", "amax", "amin", "any", "all", "var", "sum", "sum")
    how = "" if axis is None else f"dim={axis}" + (", keepdim=True" if keep else "")
    return f"{to.fresh()} = {name}.{fn}({how})"


def along(to: Growing) -> str:
    """A scan, a position, a softmax along one axis; torch has no softmax of integers."""
    name = to.name("fiub" if to.library == "np" else "f", rank=1)
    if not name:
        return ""
    axis = to.axis(name)
    if to.library == "np":
        text = to.pick(
            f"np.cumsum({name}, axis={axis})", f"np.argmax({name}, axis={axis})",
            f"np.argmin({name}, axis={axis})", f"bb.softmax({name}, axis={axis})",
            f"bb.log_softmax({name}, axis={axis})", f"bb.logsumexp({name}, axis={axis})",
            f"np.linalg.norm({name}, axis={axis})", f"np.diff({name}, axis={axis})",
            f"np.flip({name}, {axis})", f"np.roll({name}, {to.random.randint(-3, 3)}, axis={axis})",
            f"np.repeat({name}, {to.random.randint(1, 3)}, axis={axis})",
            f"np.take({name}, {[0, *(to.random.randint(0, 1) for _ in 'ab')]}, axis={axis})",
            f"np.count_nonzero({name}, axis={axis})", f"np.sort({name}, axis={axis})",
            f"np.linalg.norm({name}, {to.pick('1', 'np.inf', '-np.inf', '2')}, axis={axis})",
        )  # fmt: skip
    else:
        text = to.pick(
            f"torch.cumsum({name}, {axis})", f"torch.argmax({name}, {axis})",
            f"torch.softmax({name}, {axis})", f"F.log_softmax({name}, dim={axis})",
            f"torch.logsumexp({name}, {axis})", f"torch.linalg.vector_norm({name}, dim={axis})",
            f"torch.flip({name}, ({axis},))", f"torch.roll({name}, 1, {axis})",
            f"{name}.repeat_interleave(2, dim={axis})", f"F.softmin({name}, {axis})",
            f"{name}.narrow({axis}, 0, 1)", f"{name}.unsqueeze({axis})",
            f"{name}.select({axis}, 0)",
        )  # fmt: skip
    return f"{to.fresh()} = {text}"


def positioned(to: Growing) -> str:
    """A mask of positions, or positions as numbers."""
    name = to.name(rank=1)
    if not name:
        return ""
    rank = len(to.values[name].shape)
    at = to.random.randrange(rank)
    after = ", None" * (rank - 1 - at)
    count = f"{name}.shape[{at}]"
    i = f"{'bb' if to.library == 'np' else 'torch'}.arange({count})[:{after}]"
    where = f"{to.library}.where"
    text = to.pick(
        f"{name} * {i}", f"{where}({i} > 1, {name}, 0)", f"{where}({i} % 2 == 0, {name}, -1)",
        f"{name} + {i} // 2", f"({i} <= {to.random.randint(-1, 3)}) * {name}",
        f"{name} / ({i} + 1)",
    )  # fmt: skip
    return f"{to.fresh()} = {text}"


def reshaped(to: Growing) -> str:
    """Other axes for the same elements."""
    name = to.name(rank=1)
    if not name:
        return ""
    shape = tuple(to.values[name].shape)
    rank = len(shape)
    order = to.random.sample(range(rank), rank)
    kinds = [f"{name}.reshape(-1)", f"{name}.T" if rank < 3 else f"{name}.swapaxes(0, -1)"]
    kinds += [f"{name}[None]", f"{name}[..., None]", f"{name}.squeeze()"]
    if rank > 1:
        at = to.random.randrange(rank - 1)
        joined = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
        kinds += [f"{name}.reshape({joined})"] * 2
        is_np = to.library == "np"
        kinds.append(f"np.transpose({name}, {order})" if is_np else f"{name}.permute({order})")
    at = to.random.randrange(rank)
    parts = [n for n in range(1, shape[at] + 1) if shape[at] % n == 0]
    if parts:
        outer = to.random.choice(parts)
        split = (*shape[:at], outer, shape[at] // outer, *shape[at + 1 :])
        kinds.append(f"{name}.reshape({split})")
    return f"{to.fresh()} = {to.pick(*kinds)}"


def product(to: Growing) -> str:
    """A product of matrices or vectors; torch takes two dtypes only if they are empty."""
    name, other = to.name(rank=1), to.name(rank=1)
    if not name or (to.library == "torch" and to.values[name].dtype != to.values[other].dtype):
        return ""
    if to.random.random() < 0.3:
        return f"{to.fresh()} = {name} @ {name}.{'T' if len(to.values[name].shape) < 3 else 'mT'}"
    return f"{to.fresh()} = {name} @ {other}"


def joined(to: Growing) -> str:
    """Arrays one behind the other, or beside each other."""
    name = to.name(rank=1)
    if not name:
        return ""
    axis, shape = to.axis(name), tuple(to.values[name].shape)
    alike = [n for n, v in to.values.items() if len(v.shape) == len(shape)]
    other = to.random.choice(alike)
    if to.library == "torch":
        return f"{to.fresh()} = torch.{to.pick('cat', 'stack')}([{name}, {other}], {axis})"
    pad = f"np.pad({name}, {to.random.randint(0, 2)}, constant_values={to.number(name)})"
    joint = f"np.{to.pick('concatenate', 'stack')}([{name}, {other}], axis={axis})"
    return f"{to.fresh()} = {to.pick(joint, joint, pad)}"


def cast(to: Growing) -> str:
    """Another dtype."""
    name = to.name()
    dtype = to.pick("float32", "float64", "int64", "int32", "bool", "float16")
    if to.library == "np":
        return f"{to.fresh()} = {name}.astype({dtype!r})"
    return f"{to.fresh()} = {name}.to(torch.{dtype})"


def triangle(to: Growing) -> str:
    """Triangles and diagonals."""
    name = to.name(rank=2)
    if not name:
        return ""
    fn = to.pick("tril", "triu", *(["diagonal"] if to.library == "np" else []))
    k = to.random.randint(-1, 1)
    return f"{to.fresh()} = {to.library}.{fn}({name}, {k})"


STATEMENTS: tuple[Draw, ...] = (
    *2 * (unary, binary, binary, indexed, indexed, in_place, reduced, along, reshaped),
    chosen, positioned, product, joined, cast, triangle,
)  # fmt: skip
