"""--check of emitted files: right kernels pass, wrong ones fail, and the words say why."""

import numpy as np
import pytest

from blockbuster.emit.target.load import load_module
from tests.emit.cases import FOLDER
from tests.emit.checked_files import RIGHT, emitted
from tests.interpreted import printed_by

WORDS = {
    "NaN where eager is finite": "are no numbers: FAIL\nnote: exp",
    "NaN for minus infinity": "are no numbers: FAIL",
    "a quotient rounded to 0": "entries differ: FAIL",
    "a sum that is not written": "changes from run to run, or is not written entirely: FAIL",
    "NaN that is not written": "changes from run to run, or is not written entirely: FAIL",
    "a truth value that is not written": "changes from run to run, or is not written entirely",
    "a wrong threshold": "max error 1, largest value 1, tolerance 0.0001 of it: FAIL",
    "a wrong side of a tie": "entries differ: FAIL",
    "large rows off where eager overflows": "out, inputs of 10,000: max error ",
    "integers rounded to floats": "inputs of 10,000: 46 of 48 entries differ: FAIL",
}


@pytest.fixture(scope="module")
def verdicts():
    return printed_by("tests.emit.checked_files")


@pytest.mark.interpreter
def test_right_kernels_pass(verdicts):
    failed = {name: said for name, (passed, said) in verdicts["right"].items() if not passed}

    assert len(verdicts["right"]) > 40
    assert not failed


@pytest.mark.interpreter
@pytest.mark.parametrize("name", WORDS)
def test_wrong_kernels_fail(verdicts, name):
    passed, said = verdicts["wrong"][name]

    assert not passed
    assert WORDS[name] in said


@pytest.mark.interpreter
def test_what_is_no_number_in_eager_either_is_said(verdicts):
    passed, said = verdicts["right"]["a bare exp, float32"]

    assert passed
    assert "7 are no numbers, as in float32, operator by operator: PASS\nnote: exp (" in said


def test_sizes_that_the_function_was_traced_for_stay():
    function, dims, _ = RIGHT["sizes that are numbers"]
    module = load_module(emitted(function, dims, "float32"), FOLDER)

    assert module.FIXED == {"H": 16, "W": 16}
    assert module.sizes_to_check({"M": 3}) == {"M": 3, "H": 16, "W": 16}
    with pytest.raises(ValueError, match="H is 8: the function was traced for 16"):
        module.sizes_to_check({"H": 8})


CUT = {"causal attention": ("B", "L"), "layer norm": ("M",), "a gate": ("M",)}


@pytest.mark.parametrize(("name", "apart"), CUT.items())
@pytest.mark.parametrize("room", [1, 2_000])
def test_a_large_reference_is_computed_in_parts(name, apart, room):
    function, dims, _ = RIGHT[name]
    module = load_module(emitted(function, dims, "float32"), FOLDER)
    calls, plain = [], module.reference
    size = module.SIZES
    arrays = module.random_inputs(size, 3)
    (whole,) = module.expected(arrays, size)

    module.ROOM = room
    module.reference = lambda *given, **options: calls.append(1) or plain(*given, **options)
    (parts,) = module.expected(arrays, size)

    assert module.APART[: len(apart)] == apart
    assert len(calls) > 1
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-15)
