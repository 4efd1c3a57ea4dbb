"""A draft is tidied nest by nest: the same program as when all nests are tidied together."""

from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.emit.closing import order
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import parsed
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.other_arrays import with_arrays
from tests.tuning.benches import family_of


def steps(x, w, u):
    state = bb.tanh(x @ w)
    return bb.tanh(bb.tanh(state @ u) @ u)


def counted(x, w):
    return bb.sum(bb.where(x > 0, 1, 0), axis=1) + bb.sum(x @ w, axis=1)


def gated(x, w, v, u):
    return (bb.silu(x @ w) * (x @ v)) @ u


def softmax(x):
    return bb.softmax(x, axis=1)


CASES = {
    "steps": (steps, dict(x="M K", w="K N", u="N N"), dict(M=64, K=256, N=256)),
    "gated": (gated, dict(x="M D", w="D K", v="D K", u="K N"), dict(M=16, D=512, K=1024, N=512)),
    "counted": (counted, dict(x="M K", w="K N"), dict(M=64, K=2048, N=256)),
    "softmax": (softmax, dict(x="M N"), dict(M=16, N=65536)),
}


def replays(made: Scheduled) -> list[Scheduled]:
    """The schedule of ``made`` after each of its lines."""
    found = [unscheduled(made.start, made.known, made.target)]
    for line in parsed(made.schedule):
        found.append(line.move.apply(found[-1], line.site, **line.args))
    return found


@pytest.mark.parametrize("name", CASES)
def test_nests_are_tidied_as_all_together(name, monkeypatch):
    function, inputs, sizes = CASES[name]
    (file, *_) = family_of(bb.trace(function, **inputs)).at(sizes).files
    made = file.considered.best.scheduled
    alone = replays(made)
    monkeypatch.setattr(order, "_one_by_one", lambda program, before: None)

    together = replays(made)

    assert [one.draft for one in alone] == [one.draft for one in together]
    assert [str(one.program) for one in alone] == [str(one.program) for one in together]


def test_nests_of_other_arrays_or_dtypes_are_tidied_together():
    function, inputs, sizes = CASES["softmax"]
    (file, *_) = family_of(bb.trace(function, **inputs)).at(sizes).files
    draft = file.considered.best.scheduled.draft
    untyped = with_arrays(draft, lambda array: changed(array, dtype=""))

    assert order._one_by_one(draft, draft) == draft
    assert order._one_by_one(untyped, draft) is None
    assert order._one_by_one(replace(draft, dtype="bfloat16"), draft) is None
