"""Kernels of row statistics have few programs where the product behind them needs those late."""

import pytest

import blockbuster as bb
from blockbuster.selection.decisions.beside import beside

SIZES = dict(M=2048, K=4096, N=1024)
APART = """block nest 3 M 128, K 128, N 128
block nest 1 M 1, K 4096 whole
block nest 2 K 128, N 16
sink nest 3 N
warps nest 1 4
warps nest 2 4
warps nest 3 8
stage nest 3 K 3 by descriptors
overlap nest 1
overlap nest 3
"""
"""Nest 1: mean and deviation of rows. Nest 2, of the constant weight alone: sums of its columns.
Nest 3: the product of the rows as they are, and behind its loop what nests 1 and 2 made."""

WIDE = APART.replace("K 128, N 128", "K 64, N 256")


@pytest.fixture(scope="module")
def apart():
    def fn(x, y):
        return bb.layer_norm(x) @ y

    program = bb.trace(fn, x="M K", y="K N")
    compiled = bb.compile(program, SIZES, machine="h200", constant=("y",))
    (file,) = compiled.plan.files
    return file.considered.best


STORED = """for snapshot 2 with operands of dots stored
block nest 2 M 128, K 64, N 128; block nest 1 M 1, K 4096 whole
warps nest 1 4; warps nest 2 8
stage nest 2 K 5 by descriptors
overlap nest 1; overlap nest 2
"""


def scheduled(choice, text=APART, **sizes):
    return bb.emit(
        choice.stable, SIZES | sizes, "float16", "sm_90", schedule=text, constant=("y",)
    ).derivation.final


def test_statistics_that_a_product_needs_behind_its_loop_take_few_programs(apart):
    made = beside(scheduled(apart))

    assert made.schedule == f"{APART}persist nest 1 264 in 3 stages\n"
    assert made.schedule.splitlines()[-1] in apart.scheduled.schedule


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param(APART, dict(M=3072), id="two rounds"),
        pytest.param(WIDE, dict(M=8192), id="two rounds of wide tiles"),
        pytest.param(
            APART.replace("M 128, K 128, N 128", "M 64, K 64, N 128"),
            dict(M=1024, N=512),
            id="two would fit, but all run at once",
        ),
    ],
)
def test_so_where_they_end_with_the_first_round(apart, text, sizes):
    made = beside(scheduled(apart, text, **sizes))

    assert made.schedule == f"{text}persist nest 1 264 in 3 stages\n"


def test_loads_do_not_run_ahead_where_the_product_would_find_no_shared_memory(apart):
    """The product has 196 kB of 228; two programs of rows have 16 kB each, or 32."""
    fits, full = (
        beside(scheduled(apart, APART.replace("nest 1 M 1", f"nest 1 M {rows}"))) for rows in (1, 2)
    )

    assert fits.schedule.endswith("persist nest 1 264 in 3 stages\n")
    assert full.schedule.endswith("persist nest 1 264\n")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param(APART, dict(M=8192), id="rows take longer than the first round"),
        pytest.param(WIDE, dict(M=16384), id="of wide tiles, too"),
        pytest.param(
            APART.replace("M 128, K 128, N 128", "M 64, K 64, N 128"),
            dict(M=1024, N=2048),
            id="two to a processor",
        ),
        pytest.param(
            APART.replace("M 1, K 4096 whole", "M 1, K 1024 whole"),
            dict(K=1024, M=4096),
            id="three sums for each row, and a short product",
        ),
        pytest.param(APART, dict(M=256), id="so few rows already"),
        pytest.param(APART.replace("overlap nest 3\n", ""), {}, id="a product that begins later"),
        pytest.param(APART.replace(" K 3 by descriptors", " K 1"), {}, id="nothing runs ahead"),
        pytest.param(f"{APART}persist nest 1 132\n", {}, id="a number of programs already"),
    ],
)
def test_others_keep_theirs(apart, text, sizes):
    start = scheduled(apart, text.replace("stage nest 3 K 1\n", ""), **sizes)

    assert beside(start) is start


def test_rows_that_the_loop_reads_keep_a_program_each():
    graph = bb.fuse(bb.lower(bb.trace(lambda x, w: bb.layer_norm(x) @ w, x="M K", w="K N")))
    start = bb.emit(graph, SIZES, schedule=STORED).derivation.final

    assert len(start.draft.nests) == 2, "normalized rows are stored, then multiplied"
    assert beside(start) is start


@pytest.fixture(scope="module")
def one_sum():
    """Nest 1: the deviation of rows, one sum each. Nest 2: the product."""
    program = bb.trace(lambda x, w: bb.rms_norm(x) @ w, x="M K", w="K N")
    (file,) = bb.compile(program, SIZES, machine="h200").plan.files
    return file.considered.best


@pytest.mark.parametrize(
    ("rows", "blocks", "beside_it"),
    [
        pytest.param(4096, "M 128, K 128, N 128", True, id="16 rows, 256 lanes each"),
        pytest.param(4096 + 128, "M 128, K 128, N 128", True, id="16 rows and less"),
        pytest.param(4608, "M 128, K 128, N 128", False, id="18 rows"),
        pytest.param(8192, "M 128, K 64, N 256", True, id="32 rows, twice as many results"),
        pytest.param(9216, "M 128, K 64, N 256", False, id="35 rows"),
    ],
)
def test_rows_end_with_the_first_round_of_the_product(one_sum, rows, blocks, beside_it):
    text = (
        f"block nest 2 {blocks}\nblock nest 1 M 1, K 4096 whole\nsink nest 2 N\nwarps nest 1 4\n"
        "warps nest 2 8\nstage nest 2 K 3 by descriptors\noverlap nest 1\noverlap nest 2\n"
    )
    sizes = SIZES | dict(M=rows)
    start = bb.emit(one_sum.stable, sizes, "float16", "sm_90", schedule=text).derivation.final

    assert ("persist nest 1 264\n" in beside(start).schedule) == beside_it, "one sum: not ahead"
