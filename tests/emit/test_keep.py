"""What an iteration stores and reads again stays a tile: where, and why not elsewhere."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule.keep import Keep
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.site import Site, statements_of
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import Load, Store
from blockbuster.emit.tile.trips import sized
from blockbuster.errors import EmitError
from tests.emit.parse_tiles import parse_tiles
from tests.emit.tile_texts import ENTRY, GROWS, STORED, STORED_SINCE, TURNED, TWICE
from tests.rules.test_whole_dim import lowered

KEEP = Keep()

APART = """
tiles {
  inputs X: [M, N]
  outputs Y: [M, N], Z: [M, N]
  nest 1 {
    forall M {
      for N {
        t1: [M, N] = load X[M, N]
        store Y[M, N] = t1
      }
      for N {
        t2: [M, N] = load Y[M, N]
        store Z[M, N] = t2
      }
    }
  }
}
"""
TYPED = """
tiles {
  dots in f16
  inputs X: f16[N]
  outputs Y: f16[N], Z: f16[N]
  nest 1 {
    forall N {
      t1: int[N] = index N
      store Y[N] = t1
      t2: f16[N] = load Y[N]
      t3: f16[N] = load X[N]
      t4: f32[N] = t2 * t3 over [N]
      store Z[N] = t4
    }
  }
}
"""


def start(text):
    program = parse_tiles(text)
    return unscheduled(program, dict.fromkeys(sized(program), 64), target_of("sm_90"))


def last_load_of(scheduled, name):
    found = [
        site
        for site, stmt in statements_of(scheduled.draft)
        if isinstance(stmt, Load) and stmt.view.buffer.name == name
    ]
    return found[-1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (APART, "no iteration around it stores Y before it"),
        (STORED_SINCE, "Y is stored again before the load"),
        (TURNED, "Y is loaded under other dims than it is stored"),
        (ENTRY, "each iteration over K loads another part of Y than was stored"),
        (GROWS, "t1 is folded again before the load"),
        (TYPED, "t1 of int is loaded as float16"),
    ],
)
def test_refuses(text, reason):
    scheduled = start(text)
    site = last_load_of(scheduled, "Y")

    assert KEEP.why_not(scheduled, site) == reason
    assert site not in [*KEEP.sites(scheduled)]
    with pytest.raises(EmitError, match=f"the move 'keep {site}' does not apply: {reason}"):
        KEEP.apply(scheduled, site)


def test_refuses_what_is_no_load():
    scheduled = start(STORED)
    store = next(s for s, stmt in statements_of(scheduled.draft) if isinstance(stmt, Store))

    assert KEEP.why_not(scheduled, store) == "it is no load"
    assert "keep takes a statement" in KEEP.why_not(scheduled, Site(1, statement=99))


@pytest.mark.parametrize(("text", "loads"), [(STORED, 1), (TWICE, 2)])
def test_keeps_and_is_proved(text, loads):
    scheduled = start(text)
    before = scheduled.draft
    while (site := next(KEEP.sites(scheduled), None)) is not None:
        scheduled = KEEP.apply(scheduled, site)

    after = scheduled.draft
    stmts = [stmt for _, stmt in statements_of(after)]
    assert sum(isinstance(stmt, Load) for stmt in stmts) == loads
    stores = [stmt for _, stmt in statements_of(before) if isinstance(stmt, Store)]
    assert sum(isinstance(stmt, Store) for stmt in stmts) == len(stores)
    assert prove_tiles(before, after, trials=4).equal


def test_a_fused_program_becomes_one_kernel():
    """No dim is whole in the block program: its schedule gives D one block, and keeps."""
    fused = bb.fuse(lowered("residual")).final
    known = {"M": 64, "D": 100}

    kernel = bb.emit(fused, known, "float32")

    assert "keep nest 1 @" in kernel.schedule
    assert len(kernel.tile_program.nests) == 1
    assert kernel.tile_program.workspaces == ()
    assert bb.emit(fused, known, "float32", schedule=kernel.schedule).source == kernel.source
    proof = kernel.derivation.prove(trials=2)
    assert all(entry.proof.equal for entry in proof.entries), str(proof)


def test_it_runs():
    kernel = bb.emit(bb.fuse(lowered("residual")).final, {"M": 11, "D": 37}, "float32")
    random = np.random.default_rng(3)
    x, r = random.normal(size=(2, 11, 37)).astype("f4")
    w = random.normal(size=37).astype("f4")

    normed, total = kernel(x=x, r=r, w=w)

    np.testing.assert_array_equal(total, x + r)
    wanted = bb.evaluate(lowered("residual"), {"x": x * 1.0, "r": r * 1.0, "w": w * 1.0})["out0"]
    np.testing.assert_allclose(normed, wanted, rtol=1e-4, atol=1e-5)


def test_several_blocks_keep_nothing():
    fused = bb.fuse(lowered("residual")).final

    kernel = bb.emit(fused, {"M": 64, "D": 100}, tiles={"D": 32})

    assert "keep" not in kernel.schedule
    assert len(kernel.tile_program.nests) == 2
