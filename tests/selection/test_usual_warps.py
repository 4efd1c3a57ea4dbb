"""Whole rows that leave processors idle have twice the warps, blocks of columns half as many."""

import pytest

import blockbuster as bb
from blockbuster.selection.decisions.usual_warps import usual_warps


def warps(fn, sizes, text="", **axes):
    graph = bb.fuse(bb.lower(bb.trace(fn, **axes))).final
    made = bb.emit(graph, sizes, "float16", schedule=text or None).derivation.final
    return [usual_warps(made, nest) for nest in made.draft.nests], [
        nest.warps for nest in made.draft.nests
    ]


def softmax(x):
    return bb.softmax(x)


@pytest.mark.parametrize(
    ("rows", "columns", "usual"),
    [
        pytest.param(32, 4096, 8, id="16 lanes to a thread, a program to a processor at most"),
        pytest.param(132, 4096, 8, id="a program to each processor"),
        pytest.param(133, 4096, 4, id="no processor is idle"),
        pytest.param(32, 2048, 4, id="fewer lanes"),
        pytest.param(32, 16384, 32, id="32 warps"),
        pytest.param(32, 32768, 32, id="no more than a program can have"),
    ],
)
def test_few_whole_rows_have_twice_the_warps(rows, columns, usual):
    text = f"block M 1, N {columns} whole; warps 4"
    assert warps(softmax, dict(M=rows, N=columns), text, x="M N")[0] == [usual]


def test_the_chosen_kernel_has_them():
    usual, chosen = warps(softmax, dict(M=32, N=4096), x="M N")
    assert usual == chosen == [8]


def test_rows_in_steps_have_as_many_as_ever():
    assert warps(softmax, dict(M=32, N=16384), "block M 1, N 4096; warps 4", x="M N")[0] == [4]


def test_rows_before_another_kernel_leave_it_room():
    def fn(x, w):
        return bb.rms_norm(x) @ w

    program = bb.fuse(bb.lower(bb.trace(fn, x="M K", w="K N")))
    made = bb.emit(program, dict(M=128, K=4096, N=4096)).derivation.final
    assert "block nest 1 M 1, K 4096 whole" in made.schedule
    assert len(made.draft.nests) == 2
    assert usual_warps(made, made.draft.nests[0]) == 4


def columns(x):
    return bb.sum(bb.exp(x), axis=0)


def rows(x):
    return bb.sum(bb.exp(x), axis=1)


def turned(x, y):
    return bb.exp(x) + y.T


@pytest.mark.parametrize(
    ("fn", "axes", "lanes", "usual"),
    [
        pytest.param(columns, dict(x="M N"), "M 1024, N 32", 16, id="64 lanes to a thread"),
        pytest.param(columns, dict(x="M N"), "M 64, N 32", 4, id="no fewer than usual"),
        pytest.param(rows, dict(x="M N"), "M 32, N 1024", 32, id="rows"),
        pytest.param(turned, dict(x="M N", y="N M"), "M 128, N 64", 8, id="rows beside columns"),
    ],
)
def test_blocks_of_columns_have_half_the_warps(fn, axes, lanes, usual):
    text = f"block {lanes}; warps 4"
    assert warps(fn, dict(M=4096, N=4096), text, **axes)[0] == [usual]
