"""share-factors: groups become folds of their own, with one factor for each lead."""

import numpy as np
import pytest

from blockbuster.emit.closing import (
    share_factors,
)
from blockbuster.emit.closing.lead_first import lead_first
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    Buffer,
    BufferAxis,
    Fold,
    For,
    Init,
    Let,
    Load,
    Member,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import Functional
from blockbuster.rules.safety import RESCALED
from tests.emit.cases import (
    FOLDER,
    changed_by,
    graph_of,
)
from tests.emit.numpy_runs import run_numpy


def of(program, kind):
    return [s for nest in program.nests for s in statements(nest.body) if isinstance(s, kind)]


def test_numbers_stay_where_factors_are_shared():
    """Of all fused programs with groups, before and after their leads are folded ahead."""
    assert changed_by(share_factors.share_factors) >= 20
    assert changed_by(lambda program: share_factors.share_factors(lead_first(program))) >= 20


def test_no_group_is_left():
    program = lower_to_tiles(graph_of("attention safe"))
    (group,) = (fold for fold in of(program, Fold) if fold.members)
    made = share_factors.share_factors(program)

    assert len(group.members) == 2
    assert all(not fold.members for fold in of(made, Fold))
    assert len(of(made, Fold)) == len(of(program, Fold)) + 2
    assert share_factors.share_factors(made) == made


def test_the_factor_of_a_lead_is_computed_once():
    program = lower_to_tiles(graph_of("attention safe"))

    def factors(made):
        text = listing(share_factors.share_factors(made))
        return sum("exp(sub0(" in line for line in text.split("\n"))

    assert factors(program) == 2  # one for each side: for two members
    assert factors(lead_first(program)) == 1


def group(factor, monoid="+"):
    """A loop over N that keeps a maximum, and a sum that is rescaled by it with ``factor``."""
    x = View(Buffer("X", (BufferAxis("M"), BufferAxis("N")), INPUT), ("M", "N"))
    out = View(Buffer("Y", (BufferAxis("M"),), OUTPUT), ("M",))
    a, z, t = Tile("t1", ("M", "N")), Tile("t2", ("M",)), Tile("t3", ("M",))
    lead, total = Tile("t4", ("M",)), Tile("t5", ("M",))
    loop = For(
        "N",
        False,
        (
            Load(a, x),
            Let(z, Functional("row_max"), (a,)),
            Let(t, Functional("row_sum"), (a,)),
            Fold(lead, "max", z, (Member(total, monoid, t, factor),)),
        ),
    )
    body = (Init(lead, "max"), Init(total, monoid), loop, Store(out, total))
    return TileProgram((x.buffer,), (out.buffer,), (), (Nest((For("M", True, body),)),))


HIDDEN = call("mul", Arg(0), call("exp", call("mul", Arg(0), call("sub0", Arg(1), Arg(2)))))
CLIPPED = call("minimum", call("add", Arg(0), call("sub0", Arg(1), Arg(2))), 3.0)


def ran(program):
    x = np.random.default_rng(0).normal(size=(5, 7))
    with np.errstate(all="ignore"):
        return run_numpy(program, {"X": x}, {"M": 5, "N": 7}, {"M": 2, "N": 2}, folder=FOLDER)["Y"]


@pytest.mark.parametrize("factor", [RESCALED, HIDDEN, CLIPPED])
def test_each_kind_of_factor_keeps_its_numbers(factor):
    program = group(factor)
    made = share_factors.share_factors(program)

    verify_tiles(made)
    assert (share_factors.not_shared(factor) == "") == (factor == RESCALED)
    np.testing.assert_allclose(ran(made), ran(program), rtol=1e-12)


def test_a_factor_that_depends_on_what_it_rescales_is_not_shared(monkeypatch):
    program = group(HIDDEN)
    monkeypatch.setattr(share_factors, "not_shared", lambda factor: "")

    made = share_factors.share_factors(program)
    assert not np.allclose(ran(made), ran(program))
