"""bb.einsum of operands that are read at sums: the source's examples, random specs, mistakes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.compile import jit
from blockbuster.errors import TraceError
from tests.frontend.einsum_cases import (
    EXAMPLES,
    FILTERS,
    SHIFTS,
    C,
    H,
    K,
    N,
    R,
    S,
    W,
    X,
    extents_of,
    gathered,
    paths,
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_what_a_gather_gives(name):
    text, operands, tables = EXAMPLES[name]
    for result in paths(text, operands, **tables):
        extents = extents_of(text, operands, tables, result)
        wanted = gathered(text, operands, extents, {}, tables)
        np.testing.assert_allclose(result, wanted, atol=1e-12)
        assert result.size


def test_sizes_are_those_that_fit():
    shape = bb.einsum("nc(2*h+r)(w+2*s), kcrs -> nkhw", X, FILTERS).shape
    assert shape == (N, K, (H - R) // 2 + 1, W - 2 * (S - 1))
    assert bb.einsum("nc(h+sh[c])w, kc -> nkhw", X, FILTERS[..., 0, 0], sh=SHIFTS["sh"]).shape == (
        N, K, H - SHIFTS["sh"].max(), W,
    )  # fmt: skip


def test_zeros_stand_around_a_padded_axis():
    text, pad = "nc(h+r)(w+s), kcrs -> nkhw", {"h": (1, 1), "w": (2, 0)}
    for result in paths(text, (X, FILTERS), pad=pad):
        extents = {"n": N, "c": C, "k": K, "r": R, "s": S, "h": H + 2 - R + 1, "w": W + 2 - S + 1}
        wanted = gathered(text, (X, FILTERS), extents, pad, {})
        np.testing.assert_allclose(result, wanted, atol=1e-12)


def test_zeros_are_asked_for_by_any_letter_of_a_sum():
    by_taps, by_places = (
        bb.einsum("nc(h+r)w, kcr -> nkhw", X, FILTERS[..., 0], pad={letter: (1, 1)})
        for letter in "rh"
    )
    np.testing.assert_array_equal(by_taps, by_places)
    assert by_taps.shape == (N, K, H, W)


def test_sizes_that_do_not_fit_are_refused_of_traced_arrays_too():
    x = np.arange(24.0).reshape(3, 8)
    for named in ({"s": np.arange(2)}, {"s": np.array([2])}):
        with pytest.raises(TraceError, match="'c' has 3 elements, and an axis of it has"):
            jit(lambda x, named=named: bb.einsum("c(h+s[c])->ch", x, sizes={"h": 4}, **named))(x)
    with pytest.raises(TraceError, match="'m' has 7 elements, and an axis of it has 3"):
        jit(lambda x: bb.einsum("m(h+r)->mhr", x, sizes={"r": 2, "m": 7}))(x)
    of_names = bb.trace(
        lambda x: bb.einsum("c(h+s[c])->ch", x, s=np.arange(3), sizes={"h": 4}), x="C H"
    )
    assert of_names.numpy({"x": x})["out"].shape == (3, 4)


def test_places_count_from_the_first_zero():
    with pytest.raises(TraceError, match="place -1 is read, in front of the axis and its zeros"):
        bb.einsum("(h-1)->h", np.arange(8.0), pad={"h": (1, 0)})


def test_masks_stay_masks():
    mask = np.eye(3, 6) > 0
    shifted = lambda x: bb.einsum("c(h+s[c])->ch", x, s=np.arange(3))  # noqa: E731
    found = jit(shifted)(mask)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, shifted(mask))


def test_negative_offsets_of_unknown_extents_are_refused():
    def moved(x, w):
        return bb.einsum("nc(h+sh[c])w, kc -> nkhw", x, w, sh=SHIFTS["sh"] - 5)

    with pytest.raises(TraceError, match=r"sh: place -[0-9]"):
        bb.trace(moved, x="N C H W", w="K C")


def test_numbers_are_given_by_keyword():
    named = bb.einsum("nc(t*h+r)(w+d*s), kcrs -> nkhw", X, FILTERS, t=2, d=2)
    np.testing.assert_array_equal(
        named, bb.einsum("nc(2*h+r)(w+2*s), kcrs -> nkhw", X, FILTERS)
    )


def test_tables_that_are_arguments():
    """Then their numbers are not known: the size is given, and places outside read zeros."""
    text = "nc(h+sh[c])w, kc -> nkhw"

    def shifted(x, w, sh):
        return bb.einsum(text, x, w, sh=sh, sizes={"h": x.shape[2]})

    shifts = np.array([-2, 0, 5])
    given = {"x": X, "w": FILTERS[..., 0, 0], "sh": shifts}
    extents = {"n": N, "c": C, "h": H, "w": W, "k": K}
    wanted = gathered(text, (given["x"], given["w"]), extents, {}, {"sh": shifts})
    found = bb.trace(shifted, x="N C H W", w="K C", sh="int64: C").numpy(given)["out"]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    narrow = (X.astype(np.float32), given["w"].astype(np.float32), shifts)
    np.testing.assert_allclose(jit(shifted)(*narrow), wanted, atol=1e-5)


@pytest.mark.parametrize("name", ["convolution", "depthwise", "sparse", "shift"])
def test_torch_tensors_give_the_same(name):
    torch = pytest.importorskip("torch")
    text, operands, tables = EXAMPLES[name]
    given = [torch.tensor(x) for x in operands]
    found = bb.einsum(text, *given, **tables)
    np.testing.assert_allclose(found.numpy(), bb.einsum(text, *operands, **tables), atol=1e-12)


@st.composite
def contractions(draw):
    """A spec of two operands, extents of its letters, and zeros around some axes."""
    letters = {x: draw(st.integers(1, 3)) for x in "abcdef"}
    rows, shared, taps = list("ab"), list("cd"), list("ef")
    axes, pad = [], {}
    for letter in draw(st.permutations(rows + shared)):
        if letter in rows and draw(st.booleans()):
            tap, step, every = taps.pop(0), draw(st.integers(1, 2)), draw(st.integers(1, 2))
            size = (letters[letter] - 1) * step + (letters[tap] - 1) * every + 1
            if draw(st.booleans()):
                pad[letter] = (1, 1)
                size = max(size - 2, 1)
            axes.append((f"({step}*{letter}+{every}*{tap})", size))
        else:
            axes.append((letter, letters[letter]))
    used = [tap for tap in "ef" if tap not in taps]
    other = draw(st.permutations([*shared, *used, "g"]))
    letters["g"] = 2
    left = [x for x in "abcdefg" if x in "abcdg" or x in used]
    output = draw(st.permutations(left))[: draw(st.integers(1, len(left)))]
    text = f"{''.join(a for a, _ in axes)}, {''.join(other)} -> {''.join(output)}"
    shapes = [n for _, n in axes], [letters[x] for x in other]
    return text, *shapes, {x: letters[x] for x in left}, pad


@settings(deadline=None)
@given(contractions())
def test_random_contractions_are_exact(drawn):
    text, first, second, extents, pad = drawn
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-3, 4, shape).astype(float) for shape in (first, second))
    extended = {"pad": pad, "sizes": {letter: extents[letter] for letter in "ab"}}
    wanted = gathered(text, (x, w), extents, pad, {})
    for result in paths(text, (x, w), **(extended if "(" in text else {})):
        np.testing.assert_array_equal(result, wanted)


def test_taps_are_loops_where_no_letter_is_summed_on_matrix_units():
    """Blocks of a depthwise convolution are those of images; nine taps would be no tile."""

    def depthwise(x, w):
        return bb.einsum("nc(h+r)(v+s), crs -> nchv", x, w)

    program = bb.trace(depthwise, x="N C H V", w="C R S")
    product = next(e for e in program.equations if e.op == "mul")

    assert product.shape[:2] == ("R", "S")
    (source,) = str(bb.lower(program)).splitlines()[:1]
    assert "[A,B]" in source  # the places along both axes of the image


def test_channels_are_the_inner_axis_of_the_product():
    """Loops run over the taps, so that the product's blocks are of the channels."""
    program = bb.trace(
        lambda x, w: bb.einsum("nc(h+r)(w+s), kcrs -> nkhw", x, w), x="N C H W", w="K C R S"
    )
    product = next(e for e in program.equations if e.op == "matmul")
    assert program.shape_of(product.operands[0])[-1] == "C"
    assert program.notes == ()


W2 = FILTERS[..., 0, 0]
MISTAKES = {
    "nc(h+r(w+s), kcrs -> nkhw": ((X, FILTERS), {}, "')' is missing", "nc(h+r"),
    "nc(h+q)(w+s), kcrs -> nkhw": ((X, FILTERS), {}, "the sizes of h and q are not known", "nc"),
    "nc(h*r)(w+s), kcrs -> nkhw": ((X, FILTERS), {}, "a product of letters is no sum", "nc(h*"),
    "nc(h+off[c])w, kc -> nkhw": ((X, W2), {}, "the table 'off' is not given", "nc(h+"),
    "nc(h+off)w, kc -> nkhw": ((X, W2), {}, "'off' is not given", "nc(h+"),
    "nc(h-r)(w+s), kcrs -> nkhw": ((X, FILTERS), {}, "letters are added", "nc"),
    "nc(h+sh[c])w, kc -> nkhw": ((X, W2), {"sh": np.ones(C)}, "is a table of float64", "nc"),
    "nc(h+sh[c,k])w, kc -> nkhw": ((X, W2), {"sh": SHIFTS["sh"]}, "sh has 1 axes, and 2 letters",
                                   "nc"),
    "nc(h+r)w, kcrs -> nkhz": ((X, FILTERS), {}, "'z' is in no operand", "nc(h+r)w, kcrs -> nkh"),
    "nc(h+r)(w+s), kcr -> nkhw": ((X, FILTERS), {}, "3 axes are named of an array of 4",
                                  "nc(h+r)(w+s), "),
    "nc(h+r-2)(w+s), kcrs -> nkhw": ((X, FILTERS), {}, "place -2 is read", "nc"),
    "nc(h+r)(w+s) -> nchw": ((X, FILTERS), {}, "it names 1 operands, and 2 are given",
                             "nc(h+r)(w+s) -> nchw"),
    "c(h+r)..., kcr -> kh": ((X, FILTERS), {}, "'.' is no", "c(h+r)"),
    "nc(h+r)(w+r), kcr -> nkhw": ((X, FILTERS[..., 0]), {}, "'r' stands twice", ""),
    "nc(h+3*)w, kc -> nkhw": ((X, W2), {}, "')' is no name", "nc(h+3*"),
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_marked_in_the_spec(text):
    operands, named, reason, before = MISTAKES[text]
    with pytest.raises(TraceError) as raised:
        bb.einsum(text, *operands, **named)
    lines = str(raised.value).splitlines()
    assert reason in lines[0]
    at = lines.index(f"    {text}")
    assert lines[at + 1].rstrip() == f"    {' ' * len(before)}^"


@pytest.mark.parametrize(
    ("text", "operands", "options", "reason"),
    [
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"pad": {"h": (-1, 1)}}, "pad of 'h'"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"pad": {"z": (1, 1)}}, "pad names 'z'"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"sizes": {"h": 9}}, "'h' has 9 elements"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"sizes": {"n": 3}}, "'n' has 3 elements"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"sizes": {"h": 0}}, "the size of 'h' is 0"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"sizes": {"h": 1.5}}, "of 'h' is 1.5"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"q": 5}, "q is given, and the spec does"),
        ("nc(h+sh[c])w, kc -> nkhw", (X, W2), {"sh": np.arange(2)}, "'c' has 3 elements, and"),
        ("nc(h+sh[c])w, kc -> nkhw", (X, W2), {"sh": np.arange(1)}, "'c' has 3 elements, and"),
        ("nc(h+sh[c])w, kc -> nkhw", (X, W2), {"sh": np.arange(3) + 7}, "sh: place 9 of 7"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"sizes": {"z": 3}}, "sizes names 'z'"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"pad": {"c": (1, 1)}}, "pad names 'c'"),
        ("nc(h+sh[c])w, kc -> nkhw", (X, W2), {"sh": SHIFTS["sh"] - 5}, r"sh: place -[0-9]"),
        ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {"t": 1.5}, "t is a float"),
        ("nc(h+sh[c])w, kc -> nkhw", (X, W2), {"sh": SHIFTS["sh"] + 9, "sizes": {"h": 2}},
         "sh: place [0-9]+ of 7 is read"),
        ("nc(t)w, kc -> nkw", (X, W2), {"t": H}, "no window of 1 elements fits"),
        ("nchw, kc -> nkhw", (X, W2), {"t": 2}, "reads no t"),
        ("nchw, kc -> nkhw", (X, W2), {"pad": {"h": (1, 1)}}, "reads no pad"),
    ],
)  # fmt: skip
def test_what_is_given_beside_is_checked(text, operands, options, reason):
    with pytest.raises(TraceError, match=reason):
        bb.einsum(text, *operands, **options)
