"""The lint for the pipeliner's race: finds it in hand-written kernels, and not in ours."""

from itertools import cycle, product
from pathlib import Path

import pytest

import blockbuster as bb
from bench.programs import OURS
from blockbuster.check.lint import lint
from tests.parameters import one_in

ROOT = Path(__file__).parents[2]
LOOP = """
@triton.jit
def kernel(X, W, O, K, BK: tl.constexpr):
    acc = tl.zeros([64, 64], tl.float32)
    total = tl.zeros([64], tl.float32)
    for k in {loop}:
        x = {load}
        acc = tl.dot({operand}, tl.load(W + k), acc)
        {other}
    tl.store(O, acc)
"""
DEFAULT = {
    "loop": "range(0, K, BK)", "load": "tl.load(X + k)", "operand": "x",
    "other": "total += tl.sum(x.to(tl.float32), 1)",
}  # fmt: skip
RACES = [
    {},
    {"loop": "tl.range(0, K, BK, num_stages=3)"},
    {"operand": "tl.trans(x)"},
    {"operand": "x.T"},
    {"load": "desc.load([0, k])"},
    {"other": "total += tl.sum(tl.load(X + k), 1)"},
    {"other": "total += tl.max(x, 1)"},
]
CLEAN = [
    {"other": "pass"},
    {"other": "acc = tl.dot(x, tl.load(W + k + 1), acc)"},
    {"operand": "x.to(tl.float16)"},
    {"loop": "tl.static_range(0, 4)"},
    {"loop": "tl.range(0, K, BK, num_stages=1)"},
]


@pytest.mark.parametrize("change", RACES)
def test_finds_the_race(change):
    (finding,) = lint(LOOP.format(**DEFAULT | change))

    assert finding.function == "kernel"
    assert finding.uses == (9,)
    assert "also used in line 9" in str(finding)


@pytest.mark.parametrize("change", CLEAN)
def test_is_silent(change):
    assert lint(LOOP.format(**DEFAULT | change)) == ()


def test_a_launch_without_pipelining():
    text = LOOP.format(**DEFAULT)

    assert lint(text + "\nkernel[(1,)](x, w, o, num_stages=1)\n") == ()
    assert lint(text + "\nkernel[(1,)](x, num_stages=1)\nkernel[(1,)](x, num_stages=3)\n")
    assert lint(text + "\nkernel[(1,)](x)\n")


def test_a_loop_with_stages_in_a_launch_without():
    text = LOOP.format(**DEFAULT | {"loop": "tl.range(0, K, BK, num_stages=3)"})

    assert lint(text + "\nkernel[(1,)](x, w, o, num_stages=1)\n")


def test_finds_the_reproducer():
    text = (ROOT / "bench/repro/pipeliner_race.py").read_text(encoding="utf-8")

    assert [finding.tile for finding in lint(text)] == ["x"]


def fused(workload):
    return bb.fuse(bb.lower(bb.trace(workload.fn, **workload.inputs)))


def lint_one(workload, graph, kind, dtype):
    assert lint(bb.emit(graph, workload.sizes_of(kind), dtype).source) == ()


@pytest.mark.parametrize("workload", one_in(8, OURS), ids=lambda w: w.name)
def test_our_kernels_pass(workload):
    lint_one(workload, fused(workload).final, "timed", "float16")


@pytest.mark.slow
@pytest.mark.parametrize("workload", OURS[::2], ids=lambda w: w.name)
def test_kernels_of_every_snapshot_pass(workload):
    """By turns at sizes of each kind and in both dtypes."""
    derivation = fused(workload)
    settings = cycle(product(("timed", "ragged", "tiny"), ("float32", "float16")))
    for graph in dict.fromkeys((derivation.start, *derivation.snapshots)):
        lint_one(workload, graph, *next(settings))


def test_our_printer_takes_the_pipelining_away():
    workload = next(w for w in OURS if w.name == "rmsnorm-swiglu")
    source = bb.emit(fused(workload).final, workload.sizes).source

    assert "num_stages=1" in source
    assert lint(source.replace("num_stages=1", "num_stages=3"))
