"""Prices: the same as without anything remembered, and made anew only for nests that differ."""

import pickle
from dataclasses import replace
from importlib import import_module

import pytest

import blockbuster as bb
from blockbuster.costs import cost
from blockbuster.costs.sizes import own_sizes
from blockbuster.emit.schedule.replays import Replays
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.examples import rmsnorm_swiglu
from blockbuster.selection.price import LAUNCH, priced

module = import_module("blockbuster.costs.work")

INPUTS = {"x": "M D", "w": "D K", "v": "D K", "u": "K N"}
SIZES = {"M": 512, "D": 512, "K": 1000, "N": 512}


@pytest.fixture(scope="module")
def best():
    derivation = bb.fuse(bb.lower(bb.trace(rmsnorm_swiglu, **INPUTS)))
    return bb.emit(derivation, SIZES, "float16").derivation.final


def scripts(best):
    """The script of ``best``, and others with one number of one line doubled."""
    lines = tuple(best.schedule.splitlines())
    yield lines
    for at, line in enumerate(lines):
        for number in ("2", "3", "4", "8", "32", "64", "128"):
            if line.endswith(f" {number}") and "nest" not in line.split()[-2]:
                other = f"{line.removesuffix(number)}{2 * int(number)}"
                yield (*lines[:at], other, *lines[at + 1 :])


def test_a_price_is_that_of_a_program_that_was_never_seen(best):
    replays = Replays(unscheduled(best.start, best.known, best.target))
    looked_at = 0
    for script in scripts(best):
        try:
            made = replays.after(script)
            found = priced(made)
        except (bb.EmitError, ValueError):
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

    assert looked_at > 3


def test_a_change_in_one_nest_prices_one_nest(best, monkeypatch):
    counted, phases = [], module.phases

    def noted(program, layouts, extents):
        counted.append(layouts.nest)
        return phases(program, layouts, extents)

    replays = Replays(unscheduled(best.start, best.known, best.target))
    lines = tuple(best.schedule.splitlines())
    assert len(best.draft.nests) > 1
    priced(replays.after(lines))
    monkeypatch.setattr(module, "phases", noted)
    at = next(at for at, line in enumerate(lines) if line.startswith("warps"))
    made = replays.after((*lines[:at], *lines[at:], "warps nest 1 16"))
    priced(made)

    assert counted == [made.program.nests[0]]
    assert made.program.nests[1].body is replays.after(lines).program.nests[1].body
