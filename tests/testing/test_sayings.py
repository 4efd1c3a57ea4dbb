"""Everyday programs become the same kernels, however they are said."""

import re
from collections import Counter

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.ops import Map
from blockbuster.ir.types import size_class
from blockbuster.selection.priors import PRIORS
from tests.parameters import one_in, rest_slow
from tests.random_programs.sayings import WAYS, everyday

PROGRAMS = 300
COMPILED = 8
"""Of these the schedules are compared too, which takes ten times as long."""

CHOSEN = (0, 7, 24, 25, 31, 42, 46, 54, 67, 72, 102, 104, 126, 174, 204, 246, 258, 282)
"""Of these what is chosen is compared. Some took other dims in one block,
or made other values again, where several dims had one word."""

TWENTIES = one_in(15, range(0, PROGRAMS, 20))
SCHEDULED = range(PROGRAMS, PROGRAMS + COMPILED)


def fused_like(program, sizes):
    """What each snapshot stores, in elements, and how many loops it has: without names."""
    found = []
    for snapshot in bb.fuse(bb.lower(program)).snapshots:
        loops = [op for _, level in snapshot.walk() for _, op in level.of_type(Map)]
        found.append((sorted(stored(snapshot, sizes)), len(loops)))
    return found


def stored(graph, sizes, around=()):
    """The extents of the stored values of a program: along loops around them, and lists."""
    for node in graph.nodes:
        dims = [(*around, *type.lists) for type in node.types if type.buffered]
        yield from (tuple(sizes[size_class(dim)] for dim in own) for own in dims)
        if isinstance(node.op, Map):
            yield from stored(node.op.body, sizes, (*around, node.op.dim))


def planned_like(program, sizes):
    """The chosen kernels with schedules and extents of workspaces, and their microseconds."""
    plan = bb.compile(program, sizes, "float16", "h200", check=False).plan
    best = [file.considered.best for file in plan.files]
    like = [scheduled_like(each.scheduled, program, sizes) for each in best]
    return [plan.kernels, *like], sum(each.cost.microseconds for each in best)


def emitted_like(program, sizes):
    """The schedules and workspaces of the least and of the most fused snapshot."""
    derivation = bb.fuse(bb.lower(program))
    found = []
    for snapshot in dict.fromkeys((derivation.snapshots[0], derivation.final)):
        kernel = bb.emit(snapshot, sizes_of(snapshot, sizes), "float16", "sm_90")
        found.append(scheduled_like(kernel, program, sizes))
    return found


def sizes_of(graph, sizes):
    return {dim: sizes[dim] for dim in dict.fromkeys(map(size_class, graph.mentions.dims))}


def scheduled_like(made, program, sizes):
    """The text of a schedule and the extents of the workspaces, with dims numbered."""
    tiles = getattr(made, "tile_program", None) or made.program
    spaces = [[axis.dim or "" for axis in space.axes] for space in tiles.workspaces]
    extents = sorted([sizes.get(size_class(dim), 0) for dim in dims] for dims in spaces)
    return numbered(made.schedule, program.dims), extents


def numbered(text, dims):
    """``text`` with its dims called by the order in which they appear."""
    known = {}
    word = "|".join(sorted(map(re.escape, dims), key=len, reverse=True))
    return re.sub(
        rf"\b({word})('*)(?!\w)", lambda m: known.setdefault(m[0], f"dim{len(known)}"), text
    )


def said(seed):
    """The program ``seed`` in all ways: way, array program, sizes."""
    drawn = everyday(seed)
    for way in WAYS:
        program = drawn.said(way).traced()
        yield (
            way,
            program,
            program.bind(
                {name: np.broadcast_to(0.0, shape) for name, shape in drawn.shapes().items()}
            ),
        )


@pytest.mark.parametrize("first", TWENTIES)
def test_three_ways_fuse_alike(first):
    for seed in range(first, first + 20):
        found = {}  # by the lowered program, which ways often share
        for _, program, sizes in said(seed):
            text = numbered(bb.lower(program).show(), program.dims)
            if text not in found:
                found[text] = fused_like(program, sizes)
        one, *others = found.values()
        assert all(other == one for other in others), f"everyday({seed})"


@pytest.mark.parametrize("seed", rest_slow(SCHEDULED[::2], SCHEDULED[::4]))
def test_three_ways_are_scheduled_alike(seed):
    (_, *first), *others = said(seed)
    wanted = emitted_like(*first)
    for way, *other in others:
        assert emitted_like(*other) == wanted, way


@pytest.mark.parametrize("seed", rest_slow(CHOSEN[::3], CHOSEN[::18]))
def test_three_ways_are_the_same_kernels(seed):
    """Where the ways differ by a negation or the order of factors, schedules of equal cost may."""
    found = {}  # by the lowered program
    for _, program, sizes in said(seed):
        text = numbered(bb.lower(program).show(), program.dims)
        kernels, microseconds = planned_like(program, sizes)
        known = found.setdefault(text, (kernels, microseconds))
        assert known[0] == kernels, f"everyday({seed})"
    times = [microseconds for _, microseconds in found.values()]
    same = len({repr(kernels) for kernels, _ in found.values()}) == 1
    assert same or max(times) <= PRIORS.near_programs_factor * min(times), f"everyday({seed})"


@pytest.mark.parametrize("seed", range(0, PROGRAMS, 5))
def test_three_ways_mean_the_same(seed):
    drawn = everyday(seed)
    results = []
    for way in WAYS:
        saying = drawn.said(way)
        results.append(saying.traced().numpy(saying.arrays))
        plain = saying.function(**saying.arrays)
        plain = plain if isinstance(plain, tuple) else (plain,)
        for got, wanted in zip(results[-1].values(), plain, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    for result in results[1:]:
        for key, wanted in results[0].items():
            np.testing.assert_allclose(result[key], wanted, rtol=1e-9, atol=1e-9)


def test_all_kinds_occur_and_most_are_said_differently():
    drawn = [everyday(seed) for seed in range(PROGRAMS)]
    count = Counter(name for one in drawn for name in one.parts)
    texts = [[str(one.said(way).traced()) for way in WAYS] for one in drawn]

    assert min(count.values()) > 10
    assert sum(len({*three}) == 3 for three in texts) > PROGRAMS * 0.8
    assert len({three[0] for three in texts}) > PROGRAMS * 0.7
