"""floor, round, sin, cos, log1p, expm1 and atan: accurate in kernels, told apart by proofs."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.decimals import FUNCTIONS as DECIMAL
from blockbuster.interp.ordered import FUNCTIONS as ORDERED
from blockbuster.interp.semantics import Refused
from blockbuster.ir.expr import UNINTERPRETED
from blockbuster.runtime.launch import run_batch

TINY = np.geomspace(1e-30, 0.9, 200)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan]
X = {
    "log1p": np.concatenate([TINY, -TINY, [1e4, 1e9, 3e38, -1.0], EDGES]),
    "expm1": np.concatenate([TINY, -TINY, [1.0, 19.9, 20.1, 88.0, -19.9, -20.1, -200.0], EDGES]),
    "round": np.concatenate([np.arange(-20, 20) / 2, [0.49999997, 8388607.5, 1e30], EDGES]),
    "floor": np.concatenate([np.arange(-20, 20) / 2, [0.99999994, -1e-30, 1e30], EDGES]),
    "sin": np.concatenate([np.linspace(-9, 9, 100), [1e3, 4096.0, 1e5]]),
    "cos": np.concatenate([np.linspace(-9, 9, 100), [1e3, 4096.0, 1e5]]),
    "atan": np.concatenate([TINY, -TINY, 1 / TINY, -1 / TINY, [1.0, -1.0], EDGES]),
}


OTHER = {**dict.fromkeys(UNINTERPRETED, bb.tanh), "tanh": bb.erf, "sin": bb.cos, "floor": bb.round}


def kernel_of(name):
    text = f"graph(X: M[M]) {{ Y = map M (x in !X) {{ y = {name}(x) yield y }} return Y }}"
    return bb.emit(bb.parse(text), {"M": X[name].size}, "float32")


def test_kernels_are_accurate():
    arrays = {name: x.astype(np.float32) for name, x in X.items()}
    found = run_batch([(kernel_of(name), {"X": x}) for name, x in arrays.items()])

    for (name, x), result in zip(arrays.items(), found, strict=True):
        meaning = getattr(np, "rint" if name == "round" else name)
        with np.errstate(all="ignore"):
            right = meaning(x.astype(float)).astype(np.float32)
        rtol = {"round": 0, "floor": 0, "atan": 4e-7}.get(name, 4e-6)
        tolerance = dict(rtol=rtol, atol=4e-7 if name in ("sin", "cos") else 0)
        np.testing.assert_allclose(result["out"], right, **tolerance, err_msg=name)


@pytest.mark.parametrize("name", UNINTERPRETED)
def test_fused_programs_are_proved_and_others_told_apart(name):
    fn = getattr(bb, name)
    program = bb.trace(lambda x, w: bb.sum(fn(x @ w), axis=-1), x="M K", w="K N")
    lowered = bb.lower(program)
    fused = bb.fuse(lowered).final

    assert bb.prove_equal(lowered, fused).equal
    wrong = bb.lower(bb.trace(lambda x, w: bb.sum(OTHER[name](x @ w), axis=-1), x="M K", w="K N"))
    assert bb.prove_equal(lowered, wrong).equal is False


def test_roundings_are_exact_on_fractions():
    for text in ("-5/2", "5/2", "7/2", "1/3", "-2/3", "4"):
        x = Fraction(text)
        assert ORDERED["floor"](x) == np.floor(float(x))
        assert ORDERED["round"](x) == np.rint(float(x))


def test_decimals_refuse_where_a_rounding_jumps():
    with localcontext(prec=60):
        near = Decimal(3) - Decimal("1e-45")
        with pytest.raises(Refused, match="where a rounding jumps"):
            DECIMAL["floor"](near)
        assert DECIMAL["round"](near) == 3
        with pytest.raises(Refused, match="where a rounding jumps"):
            DECIMAL["round"](near - Decimal("0.5"))


@pytest.mark.parametrize("name", UNINTERPRETED)
def test_masked_programs_are_proved_case_by_case(name):
    fn = getattr(bb, name)

    def masked(x):
        seen = bb.arange(x.shape[0])[:, None] >= bb.arange(x.shape[1])
        return bb.softmax(bb.where(seen, fn(x), -np.inf))

    lowered = bb.lower(bb.trace(masked, x="M N"))

    assert bb.prove_equal(lowered, bb.fuse(lowered).final).equal
