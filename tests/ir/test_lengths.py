"""Lengths: polynomials in sizes that are equal if and only if they are equal for all sizes."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.errors import ParseError
from blockbuster.ir.expr import Const, Size, call
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.fitting import fitted
from blockbuster.ir.length_symbols import Inverse
from blockbuster.ir.lengths import (
    Length,
    Rule,
    clamped,
    completed,
    in_order,
    inverse,
    share_of,
    size,
    whole,
)
from blockbuster.ir.parse import parse
from blockbuster.ir.reading import Wrong
from blockbuster.ir.saving import length_to_json, read_length

D, H = size("D"), size("H")
HALF = D * share_of(2)


def test_equal_lengths_are_one():
    assert D - HALF == HALF
    assert D * D + whole(2) * D * H + H * H == (D + H) * (D + H)
    assert (D - D).constant == 0
    assert (whole(7) + HALF - HALF).constant == 7
    assert HALF.constant is None


@pytest.mark.parametrize(
    ("length", "text", "python"),
    [
        (HALF, "|D| / 2", "(D // 2)"),
        (whole(3) * HALF - whole(4), "3 * |D| / 2 - 4", "((3 * D - 8) // 2)"),
        (D * H + whole(1), "|D| * |H| + 1", "(D * H + 1)"),
        (whole(2) - D, "2 - |D|", "(2 - D)"),
        (whole(0), "0", "0"),
        (D, "|D|", "D"),
    ],
)
def test_texts(length, text, python):
    assert str(length) == text
    assert length.python(str) == python
    assert length_of(length.expr) == length


@pytest.mark.parametrize("expr", [Const(0.5), call("exp", Size("D")), call("div", 1, 0.5)])
def test_no_lengths(expr):
    assert length_of(expr) is None


def test_a_division_has_to_come_out_even():
    assert HALF.value({"D": 6}) == 3
    with pytest.raises(ValueError, match=r"\|D\| / 2 is 7/2 for D = 7: no whole number"):
        HALF.value({"D": 7})


def test_sizes_follow_from_others():
    rules = [Rule("B", size("A") + whole(1)), Rule("A", HALF), Rule("D", whole(8), exact=False)]

    assert completed({"D": 8}, rules) == {"D": 8, "A": 4, "B": 5}
    assert [rule.dim for rule in in_order(rules, ["D"])] == ["A", "D", "B"]
    with pytest.raises(ValueError, match=r"dim D has size 6, but \|D\| is at least 8"):
        completed({"D": 6}, rules)
    with pytest.raises(ValueError, match=r"dim B has size 4, but \|B\| is \|A\| \+ 1, which is 5"):
        completed({"D": 8, "B": 4}, rules)


def test_sizes_are_fitted_to_rules():
    rules = [Rule("A", HALF), Rule("D", whole(8), exact=False)]

    assert fitted({"A": 1, "D": 5, "M": 3}, rules) == {"A": 4, "D": 8, "M": 3}


def test_fitted_sizes_leave_something_of_every_slice():
    rest = Rule("A", size("D") - whole(10))
    behind = Rule("B", size("D") - size("M"))
    nested = [rest, Rule("C", size("A") - whole(2)), Rule("C", whole(3), exact=False)]

    assert fitted({"A": 5, "D": 3}, [rest]) == {"A": 1, "D": 11}
    assert fitted({"B": 1, "D": 2, "M": 4}, [behind]) == {"B": 1, "D": 5, "M": 4}
    assert fitted({"A": 1, "C": 1, "D": 1}, nested) == {"A": 5, "C": 3, "D": 15}
    assert fitted({"A": 1, "D": 0}, [Rule("A", HALF)]) == {"A": 0, "D": 0}


def test_sizes_that_are_far_too_small_grow_fast():
    """Windows of an axis want it as long as they are: by single steps that would take for ever."""
    windows = Rule("A", (size("D") - size("R")) + whole(1))
    found = fitted({"A": 1, "D": 2, "R": 10**9}, [windows])
    assert found["D"] >= found["R"]
    assert found["A"] == found["D"] - found["R"] + 1 < 10**9


def test_sizes_are_fitted_to_what_is_whole_between_multiples():
    """x[1:] in two heads: an odd number of columns."""
    half = Length(((("D",), Fraction(1, 2)), ((), Fraction(-1, 2))))
    assert fitted({"A": 1, "D": 2}, [Rule("A", half)]) == {"A": 1, "D": 3}
    third = Length(((("D",), Fraction(1, 3)), ((), Fraction(-2, 3))))
    assert fitted({"A": 1, "D": 4}, [Rule("A", third)]) == {"A": 2, "D": 8}
    never = Length(((("D",), Fraction(1)), ((), Fraction(1, 2))))
    with pytest.raises(ValueError, match="no whole number"):
        fitted({"A": 1, "D": 2}, [Rule("A", never)])


NUMBERS = st.integers(-4, 4)


@st.composite
def counts(draw, depth=2):
    """What slices of slices have: sums of sizes, clamps and numbers, and parts of them."""
    total = whole(draw(NUMBERS))
    for _ in range(draw(st.integers(0, 2))):
        inner = draw(counts(depth - 1)) if depth and draw(st.booleans()) else None
        symbol = draw(st.sampled_from((D, H))) if inner is None else inner
        total = total + symbol * whole(draw(NUMBERS))
    rounds = draw(st.booleans())
    part = total * share_of(draw(st.integers(1, 3)) if rounds else 1)
    return clamped(part, rounds=rounds) if rounds or draw(st.booleans()) else part


def meaning(length, sizes):
    """The number by the definition of a clamp, without any rule that makes one of two."""
    total = Fraction(0)
    for symbols, share in length.terms:
        for symbol in symbols:
            if isinstance(symbol, str):
                share = share * sizes[symbol]
            elif isinstance(symbol, Inverse):
                share = share / meaning(symbol.of, sizes)
            else:
                number = meaning(symbol.of, sizes)
                share = share * max(ceil(number) if symbol.rounds else number, 0)
        total += share
    return total


@given(counts(), counts(), st.integers(0, 6), st.integers(0, 6))
def test_clamps_are_numbers(one, other, d, h):
    sizes = {"D": d, "H": h}
    for length in (one, one + other, one - other, one * other):
        assert length.value(sizes) == meaning(length, sizes)
        assert length_of(length.expr) == length
        assert read_length(length_to_json(length)) == length
        assert eval(length.python(str), sizes.copy()) == length.value(sizes)
    clamp = clamped(one - other)
    assert clamp.value(sizes) == max(one.value(sizes) - other.value(sizes), 0)
    assert (one - other).never_negative <= (clamp.value(sizes) == (one - other).value(sizes))


@given(counts(), counts(), st.integers(0, 6), st.integers(1, 6), st.data())
def test_quotients_of_sizes_are_numbers(one, other, d, h, data):
    sizes = {"D": d, "H": h}
    under = data.draw(st.sampled_from((H, H * whole(2), H * H, H + whole(1), D + H)))
    part = one * inverse(under)
    for length in (part, part + other, part * other, part * part, clamped(part, rounds=True)):
        exact = meaning(length, sizes)
        assert Fraction(*length.total(sizes)) == exact
        assert length_of(length.expr) == length
        assert read_length(length_to_json(length)) == length
        assert exact >= 0 or not length.never_negative
        if exact.denominator == 1:
            assert eval(length.python(str), sizes.copy()) == length.value(sizes) == exact
        else:
            with pytest.raises(ValueError, match="no whole number"):
                length.value(sizes)


@pytest.mark.parametrize("terms", [
    [[["D"], 1, 1], [["D"], 1, 1]], [[["H"], 1, 1], [["D"], 1, 1]], [[["H", "D"], 1, 1]],
    [[["D"], 0, 1]],
])  # fmt: skip
def test_lengths_of_a_file_are_sums_as_they_are_written(terms):
    """Others would not be equal to what they are, and a division by one would not end."""
    with pytest.raises(Wrong, match="terms repeat, or are in another order"):
        read_length(terms)


def test_a_divisor_cancels_against_its_size():
    part = H * inverse(D)

    assert part * D == H
    assert (part.over(H), H.over(part), H.over(D)) == (inverse(D), D, None)
    assert (H * D - part).over(part) == D * D - whole(1)
    assert part.replaced(lambda dim: HALF if dim == "D" else H) == H * whole(2) * inverse(D)
    assert str(part * share_of(2) - inverse(D + H)) == "|H| / 2 / |D| - 1 / (|D| + |H|)"
    assert (H - part).never_negative
    assert not (part - whole(1)).never_negative
    assert not (whole(1) - inverse(D) - inverse(D)).never_negative
    assert not part.is_integral
    with pytest.raises(ValueError, match=r"\|H\| / \|D\| is divided by 0 for H = 3, D = 0"):
        part.value({"H": 3, "D": 0})


@pytest.mark.parametrize("of", [[], [[[], 2, 1]], [[["D"], 2, 1]], [[["D"], 1, 1], [[], 1, 2]]])
def test_a_saved_divisor_has_one_form(of):
    with pytest.raises(Wrong, match="is no divisor"):
        read_length([[["H", [of]], 1, 1]])


def test_sizes_are_fitted_to_quotients_of_them():
    """What is divided grows to the next multiple; a divisor of a number is a smaller one."""
    heads = [Rule("A", H * inverse(D))]
    nested = [*heads, Rule("B", D * share_of(2))]

    assert fitted({"A": 1, "D": 3, "H": 7}, heads) == {"A": 3, "D": 3, "H": 9}
    assert fitted({"A": 1, "B": 1, "D": 3, "H": 7}, nested) == {"A": 2, "B": 2, "D": 4, "H": 8}
    assert fitted({"A": 1, "D": 5}, [Rule("A", whole(64) * inverse(D))]) == {"A": 16, "D": 4}
    assert fitted({"A": 1, "D": 0, "H": 2}, heads) == {"A": 2, "D": 1, "H": 2}


def test_rules_of_other_dims_are_left_out_where_sizes_are_fitted():
    """Comparisons of two dims are tried without the others of their program."""
    heads = Rule("A", H * inverse(size("G")))
    after = Rule("C", size("A") + whole(1))

    assert fitted({"M": 3, "N": 2}, [heads]) == {"M": 3, "N": 2}
    assert fitted({"G": 3, "M": 2}, [heads]) == {"G": 3, "M": 2}
    assert fitted({"A": 3, "H": 2}, [heads]) == {"A": 3, "H": 2}
    assert fitted({"A": 3, "C": 1}, [heads, after]) == {"A": 3, "C": 4}
    assert fitted({"A": 3, "C": 1, "G": 2, "H": 3}, [heads, after]) == (
        {"A": 2, "C": 3, "G": 2, "H": 4}
    )


def test_a_slice_of_a_slice_has_the_length_of_one_slice():
    rest = clamped(D - whole(1))

    assert clamped(rest - whole(2)) == clamped(D - whole(3))
    assert clamped(rest * share_of(2), rounds=True) == clamped(HALF - share_of(2), rounds=True)
    assert D - clamped(D - whole(3)) + clamped(D - whole(3)) == D
    assert str(clamped(HALF - whole(1))) == "maximum(|D| / 2 - 1, 0)"
    assert str(clamped(HALF, rounds=True)) == "floor((|D| + 1) / 2)"


def test_a_clamp_of_a_size_that_is_cut_by_mistake_is_refused():
    with pytest.raises(ValueError, match=r"\|D\| / 2 - 1 is 1/2 for D = 3: no whole number"):
        clamped(HALF - whole(1)).value({"D": 3})


def test_views_of_clamped_lengths_are_checked_where_they_take_anything():
    graph = parse("graph(X: A[A] = x(D[A = maximum(|D| - 2, 0) from 3])) { return X }")
    inside = parse("graph(X: A[A] = x(D[A = maximum(|D| - 2, 0) from 1])) { return X }")

    assert [rule.exact for rule in inside.size_rules] == [True]
    assert completed({"D": 2}, graph.size_rules) == {"D": 2, "A": 0}
    with pytest.raises(ValueError, match="dim D has size 3, but"):
        completed({"D": 3}, graph.size_rules)


def test_lengths_of_sizes_that_are_no_ints():
    class Symbol:
        """Stands for torch.SymInt, which takes part in arithmetic with ints only."""

        def __rmul__(self, other):
            return other * 7 if isinstance(other, int) else NotImplemented

    assert (size("D") - whole(2)).value({"D": Symbol()}) == 5


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("D[A = M]", r"M is no size: write \|M\|"),
        ("D[A = exp(|M|)]", "a sum of products of sizes"),
        ("D[A, ", "expected a name"),
    ],
)
def test_views_that_do_not_parse(axis, message):
    with pytest.raises(ParseError, match=message):
        parse(f"graph(X: A[A] = x({axis})) {{ return X }}")
