"""Parts on whole arrays: their text gives what the oracle gives, and is taken if it is faster."""

from random import Random

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.ir.types import size_class
from blockbuster.machines import built_in
from blockbuster.selection.plans.whole_part import why_not_whole
from blockbuster.selection.plans.whole_price import price_of_whole
from blockbuster.selection.plans.whole_text import whole_text
from blockbuster.testing.arrays import random_array_function
from tests.emit.cases import FOLDER
from tests.frontend.programs import OPAQUE, PROGRAMS, inputs_for
from tests.parameters import rest_slow
from tests.random_programs.broad_arrays import broad_example


def run(program, inputs, dtype=np.float64):
    """The outputs of the text for inputs as plans give them to it: floats and integers."""
    sizes = {size_class(dim): size for dim, size in program.bind(inputs).items()}
    given = {
        name: array if array.dtype.kind in "iu" else array.astype(dtype)
        for name, array in inputs.items()
    }
    return load_module(whole_text(program), FOLDER).run(given, sizes, {}, dtype=dtype)


def check(program, inputs):
    if why_not_whole(program):
        return False
    found, wanted = run(program, inputs), program.numpy(inputs)
    assert [*found] == [*wanted]
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-9, atol=1e-11)
        assert found[name].shape == array.shape
    made = [*inputs.values(), *found.values()]
    for at, array in enumerate(found.values(), start=len(inputs)):
        assert not any(np.may_share_memory(array, other) for other in made[:at])
    sizes = {size_class(dim): size for dim, size in program.bind(inputs).items()}
    assert price_of_whole(program, sizes, built_in("cpu")) >= 0
    return True


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in OPAQUE])
def test_the_text_is_the_oracle(name):
    function, dims = PROGRAMS[name]
    program = bb.trace(function, **dims)

    check(program, inputs_for(program, {}))


@pytest.mark.parametrize("first", rest_slow(range(0, 120, 30), [30]))
def test_the_text_of_a_random_program_is_the_oracle(first):
    checked = 0
    for seed in range(first, first + 30):
        random = Random(seed)
        function = random_array_function(random)
        program = bb.trace(function, **function.inputs)
        extents = {dim: random.randint(1, 9) for dim in program.dims}
        checked += check(program, inputs_for(program, extents, seed))
    assert checked > 20


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.parametrize("first", rest_slow(range(0, 240, 30), [0, 120]))
def test_the_text_of_a_broad_random_program_is_the_oracle(first):
    checked = 0
    for seed in range(first, first + 30):
        example = broad_example(Random(seed), opaque=False)
        program = bb.trace(example.function, **example.function.inputs)
        checked += check(program, example.arrays)
    assert checked > 15


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_flip_is_a_view(rows):
    program = bb.trace(lambda x: (np.flip(x, 1) - np.flip(x, ()), x[::-1], np.flip(x[1:])), x="M N")

    assert check(program, {"x": np.arange(rows * 4.0).reshape(rows, 4)})
    assert "x[::-1, :]" in whole_text(program)


# what is chosen -------------------------------------------------------------------------


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def space_to_depth(x):
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 3, 5, 1, 2, 4)
    return cells.reshape(n, c * 4, h // 2, w // 2)


def patches(image, w):
    n, c, h, v = image.shape
    cells = image.reshape(n, c, h // 8, 8, v // 8, 8).transpose(0, 2, 4, 1, 3, 5)
    return cells.reshape(n, -1, c * 64) @ w


def head_norm(x):
    h = x.reshape(*x.shape[:-1], 8, x.shape[-1] // 8)
    return (h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6)).reshape(x.shape)


def attention_pool(x, q):
    scores = np.exp(x @ q)
    return np.einsum("bs,bsd->bd", scores / scores.sum(-1, keepdims=True), x)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (space_to_depth, [floats(4, 8, 32, 32)]),
        (patches, [floats(2, 3, 64, 64), floats(192, 96)]),
        (head_norm, [floats(4, 64, 256)]),
        (lambda x: x.reshape(64, 256, 4).mean(-1), [floats(64, 1024)]),
    ],
)
def test_reshapes_that_leave_short_rows_run_on_whole_arrays(function, arrays):
    jitted = bb.jit(function)
    exact = function(*(array.astype(np.float64) for array in arrays))

    ours, eager = jitted(*arrays), function(*arrays)
    assert "order(" not in jitted.plan_for(*arrays).source.partition("def run")[2].partition(":")[2]
    assert ours.dtype == np.float32
    assert np.abs(ours - exact).max() <= 1.05 * np.abs(eager - exact).max()


def test_rows_that_fit_the_cache_stay_in_blocks():
    plan = bb.jit(bb.layer_norm).plan_for(floats(4096, 1024), floats(1024), floats(1024))

    (file,) = plan.files
    assert file.considered is not None


def test_a_variance_of_large_numbers_is_not_written_as_a_difference():
    program = bb.trace(lambda x: (x * x).mean(-1) - x.mean(-1) ** 2, x="M N")
    assert "around the mean" in why_not_whole(program)

    assert not why_not_whole(bb.trace(lambda x: ((x - x.mean(-1)[:, None]) ** 2).mean(-1), x="M N"))


def test_functions_of_the_user_stay_as_they_are():
    program = bb.trace(lambda x: np.sort(x, axis=-1) * 2, x="M N")

    assert why_not_whole(program) == "np.sort[-1] is a function of the user's"


def test_exponentials_that_can_overflow_are_told():
    x = floats(256, 1024)
    (note,) = bb.jit(lambda x: np.log(1 + np.exp(x))).report_for(x).notes

    assert "can overflow: log" in note


def test_elements_at_positions_are_picked_and_others_are_zero():
    def picked(x, at):
        return bb.where(at[:, None] == bb.arange(x.shape[1]), x, 0).sum(1)

    x, at = floats(6, 4).astype(np.float64), np.array([0, 3, -1, 4, 2, 2])
    program = bb.trace(picked, x=x, at=at)
    assert "picked(" in whole_text(program)
    assert check(program, {"x": x, "at": at})


def test_a_row_for_all_rows_is_a_product():
    program = bb.trace(attention_pool, x="B S D", q="D")

    assert whole_text(program).count("whole_product(") == 3  # its definition, and two calls
    assert check(program, inputs_for(program, {}))


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize(
    ("function", "dims", "calls"),
    [
        (lambda x, w, k: (x * w).sum(-1, keepdims=k), dict(x="B S D", w="D"), 1),
        (lambda x, w, k: (w[:, None] * x).sum(2, keepdims=k), dict(x="B S D", w="B D"), 1),
        (lambda x, w, k: (x * w[:, None]).sum(0, keepdims=k), dict(x="S D", w="S"), 1),
        (lambda x, w, k: (w[..., None] * x).sum(1, keepdims=k), dict(x="B S D", w="B S"), 1),
        (lambda x, w, k: (x * w[..., None]).sum(1, keepdims=k), dict(x="S D", w="B S"), 1),
        (lambda x, w, k: (x * w[:, None]).sum(1, keepdims=k), dict(x="B S D", w="B D"), 0),
        (lambda x, w, k: (x * w[:, None, None]).sum(0, keepdims=k), dict(x="B S D", w="B"), 0),
    ],
)
def test_sums_along_rows_or_columns_are_products_with_a_vector(function, dims, calls, keeps):
    program = bb.trace(lambda x, w: function(x, w, keeps), **dims)

    text = whole_text(program)
    assert text.count("whole_product(") == 2 * calls  # a call, and the definition
    assert text.count("np.add.reduce") == 1 - calls
    assert check(program, inputs_for(program, {}))


def test_equal_operators_run_once_and_folds_of_folds_are_one():
    program = bb.trace(lambda x: x - x.mean((1, 2), keepdims=True) + x.mean((1, 2), keepdims=True),
                       x="A B C")  # fmt: skip
    text = whole_text(program)

    assert text.count("np.add.reduce") == 1
    assert "axis=(1, 2,)" in text
