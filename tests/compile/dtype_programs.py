"""Random array programs with casts, views and functions of whole arrays, and the declared dtypes.

The rule is written here a second time, on array programs, as the documentation says it: a cast has
its dtype, comparisons are truth values, what only moves elements of one dtype keeps it, and all
else has the dtype in which the floats meet that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import blockbuster as bb
from blockbuster.frontend.numerics import cast
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value

ROWS, COLUMNS = 6, 8
DTYPES = ("float16", "float32", "float64")
MOVES = ("transpose", "expand", "slice", "reshape", "concat", "custom")
SEEN: list[str] = []
"""The dtypes of the arrays that ``noting`` was called with."""


def noting(array: Any) -> Any:
    """A function of whole arrays that changes nothing; it notes what it is given."""
    SEEN.append(str(array.dtype))
    return array * 1


ONE: dict[str, Any] = {
    "tanh": bb.tanh,
    "grown": lambda x: bb.exp(bb.tanh(x)) * 3,
    "softmax": bb.softmax,
    "squared": lambda x: bb.tanh(x) * bb.tanh(x),
    "half": lambda x: bb.astype(x, "float16"),
    "brain": lambda x: bb.astype(x, "bfloat16"),
    "single": lambda x: bb.astype(x, "float32"),
    "double": lambda x: bb.astype(x, "float64"),
    "sorted": lambda x: np.sort(x, axis=-1),
    "noted": lambda x: bb.custom(noting, x, shape=x.shape),
    "turned_twice": lambda x: bb.transpose(bb.transpose(x, (1, 0)), (1, 0)),
    "halves_exchanged": lambda x: bb.concat([x[:, 4:], x[:, :4]], axis=-1),
    "heads": lambda x: bb.merge_heads(bb.split_heads(x, 2)),
    "unit_sum": lambda x: bb.sum(x[:, None, :], axis=1),
}
TWO: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "product": lambda x, y: bb.tanh((x @ bb.transpose(y, (1, 0)) @ y) * 0.01),
    "joined": lambda x, y: bb.concat([x[:, :4], y[:, 4:]], axis=-1),
    "chosen": lambda x, y: bb.where(x > y, x, y),
}
ENDS: dict[str, Any] = {
    "as_is": lambda x: x,
    "sliced": lambda x: x[:, :4],
    "row": lambda x: x[1],
    "turned": lambda x: bb.transpose(x, (1, 0)),
    "summed": lambda x: bb.sum(x, axis=-1),
    "kept_sum": lambda x: bb.max(x, axis=-1, keepdims=True),
    "compared": lambda x: x > 0,
    "compared_row": lambda x: bb.concat([x > 0, x < 1], axis=-1)[:, :5],
    "mixed": lambda x: bb.concat([bb.astype(x, "float16"), x], axis=-1)[:, :5],
}


@dataclass(frozen=True)
class DtypeFunction:
    """A function of two matrices as data: operators on earlier values, then one on each result."""

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    ends: tuple[tuple[str, int], ...]
    __name__: str = field(default="dtype_function", repr=False)

    def __call__(self, x: Any, y: Any) -> Any:
        values = [x, y]
        for name, operands in self.steps:
            values.append({**ONE, **TWO}[name](*(values[i] for i in operands)))
        return tuple(ENDS[name](values[i]) for name, i in self.ends)


def random_function(random: Random) -> DtypeFunction:
    """One to six operators on two matrices, and one to three results."""
    steps: list[tuple[str, tuple[int, ...]]] = []
    for made in range(2, 2 + random.randint(1, 6)):
        last = made - 1 if random.random() < 0.6 else random.randrange(made)
        if random.random() < 0.3:
            steps.append((random.choice(list(TWO)), (last, random.randrange(made))))
        else:
            steps.append((random.choice(list(ONE)), (last,)))
    whole = range(2, 2 + len(steps))
    ends = [(random.choice(list(ENDS)), whole[-1])]
    ends += [
        (random.choice(list(ENDS)), random.choice(whole))
        for _ in range(random.choice((0, 0, 1, 2)))
    ]
    return DtypeFunction(tuple(steps), tuple(dict.fromkeys(ends)))


def declared(program: ArrayProgram, given: Mapping[str, str]) -> dict[Value, str]:
    """The dtype of every value of an array program whose inputs have the dtypes ``given``."""
    common = _met(list(given.values()))
    found = {Value(-1, port): given[one.name] for port, one in enumerate(program.inputs)}
    for position, equation in enumerate(program.equations):
        read = [found[v] for v in equation.operands if isinstance(v, Value)]
        numbers = [name for name in read if name != "bool"]
        if equation.op == "cast":
            dtype = equation.param("dtype")
        elif equation.kind == "mask":
            dtype = "bool"
        elif equation.op in MOVES and len(set(read)) == 1:
            dtype = read[0] if equation.op != "custom" or numbers else common
        else:
            dtype = _met(numbers) if numbers else common
        found[Value(position)] = dtype
    return found


def _met(dtypes: Sequence[str]) -> str:
    """The dtype of floats in NumPy, or in torch for two that NumPy has not."""
    if len(set(dtypes)) == 1:
        return dtypes[0]
    return max(str(np.result_type(*map(_numpy, dtypes))), "float32")


def _numpy(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


@dataclass(frozen=True)
class Right:
    """The results by the rule, in float64 but for roundings; whether one came before the end.

    ``opaque``: the dtypes that functions of whole arrays are given, in order.
    """

    arrays: list[Any]
    dtypes: list[str]
    narrow: str
    opaque: list[str]


def right(program: ArrayProgram, arrays: dict[str, Any]) -> Right:
    """What the program means: exact arithmetic, rounded by casts, functions and at the end."""
    dtypes = declared(program, {name: str(array.dtype) for name, array in arrays.items()})
    inside = [str(e.param("dtype")) for e in program.equations if e.op == "cast"]
    opaque: list[str] = []
    for equation in program.equations:
        if equation.op == "custom":
            opaque += [dtypes[v] for v in equation.operands if isinstance(v, Value)]
    narrow = next((d for d in ("bfloat16", "float16") if d in (*inside, *opaque)), "")
    exact = program.numpy(arrays)
    ends = [dtypes[output.value] for output in program.outputs]
    results = [
        exact[output.name] if dtype == "bool" else cast(exact[output.name], dtype=dtype)
        for output, dtype in zip(program.outputs, ends, strict=True)
    ]
    return Right(results, ends, narrow, opaque)
