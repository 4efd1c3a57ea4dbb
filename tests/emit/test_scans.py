"""Scans in tile programs: what loops go on with, moves that keep it, and the texts of kernels."""

from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.closing.order import closed
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule.script import MOVES
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Fold, For, Guard, statements
from blockbuster.emit.tile.scans import broken_scans
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.emit.tile.workarounds import CARRIED
from blockbuster.rules import fuse
from tests.emit.parse_tiles import parse_tiles
from tests.emit.random_scans import graph
from tests.emit.random_tiles import all_cut, arguments, is_cut, lowered

ROWS = fuse(bb.lower(bb.trace(lambda x, g: bb.cumsum(x * 2, 1) * g, x="M N", g="M N"))).final
BACK = fuse(
    bb.lower(bb.trace(lambda x: np.flip(bb.cumprod(np.flip(x, 1), 1), 1) + 1, x="M N"))
).final


def loop_of(program):
    """The loop over N of the only nest."""
    return next(
        s for s in statements(program.nests[0].body) if isinstance(s, For) and s.dim == "N"
    )


def with_loop(program, **changes):
    (nest,) = program.nests
    outer, loop = nest.body[0], loop_of(program)
    body = tuple(replace(loop, **changes) if s is loop else s for s in outer.body)
    return replace(program, nests=(replace(nest, body=(replace(outer, body=body),)),))


def test_the_whole_program_is_one_loop():
    assert ROWS.listing() == """\
forall m in range(M):
 for n in range(N):
  t2 = load(x[m,n])
  t3 = t2 * 2
  t4 = scan + (t3)
  t5 = t1 + t4
  t1 += row_sum(t3)
  t6 = load(g[m,n])
  t7 = mul(t5,t6)
  store(t7,O[m,n])
"""


def test_scans_from_the_last_element_run_down():
    program = lower_to_tiles(BACK)

    assert loop_of(program).down
    assert "for n in reversed(range(N)):" in BACK.listing()
    assert parse_tiles(program.show()) == program


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"down": True}, "a scan in the other direction than its loop"),
        ({"chunk": "N"}, "does not take all blocks of a scan in their order"),
        ({"span": (None, None)}, "does not take all blocks of a scan in their order"),
    ],
)
def test_loops_of_scans_take_all_blocks_in_order(changes, reason):
    program = with_loop(lower_to_tiles(ROWS), **changes)

    assert any(reason in found for nest in program.nests for found in broken_scans(nest))
    with pytest.raises(bb.VerifyError):
        verify_tiles(program)


def test_a_scan_without_the_blocks_before_is_refused():
    program = lower_to_tiles(ROWS)
    body = tuple(s for s in loop_of(program).body if not isinstance(s, Fold))

    with pytest.raises(bb.VerifyError, match="without those before it"):
        verify_tiles(with_loop(program, body=body))


def test_no_move_parts_the_loop_of_a_scan():
    kernel = bb.emit(ROWS, {"M": 64, "N": 1000}, "float32", schedule="block M 4, N 64; warps 4")

    with pytest.raises(bb.EmitError, match="a scan goes on from block to block of N"):
        bb.emit(ROWS, {"M": 64, "N": 1000}, "float32", schedule=f"{kernel.schedule}part nest 1 N")


def test_one_block_needs_nothing_to_go_on_with():
    kernel = bb.emit(ROWS, {"M": 64, "N": 60}, schedule="block M 4, N 64 whole; warps 4")

    found = [type(s).__name__ for s in statements(kernel.tile_program.nests[0].body)]
    assert found == ["Load", "Let", "Let", "Load", "Let", "Store"]


def test_folds_that_a_scan_reads_are_kept_in_the_loop():
    kernel = bb.emit(ROWS, {"M": 64, "N": 1000}, "float32", schedule="block M 4, N 64; warps 4")

    folds = [s for s in statements(kernel.tile_program.nests[0].body) if isinstance(s, Fold)]
    assert [fold.apart for fold in folds] == [CARRIED]
    assert "Triton 3.6 would take it out of the loop" in kernel.source


def test_lanes_past_the_end_are_guarded_where_a_scan_begins_with_them():
    schedule = "block M 4, N 64; warps 4"
    for graph_, guards in ((ROWS, 0), (BACK, 1)):
        program = bb.emit(graph_, {"M": 64, "N": 1000}, schedule=schedule).tile_program
        found = [s for s in statements(program.nests[0].body) if isinstance(s, Guard)]
        assert len([s for s in found if s.dim == "N"]) == guards


@pytest.mark.parametrize("seed", range(6))
def test_moves_keep_what_scans_mean(seed):
    random = Random(seed)
    given = graph(random)
    start = all_cut(lowered(given, random), random)
    moves = random.sample(MOVES, len(MOVES))
    for move in moves[:12]:
        for site in islice(move.sites(start), 3):
            for args in arguments(move, start, site, random)[:1]:
                reason, after = move.tried(start, site, **args)
                assert (after is None) == bool(reason)
                if after is not None and move.name != "spread":
                    assert prove_tiles(start.draft, after.draft, trials=2, seed=seed).equal
    if is_cut(start):
        program = closed(start.draft)
        assert prove_tiles(given, program, trials=2, seed=seed, lanes=True).equal


@pytest.mark.parametrize("graph_", [ROWS, BACK], ids=["up", "back"])
@pytest.mark.parametrize("columns", [1, 60, 1000])
def test_kernels_in_the_interpreter(graph_, columns):
    arrays = {
        name: np.random.default_rng(at).uniform(0.5, 1.5, (16, columns)).astype(np.float32)
        for at, name in enumerate(("x", "g"))
    }
    kernel = bb.emit(graph_, {"M": 16, "N": columns}, "float32")

    found = kernel(**{name: arrays[name] for name in kernel.inputs})

    x, g = (array.astype(float) for array in arrays.values())
    wanted = np.cumsum(2 * x, 1) * g
    if graph_ is BACK:
        wanted = np.cumprod(x[:, ::-1], 1)[:, ::-1] + 1
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize("graph_", [ROWS, BACK], ids=["up", "back"])
@pytest.mark.parametrize("schedule", ["block M 4, N 64", "block M 1, N 1024 whole"])
def test_kernels_compile(graph_, schedule):
    kernel = bb.emit(graph_, {"M": 64, "N": 1000}, schedule=f"{schedule}; warps 4")

    (report,) = compile_kernel(kernel)

    assert report.spills == 0


def test_a_scan_takes_little_more_than_its_memory():
    """33 MB of halves, once read and once written: its shuffles hide behind them."""
    sizes = {"M": 8192, "N": 1024}
    plain = fuse(bb.lower(bb.trace(lambda x, g: x * 2 * g, x="M N", g="M N"))).final
    scan, moved = (bb.emit(one, sizes, target="h100").cost("h100") for one in (ROWS, plain))

    assert moved.time_us <= scan.time_us < 1.3 * moved.time_us
