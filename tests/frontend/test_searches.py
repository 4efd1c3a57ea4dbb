"""argmax and argmin: NumPy's answers, one kernel with what is searched, and what is refused."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import blockbuster as bb
from bench.costs.binary import binary_of
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.runtime.launch import run_interpreted
from tests.parameters import rest_slow
from tests.random_programs.searches import search_program


def gate(x, w):
    """The expert of each token and its weight."""
    scores = x @ w
    return bb.argmax(scores, axis=-1), bb.max(bb.softmax(scores, axis=-1), axis=-1)


def nearest(x, c):
    """The nearest center, from differences."""
    return bb.argmin(bb.sum((x[:, None] - c[None]) ** 2, axis=-1), axis=-1)


def nearest_by_products(x, c):
    """The same from products: |x|^2 is one for all centers."""
    return bb.argmin(bb.sum(c * c, axis=-1) - 2 * (x @ c.T), axis=-1)


def top(x):
    """The maximum and where it is."""
    return bb.argmax(x, axis=-1), bb.max(x, axis=-1)


PROGRAMS = {
    "gate": (gate, {"x": "M D", "w": "D N"}),
    "nearest": (nearest, {"x": "M D", "c": "N D"}),
    "nearest by products": (nearest_by_products, {"x": "M D", "c": "N D"}),
    "top": (top, {"x": "M N"}),
}
BY_NAME = pytest.mark.parametrize("name", PROGRAMS)
FEW = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan])
"""Few numbers, so that there are ties."""


def whole_numbers(program, sizes):
    random = np.random.default_rng(0)
    return {
        given.name: random.integers(-3, 4, [sizes[dim] for dim in given.shape]).astype("float32")
        for given in program.inputs
    }


@given(arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 9)), elements=FEW))
def test_ties_infinities_and_nan_are_found_as_numpy_finds_them(x):
    for ours, numpys in ((bb.argmax, np.argmax), (bb.argmin, np.argmin)):
        program = bb.trace(lambda x, f=ours: f(x, axis=-1), x="M N")
        fused = bb.fuse(bb.lower(program)).final

        np.testing.assert_array_equal(program.numpy({"x": x})["out"], numpys(x, -1))
        found = bb.evaluate(fused, {"x": x}, block_sizes={"M": 2, "N": 2}, semantics=bb.Float64)
        np.testing.assert_array_equal(found["out"], numpys(x, -1))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999))
def test_random_searches_are_what_numpy_finds(seed):
    program = search_program(Random(seed))
    fused = bb.safe(bb.fuse(bb.lower(program)).final)
    inputs = whole_numbers(program, {"M": 3, "N": 5, "D": 2})
    found = bb.evaluate(fused, inputs, block_sizes=dict.fromkeys(program.dims, 2))

    for name, wanted in program.numpy(inputs).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-10)


@BY_NAME
def test_one_loop_that_stores_nothing_but_results(name):
    fn, dims = PROGRAMS[name]
    derivation = bb.fuse(bb.lower(bb.trace(fn, **dims)))

    assert "repair-by-law" in [step.rule for step in derivation.steps]
    assert len(derivation.final.nodes) == 1
    if name != "gate":
        assert derivation.final.buffered_edges() == ()


SMALL, LONG = {"M": 9, "D": 5, "N": 64}, {"M": 3, "D": 33, "N": 2000}


@BY_NAME
@pytest.mark.parametrize("sizes", rest_slow([SMALL, LONG], [SMALL]), ids=str)
def test_one_kernel_for_any_number_of_columns(name, sizes):
    fn, dims = PROGRAMS[name]
    program = bb.trace(fn, **dims)
    sizes = {dim: sizes[dim] for dim in program.dims}
    kernel = bb.emit(bb.fuse(bb.lower(program)).final, sizes, "float32", chunks={})
    entries = load_module(kernel.source).KERNELS

    assert len(entries) == 1
    assert binary_of(entries[0], target_of("sm_90")).registers > 0
    if sizes["N"] == 64:
        inputs = whole_numbers(program, sizes)
        found = run_interpreted(kernel, inputs)
        for out, right in zip(found.values(), program.numpy(inputs).values(), strict=True):
            np.testing.assert_allclose(out, right, rtol=1e-6)


def test_chunks_combine_places():
    program = bb.trace(top, x="M N")
    text = "block M 2, N 16\nchunk nest 1 N 4 at once\nwarps 4\n"
    sizes = {"M": 5, "N": 150}
    graph = bb.fuse(bb.lower(program)).final
    x = np.random.default_rng(1).integers(-2, 3, (5, 150)).astype("float32")
    x[1], x[2, 70], x[3, 40:] = -np.inf, np.nan, np.inf

    assert bb.check_schedule(graph, text, sizes)
    for schedule in (text, text.replace(" at once", "")):
        kernel = bb.emit(graph, sizes, "float32", schedule=schedule)
        place, largest = run_interpreted(kernel, {"x": x}).values()
        np.testing.assert_array_equal(place, x.argmax(-1))
        np.testing.assert_array_equal(largest, x.max(-1))


FOLDED = """graph(x: N[M,N] = port, i: N[N] = port) {{
  m, z = map N (x_1 in !x, i_1 in !i) {{
    m_1 = row_{lead}(x_1)
    h = where(x_1 == m_1, i_1, {none}) over [M,N]
    z_1 = row_{fold}(h)
    yield {lead} t = m_1
    yield {fold} z_1 by t: {factor}
  }}
  return z
}}"""


def folded(lead="max", fold="min", none="inf", factor="where(r == r2, x, inf)"):
    return bb.parse(FOLDED.format(lead=lead, fold=fold, none=none, factor=factor))


@pytest.mark.parametrize(
    "wrong",
    [
        folded(fold="max", none="-inf", factor="where(r == r2, x, -inf)"),  # the last place
        folded(lead="min"),
        folded(factor="x"),
        folded(factor="where(r < r2, x, inf)"),
        folded(factor="where(r == r2, inf, x)"),
        folded(none="0"),
    ],
    ids=["last", "minimum", "never neutral", "kept where less", "exchanged", "another neutral"],
)
def test_wrong_folds_are_told_apart(wrong):
    right = bb.parse("""graph(x: N[M,N] = port, i: N[N] = port) {
      m = map N (x_1 in !x) { m_1 = row_max(x_1) yield max m_1 }
      z = map N (x_2 in !x, m_2 = m, i_1 in !i) {
        h = where(x_2 == m_2, i_1, inf) over [M,N]
        z_1 = row_min(h)
        yield min z_1
      }
      return z
    }""")

    assert bb.prove_equal(right, folded()).equal is True
    assert bb.prove_equal(right, wrong).equal is False


@pytest.mark.parametrize("name", rest_slow(PROGRAMS, ["top"]))
def test_each_step_is_proved(name):
    fn, dims = PROGRAMS[name]

    assert bb.fuse(bb.lower(bb.trace(fn, **dims))).prove(trials=2).equal is True


def test_too_many_elements_are_refused():
    wide = np.broadcast_to(np.float32(0), (2, (1 << 23) + 1))

    with pytest.raises(bb.TraceError, match=r"argmax of .* searches more than 16777216 elements"):
        bb.trace(lambda x: bb.argmax(x), x=wide)
    assert bb.trace(lambda x: bb.argmax(x, axis=-1), x=wide).equations


def test_an_axis_that_is_not_there():
    with pytest.raises(bb.TraceError, match="argmin: axis 2 is out of range for 2 axes"):
        bb.trace(lambda x: np.argmin(x, axis=2), x="M N")
