"""Arrangements of one program share moves, and are what each would be alone."""

from dataclasses import replace

import blockbuster as bb
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.selection.nearby.arrangements import Arrangement, Arrangements
from blockbuster.selection.nearby.roles import Roles
from tests.tuning.benches import family_of


def gated(x, w, v, u):
    return (bb.silu(x @ w) * (x @ v)) @ u


def test_an_arrangement_does_not_depend_on_those_before_it():
    program = bb.trace(gated, x="M D", w="D K", v="D K", u="K N")
    (file,) = family_of(program).at(dict(M=16, D=512, K=1024, N=512)).files
    made = file.considered.best.scheduled
    bare = unscheduled(made.start, made.known, made.target)
    roles = Roles.of(bare)
    shared, usual = Arrangements(bare, roles), Arrangement()
    own = [one for _, one in shared.with_own(usual)]  # of the kernels of one nest
    lanes = [*shared.neighbours(usual)]
    assert len(own) > 1
    assert len(lanes) > 1

    near = [usual, *lanes[:2], *own[:2]]
    near += [replace(one, chunks=()) for one in near]
    for one in near:
        assert shared.at(one) == Arrangements(bare, roles).at(one)
    assert len({shared.at(one).schedule for one in near}) > 4
