"""A loop over the block in which the place of one row lies runs once."""

import pytest
import torch
from torch.nn import functional as F

import blockbuster as bb
from blockbuster.costs.work import work
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed


def priced(rows, columns=32, cut=64):
    """The runs of the loops of a cross entropy, by so many rows of a block and columns."""
    x, labels = torch.empty((cut, 1000), dtype=torch.float16), torch.empty(cut, dtype=torch.int64)
    plan = bb.jit(lambda x, y: F.cross_entropy(x, y, reduction="none"), machine="h100")
    (file,) = plan.plan_for(x, labels).files
    chosen = file.considered.best.scheduled
    bare = unscheduled(chosen.start, chosen.known, chosen.target)
    text = f"block A {rows}, B {columns}\nnarrow nest 1 B#2\nwarps 4"
    (found,) = work(replayed(bare, text))
    return found.programs, [phase.runs for phase in found.phases if phase.dims]


def test_one_row_has_one_place():
    programs, (rows, place) = priced(rows=1)

    assert rows > 10 * programs
    assert place == programs


@pytest.mark.parametrize("rows", [2, 8])
def test_several_rows_may_have_places_in_all_blocks(rows):
    programs, (walked, places) = priced(rows)

    assert places == walked > programs


def test_shorter_blocks_have_fewer_lanes_beside_the_place():
    """The columns that are looked at for one place are those of a block."""
    assert priced(1, columns=32)[1][1] == priced(1, columns=128)[1][1]
