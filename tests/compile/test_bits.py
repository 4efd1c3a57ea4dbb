"""& | ^ ~ << >> of integers: what NumPy and torch give, on every path, and packed weights."""

import operator
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

import blockbuster as bb
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.errors import TraceError
from blockbuster.interp.bits import exact_bits
from blockbuster.interp.semantics import Refused
from blockbuster.runtime.run_plan import run_in_interpreter
from tests.parameters import one_in

DTYPES = ("uint8", "int8", "int16", "int32", "int64")
PAIRS = (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift)


def drawn(dtype, seed=0):
    """Numbers over the whole range of a dtype, with both ends, and small ones of either sign."""
    held, random = np.iinfo(dtype), np.random.default_rng(seed)
    small = [n for n in (-70, -8, -1, 0, 1, 3, 7, 8, 15, 16, 31, 63, 64, 100) if n >= held.min]
    many = random.integers(held.min, held.max, 32 - len(small) - 2, dtype=dtype, endpoint=True)
    return random.permutation(np.concatenate([many, np.array([held.min, held.max, *small], dtype)]))


def with_numbers(x):
    """Every operator with numbers: those that are divisions, and those that are not."""
    found = [~x]
    for number in (0, 1, 5, 12, 15, 64, 127):
        found += [x & number, number | x, x ^ number]
    for bits in (0, 1, 4, 7, 8, 15, 31, 63, 70):
        found += [x << bits, x >> bits]
    return tuple(found)


def with_arrays(x, y):
    return tuple(sign(x, y) for sign in PAIRS)


def expect(found, right):
    assert len(found) == len(right)
    for made, wanted in zip(found, right, strict=True):
        assert made.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(made), np.asarray(wanted))


def on_all_paths(function, *arrays):
    """``function`` in NumPy, by the oracle, by a kernel of NumPy's, and by Triton's interpreter."""
    right = function(*arrays)
    names = ("x", "y")[: len(arrays)]
    given = dict(zip(names, arrays, strict=True))
    program = bb.trace(function, **given)
    expect(list(program.numpy(given).values()), right)
    expect(bb.jit(function)(*arrays), right)
    plan = bb.compile(program, dict.fromkeys(program.dims, 32), "float32", "h200").plan
    expect(run_in_interpreter(plan, given), right)


@pytest.mark.parametrize("dtype", one_in(3, DTYPES))
def test_operators_with_numbers_are_numpys_on_all_paths(dtype):
    on_all_paths(with_numbers, drawn(dtype))


@pytest.mark.parametrize("dtypes", one_in(6, product(DTYPES, DTYPES)), ids="-".join)
def test_operators_of_two_arrays_are_numpys_on_all_paths(dtypes):
    x, y = (drawn(dtype, seed) for seed, dtype in enumerate(dtypes))
    on_all_paths(with_arrays, x, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_are_torchs(dtype):
    x, y = torch.tensor(drawn(dtype)), torch.tensor(drawn("int8", 1))
    expect(bb.jit(with_numbers)(x), with_numbers(x))
    expect(bb.jit(with_arrays)(x, y), with_arrays(x, y))
    expect(bb.jit(in_torchs_words)(x, y), in_torchs_words(x, y))


def in_torchs_words(x, y):
    return (
        torch.bitwise_and(x, 15), torch.bitwise_or(x, y), x.bitwise_xor(y), torch.bitwise_not(x),
        torch.bitwise_left_shift(x, 2), torch.bitwise_right_shift(x, y),
    )  # fmt: skip


def test_numpys_names_and_changes_in_place():
    def spelled(x, y):
        x = x.copy()
        x >>= 1
        x ^= y
        x <<= 2
        return (x, np.bitwise_or(x, y), np.left_shift(x, 3), np.right_shift(x, 3), np.invert(y))

    x, y = drawn("int16"), drawn("int16", 1)
    expect(bb.jit(spelled)(x, y), spelled(x, y))


def test_masks_beside_integers_are_0_and_1():
    def mixed(x):
        return (x & (x > 3), (x > 3) | x, (x > 3) ^ 6, (x > 3) << 2, x ^ True, 1 << x)

    for x in (drawn("uint8"), drawn("int32"), torch.tensor(drawn("int8"))):
        expect(bb.jit(mixed)(x), mixed(x))


def test_bits_of_positions():
    def swizzled(x):
        i = bb.arange(x.shape[0])
        return (x + (i ^ (i >> 2)) + (5 & i),)

    on_all_paths(swizzled, drawn("int64"))


def test_one_computation_has_one_form():
    with_bits = bb.trace(lambda w: (w & 15) + (w >> 4), w="uint8: M")
    with_quotients = bb.trace(lambda w: (w % 16) + (w // 16), w="uint8: M")

    assert with_bits.equations == with_quotients.equations


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x >> -1, "a shift by -1"),
        (lambda x: x & 240, "240 is no number of int8"),
        (lambda x: x ^ 1.0, "\\^ takes masks or integers, not floats"),
        (lambda x: (x > 0) << (x > 1), "masks have no bits"),
        (lambda x: x | x.shape[0], "the size .* has no bits"),
    ],
)
def test_what_has_no_bits_is_refused_with_the_line(function, words):
    with pytest.raises(TraceError, match=words) as refused:
        bb.trace(function, x="int8: M")

    assert "test_bits.py" in str(refused.value)


def test_exact_functions_agree_with_numpy_and_refuse_fractions():
    exact = exact_bits(Fraction)
    for name, fn in {"bitand": np.bitwise_and, "shl": np.left_shift, "shr": np.right_shift}.items():
        for x, y in product((-9, -1, 0, 6, 77), (-3, 0, 2, 40, 64)):
            assert exact[name](Fraction(x), Fraction(y)) == int(fn(np.int64(x), np.int64(y)))
        with pytest.raises(Refused):
            exact[name](Fraction(1, 2), Fraction(1))


def split(x, w, scale, zero):
    """A linear layer of weights in 4 bits: columns k and k + K / 2 share a byte."""
    both = torch.cat([w & 15, w >> 4], 1).to(x.dtype) - zero[:, None]
    return x @ (both * scale[:, None]).T


def even_and_odd(x, w, scale, zero):
    """The same where columns 2 k and 2 k + 1 share a byte."""
    low, high = ((part.to(x.dtype) - zero[:, None]) * scale[:, None] for part in (w & 15, w >> 4))
    return x[:, ::2] @ low.T + x[:, 1::2] @ high.T


def in_groups(x, w, scale, zero):
    """The same with a scale and a zero for each group of 64 columns."""
    rows, columns = w.shape
    made = []
    for part in (w & 15, w >> 4):
        grouped = part.reshape(rows, columns // 64, 64).to(x.dtype) - zero[:, :, None]
        made.append((grouped * scale[:, :, None]).reshape(rows, columns))
    return x[:, :columns] @ made[0].T + x[:, columns:] @ made[1].T


@pytest.mark.parametrize("layer", [split, even_and_odd, in_groups])
def test_packed_weights_are_unpacked_in_the_kernel_that_multiplies_them(layer):
    rows, columns = 128, 256
    groups = (columns // 128,) if layer is in_groups else ()
    torch.manual_seed(0)
    w = torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8)
    x = torch.randn(64, columns, dtype=torch.float16)
    scale = (torch.rand(rows, *groups) + 0.5).half() / 16
    zero = torch.randint(6, 10, (rows, *groups)).half()
    right = layer(*(one.float() if one is not w else w for one in (x, w, scale, zero)))
    plan = bb.jit(layer, machine="h100", library=False).plan_for(x, w, scale, zero)

    (step,) = plan.steps
    module = load_module(step.text)
    (entry,) = module.KERNELS
    kernel = re.search(r"@triton.jit\ndef out_kernel.*?\n\n\n", step.text, re.S).group()
    assert len(re.findall(r"tl\.load\(\s*w_ptr", kernel)) == 1
    assert not re.search(r"_mod\(|_floordiv\(", kernel)
    compiled_entry(entry, target_of("sm_90"))
    arrays = [one.numpy() for one in (x, w, scale, zero)]
    found = run_in_interpreter(plan, dict(zip(plan.inputs, arrays, strict=True)))
    np.testing.assert_allclose(found[0], right, atol=2e-2, rtol=1e-2)
