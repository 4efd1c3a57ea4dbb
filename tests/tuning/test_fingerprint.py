"""Programs are told apart by what they compute, not by what things in them are called."""

import pytest

import blockbuster as bb
from blockbuster.emit.tile.array_dtypes import given_by
from blockbuster.emit.tile.fingerprint import Fingerprint
from blockbuster.examples import ALL
from blockbuster.selection.choice import Fused
from blockbuster.selection.plans.asked import Subject
from tests.tuning.benches import TARGET, product


def subject(program, dtype="float16"):
    return Subject(bb.lower(program), given_by(dtype))


def attention(q, k, v):
    return bb.softmax(q @ k.T * 0.125, axis=-1) @ v


def same_attention(queries, keys, values):
    scores = queries @ keys.T
    weights = bb.softmax(scores * 0.125, axis=-1)
    return weights @ values


def test_names_do_not_count():
    one = subject(bb.trace(attention, q="M D", k="N D", v="N L")).unfused
    other = subject(bb.trace(same_attention, queries="S E", keys="T E", values="T F")).unfused

    assert one.text == other.text
    assert one.digest == other.digest
    assert [*one.dims] == ["M", "D", "N", "L"]
    assert [*other.dims] == ["S", "E", "T", "F"]
    assert [*one.dims.values()] == [*other.dims.values()] == ["d0", "d1", "d2", "d3"]


def test_dims_that_are_called_like_numbers():
    one = subject(bb.trace(attention, q="M D", k="N D", v="N L")).unfused
    other = subject(bb.trace(attention, q="d3 d0", k="d1 d0", v="d1 d2")).unfused

    assert one.digest == other.digest
    assert other.numbered("block d3 64, d1 32") == "block d0 64, d2 32"
    assert other.named("block d0 64, d2 32") == "block d3 64, d1 32"


def test_chunks_are_named_after_their_dim():
    fingerprint = subject(product(("A", "B", "C"))).unfused
    assert fingerprint.numbered("stage nest 2 B_chunk 3") == "stage nest 2 d1_chunk 3"
    assert fingerprint.named("stage nest 2 d1_chunk2 3") == "stage nest 2 B_chunk2 3"


@pytest.mark.parametrize(
    "other",
    [
        lambda x, w: w @ x,
        lambda x, w: bb.exp(x @ w),
        lambda x, w: (x @ w) * 2,
        lambda x, w: x @ w + x @ w,
    ],
)
def test_other_computations_count(other):
    one = subject(product(("M", "K", "M"))).unfused
    assert subject(bb.trace(other, x="M K", w="K M")).unfused.digest != one.digest


def test_dtypes_and_constants_count():
    program = product()
    digests = {subject(program, dtype).unfused.digest for dtype in ("float16", "float32")}
    assert len(digests) == 2


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_schedules_come_back(example):
    """The default schedule of each snapshot, with numbers for dims and back."""
    fused = Fused(bb.lower(example.program()))
    considered = fused.consider(example.sizes, "float16", TARGET)
    for choice in (considered.best, *considered.others):
        fingerprint = Fingerprint(choice.scheduled.start)
        schedule = choice.scheduled.schedule
        numbered = fingerprint.numbered(schedule)
        assert fingerprint.named(numbered) == schedule
        assert not {*fingerprint.dims} & {*numbered.replace(",", " ").split()}
