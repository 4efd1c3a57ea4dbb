"""Iterations run side by side give what they give one by one: numbers, degrees and races."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.interpret import interpreter
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.interpret.observer import TileObserver
from blockbuster.emit.interpret.side_by_side import side_by_side
from blockbuster.emit.interpret.sides import Side, cut_by, cuts
from blockbuster.emit.tile.dataflow import bounding
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.trips import blocks_in
from blockbuster.interp.characters import Characters
from blockbuster.interp.degree import VARIABLE, Degree
from blockbuster.interp.exact import Exact
from blockbuster.interp.free_order import FreeCharacters
from blockbuster.interp.semantics import Float64
from tests.emit.parse_tiles import parse_tiles


class OneByOne(TileObserver):
    """Looks at single iterations, as every observer of its own does."""


def grouped(q, k, v):
    k, v = (np.repeat(x, 2, axis=1) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    size = q.shape[-2]
    kept = bb.arange(size)[:, None] >= bb.arange(size)[None, :]
    return bb.softmax(bb.where(kept, scores, -np.inf), axis=-1) @ v


def padded(q, k, v, mask, slope):
    """Arrays that have the batch alone, the heads alone, and neither."""
    scores = q @ np.swapaxes(k, -1, -2) * slope[:, None, None]
    seen = bb.where(mask[:, None, None, :], scores, -np.inf)
    return bb.softmax(seen, axis=-1) @ v + bb.arange(q.shape[-2])[:, None]


def normed(x, w):
    return bb.softmax(x / bb.sqrt(bb.mean(x * x, axis=-1, keepdims=True)) @ w, axis=-1)


def derivations():
    heads = dict(q="B H=4 S D", k="B G=2 S D", v="B G=2 S D")
    masked = dict.fromkeys("qkv", "B G S D") | dict(mask="bool: B S", slope="G")
    square = dict(x="B G M K", w="K N")
    for function, dims in ((grouped, heads), (padded, masked), (normed, square)):
        fused = bb.fuse(bb.lower(bb.trace(function, **dims)))
        sizes = {dim: 64 for dim in "BGSDMKN" if any(dim in text for text in dims.values())}
        kernel = bb.emit(fused, {**sizes, "G": 2}, dtype="float16", target="sm_90")
        yield kernel.derivation


def programs():
    found = {}
    for derivation in derivations():
        found.update(dict.fromkeys(step.after.draft for step in derivation.steps))
        found[derivation.final.program] = None
    return list(found)


PROGRAMS = programs()


def both(program, semantics, draw):
    """The outputs of a program, with all iterations side by side, and with one after the other."""
    (cut, *_) = cuts([Side(program)], 1, np.random.default_rng(0), (1, 2, 3))
    small, sizes = cut_by(program, cut), cut.setting.sizes
    inputs = {
        name: draw([1 if dim is None else sizes[dim] for dim in axes])
        for name, axes in Side(small).sources.items()
    }
    own = {block.dim: block.lanes for nest in small.nests for block in nest.blocks}
    steps = {**cut.setting.block_sizes, **own}
    return [
        run_tiles(small, inputs, sizes, steps, semantics=s, seed=3, observer=observer)
        for s, observer in zip(semantics, (None, OneByOne()), strict=True)
    ]


@pytest.mark.parametrize("semantics", [Exact, Characters, FreeCharacters])
def test_numbers_are_the_same(semantics):
    numbers = np.random.default_rng(1)
    for program in PROGRAMS:
        draw = partial(semantics(seed=5).random, numbers)
        beside, alone = both(program, (semantics(seed=5), semantics(seed=5)), draw)
        for name, array in alone.items():
            np.testing.assert_array_equal(beside[name], array)


def test_degrees_count_every_iteration():
    for program in PROGRAMS:
        degrees = Degree(), Degree()
        beside, alone = both(program, degrees, lambda shape: np.full(shape, VARIABLE))
        for name, array in alone.items():
            np.testing.assert_array_equal(beside[name], array)
        assert degrees[0].noted == degrees[1].noted
        assert degrees[0].noted.arguments


def test_batch_and_heads_run_side_by_side():
    found = [
        side_by_side(nest, blocks_in(nest, dict.fromkeys("BGASDMKN", 1)))
        for program in PROGRAMS
        for nest in program.nests
    ]

    assert any({"B", "G"} <= dims for dims in found)
    assert not any(dims & {"S", "M", "N"} for dims in found)


def test_a_nest_whose_bounds_are_read_runs_one_by_one():
    def prefix(x, lengths):
        kept = bb.arange(x.shape[1])[None, :] < lengths[:, None]
        return bb.sum(bb.where(kept[..., None], x, 0.0), axis=1)

    fused = bb.fuse(bb.lower(bb.trace(prefix, x="B S D", lengths="int64: B")))
    kernel = bb.emit(fused, dict(B=8, S=4096, D=64), dtype="float16", target="sm_90")
    program = kernel.derivation.final.program
    bounded = [
        nest
        for nest in program.nests
        if any(tile in bounding(nest.body) for tile, _ in arrivals(nest.body))
    ]

    assert bounded
    for nest in bounded:
        assert not side_by_side(nest, blocks_in(nest, dict.fromkeys("BSD", 1)))


# races ---------------------------------------------------------------------------------

FORM = """tiles {{
  inputs x: [B, M]
  outputs out: [{out}]
  workspaces I: [B, M]
  units B, C
  nest 1 {{
    forall B {{
      {body}
    }}
  }}
}}
"""
LOAD = "t: [M] = load x[B, M]"
RACES = {
    "one element": ("M", f"{LOAD}\n      store out[M] = t", "B writes out"),
    "runs that overlap": (
        "H",
        f"{LOAD}\n      store out[H[B step 1, M]] = t",
        "B writes out",
    ),
    "a neighbour": (
        "B, M",
        f"{LOAD}\n      store I[B, M] = t\n      u: [M] = load I[B[from 1], M]\n"
        "      store out[B, M] = u",
        "I.* is read before it is written|B reads I",
    ),
    "an accumulator of all": ("B, M", "", "share the accumulator"),
}
FINE = {
    "own places": ("B, M", f"{LOAD}\n      store out[B, M] = t"),
    "a part of its own": (
        "B, M",
        f"{LOAD}\n      store I[B, M] = t\n      u: [M] = load I[B, M]\n      store out[B, M] = u",
    ),
    "twice": ("B, M", f"{LOAD}\n      store out[B, M] = t\n      store out[B, M] = t"),
}
SHARED = """tiles {
  inputs x: [B, M]
  outputs out: [M]
  units B
  nest 1 {
    forall M {
      a: [M] = init +
      forall B {
        t: [M] = load x[B, M]
        a += t
      }
      store out[M] = a
    }
  }
}
"""


def raised(program, observer, seed):
    try:
        run_tiles(
            program, {"x": np.ones((3, 4))}, {"H": 12}, {"M": 4}, seed=seed, observer=observer
        )
    except Hazard as hazard:
        return str(hazard)
    return ""


@pytest.mark.parametrize("name", RACES)
def test_races_show_side_by_side_and_one_by_one(name):
    out, body, words = RACES[name]
    text = SHARED if not body else FORM.format(out=out, body=body)
    program = parse_tiles(text)

    for observer in (None, OneByOne()):
        with pytest.raises(Hazard, match=words):
            run_tiles(
                program, {"x": np.ones((3, 4))}, {"H": 12}, {"M": 4}, seed=0, observer=observer
            )


@pytest.mark.parametrize("name", FINE)
def test_what_is_no_race_is_none(name):
    out, body = FINE[name]
    program = parse_tiles(FORM.format(out=out, body=body))

    assert [raised(program, observer, 0) for observer in (None, OneByOne())] == ["", ""]
    assert side_by_side(program.nests[0], {"B": 1, "M": 4, "C": 1}) == {"B"}


@given(
    stores=st.lists(st.sampled_from(("out[B, M]", "out[M, B]", "I[B, M]")), min_size=1, max_size=3),
    seed=st.integers(0, 5),
)
def test_the_same_programs_race(stores, seed):
    """Square arrays, so that a store may have its axes exchanged: then iterations meet."""
    body = "\n      ".join([LOAD, *(f"store {view} = t" for view in stores)])
    body += "\n      store I[B, M] = t\n      u: [M] = load I[B, M]\n      store out[B, M] = u"
    program = parse_tiles(FORM.format(out="B, M", body=body))

    def races(observer):
        try:
            run_tiles(program, {"x": np.ones((3, 3))}, {}, {"M": 3}, seed=seed, observer=observer)
        except (Hazard, ValueError) as fault:
            return type(fault)
        return None

    assert races(None) == races(OneByOne())


OLD = """tiles {
  inputs x: [B, M]
  outputs out: [B, M]
  workspaces I: [B, M]
  units B
  nest 1 { forall B { a: [M] = load x[B, M]  store I[B, M] = a } }
  nest 2 {
    forall B {
      b: [M] = load I[B[from 1], M]
      c: [M] = load x[B, M]
      store I[B, M] = c
      store out[B, M] = b
    }
  }
}
"""


def test_what_others_still_read_would_be_overwritten(monkeypatch):
    """The condition on arrays that a nest stores and loads is needed."""
    program = parse_tiles(OLD)
    found = [raised(program, None, seed) for seed in range(8)]
    assert any("reads I" in fault for fault in found)
    assert side_by_side(program.nests[1], {"B": 1, "M": 4}) == frozenset()

    monkeypatch.setattr(interpreter, "side_by_side", lambda nest, blocks: frozenset("B"))
    assert not any(raised(program, None, seed) for seed in range(8))


def test_floats_are_close():
    numbers = np.random.default_rng(2)
    for program in PROGRAMS:
        beside, alone = both(program, (Float64, Float64), lambda shape: numbers.normal(size=shape))
        for name, array in alone.items():
            np.testing.assert_allclose(beside[name], array, rtol=1e-12)


def test_the_work_does_not_grow_with_the_heads():
    """``np.repeat`` of 8 heads for 32: a proof is as many statements as for two heads."""

    def steps(heads, groups):
        def attention(q, k, v):
            k, v = (np.repeat(x, heads // groups, axis=1) for x in (k, v))
            return bb.softmax(q @ np.swapaxes(k, -1, -2), axis=-1) @ v

        dims = dict(q=f"B H={heads} S D", k=f"B G={groups} S D", v=f"B G={groups} S D")
        fused = bb.fuse(bb.lower(bb.trace(attention, **dims)))
        kernel = bb.emit(fused, dict(B=2, S=64, D=64), dtype="float16", target="sm_90")
        with pytest.MonkeyPatch.context() as patched:
            count = Counted(interpreter.applied)
            patched.setattr(interpreter, "applied", count)
            assert kernel.derivation.prove(trials=2).equal
        return count.calls

    assert steps(32, 8) < 2 * steps(4, 2)


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **more):
        self.calls += 1
        return self.function(*args, **more)
