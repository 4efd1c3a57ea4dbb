"""Rows to a program by default: as many as fill a tile, but first one for each processor."""

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.selection.decisions.default_schedule import default_schedule

SM_90 = target_of("sm_90")


def norm(x, g, b):
    return bb.layer_norm(x, g, b)


def shifted(x, b):
    return bb.exp(x) + b


NORM = norm, dict(x="M N", g="N", b="N")
SHIFTED = shifted, dict(x="M N", b="N")


def lanes(function, shapes, **sizes):
    graph = bb.fuse(bb.lower(bb.trace(function, **shapes))).final
    program = typed_for_gpu(graph, lower_to_tiles(graph), given_by("float16"))
    return default_schedule(unscheduled(program, sizes, SM_90).draft, sizes, device=SM_90).blocks


@pytest.mark.parametrize(
    ("rows", "columns", "wanted"),
    [
        (32, 1024, 1),  # fewer rows than processors
        (SM_90.processors, 256, 1),
        (4 * SM_90.processors, 256, 4),  # each processor has a program
        (1 << 16, 256, 8),  # as many as make a tile of usual size
        (1 << 16, 1024, 2),
        (1 << 16, 4096, 1),
    ],
)
def test_rows_that_are_read_at_once(rows, columns, wanted):
    assert lanes(*NORM, M=rows, N=columns) == {"M": wanted, "N": columns}


def test_other_rows_fill_a_tile():
    """They are no programs that wait for all of a row."""
    assert lanes(*SHIFTED, M=32, N=1024) == {"M": 4, "N": 512}
    assert lanes(*NORM, M=32, N=1 << 17)["M"] == 4
