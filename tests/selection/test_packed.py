"""Which arrays are copied before dots read them, and for which sizes that is one kernel."""

import pytest

import blockbuster as bb
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.runtime.given import family_of
from blockbuster.selection.decisions.packed import told_apart
from blockbuster.selection.priors import PRIORS

PRODUCT = dict(x="M K", w="K N")


def family(fn=lambda x, w: x @ w, dtype="float16", constants=(), **dims):
    program = bb.trace(fn, **(dims or PRODUCT))
    return family_of(program, dtype, "sm_90", constants=constants, library=False)


def scheduled(of, **sizes):
    (file,) = of.like(sizes).files
    return file.considered.best.scheduled


def packs(of, **sizes):
    return sum(line.move == "pack" for line in scheduled(of, **sizes).moves)


@pytest.fixture(scope="module")
def product():
    return family()


def test_odd_rows_that_many_programs_read_are_copied(product):
    assert packs(product, M=4096, K=1024, N=1365) == 1


@pytest.mark.parametrize("columns", [1360, 1368, 1408])
def test_rows_that_begin_at_multiples_of_16_bytes_are_read_as_they_are(product, columns):
    """1365 and 1360 round up to the same size, so that their class has to tell them apart."""
    assert packs(product, M=4096, K=1024, N=columns) == 0


def test_rows_that_few_programs_read_are_read_as_they_are(product):
    assert packs(product, M=64, K=1024, N=1365) == 0


def test_constants_are_copied_once_however_seldom_they_are_read():
    made = scheduled(family(constants=("w",)), M=64, K=1024, N=1365)

    assert sum(line.move == "pack" for line in made.moves) == 1
    assert kept_nests(made.draft) == (0,)
    assert not made.draft.nests[0].overlaps


def test_wider_elements_take_fewer_to_begin_at_such_places():
    of_float = family(dtype="float32")
    told = dict(told_apart(scheduled(of_float, M=4096, K=1024, N=1364)))

    assert set(told.values()) <= {4}
    assert packs(of_float, M=4096, K=1024, N=1364) == 0


def test_copies_overlap_what_is_before_them():
    def normed(x, w):
        return bb.rms_norm(x) @ w

    made = scheduled(family(normed), M=4096, K=1024, N=1365)
    copying = [nest for nest in made.draft.nests if len(nest.body) == 1 and nest.warps]

    assert packs(family(normed), M=4096, K=1024, N=1365) == 1
    assert any(nest.overlaps for nest in copying)


def test_it_is_worth_it_only_for_several_reads():
    assert PRIORS.reads_worth_a_copy > 2  # a copy reads and writes the array once
