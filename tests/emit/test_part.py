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
from blockbuster.emit.schedule.script import BY_NAME, replayed
from blockbuster.emit.schedule.site import Site, loops_of
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.tile.program import Iota, Let, statements
from blockbuster.emit.tile.spanned import parts_of
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.expr import PREDICATES, functions_of
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection.decisions.full_tiles import does_not_pay, parted
from blockbuster.selection.plans.masked_loops import narrowed_loops
from tests.emit.counting import tile_traffic
from tests.emit.numpy_runs import run_numpy
from tests.emit.parse_tiles import parse_tiles
from tests.emit.random_masks import random_condition
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

PART = BY_NAME["part"]
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


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


@settings(max_examples=60)
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
            assert loads[0].count["x"] == loads[1].count["x"], (text, after.draft.show())


ROWS, COLUMNS = 23, 41


@pytest.mark.parametrize(
    "text",
    ["i >= j", "i > j", "j - i <= 4", "i - j < 7", "j < 13", "(i >= j) & (i - j < 17)",
     "np.abs(i - j) <= 13", "13 > np.abs(i - j)", "~(np.abs(i - j) > 13)", "(i >= j) | (j < 9)",
     "~(j > i + 2)", "j < n", "(j < n) & (j <= i)", "3 * i + 2 * j < 30", "-j > -n"],
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
     ("j == i", "of no block of N it is known that the mask leaves it whole")],
)  # fmt: skip
def test_masks_of_which_no_whole_block_is_known(text, reason):
    start = unscheduled_at(masked_sum(text), {"M": 9, "N": 9, "H": 1})

    assert PART.why_not(start, Site(1, "N")) == reason


PARTED = {"causal": 2, "window": 3, "both sides": 3, "prefix": 2, "lengths": 2, "rows": 2}


def text_of(mask):
    """A schedule that stages each part of the loop."""
    sites = ["N", *(f"N#{number}" for number in range(2, PARTED[mask] + 1))]
    stages = "; ".join(f"stage nest 1 {site} 2" for site in sites)
    moves = "narrow nest 1 N; part nest 1 N; warps 4"
    return f"block M 16, N 16, D 16 whole, L 16 whole; {moves}; {stages}"


@pytest.mark.interpreter
@pytest.mark.parametrize("mask", ["window", "rows"])
def test_parts_in_triton(mask):
    program = MASKS[mask]
    graph, arrays = bb.fuse(bb.lower(program)).final, arrays_of(program, SIZES)
    (expected,) = program.numpy(arrays).values()
    kernel = bb.emit(graph, SIZES, "float32", schedule=text_of(mask))

    np.testing.assert_allclose(run_interpreted(kernel, arrays)["out"], expected, atol=2e-6)


@pytest.mark.parametrize("mask", PARTED)
def test_parts_in_numpy(mask):
    """NumPy text runs each part, and the schedule's text makes the same parts again."""
    program = MASKS[mask]
    graph, arrays = bb.fuse(bb.lower(program)).final, arrays_of(program, SIZES)
    kernel = bb.emit(graph, SIZES, "float32", schedule=text_of(mask))
    again = bb.emit(graph, SIZES, "float32", schedule=kernel.schedule)
    (expected,) = program.numpy(arrays).values()
    blocks = {"H": 1, "M": 16, "N": 16, "D": 16, "L": 16}
    made = run_numpy(kernel.derivation.final.draft, arrays, SIZES, blocks)["out"]

    assert again.tile_program == kernel.tile_program
    np.testing.assert_allclose(made, expected, atol=2e-6)


@pytest.mark.parametrize("mask", ["causal", "window", "lengths"])
def test_parting_attention_is_proved(mask):
    graph = bb.fuse(bb.lower(MASKS[mask])).final
    steps = bb.emit(graph, SIZES, "float32", schedule=text_of(mask)).derivation.steps
    (step,) = (step for step in steps if step.line == "part nest 1 N")
    proof = prove_tiles(step.before.draft, step.after.draft, trials=2)

    assert proof.equal, proof


def masks_in(loop):
    """The statements of a loop that compare or choose."""
    lets = (stmt for stmt in statements(loop.body) if isinstance(stmt, Let))
    exprs = (stmt.op.expr for stmt in lets if hasattr(stmt.op, "expr"))
    return [e for e in exprs if not {*PREDICATES, "where"}.isdisjoint(functions_of(e))]


def test_whole_blocks_are_rid_of_the_mask_and_of_its_indices():
    graph = bb.fuse(bb.lower(MASKS["window"])).final
    draft = bb.emit(graph, SIZES, "float32", schedule=text_of("window")).derivation.final.draft
    loops = [loop for _, loop in loops_of(draft) if loop.dim == "N"]

    assert [bool(masks_in(one)) for one in loops] == [True, False, True]
    assert [any(isinstance(s, Iota) for s in one.body) for one in loops] == [True, False, True]
    assert all(parts_of(one, draft.nests[0]) == tuple(loops) for one in loops)


# what is refused ----------------------------------------------------------------------------


def attention_at(mask, text, cut="D 16 whole, L 16 whole", sizes=SIZES):
    graph = bb.fuse(bb.lower(MASKS[mask])).final
    blocks = f"block M 16, N 16, {cut}; warps 4; "
    return bb.emit(graph, sizes, "float32", schedule=blocks + text).derivation.final


@pytest.mark.parametrize(
    ("text", "site", "reason"),
    [("part nest 1 N", Site(1, "N"), "the loop over N is one of several parts already"),
     ("part nest 1 N", Site(1, "N", 2), "the loop over N is one of several parts already"),
     ("stage nest 1 N 2", Site(1, "N"), "loads of the loop over N run ahead: part it before that"),
     ("", Site(1, "H"), "no mask in the loop over H differs from block to block"),
     ("", Site(1, "K"), "there is no nest 1 K: part takes a loop")],
)  # fmt: skip
def test_what_cannot_be_parted(text, site, reason):
    found = attention_at("causal", text)

    assert reason in PART.why_not(found, site)
    assert site not in list(PART.sites(found))


def test_sums_that_go_on_cross_to_no_other_nest():
    """Parts fold on from one another, and each runs over some blocks only."""
    found = attention_at("causal", "part nest 1 N", cut="D 16, L 16 whole")
    reasons = [
        BY_NAME["chunk"].why_not(found, site, count=2)
        for site in (Site(1, "N", 2), Site(1, "D", 2), Site(1, "D", 1))
    ]
    assert [reason[2:] for reason in reasons] == [
        " is folded at two places", "e loop over N around it runs over a part of its blocks",
        "e loop over N around it runs over a part of its blocks",
    ]  # fmt: skip


# what is counted ----------------------------------------------------------------------------


@pytest.mark.parametrize("mask", ["causal", "window", "lengths", "rows"])
def test_the_parts_move_what_the_loop_does(mask):
    """Also where data say which blocks are whole: each is counted once."""
    whole = attention_at(mask, "narrow nest 1 N")
    parts = replayed(whole, "part nest 1 N")

    assert tile_traffic(parts.draft, SIZES) == tile_traffic(whole.draft, SIZES)


def test_parts_run_in_the_shared_memory_of_one_loop():
    graph = bb.fuse(bb.lower(MASKS["causal"])).final
    kernel = bb.emit(graph, SIZES, "float16", schedule=text_of("causal"))
    together = kernel.derivation.steps[-1].costs[1].shared
    one = text_of("causal").replace("part nest 1 N; ", "").replace("; stage nest 1 N#2 2", "")
    whole = bb.emit(graph, SIZES, "float16", schedule=one).derivation.steps[-1].costs[1].shared

    assert together == whole


# the default --------------------------------------------------------------------------------


def causal(q, k, v):
    seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(seen, q @ k.swapaxes(-1, -2), -np.inf), axis=-1) @ v


def masked_rows(x):
    return bb.where(bb.arange(x.shape[0])[:, None] >= bb.arange(x.shape[1]), x, 0.0).sum(-1)


CAUSAL = bb.fuse(bb.lower(bb.trace(causal, q="H M D", k="H N D", v="H N L"))).final


@pytest.mark.parametrize(("length", "long"), [(256, False), (1024, True)])
def test_long_loops_of_dots_are_parted(length, long):
    sizes = {"H": 16, "M": length, "N": length, "D": 128, "L": 128}
    kernel = bb.emit(CAUSAL, sizes, "float16")

    assert ("part nest 1 N" in kernel.schedule) == long
    assert "narrow nest 1 N" in kernel.schedule


def test_why_a_loop_is_left_in_one_part():
    rows = bb.fuse(bb.lower(bb.trace(masked_rows, x="M N"))).final
    start = bb.emit(rows, {"M": 4096, "N": 65536}, "float32").derivation.final
    assert "has no dots: it waits for memory" in does_not_pay(start, Site(1, "N"))

    ragged = bb.emit(
        bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final,
        {"M": 64, "K": 4100, "N": 64}, "float16", schedule="block M 64, K 64, N 64; warps 4",
    ).derivation.final  # fmt: skip
    assert "only loads look at lanes past the end of K" in does_not_pay(ragged, Site(1, "K"))

    short = attention_at("causal", "", sizes=SIZES | {"M": 64, "N": 64})
    assert (
        does_not_pay(short, Site(1, "N")) == "the mask leaves 1.5 blocks of N whole, fewer than 3"
    )
    assert does_not_pay(short, Site(1, "M")) == "iterations over M run side by side on the grid"


def test_what_the_grid_runs_stays_there():
    """Keys in one block: it is the loop over queries that holds the dots."""
    sizes = {"H": 16, "M": 8192, "N": 64, "D": 64, "L": 64}
    text = "block M 64, D 64 whole, N 64 whole, L 64 whole"
    start = bb.emit(CAUSAL, sizes, "float16", schedule=f"{text}; warps 4").derivation.final

    assert not PART.why_not(start, Site(1, "M"))
    assert parted(start) == start


@pytest.mark.parametrize(
    ("fill", "said"),
    [(-np.inf, "runs over 64.5 of 128 blocks: its mask empties the others and leaves 63.5 whole"),
     (-1e9, "runs over 128 of 128 blocks: its mask leaves 63.5 whole, which run without it"),
     (-1e9, "runs over all blocks in spite of its mask: t2 takes in -1000000000")],
)  # fmt: skip
def test_a_report_says_what_runs_without_its_mask(fill, said):
    def attend(q, k, v):
        seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
        return bb.softmax(bb.where(seen, q @ k.swapaxes(-1, -2), fill), axis=-1) @ v

    program = bb.trace(attend, q="H M D", k="H N D", v="H N D")
    sizes = {"H": 16, "M": 8192, "N": 8192, "D": 128}
    report = bb.compile(program, sizes, "float16", "h200", library=False).report.details

    assert said in report
    assert report.count("a loop over N runs over 1") == (fill == -1e9)


def test_a_loop_that_fills_is_no_part_that_computes():
    def scores(q, k):
        seen = bb.arange(q.shape[0])[:, None] >= bb.arange(k.shape[0])
        return bb.where(seen, q @ k.T, -np.inf)

    graph = bb.fuse(bb.lower(bb.trace(scores, q="M D", k="N D"))).final
    sizes, text = (
        {"M": 64, "N": 64, "D": 16},
        "block M 16, N 16, D 16 whole; fill nest 1 N; warps 4",
    )
    program = bb.emit(graph, sizes, "float32", schedule=text).tile_program
    said = list(narrowed_loops(program, sizes, {"M": 16, "N": 16, "D": 16}))

    assert said == ["a loop over N runs over 2.5 of 4 blocks: its mask empties the others"]


def test_parts_fit_the_registers_of_one_loop():
    """Compiled for Hopper, causal attention in parts spills nothing; two programs share a core."""
    sizes = {"H": 16, "M": 8192, "N": 8192, "D": 128, "L": 128}
    moves = "narrow nest 1 N; part nest 1 N; warps 4; stage nest 1 N 3; stage nest 1 N#2 3"
    text = f"block M 64, D 128 whole, N 64, L 128 whole; {moves}"
    (made,) = compile_kernel(bb.emit(CAUSAL, sizes, "float16", "sm_90", schedule=text))

    assert made.spills == 0
    assert 2 * made.shared <= 228 * 1024 > made.shared
