"""Lengths in terms of the extents of an array are the same numbers."""

from hypothesis import given
from hypothesis import strategies as st

from blockbuster.frontend.in_terms import in_terms
from blockbuster.ir.lengths import clamped, inverse, share_of, size, whole

A, B = size("A"), size("B")
NUMBERS = st.integers(0, 3)


@st.composite
def slices(draw, extent):
    """The length of a slice of an axis of that extent, or of a slice of one."""
    for _ in range(draw(st.integers(0, 2))):
        cut = clamped(extent - whole(draw(NUMBERS)))
        part = clamped(cut * share_of(draw(st.integers(1, 3))), rounds=True)
        extent = draw(st.sampled_from((cut, extent - cut, part)))
    return extent


@given(st.data(), st.integers(0, 6), st.integers(0, 6))
def test_what_is_found_is_the_same_number(data, a, b):
    rows, columns = data.draw(slices(A)), data.draw(slices(B))
    length = data.draw(st.sampled_from((rows, columns, rows * columns)))
    length = data.draw(slices(length)) + whole(data.draw(NUMBERS))
    found = in_terms(length, [("0", rows), ("1", columns)])

    sizes = {"A": a, "B": b}
    if found is not None:
        extents = {"0": rows.value(sizes), "1": columns.value(sizes)}
        assert found.value(extents) == length.value(sizes)


@given(st.data())
def test_a_slice_of_an_axis_follows_from_its_extent(data):
    extent = data.draw(slices(A))

    assert in_terms(data.draw(slices(extent)), [("T", extent)]) is not None


def test_quotients_follow_from_the_axes_that_they_divide():
    part = A * inverse(B)
    axes = [("0", part), ("1", B)]

    assert in_terms(A, axes) == size("0") * size("1")
    assert in_terms(part, [("0", A), ("1", B)]) == size("0") * inverse(size("1"))
    assert in_terms(part - whole(1), axes) == size("0") - whole(1)
    assert in_terms(A, [("0", part), ("1", B * inverse(A))]) is None


def test_what_does_not_follow():
    assert in_terms(B, [("0", A)]) is None
    assert in_terms(clamped(A - whole(1)), [("0", clamped(A - whole(2)))]) is None
