"""Powers with a known exponent are products, roots and reciprocals."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.powers import MOST, POWERS
from blockbuster.ir.expr import Const, functions_of
from blockbuster.runtime.run_plan import run_in_interpreter

ENDS = np.array([-np.inf, -2.5, -1.0, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan], np.float32)


@pytest.mark.parametrize("power", range(2, MOST + 1))
def test_whole_powers_are_products(power):
    expr = POWERS[Const(float(power))]
    x = np.array([-3.0, -1.0, -0.0, 0.5, 2.0, np.inf, np.nan])
    graph = bb.lower(bb.trace(lambda x: x**power, x="M"))

    assert set(functions_of(expr)) <= {"mul", "square"}
    assert "pow" not in str(graph)
    assert "**" not in str(graph)
    np.testing.assert_array_equal(bb.evaluate(graph, {"x": x})["out"], x**power)


def test_other_powers_stay_powers():
    graph = bb.lower(bb.trace(lambda x: x**1.7 + x ** (MOST + 1.0), x="M"))

    assert str(graph).count("**") == 2


def test_a_power_of_halves_is_rounded_once():
    x = np.linspace(-3, 3, 101).astype(np.float16)
    found = bb.jit(lambda x: x**3.0)(x)

    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, (x.astype(np.float32) ** 3).astype(np.float16))


def test_whole_numbers_to_a_power_of_floats_do_not_wrap():
    x = np.array([100_000, -7, 3], np.int32)

    np.testing.assert_allclose(bb.jit(lambda x: x**3.0)(x), x.astype(np.float64) ** 3)


@pytest.mark.interpreter
def test_powers_of_infinities_and_of_minus_one_are_numpys_in_a_gpus_kernel():
    x, y = map(np.ravel, np.meshgrid(ENDS, ENDS))
    program = bb.trace(lambda x, y: x**y, x="N", y="N")
    plan = bb.compile(program, {"N": x.size}, "float32", "h200").plan

    (found,) = run_in_interpreter(plan, {"x": x, "y": y})

    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, x**y, rtol=1e-5)
