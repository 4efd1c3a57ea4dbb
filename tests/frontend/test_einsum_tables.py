"""bb.einsum at entries of tables: views, copies, places outside; and the gradients of any spec."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.functions.lookups import Lookup
from tests.frontend.einsum_cases import EXAMPLES, FILTERS, C, H, R, S, X, gathered, paths


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
    dy = np.random.default_rng(1).uniform(-1, 1, made.shape)
    made.backward(torch.tensor(dy))
    pad = {"h": (R - 1, R - 1), "w": (S - 1, S - 1)}
    of_x = ("nk(h+r)(w+s), kcrs -> nchw", (dy, FILTERS[:, :, ::-1, ::-1]), {"pad": pad})
    of_w = ("nkhw, nc(h+r)(w+s) -> kcrs", (dy, X), {})
    for (text, operands, options), wanted in ((of_x, x.grad), (of_w, w.grad)):
        for found in paths(text, operands, **options):
            np.testing.assert_allclose(found, wanted.numpy(), atol=1e-12)
