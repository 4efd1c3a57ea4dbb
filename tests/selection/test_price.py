"""Prices: the same as without anything remembered, and made anew only for nests that differ."""

import pickle
from dataclasses import replace
from importlib import import_module
from itertools import islice

import pytest

import blockbuster as bb
from blockbuster.costs import cost
from blockbuster.costs.sizes import own_sizes
from blockbuster.examples import rmsnorm_swiglu
from blockbuster.selection.price import LAUNCH, priced
from blockbuster.selection.space import Space

module = import_module("blockbuster.costs.work")

INPUTS = {"x": "M D", "w": "D K", "v": "D K", "u": "K N"}
SIZES = {"M": 512, "D": 512, "K": 1000, "N": 512}


@pytest.fixture(scope="module")
def best():
    derivation = bb.fuse(bb.lower(bb.trace(rmsnorm_swiglu, **INPUTS)))
    return bb.emit(derivation, SIZES, "float16").derivation.final


def test_a_price_is_that_of_a_program_that_was_never_seen(best):
    looked_at = 0
    for near in islice(Space(best).neighbours(best), 0, None, 5):
        made = near.scheduled
        try:
            found = priced(made)
        except ValueError:
            continue
        module._of_one.cache_clear()
        copy = pickle.loads(pickle.dumps(replace(made)))  # equal, and nothing of it is remembered
        assert copy.program == made.program
        assert str(copy.program) == str(made.program)
        sizes = own_sizes(copy.program, copy.known)
        works = module.work_of(copy.program, sizes, copy.target.name)
        device = copy.target.machine
        assert found.works == works
        assert found.report.time_us == cost(works, device, launch=LAUNCH).time_us
        looked_at += 1

    assert looked_at > 10


def test_a_change_in_one_nest_prices_one_nest(best, monkeypatch):
    counted, phases = [], module.phases

    def noted(program, layouts, extents):
        counted.append(layouts.nest)
        return phases(program, layouts, extents)

    assert len(best.draft.nests) > 1
    space = Space(best)
    before = space.after(best.moves)
    assert before is not None
    module._at_own_sizes.cache_clear()  # whole schedules are remembered, too
    priced(before)
    monkeypatch.setattr(module, "phases", noted)
    near = space.neighbours(before)
    made = next(one.scheduled for one in near if one.edit.endswith("warps nest 1 16"))
    priced(made)

    assert counted == [made.program.nests[0]]
