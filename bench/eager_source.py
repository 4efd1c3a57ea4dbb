"""Random NumPy and torch programs as people type them: a function as text, and arrays for it.

A program grows by statements. Each is run eagerly as it is drawn, and kept if the library accepts
it and its numbers stay moderate. It has what traced code meets: statements in place and names for
one array, integers that become operands of floats, slices of every kind, masks and positions that
are folded, reshapes around softmax, axes of one element and of none, views that are read twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import blockbuster as bb

LARGEST = 1e4
MOST_AXES = 4
MOST_ELEMENTS = 400
MOST_STATEMENTS = 7
TRIES = 40  # draws for one statement
EXTENTS = (1, 2, 3, 3, 4, 5, 6)
DTYPES = ("float64", "float32", "float32", "float16", "int64", "int64", "int32", "uint8", "bool")


@dataclass(frozen=True)
class Eager:
    """A program: its library ("np" or "torch"), its text, and the arrays that it takes."""

    library: str
    text: str
    arrays: Mapping[str, np.ndarray]

    def function(self) -> Callable[..., Any]:
        """The function ``program`` of the text."""
        names = namespace(self.library)
        exec(compile(self.text, "<eager program>", "exec"), names)
        made: Callable[..., Any] = names["program"]
        return made


def namespace(library: str) -> dict[str, Any]:
    """What the text of a program may name."""
    if library == "np":
        return {"np": np, "bb": bb}
    import torch
    import torch.nn.functional

    return {"torch": torch, "F": torch.nn.functional, "bb": bb}


def eager_program(random: Random, library: str = "np", *, empty: bool = False) -> Eager:
    """A random program; ``empty``: axes may have no elements."""
    return _Growing(random, library, empty=empty).program()


class _Growing:
    """A program being drawn, beside the values of its variables."""

    def __init__(self, random: Random, library: str, *, empty: bool) -> None:
        self.random, self.library = random, library
        self.names = namespace(library)
        self.extents = (*EXTENTS, *((0, 0) if empty else ()))
        self.sizes = {d: random.choice(self.extents) for d in "ABC"}
        self.numbers = np.random.default_rng(random.randrange(2**32))
        self.arrays: dict[str, np.ndarray] = {}
        self.values: dict[str, Any] = {}
        self.lines: list[str] = []
        self.count = 0

    def program(self) -> Eager:
        for name in ("x", "y", "z")[: self.random.randint(1, 3)]:
            self.arrays[name] = self._drawn()
            self.values[name] = self._given(self.arrays[name])
        wanted = self.random.randint(1, MOST_STATEMENTS)
        for _ in range(wanted):
            self._grow()
        made = [n for n in self.values if n not in self.arrays] or ["x"]
        more = self.random.choices(made, k=self.random.choice((0, 1, 2)))
        results = dict.fromkeys((made[-1], *more))
        body = [*self.lines, f"return {', '.join(results)}"]
        head = f"def program({', '.join(self.arrays)}):"
        return Eager(self.library, "\n    ".join((head, *body)) + "\n", self.arrays)

    def _drawn(self) -> np.ndarray:
        rank = self.random.choice((0, 1, 1, 2, 2, 2, 3, 3))
        shape = tuple(self.sizes[self.random.choice("ABC")] for _ in range(rank))
        dtype = self.random.choice(DTYPES)
        if dtype == "bool":
            return np.asarray(self.numbers.random(shape) > 0.5)
        if np.dtype(dtype).kind in "iu":
            least = 0 if dtype == "uint8" else -5
            return np.asarray(self.numbers.integers(least, 6, shape), dtype)
        return np.asarray(self.numbers.uniform(-2, 2, shape), dtype)

    def _given(self, array: np.ndarray) -> Any:
        copy = array.copy()
        return copy if self.library == "np" else self.names["torch"].from_numpy(copy)

    def _grow(self) -> None:
        for _ in range(TRIES):
            draws = NUMPY if self.library == "np" else TORCH
            line = self.random.choice(draws)(self)
            if line and self._takes(line):
                self.lines.append(line)
                return

    def _takes(self, line: str) -> bool:
        """Run the program with one more statement. False where that fails or is no use."""
        given = {name: self._given(array) for name, array in self.arrays.items()}
        names = {**self.names, **given}
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec("\n".join((*self.lines, line)), names)
        except Exception:
            return False
        made = {n: v for n, v in names.items() if n not in self.names and n != "__builtins__"}
        if not all(hasattr(v, "shape") and _is_moderate(v) for v in made.values()):
            return False
        if not all(_same(self.arrays[n], made[n]) for n in self.arrays):
            return False  # an argument changed: jit refuses that
        self.values = made
        return True

    # what statements are made of ------------------------------------------------------

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def name(self, kinds: str = "fiub", rank: int = 0, made: bool = False) -> str:
        """A variable of these dtype kinds and at least this rank; "" if there is none."""
        found = [
            n for n, v in self.values.items()
            if _kind(v) in kinds and len(v.shape) >= rank and not (made and n in self.arrays)
        ]  # fmt: skip
        if not found:
            return ""
        return self.random.choice(found[-4:] if self.random.random() < 0.7 else found)

    def beside(self, name: str, kinds: str = "fiub") -> str:
        """A variable that broadcasts against another."""
        shape = tuple(self.values[name].shape)
        found = [
            n for n, v in self.values.items()
            if _kind(v) in kinds
            and all(a == b or 1 in (a, b) for a, b in zip(v.shape[::-1], shape[::-1], strict=False))
        ]  # fmt: skip
        return self.random.choice(found)

    def axis(self, name: str) -> int:
        rank = len(self.values[name].shape)
        return self.random.randrange(-rank, rank)

    def number(self, name: str) -> str:
        floats = self.random.choice(("0.5", "-1.25", "2.0", "0.3", "1e-3"))
        whole = self.random.choice(("2", "-1", "3", "1", "0", "7"))
        return floats if _kind(self.values[name]) == "f" and self.random.random() < 0.7 else whole

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind
    word = str(value.dtype).removeprefix("torch.")
    return {"f": "f", "b": "b", "u": "u", "i": "i"}.get(word[0], "?") if word != "bool" else "b"


def _is_moderate(value: Any) -> bool:
    array = np.asarray(value)
    if array.ndim > MOST_AXES or array.size > MOST_ELEMENTS or array.dtype.kind not in "fiub":
        return False
    return bool(array.dtype.kind in "ub" or (np.abs(array.astype(float)) < LARGEST).all())


def _same(first: np.ndarray, second: Any) -> bool:
    return bool(np.array_equal(first, np.asarray(second), equal_nan=first.dtype.kind == "f"))


# statements -------------------------------------------------------------------------

Draw = Callable[[_Growing], str]
"""One statement, or "" where the variables at hand have no operands for it."""


def _slice(to: _Growing, extent: int) -> str:
    """A slice of any start, stop and step, or one position."""
    if to.random.random() < 0.3 and extent:
        return str(to.random.randrange(-extent, extent))
    start, stop = (to.pick("", "", str(to.random.randint(-extent - 2, extent + 2))) for _ in "12")
    step = to.pick("", "", "", ":2", ":-1", ":3", ":-2")
    return f"{start}:{stop}{step}"


def indexed(to: _Growing) -> str:
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


def unary(to: _Growing) -> str:
    """A function of one array."""
    name, lib = to.name(), to.library
    clip = f"np.clip({name}, -1, 1)" if lib == "np" else f"{name}.clamp(-1, 1)"
    text = to.pick(
        f"-{name}", f"abs({name})", f"{lib}.exp({name})", f"{lib}.tanh({name})", f"{name} ** 2",
        f"{lib}.sqrt(abs({name}))", f"{lib}.square({name})", f"{lib}.sign({name})", clip,
        f"{lib}.floor({name})", f"{lib}.sin({name})", f"{lib}.log1p(abs({name}))", f"~{name}",
        f"1 / (1 + {name} * {name})", f"{lib}.where({name} > 0, {name}, 0)",
        f"{lib}.where({name} > 0, {name}, {to.number(name)})", f"{name} * {name} - {name} * {name}",
    )  # fmt: skip
    return f"{to.fresh()} = {text}"


def binary(to: _Growing) -> str:
    """An operator between arrays, or an array and a number."""
    name = to.name()
    sign = to.pick("+", "-", "*", "/", "//", "%", "+", "-", "*", ">", "<=", "==", "!=", "&", "|")
    other = to.beside(name) if to.random.random() < 0.6 else to.number(name)
    pair = [name, other]
    to.random.shuffle(pair)
    return f"{to.fresh()} = {pair[0]} {sign} {pair[1]}"


def chosen(to: _Growing) -> str:
    """A choice by a mask, an extremum of two."""
    mask = to.name("b")
    name = to.beside(mask) if mask else to.name()
    other = to.beside(name) if to.random.random() < 0.5 else to.number(name)
    lib = to.library
    if not mask:
        return f"{to.fresh()} = {lib}.{to.pick('maximum', 'minimum')}({name}, {to.beside(name)})"
    return f"{to.fresh()} = {lib}.where({mask}, {name}, {other})"


def in_place(to: _Growing) -> str:
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


def reduced(to: _Growing) -> str:
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


def along(to: _Growing) -> str:
    """A scan, a position, a softmax along one axis."""
    name = to.name(rank=1)
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


def positioned(to: _Growing) -> str:
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


def reshaped(to: _Growing) -> str:
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


def product(to: _Growing) -> str:
    """A product of matrices or vectors."""
    name, other = to.name(rank=1), to.name(rank=1)
    if not name:
        return ""
    if to.random.random() < 0.3:
        return f"{to.fresh()} = {name} @ {name}.{'T' if len(to.values[name].shape) < 3 else 'mT'}"
    return f"{to.fresh()} = {name} @ {other}"


def joined(to: _Growing) -> str:
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


def cast(to: _Growing) -> str:
    """Another dtype."""
    name = to.name()
    dtype = to.pick("float32", "float64", "int64", "int32", "bool", "float16")
    if to.library == "np":
        return f"{to.fresh()} = {name}.astype({dtype!r})"
    return f"{to.fresh()} = {name}.to(torch.{dtype})"


def triangle(to: _Growing) -> str:
    """Triangles and diagonals."""
    name = to.name(rank=2)
    if not name:
        return ""
    fn = to.pick("tril", "triu", *(["diagonal"] if to.library == "np" else []))
    k = to.random.randint(-1, 1)
    return f"{to.fresh()} = {to.library}.{fn}({name}, {k})"


COMMON: tuple[Draw, ...] = (
    *2 * (unary, binary, binary, indexed, indexed, in_place, reduced, along, reshaped),
    chosen, positioned, product, joined, cast, triangle,
)  # fmt: skip
NUMPY, TORCH = COMMON, COMMON
