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
from blockbuster.testing.broad_arrays import broad_example
from tests.emit.cases import FOLDER
from tests.frontend.programs import OPAQUE, PROGRAMS, inputs_for


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


@pytest.mark.parametrize("first", range(0, 120, 30))
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
@pytest.mark.parametrize("first", range(0, 240, 30))
def test_the_text_of_a_broad_random_program_is_the_oracle(first):
    checked = 0
    for seed in range(first, first + 30):
        example = broad_example(Random(seed), opaque=False)
        program = bb.trace(example.function, **example.function.inputs)
        checked += check(program, example.arrays)
    assert checked > 15
