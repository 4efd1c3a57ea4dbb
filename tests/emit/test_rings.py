"""Loads that run ahead: pairs of issue and await, their checks, and how they are printed."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.kernel import written
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    INPUT,
    Await,
    Buffer,
    BufferAxis,
    For,
    Issue,
    Let,
    Load,
    Nest,
    Store,
    Tile,
    View,
)
from blockbuster.emit.tile.rings import (
    arrivals,
    issues,
    issues_are_awaited,
    nothing_is_loaded_too_early,
    slots_are_free,
)
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.trips import dims_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Arg
from blockbuster.ir.ops import Pointwise
from blockbuster.selection.decisions.default_schedule import default_schedule
from tests.emit.cases import FOLDER, TEXTS, graph_of, inputs_for, padding, ragged_blocks, sizes_of
from tests.emit.counting import tile_traffic
from tests.emit.numpy_runs import run_numpy

SIZES = {"M": 256, "N": 256, "D": 64, "L": 64, "K": 256}
COLUMN = View(Buffer("X", (BufferAxis("M"),), INPUT), ("M",))
TILE = Tile("t1", ("M",))


def loading(program):
    """``program`` with loads where tiles are awaited."""

    def walked(body, started):
        for stmt in body:
            match stmt:
                case For():
                    yield replace(stmt, body=tuple(walked(stmt.body, started)))
                case Await(target, token):
                    yield Load(target, started[token].view, stmt.origin)
                case _ if not isinstance(stmt, Issue):
                    yield stmt

    nests = (replace(n, body=tuple(walked(n.body, issues(n.body)))) for n in program.nests)
    return replace(program, nests=tuple(nests))


def ahead(program, by=2, slots=3):
    """``program`` with the loads of its serial loops issued ahead."""
    program = loading(program)

    def walked(body, serial):
        out = []
        for stmt in body:
            if isinstance(stmt, For):
                out.append(replace(stmt, body=walked(stmt.body, not stmt.parallel)))
            elif serial and isinstance(stmt, Load):
                token = f"p{stmt.target.name}"
                issued = Tile(f"{stmt.target.name}_next", stmt.target.axes)
                out.append(Issue(token, issued, stmt.view, by, slots, stmt.origin))
                out.append(Await(stmt.target, token, stmt.origin))
            else:
                out.append(stmt)
        return tuple(out)

    nests = tuple(replace(nest, body=walked(nest.body, False)) for nest in program.nests)
    return replace(program, nests=nests)


@pytest.mark.parametrize("name", TEXTS)
def test_loads_that_run_ahead_read_what_loads_read(name):
    graph = graph_of(name)
    plain = lower_to_tiles(graph)
    program, dims, sizes = ahead(plain), dims_of(plain), sizes_of(graph)
    inputs, blocks = inputs_for(graph, sizes), ragged_blocks(graph, sizes)

    verify_tiles(program)
    assert dims_of(program) == dims
    assert padding(program, dims) == padding(plain, dims)
    assert tile_traffic(program, sizes, blocks) == tile_traffic(plain, sizes, blocks)
    for padded in (False, True):
        wanted = run_numpy(plain, inputs, sizes, blocks, padded=padded, folder=FOLDER)
        given = run_numpy(program, inputs, sizes, blocks, padded=padded, folder=FOLDER)
        for array in wanted:
            np.testing.assert_array_equal(given[array], wanted[array])


def test_the_listing_says_what_is_on_its_way():
    text = listing(ahead(lower_to_tiles(graph_of("attention final"))))

    assert "issue pt4 = load(" in text
    assert ", 2 ahead" in text
    assert "= await p" in text


def scheduled(name="attention safe", target="sm_90", dtype="float16", **options):
    graph = graph_of(name)
    tiles = typed_for_gpu(graph, lower_to_tiles(graph), given_by(dtype))
    made = default_schedule(tiles, SIZES, device=target_of(target), **options)
    return graph, made


def test_a_launch_says_how_far_the_loads_of_dots_run_ahead():
    graph, made = scheduled(tiles={"M": 64, "N": 64})
    plain = written(replace(made, draft=loading(made.draft)), graph).source
    source = written(replace(made, draft=ahead(made.draft)), graph).source

    loops = [line.strip() for line in source.split("\n") if "for n0 in" in line]
    assert loops == ["for n0 in range(0, N, BLOCK_N):"]
    assert "num_stages=3" in source  # of the launch: the loads of dots run ahead, and no others
    assert "num_stages=1" in plain
    assert "tl.range" not in plain + source
    assert source.count("tl.load(") == plain.count("tl.load(")


SUMS = """
block M 64, N 64 whole, K 64
chunk nest 1 K 4
warps 4
"""


def test_loops_say_their_stages_where_they_differ_from_the_launch():
    """A loop without dots says its own; one with a dot, if it has others than the launch."""
    fused = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final
    sizes = {"M": 64, "N": 64, "K": 1024}

    def loops(stages):
        source = bb.emit(fused, sizes, schedule=SUMS + stages).source
        return [
            line.partition(" in ")[2].partition(":")[0]
            for line in source.split("\n")
            if line.startswith("    for k")
        ]

    dots, sums = "k_first, k_stop, BLOCK_K", "0, K_chunk"
    assert loops("") == [f"range({dots})", f"range({sums})"]
    assert loops("stage nest 1 K 3") == [f"range({dots})", f"range({sums})"]
    assert loops("stage nest 2 K_chunk 4") == [
        f"range({dots})",
        f"tl.range({sums}, num_stages=4)",
    ]


def test_loads_that_run_ahead_are_copied_asynchronously():
    pytest.importorskip("triton")
    graph, made = scheduled(target="sm_80", tiles={"M": 64, "N": 64})
    shared = []
    for by, slots in ((1, 2), (2, 3)):
        moved = replace(made, draft=ahead(made.draft, by, slots))
        (report,) = compile_kernel(written(moved, graph))
        shared.append(report.shared)
    (plain,) = compile_kernel(written(replace(made, draft=loading(made.draft)), graph))

    assert plain.shared < shared[0] < shared[1]


@pytest.mark.parametrize("name", ["layer norm final", "attention safe"])
def test_what_runs_ahead_is_used_as_what_is_loaded(name):
    _, made = scheduled(name)
    draft = loading(made.draft)
    for nest in draft.nests:
        (moved,) = ahead(replace(draft, nests=(nest,))).nests
        tiling = tiling_of(draft, nest)
        before, after = Uses(nest, tiling), Uses(moved, tiling)

        assert dict(arrivals(moved.body)) == dict(arrivals(nest.body))
        assert after.mixed() == before.mixed() == (name == "layer norm final")


def changed(change):
    program = ahead(lower_to_tiles(graph_of("attention safe")))

    def walked(body):
        made = []
        for stmt in body:
            if isinstance(stmt, For):
                made.append(replace(stmt, body=walked(stmt.body)))
            else:
                made += change(stmt)
        return tuple(made)

    nests = tuple(replace(nest, body=walked(nest.body)) for nest in program.nests)
    return replace(program, nests=nests)


ISSUES = {
    token: issue
    for nest in ahead(lower_to_tiles(graph_of("attention safe"))).nests
    for token, issue in issues(nest.body).items()
}
FIRST = next(iter(ISSUES))


def first(kind, *becomes):
    """The program with its first issue or await changed to these."""
    return changed(
        lambda s: [b(s) for b in becomes] if isinstance(s, kind) and s.token == FIRST else [s]
    )


BROKEN = {
    "is not issued once and awaited once in one loop": first(
        Await, lambda s: Load(s.target, ISSUES[s.token].view)
    ),
    "is not issued once and awaited once": first(Issue),
    "is not issued once": first(
        Await, lambda s: s, lambda s: replace(s, target=Tile("again", s.target.axes))
    ),
    "is awaited with other axes": first(
        Issue, lambda s: replace(s, tile=Tile("turned", s.tile.axes[::-1]))
    ),
    "has 2 slots, and 3 are in use": first(Issue, lambda s: replace(s, slots=2)),
    "runs 0 iterations ahead": first(Issue, lambda s: replace(s, ahead=0)),
    "several numbers of iterations": first(Issue, lambda s: replace(s, ahead=1)),
    "is no array of the program": first(
        Issue,
        lambda s: replace(
            s, view=replace(s.view, buffer=Buffer("lost", s.view.buffer.axes, INPUT))
        ),
    ),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_broken(reason):
    verify_tiles(changed(lambda s: [s]))
    with pytest.raises(VerifyError) as caught:
        verify_tiles(BROKEN[reason])

    assert reason in str(caught.value)


def test_an_issue_outside_any_loop_is_refused():
    issue = ISSUES[FIRST]
    body = (issue, Await(issue.tile, issue.token))

    reasons = list(issues_are_awaited(Nest(body)))
    assert reasons == [f"{FIRST} is issued outside any loop: no iteration is ahead"]


def test_what_a_loop_stores_is_not_loaded_ahead_in_it():
    program = first(Await, lambda s: s, lambda s: Store(ISSUES[FIRST].view, s.target))
    name = ISSUES[FIRST].view.buffer.name

    found = [reason for nest in program.nests for reason in nothing_is_loaded_too_early(nest)]
    assert found == [f"{name} is loaded ahead in a loop that stores it"]
    assert not any(map(any, map(nothing_is_loaded_too_early, changed(lambda s: [s]).nests)))


def test_an_issue_behind_all_reads_needs_one_slot_less():
    """The slot of this iteration is free by then: the load of a later one may arrive in it."""
    issue = Issue("p", Tile("t2", ("M",)), COLUMN, 2, 2)
    awaited, read = Await(TILE, "p"), Let(Tile("t3", ("M",)), Pointwise(Arg(0), ("M",)), (TILE,))

    def reasons(*body):
        return list(slots_are_free(Nest((For("M", False, body),))))

    assert reasons(awaited, read, issue) == []
    assert reasons(awaited, issue, read) == ["p has 2 slots, and 3 are in use at once"]
    assert reasons(issue, awaited, read) == ["p has 2 slots, and 3 are in use at once"]
    assert reasons(replace(issue, slots=3), awaited, read) == []
