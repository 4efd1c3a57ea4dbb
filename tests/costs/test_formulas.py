"""Formulas give, at the sizes of a kernel, the numbers that ``work`` counts, and hold at others."""

from collections import Counter

import pytest
import sympy
from hypothesis import event, given, settings

import blockbuster as bb
from bench.schedules.measure import emitted
from bench.schedules.programs import BY_NAME
from blockbuster.costs import work_of
from blockbuster.costs.formulas import formulas
from blockbuster.costs.symbols import (
    CeilDiv,
    FloorDiv,
    NoExpression,
    compiled,
    symbol,
    whole_number,
)
from blockbuster.ir.expr import Arg, Const, Size, call
from tests.costs.test_work import RANDOMS, UNSHRUNK, scheduled_at_random
from tests.emit.random_tiles import is_cut


def numbers(one):
    """What both sides count of a kernel."""
    return (one.programs, +Counter(one.loaded), +Counter(one.stored), +Counter(one.operations))


def agree(program, sizes, made_for, target):
    works = work_of(program, sizes, target)
    found = [formula.at(sizes) for formula in formulas(program, made_for, target)]
    assert [*map(numbers, found)] == [*map(numbers, works)]
    assert [f.special for f in found] == [work.special for work in works]
    shared = [sum(p.copied + p.fetched for p in work.phases) for work in works]
    assert [f.shared for f in found] == shared
    assert [f.moved for f in found] == [work.moved for work in works]


@settings(max_examples=25, phases=UNSHRUNK, deadline=None)
@given(RANDOMS)
def test_of_random_programs(random):
    scheduled = scheduled_at_random(random, spans=random.random() < 0.5)
    if not is_cut(scheduled):
        return
    program, sizes = scheduled.program, scheduled.sizes
    try:
        agree(program, sizes, sizes, scheduled.target.name)
    except NoExpression:
        event("random bounds are fractions of sizes, too")


CAUSAL = BY_NAME["causal-attention"]


@pytest.fixture(scope="module")
def causal():
    """Causal attention whose inner loop ends at the diagonal."""
    return emitted(CAUSAL, CAUSAL.alternatives()["narrow"], CAUSAL.sizes)


@pytest.mark.parametrize(
    "changes", [{}, {"M": 4096 + 64, "N": 4096 + 64}, {"M": 640, "N": 1280, "H": 3}, {"H": 1}]
)
def test_they_hold_at_other_sizes(causal, changes):
    agree(causal.tile_program, {**CAUSAL.sizes, **changes}, CAUSAL.sizes, causal.target)


def test_a_narrowed_loop_is_a_sum_over_the_blocks_around_it(causal):
    (formula,) = causal.formulas()
    m, block = symbol("M"), sympy.Symbol("M_block", integer=True, nonnegative=True)
    (total,) = formula.loaded["k"].atoms(sympy.Sum)
    assert total.limits == ((block, 0, CeilDiv(m, 64) - 1),)
    assert formula.programs == symbol("H") * CeilDiv(m, 64)
    assert str(formula).startswith("programs: H*ceil(M/64)\nbytes loaded of q: 2*D*H*M\n")


def test_waves_are_of_a_machine(causal):
    (formula,) = causal.formulas()
    h200 = bb.machine("h200")
    residents = formula.footprint.resident(h200)
    (waves,) = compiled([formula.waves(h200)], formula.sizes)(*CAUSAL.sizes.values())
    assert waves == -(-16 * 64 // (h200.processors * residents))


def test_notebooks_show_them_as_mathematics(causal):
    (formula,) = causal.formulas()
    shown = formula._repr_latex_()
    assert shown.startswith(r"$$\begin{aligned}")
    assert r"\left\lceil \frac{M}{64} \right\rceil" in shown


def test_a_size_that_is_missing_is_named(causal):
    (formula,) = causal.formulas()
    with pytest.raises(ValueError, match="no size is given for N, L"):
        formula.at({"H": 1, "M": 64, "D": 64})


def test_quotients_of_whole_numbers_are_exact():
    a, b = sympy.symbols("a b", integer=True)
    assert (CeilDiv(a, 1), FloorDiv(a, 1)) == (a, a)
    for size in (0, 1, 79, 80, 81, 2**61 + 1):
        assert CeilDiv(sympy.Integer(size), sympy.Integer(80)) == -(-size // 80)
        assert FloorDiv(sympy.Integer(-size), sympy.Integer(80)) == -size // 80
    assert compiled([CeilDiv(symbol("M"), 80)], ["M"])(2**61 + 1) == [-(-(2**61 + 1) // 80)]
    assert str(CeilDiv(a + b, 8) - FloorDiv(a, b)) == "ceil((a + b)/8) - floor(a/b)"


def test_a_bound_that_need_not_be_whole_has_no_expression():
    with pytest.raises(NoExpression, match=r"with 0\.5, which need not be a whole number"):
        whole_number(call("mul", Arg(0), Const(0.5)), (symbol("M"),))
    with pytest.raises(NoExpression, match="need not be a whole number"):
        whole_number(call("sqrt", Size("M")), ())
    assert whole_number(call("minimum", Size("M"), Const(3.0)), ()) == sympy.Min(symbol("M"), 3)
