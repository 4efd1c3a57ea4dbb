"""Sizes that follow, by one function: as ``completed`` gives them, rule by rule."""

from hypothesis import given
from hypothesis import strategies as st

from blockbuster.ir.completion import completion
from blockbuster.ir.formula import function_of, sum_of
from blockbuster.ir.lengths import Length, Rule, clamped, completed, inverse, share_of, size, whole

DIMS = ("A", "B", "C", "D", "E")
SIZES = st.integers(0, 6)


@st.composite
def lengths(draw):
    """Sums of up to three multiples, or parts, of products of sizes."""
    total = Length()
    for _ in range(draw(st.integers(0, 3))):
        term = whole(draw(st.integers(-3, 3)))
        for dim in draw(st.lists(st.sampled_from(DIMS), max_size=2)):
            term = term * size(dim)
        total = total + term
    part = total * share_of(draw(st.integers(1, 3)))
    if draw(st.booleans()):
        part = part * inverse(size(draw(st.sampled_from(DIMS))))
    return draw(st.sampled_from((part, clamped(part), clamped(part, rounds=True) - size("A"))))


RULES = st.lists(st.builds(Rule, st.sampled_from(DIMS), lengths(), st.booleans()), max_size=4)


@given(RULES, st.permutations(DIMS), st.integers(0, 5), st.lists(SIZES, min_size=5, max_size=5))
def test_it_gives_what_completed_gives(rules, dims, many, extents):
    places = {dim: DIMS.index(dim) for dim in dims[:many]}
    known = {dim: extents[place] for dim, place in places.items()}
    names, complete = completion(places, rules)
    sizes, possible = complete(extents)

    try:
        expected = completed(known, rules)
    except ValueError:
        assert not possible
    else:
        assert possible
        assert dict(zip(names, sizes, strict=True)) == expected


def test_no_size_divides_if_it_is_0():
    _, complete = completion({"H": 0, "G": 1}, [Rule("A", size("H") * inverse(size("G")))])

    assert complete([6, 3]) == ((6, 3, 2), True)
    assert not complete([6, 0])[1]


def test_a_sum_of_thousands_is_a_function():
    terms = [f"e[{number}]" for number in range(5000)]

    assert function_of(f"lambda e: {sum_of(terms)}", "a sum")(range(5000)) == sum(range(5000))
