"""A value minus an equal value is 0 on a GPU, where compilers fuse products with sums.

Kernels are compiled for sm_90 and not run. In programs of products and differences alone, every
fused addition in the machine code is one of a product that may meet an equal one; a product by
itself is fused with 0.
"""

import inspect
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.closing import order
from blockbuster.emit.closing.cancel_exactly import cancel_exactly
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import Let, statements
from blockbuster.emit.tile.workarounds import CANCELS
from tests.emit.parse_tiles import parse_tiles
from tests.parameters import one_in

FUSED = re.compile(r"fma\.rn(?:\.ftz)?\.f32\s+%r\d+, %r\d+, \S+, (?!0f00000000)")
SIZES = {"M": 64, "N": 64}


def emitted(function, dtype="float32"):
    program = bb.trace(function, **dict.fromkeys(inspect.signature(function).parameters, "M N"))
    return bb.emit(bb.fuse(bb.lower(program)), SIZES, dtype=dtype)


def fused(kernel):
    """How many products are fused with additions in what a compiler makes of a kernel."""
    entries = load_module(kernel.source).KERNELS
    texts = [compiled_entry(entry, target_of("sm_90"))[0].asm["ptx"] for entry in entries]
    return sum(len(FUSED.findall(text)) for text in texts)


def marked(kernel):
    nests = kernel.tile_program.nests
    lets = [s for nest in nests for s in statements(nest.body) if isinstance(s, Let)]
    return [let for let in lets if let.apart == CANCELS]


def minus_itself(t):
    return t - t


EQUAL = {
    "itself": lambda x, y: minus_itself(x * y),
    "a square": lambda x: minus_itself(x * x),
    "other order": lambda x, y: x * y - y * x,
    "other spelling": lambda x: x * x - np.square(x),
    "a power": lambda x: x**2 - x * x,
    "times one": lambda x, y: x * y - (x * y) * 1,
    "divided by one": lambda x, y: (x * y) / 1 - x * y,
    "plus nothing": lambda x, y: (x * y + 0) - x * y,
    "negated": lambda x, y: x * y + (-(y * x)),
    "a negated factor": lambda x, y: x * y + (-x) * y,
    "times minus one": lambda x, y: x * y + (x * y) * -1,
    "a negative constant": lambda x: x * 0.3 + x * -0.3,
    "three factors": lambda x, y: x * y * x - x * (y * x),
    "selected": lambda x, y: x * y - bb.where(x > 0, x * y, 0.0),
    "clamped": lambda x, y: x * y - bb.relu(x * y),
    "the larger": lambda x, y: np.maximum(x * y, x) - x * y,
    "the largest": lambda x, y: x * y - (x * y).max(-1, keepdims=True),
    "columns": lambda x, y: (x * y).T - (y * x).T,
    "stored, too": lambda x, y: (x * y, x * y - y * x),
    "absolute": lambda x, y: bb.abs(x * y) - x * y,
    "gated": lambda x, y: minus_itself(bb.silu(x) * y),
}


@pytest.mark.parametrize("name", one_in(3, EQUAL))
def test_equal_values_cancel(name, monkeypatch):
    kernel = emitted(EQUAL[name])
    assert marked(kernel)
    assert "rounded, so that equal values cancel" in kernel.source
    without = [passing for passing in order.CLOSING if passing is not cancel_exactly]
    monkeypatch.setattr(order, "CLOSING", tuple(without))
    as_written = emitted(EQUAL[name])

    if name != "gated":  # a sigmoid has sums of its own
        assert fused(kernel) == 0
    assert fused(kernel) < fused(as_written), "the compiler fuses them, or the pass does too much"


def test_exact_factors_may_be_fused():
    """Times a mask of ones, or the mean of one element: fma(p, -1, p) is exact where p is."""
    for function in (
        lambda x, y: x * y - (x * y) * bb.where(x > 0, 1.0, 0.0),
        lambda x, y: x * y - (x * y).mean(-1, keepdims=True),
    ):
        kernel = emitted(function)
        (product, *_) = [let for nest in kernel.tile_program.nests
                         for let in statements(nest.body) if isinstance(let, Let)]  # fmt: skip
        assert product.apart


DIFFERENT = {
    "another value": lambda x, y: x * y + y,
    "another product": lambda x, y: x * y - y * 3.0,
    "a sum of it": lambda x, y: (x * y + y) - x * 3.0,
    "a function of it": lambda x, y: bb.exp(x * y) + x * 2.0,
    "a polynomial": lambda x: x * (1.0 + x * (0.5 + x)),
    "a rotation": lambda x, y: (x * y - y * bb.cos(x), x * bb.cos(x) + y * y),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_other_products_are_fused_as_before(name):
    kernel = emitted(DIFFERENT[name])

    assert marked(kernel) == []
    assert fused(kernel) > 0


def test_comparisons_of_equal_values_hold():
    kernel = emitted(lambda x, y: bb.where(x * y > y * x, 1.0, 0.0) + bb.where(x * x == x**2, 2, 0))

    assert fused(kernel) == 0


def test_attention_is_as_it_was():
    def attention(q, k, v):
        return bb.softmax(q @ k.T * 0.125, axis=-1) @ v

    program = bb.trace(attention, q="M D", k="N D", v="N L")
    sizes = {"M": 4096, "N": 4096, "D": 64, "L": 64}

    assert marked(bb.emit(bb.fuse(bb.lower(program)), sizes)) == []


def test_the_mark_is_part_of_the_text_of_tile_programs():
    program = emitted(EQUAL["itself"]).tile_program

    assert "apart cancels" in program.show()
    assert parse_tiles(program.show()) == program


@st.composite
def equal_pairs(draw):
    """A product as two texts that mean equal values, and the functions of them."""
    rest = draw(st.lists(st.sampled_from(("x", "y", "0.3", "-0.7")), min_size=1, max_size=2))
    factors = ("x", *rest)
    swap = draw(st.booleans())
    first = f"({factors[0]}) * ({factors[1]})"
    second = f"({factors[1]}) * ({factors[0]})" if swap else first
    for factor in factors[2:]:
        first, second = f"({first}) * ({factor})", f"({factor}) * ({second})"
    for _ in range(draw(st.integers(0, 2))):
        side = draw(st.sampled_from((
            "({}) * 1", "({}) + 0", "-(-({}))", "bb.where(x > 0, {}, 0.0)", "np.maximum({}, x)",
            "bb.relu({})", "({}).max(-1, keepdims=True)", "({}).T.T",
        )))  # fmt: skip
        second = side.format(second)
    sign = draw(st.sampled_from(("({}) - ({})", "({}) + (-({}))", "-({}) + ({})")))
    return sign.format(first, second)


@settings(max_examples=settings().max_examples // 2)
@given(text=equal_pairs())
def test_no_product_is_fused_with_an_equal_one(text):
    names = "x, y" if "y" in text else "x"
    function = eval(f"lambda {names}: {text}", {"bb": bb, "np": np})

    assert fused(emitted(function)) == 0, text
