"""Schedules ranked in two stages: the closed form keeps some, their binaries rank these."""

import json
import math
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest

import blockbuster as bb
from bench.costs.binary import from_data
from bench.costs.machine_loops import Loop
from bench.costs.ranking import both, rank, why_slow
from blockbuster.emit.target.inspection import disassembler
from blockbuster.errors import EmitError

GOLDEN = Path(__file__).parents[1] / "golden" / "binary"
BINARY = from_data(json.loads((GOLDEN / "matmul-sm_90.json").read_text())["binary"])
WARNING = "C7511 Potential Performance Loss: wgmma.mma_async instructions are serialized"


def matmul(x, w):
    return x @ w


def scheduled(text, size=512):
    graph = bb.fuse(bb.lower(bb.trace(matmul, x="M K", w="K N"))).snapshots[-1]
    return bb.emit(graph, dict(M=size, K=size, N=size), schedule=text).derivation.final


def text(m, n=32, k=64, stages=3):
    return f"block M {m}, K {k}, N {n}\nwarps 4\nstage nest 1 K {stages}"


class Prepared(Executor):
    """Gives binaries, or reasons, that were made before, by a word of the file."""

    def __init__(self, results):
        self.results, self.files = results, []

    def submit(self, fn, source, target):
        self.files.append(source)
        future = Future()
        found = (result for word, result in self.results.items() if word in source)
        future.set_result(next(found, (BINARY,)))
        return future


def schedules():
    return [scheduled(text(m)) for m in (16, 32, 64, 128)]


def with_issue(count):
    (loop,) = BINARY.loops
    changed = Loop(loop.first, loop.last, 0, True, replace(loop.code, issue=count))
    return (replace(BINARY, loops=(changed,)),)


def test_binaries_decide():
    executor = Prepared({"block M 64": with_issue(4000), "block M 32": with_issue(9000)})
    ranking = rank(schedules()[1:3], executor=executor, keep=2, best=2)
    assert [place.scheduled.blocks["M"] for place in ranking.best] == [64, 32]
    assert "limited by" in ranking.best[0].reason
    assert ranking.best[0].second.time_us < ranking.best[1].second.time_us
    assert ranking.best[0].first > 0


def test_a_binary_that_is_hardly_slower_leaves_the_order_of_the_closed_form():
    def ranked(issue):
        executor = Prepared({"block M 64": with_issue(issue)})
        return rank(schedules()[1:3], executor=executor, keep=2, best=2).best

    def is_slower(place, other):
        return place.second.time_us > other.second.time_us

    assert [place.scheduled.blocks["M"] for place in ranked(100)] == [64, 32]
    assert ranked(100)[0].first < 0.95 * ranked(100)[1].first
    slower = next(found for issue in range(100, 9000, 100) if is_slower(*(found := ranked(issue))))
    assert [place.scheduled.blocks["M"] for place in slower] == [64, 32]


def test_binaries_count_twice():
    assert both(2.0, 16.0) == pytest.approx(8.0)
    assert both(math.inf, 8.0) == 8.0  # the closed form holds what compiles for too large
    assert both(2.0, math.inf) == math.inf


def test_what_spills_or_is_serialized_ranks_behind_what_does_not():
    executor = Prepared(
        {
            "block M 16": "it needs too much",
            "block M 64": (replace(BINARY, spilled=1864),),
            "block M 32": (replace(BINARY, warnings=(WARNING,)),),
            "block M 128": with_issue(1_000_000),
        }
    )
    ranking = rank(schedules(), executor=executor)
    assert [place.scheduled.blocks["M"] for place in ranking.best] == [128, 32, 64, 16]
    assert [place.reason for place in ranking.best[1:]] == [
        "out_kernel runs matrix instructions one by one in a loop: not modelled",
        "out_kernel spills 1,864 bytes of registers: not modelled",
        "it does not compile: it needs too much",
    ]
    assert ranking.best[1].second is None


def test_the_closed_form_keeps_some_of_many():
    executor = Prepared({})
    ranking = rank(schedules(), executor=executor, keep=3, best=2)
    assert len(executor.files) == 3
    assert len(ranking.best) == 2
    assert len(ranking.others) == 1
    first = [place.first for place in (*ranking.best, *ranking.others)]
    (left,) = {16, 32, 64, 128} - {
        p.scheduled.blocks["M"] for p in (*ranking.best, *ranking.others)
    }
    assert rank([scheduled(text(left))], executor=executor, keep=1, best=1).best[0].first >= max(
        first
    )
    assert str(ranking).startswith("4 schedules for h200, 3 compiled; the best:\n  1 block M ")


def test_ranking_is_deterministic():
    first, again = (rank(schedules(), executor=Prepared({})) for _ in range(2))
    assert str(first) == str(again)


def test_a_schedule_that_cannot_fit_is_compiled_last():
    large = scheduled(text(256, n=256, k=128, stages=4))
    executor = Prepared({})
    ranking = rank([large, *schedules()], executor=executor, keep=4, best=4)
    assert large not in [place.scheduled for place in ranking.best]
    (only,) = rank([large], executor=executor, keep=1, best=1).best
    assert only.first == float("inf")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(keep=2, best=3), "the best 3 of 2 are asked for"),
        (dict(best=0), "the best 0 of 32 are asked for"),
        (dict(on="h2000"), "unknown machine 'h2000'"),
    ],
)
def test_bad_input(options, words):
    with pytest.raises(ValueError, match=words):
        rank([scheduled(text(64))], **options)


def test_no_schedule():
    with pytest.raises(ValueError, match="there is no schedule to rank"):
        rank([])


def test_none_compiles():
    executor = Prepared({"block M": "Triton refuses it"})
    words = "none of 2 schedules compiles: it does not compile: Triton refuses it"
    with pytest.raises(EmitError, match=words):
        rank(schedules()[:2], executor=executor)


def test_none_fits_the_machine():
    executor = Prepared({"block M": (replace(BINARY, registers=255, shared=1 << 20),)})
    with pytest.raises(EmitError, match="none of 2 schedules can run: "):
        rank(schedules()[:2], executor=executor)


def test_a_kernel_is_no_schedule():
    graph = bb.fuse(bb.lower(bb.trace(matmul, x="M K", w="K N"))).snapshots[-1]
    kernel = bb.emit(graph, dict(M=64, K=64, N=64))
    with pytest.raises(TypeError, match="schedule 0 is a Kernel, expected a Scheduled"):
        rank([kernel])


def test_a_schedule_that_does_not_fit_its_sizes_is_dropped():
    good = scheduled(text(64))
    bad = replace(good, known={**good.known, "K": 0})
    ranking = rank([bad, good], executor=Prepared({}))
    assert [place.scheduled for place in ranking.best] == [good]
    assert [place.scheduled for place in ranking.dropped] == [bad]
    assert "K" in ranking.dropped[0].reason
    assert ranking.ranked == 1
    with pytest.raises(ValueError, match="none of 1 schedules fits its sizes: "):
        rank([bad])


class Dying(Executor):
    """A pool whose worker dies."""

    def submit(self, fn, source, target):
        future = Future()
        future.set_exception(BrokenProcessPool("terminated abruptly"))
        return future


def test_a_worker_that_dies():
    with pytest.raises(EmitError, match="a worker died while it compiled schedules: terminated"):
        rank(schedules()[:2], executor=Dying())


def test_why_slow():
    assert why_slow(BINARY) == ""
    assert "spills 8 bytes" in why_slow(replace(BINARY, spilled=8))


@pytest.mark.skipif(not disassembler(), reason="no nvdisasm here")
def test_compiled_here():
    (place,) = rank([scheduled(text(64))], best=1).best
    (found,) = place.binaries
    assert found.hot.code.matrix == {"HGMMA 64x32x16": 4}
    assert place.second.time_us > 0
