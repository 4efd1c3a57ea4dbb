"""Kernels that combine partial results into few numbers are made again where that is cheaper."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection.decisions import inlined
from blockbuster.selection.decisions.inlined import combines_few
from blockbuster.selection.nearby.variations import variations

ROWS, FEW = dict(x="M N"), dict(M=4096, N=64)


def program(fn, **dims):
    return bb.fuse(bb.lower(bb.trace(fn, **dims or ROWS))).final


def largest(x):
    return bb.exp(x - x.max())


def of_columns(x):
    return bb.exp(x - x.max(axis=0, keepdims=True))


def of_products(x, w):
    return (x - x.mean(axis=0, keepdims=True)) @ w


def inlines(text):
    return [line for line in text.splitlines() if line.startswith("inline")]


def usual(fn, sizes, dims=ROWS, **options):
    """The kernel by the default schedule."""
    return emit(program(fn, **dims), sizes, tiles={}, **options)


def test_a_number_for_all_is_made_in_each_program():
    kernel = usual(largest, dict(M=2048, N=2048))

    assert inlines(kernel.schedule) == ["inline nest 2"]
    assert len(kernel.tile_program.nests) == 2


def test_schedules_near_the_default_one_have_none_of_it_either():
    """They have other chunks, and are priced as they are."""
    start = usual(largest, dict(M=1024, N=1024)).derivation.final
    near = [one.scheduled.schedule for one in variations(start)]
    chunked = [text for text in near if "chunk nest 1" in text]

    assert len({line for text in chunked for line in text.splitlines() if "chunk" in line}) > 2
    assert all(inlines(text) for text in chunked)


def test_rows_are_made_in_the_blocks_of_their_reader():
    lines = usual(of_columns, FEW).schedule.splitlines()
    before = lines[: lines.index("inline nest 2")]

    assert "recut nest 2 N 1" in before
    assert before[-1] == "recut nest 2 N 32"


@pytest.mark.parametrize(("fn", "made_for"), [(largest, dict(M=2048, N=64)), (of_columns, FEW)])
def test_its_numbers_are_right(fn, made_for):
    sizes = dict(M=96, N=64)
    graph, x = program(fn), np.random.default_rng(0).normal(size=(96, 64)).astype("float32")
    text = usual(fn, made_for, dtype="float32").schedule
    kernel = emit(graph, sizes, "float32", schedule=text)

    assert inlines(text)
    assert check_schedule(graph, text, sizes, "float32", trials=2).equal
    np.testing.assert_allclose(run_interpreted(kernel, dict(x=x))["out"], fn(x), rtol=1e-5)


def test_not_where_readers_would_make_it_again_and_again():
    """In a loop; by so many programs that their loads take longer than a launch."""
    loop = usual(of_products, dict(M=16384, K=256, N=256), dict(x="M K", w="K N"))
    many = usual(of_columns, dict(M=65536, N=1024))

    for kernel in (loop, many):
        few = [combines_few(kernel.tile_program, nest) for nest in kernel.tile_program.nests]
        assert few == [False, True, False]
        assert not inlines(kernel.schedule)


def test_blocks_of_a_matrix_stay_stored():
    """What was not fused is no small kernel, however few operations it has."""
    unfused = bb.lower(bb.trace(lambda x: bb.exp(np.sqrt(bb.exp(x))) + 1, **ROWS))
    kernel = emit(unfused, dict(M=2048, N=2048), tiles={})

    assert len(kernel.tile_program.nests) > 2
    assert not inlines(kernel.schedule)


def nests_that_combine(fn, dims, *schedule):
    sizes = dict.fromkeys(" ".join(dims.values()).split(), 512)
    tiles = emit(program(fn, **dims), sizes, schedule="\n".join(schedule)).tile_program
    return [combines_few(tiles, nest) for nest in tiles.nests]


def test_blocks_that_a_loop_adds_up_may_be_made_again():
    found = nests_that_combine(
        lambda x, w, b: x @ w + b.sum(axis=0),
        dict(x="M K", w="K N", b="L N"),
        "block M 16, K 64, N 64, L 64",
        "chunk nest 1 K 4",
        "chunk nest 2 L 4",
        "warps 4",
    )

    assert found == [False, True, False, False]


def test_not_where_they_are_stored_in_a_loop():
    """The kernel adds up chunks of products, stores them, and takes the largest of each column."""
    found = nests_that_combine(
        lambda x, w: of_columns(x @ w),
        dict(x="M K", w="K N"),
        "split",
        "block M 16, K 64, N 64",
        "chunk nest 1 K 4",
        "warps 4",
    )

    assert found == [False, False, False]


def test_not_where_it_is_as_dear(monkeypatch):
    told = []

    def price(scheduled, kernels):
        told.append((len(scheduled.draft.nests), [*kernels]))
        return 1.0

    monkeypatch.setattr(inlined, "_microseconds", price)

    assert not inlines(usual(largest, dict(M=2048, N=2048)).schedule)
    assert told == [(3, [1, 2]), (2, [1])]


def test_no_price_is_asked_of_others(monkeypatch):
    """Of blocks that are combined, and of what is kept from call to call, which costs nothing."""
    monkeypatch.setattr(inlined, "_microseconds", None)
    blocks = usual(lambda x, w: x @ w, dict(M=64, K=8192, N=256), dict(x="M K", w="K N"))
    sizes, dims = dict(M=64, N=64, K=1 << 20), dict(x="M N", w="K")
    kept = usual(lambda x, w: x * w.sum(), sizes, dims, constant=("w",))

    assert "all at once" in blocks.schedule
    assert [combines_few(kept.tile_program, nest) for nest in kept.tile_program.nests] == [
        False,
        True,
        False,
    ]
