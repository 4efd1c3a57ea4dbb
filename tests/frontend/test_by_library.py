"""Recurrent layers and scattered elements by NumPy, and by comparisons, are torch's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.moves import Scattered
from blockbuster.frontend.recurrent import GATES, Recurrent

torch = pytest.importorskip("torch")
SIZES = st.integers(1, 3)


@settings(max_examples=40)
@given(st.sampled_from([*GATES]), st.tuples(*[SIZES] * 5), st.booleans(), st.booleans(), st.data())
def test_a_recurrent_layer_on_the_host_is_torchs(kind, sizes, both_ways, biases, data):
    steps, batch, features, hidden, layers = sizes
    fn = Recurrent(kind, layers, 1 + both_ways, biases)
    random, gates = np.random.default_rng(data.draw(st.integers(0, 99))), GATES[kind] * hidden
    shapes = [(steps, batch, features)]
    shapes += [(layers * fn.directions, batch, hidden)] * (1 + fn.memory)
    for layer in range(layers):
        width = hidden * fn.directions if layer else features
        rows = [(gates,)] * (2 * biases)
        shapes += [(gates, width), (gates, hidden), *rows] * fn.directions
    arrays = [random.standard_normal(shape) for shape in shapes]
    expected = fn(*map(torch.from_numpy, arrays))

    assert len(arrays) == 2 + fn.memory + fn.weights
    np.testing.assert_allclose(fn(*arrays), expected.numpy(), rtol=1e-10, atol=1e-12)
    assert fn(*(a.astype(np.float32) for a in arrays)).dtype == np.float32


@settings(max_examples=40)
@given(st.sampled_from(["scatter", "scatter_add"]), st.tuples(SIZES, SIZES), st.integers(1, 10),
       st.sampled_from([0, 1]), st.booleans(), st.data())  # fmt: skip
def test_scattered_elements_are_torchs(how, sizes, count, axis, one, data):
    """Of more than 8 positions a row a library's function is called, of fewer they are compared."""
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    extents = [*sizes]
    extents[axis] += count  # as many places: torch does not say which of two elements stays
    x = random.integers(-9, 9, extents).astype(np.float64)
    lines = [random.permutation(extents[axis])[:count] for _ in range(sizes[1 - axis])]
    at = np.stack(lines, 1 - axis)
    if how == "scatter_add":
        at = at % max(1, count // 2)  # these meet
    source = random.integers(-9, 9, at.shape).astype(np.float64)
    given = dict(x=x, at=at) if one and how == "scatter" else dict(x=x, at=at, s=source)
    tensors = {name: torch.from_numpy(array) for name, array in given.items()}
    call = lambda x, at, s=2.5: getattr(x, how)(axis, at, s)  # noqa: E731
    program = bb.trace(lambda **arrays: call(**arrays), **tensors)
    found = program.numpy(given)["out"]
    library = Scattered(how, axis, None if "s" in given else 2.5)

    np.testing.assert_array_equal(library(*given.values()), call(**tensors))
    np.testing.assert_array_equal(found, call(**tensors))
    assert any(e.op == "custom" for e in program.equations) == (count > 8)


@settings(max_examples=30)
@given(st.sampled_from([0, 1]), st.integers(1, 6), st.data())
def test_slices_that_are_added_are_torchs(axis, count, data):
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, at = random.integers(-9, 9, (3, 4)).astype(np.float64), random.integers(0, 3, count)
    source = random.integers(-9, 9, (count, 4) if axis == 0 else (3, count)).astype(np.float64)
    expected = torch.from_numpy(x).index_add(axis, *map(torch.from_numpy, (at, source)))

    np.testing.assert_array_equal(Scattered("index_add", axis)(x, at, source), expected)


def test_a_module_of_recurrent_layers_is_compiled_once():
    module = torch.nn.LSTM(3, 4, batch_first=True).eval().requires_grad_(False)
    jitted = bb.jit(module)
    for rows in (2, 2):
        x = torch.randn(rows, 5, 3)
        (found, (state, memory)), (right, ends) = jitted(x), module(x)
        for one, other in zip((found, state, memory), (right, *ends), strict=True):
            torch.testing.assert_close(one, other)
    assert "traced again" not in str(jitted.report_for(x))
    torch.nn.init.zeros_(module.weight_hh_l0)
    torch.testing.assert_close(jitted(x)[0], module(x)[0])


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_dropout_between_layers_is_refused_in_training_only(layer):
    x = torch.randn(2, 5, 3)
    module = layer(3, 4, 2, dropout=0.9, batch_first=True).requires_grad_(False)
    with pytest.raises(bb.TraceError, match=r"dropout of p = 0\.9 with training=True(.|\n)*eval"):
        bb.jit(module)(x)
    for same in (module.eval(), layer(3, 4, 2, batch_first=True).requires_grad_(False)):
        torch.testing.assert_close(bb.jit(same)(x)[0], same(x)[0])
