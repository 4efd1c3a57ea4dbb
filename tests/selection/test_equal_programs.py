"""Choices of programs that are equal but for the names of their arrays and dims."""

import blockbuster as bb
from blockbuster.emit.tile.array_dtypes import given_by
from blockbuster.selection.choice import Fused


def fused(rows: str, columns: str) -> Fused:
    return Fused(bb.lower(bb.trace(lambda x, w: bb.maximum(x @ w, 0.0), x=rows, w=columns)))


def test_an_equal_program_gets_the_same_moves_by_its_own_dims() -> None:
    one, other = fused("M K", "K N"), fused("R C", "C S")
    given = given_by("float16")
    first = one.consider({"M": 512, "K": 256, "N": 1024}, given, "h100")
    sizes = {"R": 512, "C": 256, "S": 1024}

    made = other.like(first, sizes, given, "h100")

    anew = other.consider(sizes, given, "h100")
    assert made is not None
    assert made.best.scheduled
    assert anew.best.scheduled
    assert made.best.scheduled.schedule == anew.best.scheduled.schedule
    assert made.best.program == anew.best.program
    assert [c.price for c in made.others] == [c.price for c in anew.others]


def test_programs_beside_the_snapshots_are_not_made_for_an_equal_program() -> None:
    one, other, given = fused("M K", "K N"), fused("R C", "C S"), given_by("float16")
    first = one.consider({"M": 512, "K": 256, "N": 1024}, given, "h100")
    assert first.best.snapshot <= len(one.derivation.snapshots)
    assert "beside" in vars(one)

    assert other.like(first, {"R": 512, "C": 256, "S": 1024}, given, "h100")

    assert "beside" not in vars(other)


def test_arrays_may_come_in_another_order() -> None:
    traced = bb.trace(lambda v, y: bb.maximum(y @ v, 0.0), v="C S", y="R C")
    one, other, given = fused("M K", "K N"), Fused(bb.lower(traced)), given_by("float16")
    first = one.consider({"M": 512, "K": 256, "N": 1024}, given, "h100")

    made = other.like(first, {"R": 512, "C": 256, "S": 1024}, given, "h100")

    assert made is not None
    assert made.best.price == first.best.price
    assert sorted(made.best.blocks.values()) == sorted(first.best.blocks.values())


def test_another_program_is_chosen_for_anew() -> None:
    one = fused("M K", "K N")
    other = Fused(bb.lower(bb.trace(lambda x: bb.softmax(x, axis=-1), x="R C")))
    given = given_by("float16")
    first = one.consider({"M": 512, "K": 256, "N": 1024}, given, "h100")

    assert other.like(first, {"R": 512, "C": 256}, given, "h100") is None


def test_dims_of_chunks_are_made_by_the_moves_and_are_no_sizes() -> None:
    one, other, given = fused("M K", "K N"), fused("R C", "C S"), given_by("float16")
    first = one.consider({"M": 64, "K": 8192, "N": 128}, given, "h100")

    made = other.like(first, {"R": 64, "C": 8192, "S": 128}, given, "h100")

    assert first.best.scheduled
    assert "chunk" in first.best.scheduled.schedule
    assert made is not None
    assert made.best.scheduled
    assert {*made.best.scheduled.known} == {"R", "C", "S"}
