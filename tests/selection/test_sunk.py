"""What is made of positions and sizes alone keeps no loop off the grid."""

import numpy as np
from torch.nn import functional as F

import blockbuster as bb
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import For
from blockbuster.selection.decisions.sunk import sunk
from tests.emit.parse_tiles import parse_tiles

SIZES = dict(M=400, N=600, K=500)


def nest(*lines, units=""):
    """A nest of these lines in a loop over the rows of a result."""
    units = f"units {units}" if units else ""
    tiles = parse_tiles(f"""
tiles {{
  inputs X: [M, N], V: [M]
  outputs Y: [M, N]
  {units}
  nest 1 {{
    forall M {{
      {chr(10).join(lines)}
    }}
  }}
}}
""")
    return unscheduled(tiles, SIZES, target_of("sm_90"))


MASK = ("t1: [M] = index M", "t2: [M] = where(t1 < 7, t1, 0)")
LOADED = ("t1: [M] = load V[M]", "t2: [M] = t1 * 2")
COLUMN = ("forall N {", "t3: [M] = load X[M, N]", "t4: [M] = t3 * t2", "store Y[M, N] = t4", "}")
LOOP = (
    "forall N {", "t3: [M, N] = load X[M, N]", "t4: [M, N] = t3 * t2", "store Y[M, N] = t4", "}",
)  # fmt: skip


def moves(scheduled):
    return [applied.move for applied in sunk(scheduled, 1).moves]


def test_masks_of_positions_are_made_in_each_program():
    start = nest(*MASK, *LOOP)

    assert moves(start) == ["sink"]
    assert bind(sunk(start, 1).draft).nests[0].grid == ("M", "N")


def test_what_is_loaded_stays_before_the_loop():
    assert moves(nest(*LOADED, *LOOP)) == []


def test_what_is_as_wide_as_the_loop_makes_stays_before_it():
    assert moves(nest(*MASK, *COLUMN, units="N")) == []


def pooled(x):
    return F.max_pool2d(x, 3, 2, 1)


def test_a_pool_with_padding_has_a_program_for_each_block():
    plan = bb.jit(pooled, machine="h100").plan_for(np.empty((8, 100, 102), np.float16))

    (file,) = plan.files
    scheduled = file.considered.best.scheduled
    (nest,) = scheduled.program.nests
    assert len(nest.grid) == 3
    assert not any(isinstance(stmt, For) for stmt in nest.body)
