"""The move part where a last block is short: the others run without guards, to the same values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import part
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile import padding
from blockbuster.emit.tile.program import Guard, statements
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection.plans.masked_loops import narrowed_loops
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated

PART = BY_NAME["part"]
SIZES = dict(H=2, M=24, N=40, D=16, L=16)
CUT = "block M 16, N 16, D 16 whole, L 16 whole; warps 4"
DIMS = dict(q="H M D", k="H N D", v="H N L")


def causal(q, k, v):
    seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(seen, q @ k.swapaxes(-1, -2), -np.inf), axis=-1) @ v


def attention(q, k, v):
    return bb.softmax(q @ k.swapaxes(-1, -2), axis=-1) @ v


def largest(x):
    return bb.max(x, axis=-1)


def near(x):
    """A mask that is true in all of most rows, to their ends."""
    i, j = bb.arange(x.shape[0])[:, None], bb.arange(x.shape[1])
    return bb.sum(bb.where(i + 8 >= j, x, 0.0), axis=-1)


def nested(x):
    return bb.max(bb.sum(bb.exp(x), axis=-1), axis=-1)


FUNCTIONS = {
    "attention": (attention, DIMS, CUT, "N"),
    "causal": (causal, DIMS, CUT, "N"),
    "matmul": (lambda x, w: x @ w, dict(x="M K", w="K N"), "block M 16, K 16, N 16", "K"),
    "largest": (largest, dict(x="M N"), "block M 16, N 16", "N"),
    "near": (near, dict(x="M N"), "block M 16, N 16", "N"),
    "nested": (nested, dict(x="M N K"), "block N 16, K 16", "N"),
}


def scheduled(name, more="", sizes=None):
    fn, dims, text, loop = FUNCTIONS[name]
    graph = bb.fuse(bb.lower(bb.trace(fn, **dims))).final
    known = {"H": 2, "M": 24, "N": 40, "K": 40, "D": 16, "L": 16} | (sizes or {})
    known = {dim: known[dim] for dim in dict.fromkeys(" ".join(dims.values()).split())}
    warps = "" if "warps" in text else "; warps 4"
    kernel = bb.emit(graph, known, "float32", schedule=f"{text}{warps}; {more}")
    return kernel, Site(1, loop)


def guards(program):
    """How many guards each loop of a program has."""
    loops = [s for s in statements(program.nests[0].body) if hasattr(s, "parallel")]
    return [sum(isinstance(s, Guard) for s in statements(loop.body)) for loop in loops]


@pytest.mark.parametrize("name", ["attention", "causal", "matmul", "largest", "near"])
def test_all_but_the_last_block_run_without_guards(name):
    start, site = scheduled(name)
    kernel, _ = scheduled(name, f"part {site}")
    full, *others = [s for s in statements(kernel.tile_program.nests[0].body) if hasattr(s, "full")]

    assert full.full
    assert not any(loop.full for loop in others)
    assert guards(kernel.tile_program) == [0, *guards(start.tile_program)]
    verify_tiles(kernel.tile_program)
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_proved_with_the_lanes_past_the_end(name):
    start, site = scheduled(name)
    before = start.derivation.final
    after = PART.apply(before, site)

    proof = prove_tiles(before.draft, after.program, trials=6, seed=1, lanes=True)
    assert proof.equal, proof


def test_it_runs_in_tritons_interpreter():
    kernel, _ = scheduled("causal", "narrow nest 1 N; part nest 1 N; stage nest 1 N 2")
    plain, _ = scheduled("causal")
    random = np.random.default_rng(0)
    arrays = {n: random.normal(size=[SIZES[d] for d in DIMS[n].split()]) for n in DIMS}
    arrays = {name: array.astype("float32") for name, array in arrays.items()}

    one, other = (run_interpreted(k, arrays)["out"] for k in (kernel, plain))

    assert one.tobytes() == other.tobytes()
    assert "_block_of(end_n, BLOCK_N)" in kernel.source


@settings(max_examples=25)
@given(st.integers(0, 40), st.integers(1, 7))
def test_each_element_is_read_once_at_any_size(size, lanes):
    kernel, site = scheduled("largest")
    draft = PART.apply(kernel.derivation.final, site).draft
    text = draft.show().replace("N 16?", f"N {lanes}?").replace("M 16?", "M 3?")
    x = np.random.default_rng(size).normal(size=(5, max(size, 1)))

    made = run_tiles(parse_tiles(text), {"x": x})["out"]

    assert (made == x.max(-1)).all()


def test_dims_that_are_no_multiple_are_a_reason_and_others_none():
    ragged, site = scheduled("matmul")
    even, _ = scheduled("matmul", sizes={"K": 48})

    assert not PART.why_not(ragged.derivation.final, site)
    assert "no mask in the loop over K" in PART.why_not(even.derivation.final, site)
    once = PART.apply(ragged.derivation.final, site)
    assert "one of several parts already" in PART.why_not(once, site)


def test_what_is_said_of_it():
    kernel, _ = scheduled("matmul", "part nest 1 K")

    (line,) = narrowed_loops(kernel.tile_program, dict(M=24, K=40, N=40), {})

    assert line == "a loop over K looks at lanes past its end in the last of 3 blocks alone"


@pytest.mark.parametrize(("keys", "parted"), [(8180, True), (8192, False), (500, False)])
def test_long_loops_with_guards_are_parted(keys, parted):
    graph = bb.fuse(bb.lower(bb.trace(attention, **DIMS))).final
    sizes = dict(H=16, M=4096, N=keys, D=128, L=128)

    assert ("part nest 1 N" in bb.emit(graph, sizes, "float16").schedule) == parted


def agrees(name):
    """Whether what part makes is proved."""
    start, site = scheduled(name)
    before = start.derivation.final
    try:
        after = PART.apply(before, site)
        proof = prove_tiles(before.draft, after.program, trials=6, seed=1, lanes=True)
    except Hazard:
        return False
    return proof.equal


MUTANTS = [
    (part, "last = short if last is None", "last = last if last is None", "matmul"),
    (part, "writer.within(last, (None, short))", "last", "near"),
    (padding, "if dim != loop.dim)", "if False)", "nested"),
]


@pytest.mark.parametrize(("module", "old", "new", "name"), MUTANTS)
def test_a_broken_part_is_caught(monkeypatch, module, old, new, name):
    """Blocks that are said to be full are looked at, and guards of other dims stay."""
    assert agrees(name)
    mutated(monkeypatch, module, old, new)

    assert not agrees(name)
