"""The reference of emitted files: the user's function as text, equal to the oracle."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.frontend.numerics import NUMPY
from blockbuster.frontend.operator_text import PYTHON, WRITTEN
from blockbuster.frontend.oracle_sources import definitions
from blockbuster.frontend.reference_text import UserFunction
from blockbuster.ir.expr import Size
from blockbuster.testing.arrays import random_array_function
from tests.emit.cases import FOLDER
from tests.frontend.programs import OPAQUE, PROGRAMS, inputs_for
from tests.random_programs.broad_arrays import broad_example


def reference_of(program, free=()):
    names = [given.name for given in program.inputs]
    outputs = [output.name for output in program.outputs]
    return UserFunction(program).reference(names, outputs, sizes={}, free=free)


def check(program, inputs):
    sizes = program.bind(inputs)
    shown = {axis for given in program.inputs for axis in given.shape}
    free = [dim for dim in program.dims if dim not in shown]
    module = load_module(reference_of(program, free).text, FOLDER)
    found = module.reference(*inputs.values(), **{dim: sizes[dim] for dim in free})
    found = found if isinstance(found, tuple) else (found,)
    for result, wanted in zip(found, program.numpy(inputs).values(), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-14)
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in OPAQUE])
def test_the_text_is_the_oracle(name):
    function, dims = PROGRAMS[name]
    program = bb.trace(function, **dims)
    check(program, inputs_for(program, {}))


@pytest.mark.parametrize("seed", range(60))
def test_the_text_of_a_random_program_is_the_oracle(seed):
    random = Random(seed)
    function = random_array_function(random)
    program = bb.trace(function, **function.inputs)
    check(program, inputs_for(program, {dim: random.randint(1, 9) for dim in program.dims}, seed))


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.parametrize("first", range(0, 300, 30))
def test_the_text_of_a_broad_random_program_is_the_oracle(first):
    for seed in range(first, first + 30):
        example = broad_example(Random(seed), opaque=False)
        program = bb.trace(example.function, **example.function.inputs)
        check(program, example.arrays)


def test_every_operator_has_a_text():
    for op, function in NUMPY.items():
        if op not in (*PYTHON, *WRITTEN, "expand", "cast", "custom"):
            named = getattr(np, function.__name__, None) is function
            assert named or function.__name__ in definitions(), op


def test_a_size_of_no_shape_is_an_argument():
    program = bb.trace(lambda x: x + 1, x="A")
    (added,) = program.equations
    longer = replace(added, operands=(added.operands[0], Size("L")))
    made = reference_of(replace(program, equations=(longer,)), free=("L",))
    module = load_module(made.text, FOLDER)
    np.testing.assert_array_equal(module.reference(np.zeros(2), L=3), [3.0, 3.0])
