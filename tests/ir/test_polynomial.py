"""Polynomials: one form for each, and arithmetic that is that of their values."""

from fractions import Fraction

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.ir.lengths import Length
from blockbuster.ir.polynomial import ONE, Polynomial
from blockbuster.selection.traffic.closed_forms import Symbol

SYMBOLS = (Symbol("S", "M"), Symbol("B", "M"), Symbol("F", "N"))
values = st.fixed_dictionaries({symbol: st.integers(-9, 9) for symbol in SYMBOLS})
products = st.lists(st.sampled_from(SYMBOLS), max_size=3).map(lambda found: tuple(sorted(found)))
coefficients = st.integers(-5, 5) | st.fractions(-3, 3, max_denominator=4)
terms = st.lists(st.tuples(products, coefficients), max_size=5)
polynomials = terms.map(Polynomial.of)


def value(terms, values):
    """The sum that terms stand for."""
    total = Fraction(0)
    for symbols, times in terms:
        for symbol in symbols:
            times *= values[symbol]
        total += times
    return total


@given(terms, values)
def test_a_sum_of_terms_keeps_its_value(terms, values):
    assert Polynomial.of(terms).at(values) == value(terms, values)


@given(polynomials, polynomials, values)
def test_arithmetic_is_that_of_values(a, b, values):
    assert (a + b).at(values) == a.at(values) + b.at(values)
    assert (a - b).at(values) == a.at(values) - b.at(values)
    assert (a * b).at(values) == a.at(values) * b.at(values)


@given(polynomials, polynomials, polynomials)
def test_equal_polynomials_are_one(a, b, c):
    one = Polynomial(ONE)

    assert a + b == b + a
    assert a * b == b * a
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert (a + b) * (a - b) == a * a - b * b
    assert a - a == Polynomial()
    assert a * one == one * a == a
    assert hash(a + b) == hash(b + a)


@given(st.permutations([((), 2), (("N",), 3), (("M", "N"), -1), (("M", "M"), 1), (("N",), -3)]))
def test_terms_are_in_one_order(terms):
    found = Polynomial.of(terms).terms

    assert found == ((("M", "M"), 1), (("M", "N"), -1), ((), 2))


@given(polynomials, polynomials, values)
def test_at_most_holds_for_values_that_are_not_negative(a, b, values):
    values = {symbol: abs(number) for symbol, number in values.items()}

    assert a.at_most(b) == all(times >= 0 for _, times in (b - a).terms)
    if a.at_most(b):
        assert a.at(values) <= b.at(values)
    assert a.at_most(a)


@given(polynomials)
def test_text_and_sympy_say_the_same(a):
    names = {str(s): sympy.Symbol(str(s), integer=True, positive=True) for s in SYMBOLS}

    assert sympy.expand(sympy.sympify(str(a), locals=names) - a.sympy()) == 0
    assert {str(s) for s in a.sympy().free_symbols} == set(map(str, a.symbols))


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ([], "0"),
        ([((), -3)], "-3"),
        ([(("M",), -1), ((), 2)], "2 - M"),
        ([(("M", "M"), 2), (("N",), -1)], "2*M*M - N"),
    ],
)
def test_texts(terms, text):
    assert str(Polynomial.of(terms)) == text


def test_a_length_stays_one():
    size = Length(((("M",), Fraction(1)),))

    assert all(type(made) is Length for made in (size + size, size - size, size * size))
    assert str(size * size) == "|M| * |M|"
