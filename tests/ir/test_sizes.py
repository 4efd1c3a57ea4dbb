"""Sizes that a user gives are whole numbers, also NumPy's; others are refused in the same words."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.sizes import bind_sizes, whole

GIVEN = dict(M=64, K=32, N=64)


@pytest.fixture(scope="module")
def program():
    return bb.trace(lambda x, w: bb.softmax(x @ w, axis=-1), x="M K", w="K N")


@pytest.fixture(scope="module")
def derivation(program):
    return bb.fuse(bb.lower(program))


@pytest.mark.parametrize("size", [-1, 2.5, "7", None, True])
def test_what_is_no_size_is_refused_wherever_sizes_are_given(program, derivation, size):
    sizes = GIVEN | dict(K=size)
    reason = rf"^sizes: K is {size!r}, expected a whole number of at least 0$"
    for call in (
        lambda: bb.compile(program, sizes, machine="h200"),
        lambda: bb.emit(derivation, sizes),
        lambda: bb.emit(derivation.final, sizes),
        lambda: bb.traffic(derivation.final, sizes),
        lambda: bind_sizes((), {}, (), sizes),
    ):
        with pytest.raises(ValueError, match=reason):
            call()


@pytest.mark.parametrize("what", ["tiles", "chunks"])
def test_so_are_tiles_and_chunks(derivation, what):
    with pytest.raises(ValueError, match=rf"^{what}: K is 16\.0, expected a whole number"):
        bb.emit(derivation.final, GIVEN, **{what: dict(K=16.0)})


def test_numbers_of_numpy_are_as_good_as_pythons(program, derivation):
    sizes = {dim: np.int64(size) for dim, size in GIVEN.items()}

    assert all(type(size) is int for size in whole(sizes).values())
    assert bb.emit(derivation, sizes).source == bb.emit(derivation, GIVEN).source
    tiles = (dict(M=of(32)) for of in (int, np.int32))
    one, other = (bb.emit(derivation.final, GIVEN, tiles=given).source for given in tiles)
    assert one == other
    plans = [bb.compile(program, given, machine="h200").plan for given in (sizes, GIVEN)]
    assert plans[0].files[0].text == plans[1].files[0].text
