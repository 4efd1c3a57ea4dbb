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


NUMBERS = {
    "float16": (0.1, 2, True), "bfloat16": (0.1, -3, 2**53 + 1), "float32": (0.1, 7),
    "float64": (0.1, 7), "int64": (2.5, -1, 2**53 + 1, True), "int32": (2.5, -1, 300),
    "int8": (2.9, -2.9, True), "uint8": (2.5, -1), "bool": (0.1, 0, 2, True),
}  # fmt: skip


@pytest.mark.parametrize("count", [3, 12])
@pytest.mark.parametrize("reduce", [{}, {"reduce": "add"}])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_scattered_number_has_the_dtype_of_the_tensor(dtype, reduce, count):
    """A float shows that 0.1 was rounded to bfloat16: it is 100.1 thousandths there."""
    x = (torch.arange(30).reshape(5, 6) % 7).to(getattr(torch, dtype))
    at = torch.stack([torch.arange(count) % (6 if count > 8 else 4)] * 5)
    for number in NUMBERS[dtype]:
        function = lambda x, at, n=number: x.scatter(1, at, n, **reduce)  # noqa: E731
        as_floats = lambda x, at, f=function: f(x, at).double() * 1000  # noqa: E731
        tight = {"rtol": 4e-3 if "16" in dtype else 1e-6, "atol": 0}
        torch.testing.assert_close(bb.jit(function)(x, at), function(x, at), **tight)
        torch.testing.assert_close(bb.jit(as_floats)(x, at), as_floats(x, at), **tight)
        if not reduce:
            assert torch.equal(bb.jit(as_floats)(x, at), as_floats(x, at))


@pytest.mark.parametrize("count", [3, 12])
@pytest.mark.parametrize("how", ["scatter", "scatter_add"])
def test_masks_stay_masks_where_elements_are_scattered(how, count):
    x, source = torch.arange(30).reshape(5, 6) % 7 == 2, torch.arange(5 * count) % 3 == 1
    at = torch.stack([torch.arange(count) % 6 if how == "scatter_add" else torch.arange(count)] * 5)
    x = x if how == "scatter_add" else x.repeat(1, 2)
    function = lambda x, at, s: getattr(x, how)(1, at, s)  # noqa: E731
    expected = function(x, at, source.reshape(5, count))

    assert expected.dtype == torch.bool
    torch.testing.assert_close(bb.jit(function)(x, at, source.reshape(5, count)), expected)


@pytest.mark.parametrize("dtype", ["int64", "int8", "float16", "float32", "bool"])
@pytest.mark.parametrize("alpha", [0.5, 2, -3.75])
def test_the_factor_of_slices_that_are_added_has_the_dtype_of_the_tensor(dtype, alpha):
    """Of integers eager torch cuts the factor off, not the products."""
    x, source = (torch.arange(n).reshape(-1, 3).to(getattr(torch, dtype)) for n in (12, 9))
    function = lambda x, at, s: x.index_add(0, at, s, alpha=alpha)  # noqa: E731
    arrays = x, torch.tensor([3, 0, 3]), source

    torch.testing.assert_close(bb.jit(function)(*arrays), function(*arrays))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16"])
def test_a_number_is_scattered_on_tensors_and_arrays(dtype):
    x, at = torch.ones(2, 3, dtype=getattr(torch, dtype)), torch.tensor([[0, 0], [1, 2]])
    number = 2**53 + 1 if dtype == "int64" else 3
    for how, reduce in (("scatter", {}), ("scatter_add", {"reduce": "add"})):
        fn, expected = Scattered(how, 1, number), x.scatter(1, at, number, **reduce)
        torch.testing.assert_close(fn(x, at), expected)
        np.testing.assert_array_equal(fn(x.numpy(), at.numpy()), expected.numpy(), strict=True)


@pytest.mark.parametrize("number", [True, 2**53 + 1, 0.1, -np.inf])
def test_a_scattered_number_is_saved(number, tmp_path):
    dtype = {bool: torch.bool, int: torch.int64, float: torch.float16}[type(number)]
    x, at = torch.zeros(2, 12).to(dtype), torch.arange(10).repeat(2, 1)
    function = lambda x, at: x.scatter(1, at, number)  # noqa: E731
    loaded = bb.load(bb.jit(function).compiled_for(x, at).save(tmp_path / "a.json"))

    torch.testing.assert_close(loaded(x, at), function(x, at))
    again = loaded.save(tmp_path / "again.json")
    assert again.read_bytes() == (tmp_path / "a.json").read_bytes()


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
