"""bb.einsum of operands that are read at sums: the source's examples, random specs, mistakes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.compile import jit
from blockbuster.errors import TraceError
from blockbuster.frontend.functions.einsum_spec import parse_spec
from blockbuster.frontend.functions.lookups import Lookup
from blockbuster.interp.evaluate import evaluate

RNG = np.random.default_rng(0)


def gathered(text, operands, extents, pad, tables):
    """The oracle: every operand at every place of all letters, multiplied and summed."""
    spec = parse_spec(text, {}, tuple(tables))
    letters = sorted(extents)
    grid = dict(zip(letters, np.indices([extents[x] for x in letters]), strict=True))
    total = 1.0
    for term, x in zip(spec.terms, operands, strict=True):
        places, inside = [], True
        for place, extent in zip(term, x.shape, strict=True):
            at = place.offset + sum(grid[letter] * factor for letter, factor in place.letters)
            for entry in place.entries:
                at = at + tables[entry.name][tuple(grid[letter] for letter in entry.letters)]
            at = at - next((pad[letter][0] for letter, _ in place.letters if letter in pad), 0)
            inside = inside & (at >= 0) & (at < extent)
            places.append(np.clip(at, 0, extent - 1))
        total = total * np.where(inside, x[tuple(places)], 0.0)
    total = np.broadcast_to(total, [extents[x] for x in letters])
    summed = total.sum(tuple(n for n, x in enumerate(letters) if x not in spec.output))
    left = [letter for letter in letters if letter in spec.output]
    return summed.transpose([left.index(letter) for letter in spec.output])


def paths(text, operands, **options):
    """What the spec gives of NumPy arrays, of a traced program, of its kernels on the CPU."""
    named = {f"x{n}": x for n, x in enumerate(operands)}
    program = bb.trace(lambda **given: bb.einsum(text, *given.values(), **options), **named)
    yield bb.einsum(text, *operands, **options)
    yield program.numpy(named)["out"]
    yield evaluate(bb.fuse(bb.lower(program)).final, {**program.held, **named})["out"]


N, C, H, W, K, R, S = 2, 3, 7, 6, 4, 3, 2
X, FILTERS = RNG.uniform(-1, 1, (N, C, H, W)), RNG.uniform(-1, 1, (K, C, R, S))
SHIFTS = {"sh": RNG.integers(0, 3, C), "sw": RNG.integers(0, 3, C)}
TAPS = {"off_h": RNG.integers(0, 4, (C, 5)), "off_w": RNG.integers(0, 3, (C, 5))}
EXAMPLES = {
    "convolution": ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {}),
    "dilated": ("nc(h+2*r)(w+2*s), kcrs -> nkhw", (X, FILTERS), {}),
    "strided": ("nc(2*h+r)(w*2+s), kcrs -> nkhw", (X, FILTERS), {}),
    "depthwise": ("nc(h+r)(w+s), crs -> nchw", (X, FILTERS[0]), {}),
    "pointwise": ("nchw, kc -> nkhw", (X, FILTERS[..., 0, 0]), {}),
    "shift": ("nc(h+sh[c])(w+sw[c]), kc -> nkhw", (X, FILTERS[..., 0, 0]), SHIFTS),
    "sparse": ("nc(h+off_h[c,x])(w+off_w[c,x]), kcx -> nkhw",
               (X, RNG.uniform(-1, 1, (K, C, 5))), TAPS),
    "one tap for all channels": ("nc(h+t[x])w, kcx -> nkhw",
                                 (X, RNG.uniform(-1, 1, (K, C, 3))), {"t": np.array([0, 3, 1])}),
    "taps that are a sum": ("nc(h+t[x])(w+1), kcx -> nkhw",
                            (X, RNG.uniform(-1, 1, (K, C, 3))), {"t": np.array([1, 3, 5])}),
    "one shift for all": ("nc(h+t[c])w, kc -> nkhw", (X, FILTERS[..., 0, 0]),
                          {"t": np.full(C, 2, np.uint8)}),
    "a sum over a letter that is there": ("nc(h+t[c])w, kc -> nkhw", (X, FILTERS[..., 0, 0]),
                                          {"t": np.arange(C)}),
    "one element of an axis": ("nc(2)w, kc -> nkw", (X, FILTERS[..., 0, 0]), {}),
    "one element that a table names": ("nc(t[c])(w+s), kcs -> nkw", (X, FILTERS[:, :, 0]),
                                       {"t": np.full(C, 6)}),
    "taps in windows": ("nc(h+r)(w+t[r]), kcr -> nkhw", (X, FILTERS[..., 0]),
                        {"t": np.array([2, 0, 1])}),
    "windows behind taps": ("nc(h+t[r])(w+r), kcr -> nkhw", (X, FILTERS[..., 0]),
                            {"t": np.array([2, 0, 1])}),
    "windows beside a shift": ("nc(h+t[c])(w+s), kcs -> nkhw", (X, FILTERS[:, :, 0]),
                               {"t": np.array([2, 0, 1])}),
    "channels last": ("nhcw, (h+t[c])kc -> nkw", (X.transpose(0, 2, 1, 3)[:, :4],
                      RNG.uniform(-1, 1, (6, K, C))), {"t": np.array([2, 0, 1])}),
    "attention": ("nths, hes -> nhte", (X, RNG.uniform(-1, 1, (H, 5, W))), {}),
    "gradient of filters": ("nkhw, nc(h+r)(w+s) -> kcrs", (RNG.uniform(-1, 1, (N, K, 5, 5)), X),
                            {}),
    "three letters": ("(a+2*b+c), abc -> a", (RNG.uniform(-1, 1, 9), RNG.uniform(-1, 1, (5, 2, 3))),
                      {}),
    "from an offset": ("n(h+r+2), r -> nh", (X[0, 0], FILTERS[0, 0, :, 0]), {}),
    "implicit result": ("c(h+r), cr", (X[0, 0], RNG.uniform(-1, 1, (H, R))), {}),
}  # fmt: skip


def extents_of(text, operands, tables, result):
    """The sizes of all letters, by those that stand alone, and by the result."""
    spec = parse_spec(text, {}, tuple(tables))
    found = dict(zip(spec.output, result.shape, strict=True))
    for term, x in zip(spec.terms, operands, strict=True):
        found |= {p.plain: n for p, n in zip(term, x.shape, strict=True) if p.plain}
        for entry in (entry for place in term for entry in place.entries):
            found |= dict(zip(entry.letters, tables[entry.name].shape, strict=True))
    return found


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


@pytest.mark.parametrize(
    ("name", "copies"),
    [("taps that are a sum", 0), ("one shift for all", 0), ("shift", 1), ("sparse", 1),
     ("taps in windows", 1)],
)  # fmt: skip
def test_tables_cost_a_copy_at_most(name, copies):
    """Known tables that hold sums of their letters cost none: they are views."""
    text, operands, tables = EXAMPLES[name]
    named = {f"x{n}": x for n, x in enumerate(operands)}
    program = bb.trace(lambda **given: bb.einsum(text, *given.values(), **tables), **named)
    assert len(program.notes) == copies


def test_tables_that_name_no_place_outside_need_no_test():
    """The size of h follows from the table, so that all places lie in the axis."""

    def lookups(**options):
        sh = {"sh": np.array([2, 0, 1])}
        program = bb.trace(
            lambda x: bb.einsum("nc(h+sh[c])w -> nchw", x, **sh, **options), x="N C H W"
        )
        return [dict(e.params)["fn"].zeros for e in program.equations if e.op == "custom"]

    assert lookups() == [False]
    assert lookups(sizes={"h": 4}) == [True]
    assert lookups(pad={"h": (1, 0)}) == [True]


def test_no_table_reads_outside():
    """A lookup that was told that it need not test its places stays in the array even so."""
    x = np.arange(6.0).reshape(2, 3)
    places = np.array([-(2**62), 1, 2**62])
    np.testing.assert_array_equal(Lookup((1,), zeros=False)(x, places), x[:, [0, 1, 2]])
    np.testing.assert_array_equal(Lookup((1,), zeros=True)(x, places), x * [0, 1, 0])
    assert not Lookup((1,), zeros=True)(x[:, :0], places).any()


@pytest.mark.parametrize("name", ["convolution", "depthwise", "sparse", "shift"])
def test_torch_tensors_give_the_same(name):
    torch = pytest.importorskip("torch")
    text, operands, tables = EXAMPLES[name]
    given = [torch.tensor(x) for x in operands]
    found = bb.einsum(text, *given, **tables)
    np.testing.assert_allclose(found.numpy(), bb.einsum(text, *operands, **tables), atol=1e-12)


@pytest.mark.parametrize(
    "name", ["convolution", "strided", "attention", "shift", "sparse", "taps that are a sum"]
)
def test_torch_records_the_gradients_of_both_operands(name):
    """They equal finite differences; elements that windows and tables read twice add up."""
    torch = pytest.importorskip("torch")
    text, operands, tables = EXAMPLES[name]
    given = [torch.tensor(x, requires_grad=True) for x in operands]
    assert torch.autograd.gradcheck(
        lambda *arrays: bb.einsum(text, *arrays, **tables), given, fast_mode=True
    )


def test_gradients_of_places_outside_are_zero():
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, requires_grad=True)
    shifts = np.array([0, 10, 9])  # from the first zero on
    bb.einsum("nc(h+s[c])w -> ncw", x, s=shifts, pad={"h": (9, 9)}, sizes={"h": 2}).sum().backward()
    read = np.zeros((C, H))
    read[1, 1:3] = read[2, :2] = 1
    np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to(read[None, :, :, None], X.shape))


def test_the_gradients_of_a_convolution_are_specs():
    """That of the image meets the filters in reverse, with zeros around the result's gradient."""
    torch = pytest.importorskip("torch")
    x, w = (torch.tensor(one, requires_grad=True) for one in (X, FILTERS))
    made = bb.einsum("nc(h+r)(w+s), kcrs -> nkhw", x, w)
    dy = RNG.uniform(-1, 1, made.shape)
    made.backward(torch.tensor(dy))
    pad = {"h": (R - 1, R - 1), "w": (S - 1, S - 1)}
    of_x = ("nk(h+r)(w+s), kcrs -> nchw", (dy, FILTERS[:, :, ::-1, ::-1]), {"pad": pad})
    of_w = ("nkhw, nc(h+r)(w+s) -> kcrs", (dy, X), {})
    for (text, operands, options), wanted in ((of_x, x.grad), (of_w, w.grad)):
        for found in paths(text, operands, **options):
            np.testing.assert_allclose(found, wanted.numpy(), atol=1e-12)


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


@st.composite
def lookups(draw):
    """A spec whose operand is read at two sums, of which one names a table or both do; tables."""
    extents = {"n": 2, "c": 3, "x": 2, "h": 3, "v": 2, "k": 2}
    of = draw(st.lists(st.sampled_from(["c", "x", "cx", "n"]), min_size=2, max_size=2))
    if "x" not in "".join(of):
        of[0] = "cx"
    tables, sums = {}, []
    for name, letters, place in zip(("up", "left"), of, "hv", strict=True):
        shape = [extents[letter] for letter in letters]
        grid = [draw(st.integers(0, 2)) * at for at in np.indices(shape)]
        rest = st.lists(st.integers(0, 2), min_size=grid[0].size, max_size=grid[0].size)
        some = np.reshape(draw(rest), shape) if draw(st.booleans()) else 0
        tables[name] = sum(grid) + some
        sums.append(f"({place}+{name}[{','.join(letters)}])")
    pad = dict.fromkeys(draw(st.lists(st.sampled_from("hv"))), (1, 1))
    return f"nc{''.join(sums)}, kcx -> nkhv", tables, extents, pad


@settings(deadline=None)
@given(lookups())
def test_random_tables_are_exact(drawn):
    text, tables, extents, pad = drawn
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-3, 4, shape).astype(float) for shape in ((2, 3, 11, 11), (2, 3, 2)))
    sizes = {letter: extents[letter] for letter in "hv"}
    found = bb.einsum(text, x, w, pad=pad, sizes=sizes, **tables)
    np.testing.assert_array_equal(found, gathered(text, (x, w), extents, pad, tables))


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
