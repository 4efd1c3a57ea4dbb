"""The move part: the blocks of a loop that a mask leaves whole run without it."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.observer import TileObserver
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.print.numpy.text import numpy_text
from blockbuster.emit.schedule import known_masks, part, span_tiles, whole_blocks
from blockbuster.emit.schedule.script import BY_NAME, replayed
from blockbuster.emit.schedule.site import Site, loops_of
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.tile.parse import parse_tiles
from blockbuster.emit.tile.program import For, Let, statements
from blockbuster.emit.tile.spanned import parts_of
from blockbuster.emit.tile.traffic import tile_traffic
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.expr import PREDICATES, functions_of
from blockbuster.runtime.launch import run_interpreted
from tests.emit.random_masks import random_condition
from tests.emit.test_move_mutants import moved, mutated, verdicts
from tests.emit.test_narrow import (
    HERE,
    MASKS,
    NARROW,
    SIZES,
    Loads,
    arrays_of,
    masked_sum,
    numbers,
    unscheduled_at,
)
from tests.emit.test_narrow_mutants import NUMBERS, SMALL, loop

PART = BY_NAME["part"]
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
HOW = "block M 16, N 16, D 16 whole, L 16 whole; {moves}; warps 4; {stages}"


class Compared(TileObserver):
    """In how many iterations something is compared with the position ``j``."""

    def __init__(self):
        self.count = 0

    def let(self, stmt, args, made, real):
        if stmt.target.axes == ("M", "N"):
            self.count += not PREDICATES.isdisjoint(functions_of(stmt.op.expr))


def runs(draft, arrays, sizes, blocks, semantics=Float64, observer=None):
    """What a draft makes of the arrays that it reads."""
    given = {buffer.name: arrays[buffer.name] for buffer in draft.inputs}
    watch = observer or TileObserver()
    return run_tiles(draft, given, sizes, blocks, semantics=semantics, observer=watch)["out"]


def rows(random, sizes):
    """Numbers in rows, some of them infinite or NaN: they count only where a mask is true."""
    made = np.array([float(random.randint(1, 9)) for _ in range(sizes["M"] * sizes["N"])])
    if random.random() < 0.3:
        made[[random.random() < 0.1 for _ in made]] = random.choice((np.nan, np.inf))
    return made.reshape(sizes["M"], sizes["N"])


@settings(max_examples=150)
@given(RANDOMS)
def test_parts_add_up_what_the_loop_does_to_the_bit(random):
    text = random_condition(random, random.randint(0, 2))
    sizes = {"M": random.randint(1, 9), "N": random.randint(0, 40), "H": 1}
    blocks = {"M": random.randint(1, 5), "N": random.randint(1, 9)}
    start = unscheduled_at(masked_sum(text), sizes)
    if random.random() < 0.5 and not NARROW.why_not(start, Site(1, "N")):
        start = NARROW.apply(start, Site(1, "N"))
    for site in list(PART.sites(start)):
        after = PART.apply(start, site)
        verify_tiles(after.draft)
        assert parse_tiles(after.draft.show()) == after.draft
        arrays = {
            "x": rows(random, sizes),
            "n": numbers(random, sizes["M"], sizes["N"]), "h": numbers(random, 1, sizes["N"]),
        }  # fmt: skip
        for semantics in (Float64, Float32):
            loads = [Loads(), Loads()]
            whole, parts = (
                runs(one.draft, arrays, sizes, blocks, semantics, seen)
                for one, seen in zip((start, after), loads, strict=True)
            )
            assert whole.tobytes() == parts.tobytes(), (text, after.draft.show())
            assert loads[0].count == loads[1].count, (text, after.draft.show())


ROWS, COLUMNS = 23, 41


@pytest.mark.parametrize(
    "text",
    ["i >= j", "i > j", "j - i <= 4", "i - j < 7", "2 * j <= i", "j < 13", "(i >= j) & (i - j < 17)",
     "np.abs(i - j) <= 13", "13 > np.abs(i - j)", "~(np.abs(i - j) > 13)", "(i >= j) | (j < 9)",
     "~(j > i + 2)", "j < n", "j <= n", "(j < n) & (j <= i)", "3 * i + 2 * j < 30", "-j > -n"],
)  # fmt: skip
def test_all_whole_blocks_of_usual_masks_are_found(text):
    """Only in blocks with a point that the mask empties something is compared."""
    lanes = {"M": 4, "N": 3}
    start = unscheduled_at(masked_sum(text), {"M": ROWS, "N": COLUMNS, "H": 1})
    after = PART.apply(start, Site(1, "N"))
    i, j, n = np.arange(ROWS)[:, None], np.arange(COLUMNS), np.arange(ROWS)[:, None] % 17 + 2.0
    arrays = {"x": np.ones((ROWS, COLUMNS)), "n": n[:, 0], "h": np.zeros(1)}
    sizes, seen = {"M": ROWS, "N": COLUMNS, "H": 1}, [Compared(), Compared()]
    mask = np.broadcast_to(eval(text, HERE, {"i": i, "j": j, "n": n, "h": 0}), (ROWS, COLUMNS))
    starts = [(r, c) for r in range(0, ROWS, 4) for c in range(0, COLUMNS, 3)]
    whole = [mask[r : r + 4, c : c + 3].all() for r, c in starts]

    made = [
        runs(one.draft, arrays, sizes, lanes, observer=watch)
        for one, watch in zip((start, after), seen, strict=True)
    ]
    assert np.array_equal(*made)
    assert sum(whole) > 0
    each = seen[0].count // len(whole)
    assert seen[1].count == each * (len(whole) - sum(whole))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("i >= 3", "no mask in the loop over N differs from block to block"),
     ("j * j < i * n", "of no block of N it is known that the mask leaves it whole"),
     ("j == i", "of no block of N it is known that the mask leaves it whole"),
     ("(j > i) ^ (j > 3)", "of no block of N it is known that the mask leaves it whole")],
)  # fmt: skip
def test_masks_of_which_no_whole_block_is_known(text, reason):
    start = unscheduled_at(masked_sum(text), {"M": 9, "N": 9, "H": 1})

    assert PART.why_not(start, Site(1, "N")) == reason


def scheduled(mask, moves="narrow nest 1 N; part nest 1 N", stages=2, dtype="float32"):
    """Attention under a mask, with these moves between its blocks and its stages."""
    graph = bb.fuse(bb.lower(MASKS[mask])).final
    loops = 1 + 2 * ("part" in moves) - (mask not in ("window", "both sides", "shifted"))
    names = ["N", *(f"N#{number}" for number in range(2, loops + 1))][: loops if stages else 0]
    text = HOW.format(moves=moves, stages="; ".join(f"stage nest 1 {n} {stages}" for n in names))
    return graph, text, bb.emit(graph, SIZES, dtype, schedule=text)
