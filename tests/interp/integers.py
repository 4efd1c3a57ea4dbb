"""Pairs of integer programs that are equal, and pairs that are not, as NumPy expressions.

x and y are arrays of integers (or of masks), f is an array of floats.
"""

import re
from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

import blockbuster as bb

VECTORS = {"x": "N", "y": "N", "f": "N"}
MATRICES = {"x": "M N"}
SIGNED = ("int8", "int16", "int32", "int64")
DTYPES = ("uint8", *SIGNED)

EQUAL = [
    ("(x + 1) // 2", "x // 2 + x % 2"),
    ("x", "x // 3 * 3 + x % 3"),
    ("x // 2 // 3", "x // 6"),
    ("(x + 6) // 3", "x // 3 + 2"),
    ("(x * 6) // 3", "x * 2"),
    ("(x * x + x) % 2", "x * 0"),
    ("x % 2 * (x % 2)", "x % 2"),
    ("abs(x) % 2", "x % 2"),
    ("x > 0", "x >= 1"),
    ("2 * x == 7", "x != x"),
    ("x > 0.5", "x > 0"),
    ("x * x >= x", "x == x"),
    ("where(x % 2 == 0, x // 2 * 2, x)", "x"),
    ("where(x > 0, x, 0)", "maximum(x, 0)"),
    ("floor(x / 2)", "(x // 2) * 1.0"),
    ("floor(x + 0.5)", "x * 1.0"),
    ("(x % 2).astype('bool')", "x % 2 == 1"),
    ("(x + y) % 2", "(x % 2 + y % 2) % 2"),
    ("maximum(x, y) + minimum(x, y)", "x + y"),
    ("x < y", "x + 1 <= y"),
    ("x % y", "x - x // y * y"),
    ("x * y // y", "where(y == 0, x * y // y, x)"),
    ("exp(x % 2 * f)", "where(x % 2 == 1, exp(f), 1.0)"),
    ("(x + 1) // 2 * f", "(x // 2 + x % 2) * f"),
    ("x + arange(x.shape[0])", "x + arange(x.shape[0]) // 2 * 2 + arange(x.shape[0]) % 2"),
    ("(x + arange(x.shape[0])) % 2", "(x % 2 + arange(x.shape[0]) % 2) % 2"),
]
SMALL = "(x % 7 - 3)"  # minus the least number of a dtype is no number of that dtype
EQUAL_SIGNED = [
    (f"-(-{SMALL} // 2)", f"{SMALL} // 2 + {SMALL} % 2"),
    ("abs(x)", "where(x < 0, -x, x)"),
    (f"({SMALL} * 0.5).astype('int64')", f"where(x % 7 < 3, -(-{SMALL} // 2), {SMALL} // 2) * 1"),
]
EQUAL_MATRICES = [
    ("(x % 2).sum(1)", "(x % 2 == 1).sum(1)"),
    ("(x * 2).max(1)", "x.max(1) * 2"),
    ("(x // 2 + x % 2).sum(0)", "((x + 1) // 2).sum(0)"),
]
EQUAL_MASKS = [
    ("x * 1 + y * 1", "(x | y) * 1 + (x & y) * 1"),
    ("(x * 1) ** 2", "x * 1"),
    ("(x * 5) // 2", "x * 2"),
    ("x * f", "where(x, f, 0)"),
    ("x * 1.0 > 0.3", "x > 0"),
]
DIFFERENT = [
    ("(x + 1) // 2", "x // 2"),
    ("x // 2 * 2", "x"),
    ("x > 0", "x > 1"),
    ("x > 0.5", "x > 1.5"),
    ("where(x == 100, 1, 0)", "x * 0"),
    ("x // 100", "x * 0"),
    ("x // 2 + y // 2", "(x + y) // 2"),
    ("x < y", "x <= y"),
    ("floor(x / 2)", "x / 2"),
    ("(x // 2) * f", "x / 2 * f"),
    ("exp(x % 3 * 1.0)", "exp(x % 2 * 1.0)"),
    ("x.astype('bool')", "x > 1"),
    ("x + arange(x.shape[0]) // 2", "x + arange(x.shape[0]) // 3"),
]
DIFFERENT_SIGNED = [
    ("-(x // 2)", "-x // 2"),
    ("abs(x)", "x * 1"),
    ("x.astype('uint8')", "x.astype('int64')"),
]
DIFFERENT_NARROW = [("-(-x // 2)", "x // 2 + x % 2")]  # NumPy says 64 and -64 of -128
DIFFERENT_MATRICES = [("(x // 2).sum(0)", "x.sum(0) // 2"), ("(x % 2).sum(1)", "x.sum(1) % 2")]
DIFFERENT_MASKS = [("x & y", "x | y"), ("x * 2", "x * 1"), ("where(x, f, 0)", "where(x, 0, f)")]

Pair = tuple[str, str, str, Mapping[str, str]]


def cases(*groups: tuple[list[tuple[str, str]], tuple[str, ...], Mapping[str, str]]) -> list[Pair]:
    """The pairs of some groups, each with one dtype of its group, in turn."""
    return [
        (dtypes[at % len(dtypes)], *pair, dims)
        for pairs, dtypes, dims in groups
        for at, pair in enumerate(pairs)
    ]


TRUE = cases(
    (EQUAL, DTYPES, VECTORS),
    (EQUAL_SIGNED, SIGNED, VECTORS),
    (EQUAL_MATRICES, DTYPES, MATRICES),
    (EQUAL_MASKS, ("bool",), VECTORS),
)
FALSE = cases(
    (DIFFERENT, DTYPES, VECTORS),
    (DIFFERENT_SIGNED, SIGNED[1:], VECTORS),
    (DIFFERENT_NARROW, ("int8",), VECTORS),
    (DIFFERENT_MATRICES, DTYPES, MATRICES),
    (DIFFERENT_MASKS, ("bool",), VECTORS),
)


def traced(text: str, dtype: str, dims: Mapping[str, str] = VECTORS) -> bb.ArrayProgram:
    """The array program of an expression in arrays of a dtype; ``f`` holds floats."""
    functions = {n: getattr(bb, n) for n in ("where", "maximum", "minimum", "exp", "floor")}
    names = {**functions, "arange": bb.arange, "abs": np.abs}
    read = re.findall(r"\b[xyf]\b", text)
    used = {n: axes if n == "f" else f"{dtype}: {axes}" for n, axes in dims.items() if n in read}
    return bb.trace(eval(f"lambda {', '.join(used)}: {text}", names), **used)


@st.composite
def equal_pairs(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """Two expressions in integers, one made of the other by identities of integers."""
    if not depth or draw(st.booleans(), label="a leaf"):
        leaf = draw(st.sampled_from(("x", "y", "x", "y", *NUMBERS)), label="leaf")
        return leaf, leaf
    operation = draw(st.sampled_from(OPERATIONS), label="operation")
    parts = [draw(equal_pairs(depth - 1)) for _ in range(operation.count("{"))]
    left, right = (operation.format(*side) for side in zip(*parts, strict=True))
    identity = draw(st.sampled_from(IDENTITIES), label="identity")
    return left, identity.format(right)


NUMBERS = ("(0 * x + 3)", "(0 * x + 7)")  # of the dtype of x: plain ones meet as int64
OPERATIONS = (
    "({} + {})", "({} - {})", "({} * 3)", "({} // 2)", "({} // 3)", "({} % 5)", "maximum({}, {})",
    "minimum({}, {})", "where({} > {}, 2, x)", "where({} % 2 == 1, x, {})",
)  # fmt: skip
IDENTITIES = (
    "{0}", "({0} + 0)", "({0} // 2 * 2 + {0} % 2)", "({0} * 3 // 3)", "maximum({0}, {0})",
    "where({0} > 0.5, {0}, {0})", "(({0} + 4) // 4 * 4 - 4 + {0} % 4)",
    "where({0} > 0, maximum({0}, 1), {0})",
)  # fmt: skip
