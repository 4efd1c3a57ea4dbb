"""Programs with calls of a library in place of products, and that they compute the same."""

import numpy as np
import torch

import blockbuster as bb
from blockbuster.selection.library.program import library_program
from blockbuster.selection.plans.plan_dtypes import stored_by_eager

HALF = "float16"


def half(_name):
    return HALF


def drawn(*shape, seed=0):
    """Small whole numbers: sums of their products are exact."""
    rng = np.random.default_rng([seed, *shape])
    return torch.from_numpy(rng.integers(-3, 4, shape).astype(np.float32))


def traced(fn, *arrays):
    named = {f"a{n}": array for n, array in enumerate(arrays)}
    return bb.trace(fn_of(fn), **named), named


def fn_of(fn):
    """A function of named arrays that are the arguments of ``fn`` in order."""
    return lambda **given: fn(*given.values())


def stand_ins(*arrays):
    """Stand-ins of arrays whose axes of one element have no name: they are known to have one."""
    shapes = (" ".join("1" if n == 1 else f"D{n}" for n in array.shape) for array in arrays)
    return {f"a{n}": shape for n, shape in enumerate(shapes)}


def with_calls(program, given=half, kept=half):
    return library_program(program, given, kept, stored_by_eager(program))


def calls_of(program):
    return [one.param("fn") for one in program.equations if one.op == "custom"] if program else []


def checked(fn, *arrays, same=np.testing.assert_array_equal, units=False):
    """The calls in place of a function's products; with them it computes the ``same``. ``units``:
    axes of one element are known to have one.
    """
    program, named = traced(fn, *arrays)
    program = bb.trace(fn_of(fn), **stand_ins(*arrays)) if units else program
    found = with_calls(program)
    if found is not None:
        expected, given = (
            one.numpy({given.name: named[given.name].numpy() for given in one.inputs})
            for one in (program, found)
        )
        for name, value in expected.items():
            same(given[name], value)
    return calls_of(found)
