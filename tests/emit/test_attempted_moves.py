"""A move that is attempted says why not as ``why_not`` does, and rewrites once."""

from dataclasses import replace
from itertools import product
from random import Random
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.emit.schedule import conditions, fill, narrow, part
from blockbuster.emit.schedule.base import BodyMove
from blockbuster.emit.schedule.block import BlockDims, Cut
from blockbuster.emit.schedule.chunk_loops import ChunkLoop
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import MOVES
from blockbuster.emit.schedule.site import EVERYWHERE, Site, loops_of, statements_of
from blockbuster.emit.tile.changed import changed
from blockbuster.errors import EmitError
from blockbuster.rules import fuse, safe
from tests.emit.random_masks import masked_graph
from tests.emit.random_tiles import applications, random_graph, start_of
from tests.tuning.benches import family_of
from tests.tuning.benches import product as matmul

RANDOMS = st.integers(0, 2**32 - 1).map(Random)
WAYS = ({}, {"at_once": True}, {"at_once": True, "blocks": True})
BLOCK, CHUNK = BlockDims(), ChunkLoop()


def check(move, scheduled, site, args):
    """True if the move applies there."""
    reason, made = move.attempted(scheduled, site, **args)
    assert reason == move.why_not(scheduled, site, **args)
    assert made == (None if reason else move.rewritten(scheduled, site, **args))
    return made is not None


@settings(max_examples=settings().max_examples // 3)
@given(RANDOMS)
def test_an_attempt_agrees_with_why_not(random):
    start = start_of(random_graph(random), random)
    for move in MOVES:
        for site, args in applications(move, start, random, most=1):
            assert check(move, start, site, args)
    for site, _ in loops_of(start.draft):
        for count in (3, 4):
            for ways in WAYS:
                check(CHUNK, start, site, {"count": count, **ways})


@pytest.fixture(scope="module")
def bare():
    """A matrix product before the first move."""
    (file,) = family_of(matmul()).at(dict(M=64, K=8192, N=64)).files
    made = file.considered.best.scheduled
    return unscheduled(made.start, made.known, made.target)


def cuts(lanes):
    return {"cuts": tuple(Cut(dim, lanes) for dim in "MKN")}


@pytest.fixture(scope="module")
def cut(bare):
    return BLOCK.apply(bare, EVERYWHERE, **cuts(32))


def site_of(scheduled, dim):
    return next(site for site, loop in loops_of(scheduled.draft) if loop.dim == dim)


def test_chunks(cut):
    """Three are no power of two; a product's blocks are combined all at once, rows alone are not
    there.
    """
    site = site_of(cut, "K")
    found = [check(CHUNK, cut, site, {"count": n, **ways}) for n in (3, 8) for ways in WAYS]
    assert found == [False, False, False, True, False, True]
    assert not check(CHUNK, cut, Site(1, "Z"), {"count": 8})


@pytest.mark.parametrize("lanes", [32, 2048])
def test_blocks(bare, cut, lanes):
    """Blocks of 2048 rows and columns are a tile that is too large, which the draft after shows."""
    assert check(BLOCK, bare, EVERYWHERE, cuts(lanes)) is (lanes == 32)
    assert not check(BLOCK, cut, EVERYWHERE, cuts(lanes))  # they are cut already


@pytest.mark.parametrize(("move", "args"), [(BLOCK, cuts(32)), (CHUNK, {"count": 8, **WAYS[2]})])
def test_a_move_rewrites_once(bare, cut, monkeypatch, move, args):
    start, site = (bare, EVERYWHERE) if move is BLOCK else (cut, site_of(cut, "K"))
    made, rewritten = [], type(move).rewritten

    def counted(self, *given, **kwargs):
        made.append(rewritten(self, *given, **kwargs))
        return made[-1]

    monkeypatch.setattr(type(move), "rewritten", counted)
    move.apply(start, site, **args)
    assert len(made) == 1


def test_what_does_not_apply_is_refused_with_the_reason(bare):
    with pytest.raises(EmitError, match=r"the move 'block .*' does not apply: .*more than the"):
        BLOCK.apply(bare, EVERYWHERE, **cuts(2048))


BY_BODY = (
    (narrow._not_bounded, {"alone": True}),
    (narrow._not_bounded, {"alone": False}),
    (fill._not_filled, {}),
    (part._not_whole, {}),
)


@settings(max_examples=settings().max_examples // 3)
@given(RANDOMS)
def test_a_reason_remembered_by_the_body_is_that_of_the_whole_program(random):
    """Whatever blocks the nest has, and whatever arrays and other nests there are."""
    draft = start_of(safe(fuse(masked_graph(random)).final), random).draft
    draft = changed(draft, nests=(*draft.nests, *draft.nests))
    for (reason, args), (site, loop) in product(BY_BODY, loops_of(draft)):
        if loop.span is None and loop.chunk is None:
            assert reason(draft, site, **args) == reason.__wrapped__(draft, site, **args)


@settings(max_examples=settings().max_examples // 3)
@given(RANDOMS)
def test_formulas_of_a_nest_are_made_once_and_asked_alone(random):
    """Who asks for the formulas of a nest gets leaves numbered as if nobody had asked before."""
    draft = start_of(safe(fuse(masked_graph(random)).final), random).draft
    for number, nest in enumerate(draft.nests, start=1):
        loops = [loop for site, loop in loops_of(draft) if site.nest == number]
        first = conditions.formulas_of(nest)
        masks = [conditions.conditions(loop, first) for loop in loops]
        with mock.patch.object(conditions, "substitute") as made:
            second = conditions.formulas_of(nest)
        assert not made.called
        assert masks == [conditions.conditions(loop, second) for loop in loops]
        assert first.leaves == second.leaves


@settings(max_examples=settings().max_examples // 3)
@given(RANDOMS)
def test_sites_remembered_by_the_body_are_those_of_the_whole_program(random):
    """Whatever other nests there are."""
    start = start_of(random_graph(random), random)
    nests = (*start.draft.nests, *start.draft.nests)
    start = replace(start, draft=changed(start.draft, nests=nests))
    for move in (one for one in MOVES if isinstance(one, BodyMove)):
        sites = [s for s, _ in statements_of(start.draft) if not move.why_not(start, s)]
        assert [*move.sites(start)] == sites
