"""The move unroll: taps of windows written out, what it refuses, and where it pays."""

import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import unroll
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.unroll import Unroll
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import For, statements
from blockbuster.frontend.functions.windows import windowed
from blockbuster.ir.lengths import Rule, whole
from blockbuster.runtime.launch import run_batch
from tests.emit.parse_tiles import parse_tiles

UNROLL, SM_90 = Unroll(), target_of("sm_90")
SIZES = dict(A=2, C=9, D=7)
BY_HAND = "unroll nest 1 E'\nunroll nest 1 E\nblock F 4, G 16\nwarps 1\n"


def graph_of(fn, **axes):
    return bb.fuse(bb.lower(bb.trace(fn, **axes))).final


def depthwise(stride=1, padding=1, dilation=1):
    return graph_of(
        lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups=6),
        x="A 6 C D", w="6 1 3 3",
    )  # fmt: skip


def maxima(x):
    """Of every other of five elements; which of them stand outside is a condition on positions."""
    return bb.max(windowed(x + 1, 1, 3, 1, 2, (2, 2)).transpose(2, 0, 1), axis=0)


def start_of(graph, **sizes):
    tiles = lower_to_tiles(graph)
    typed = typed_for_gpu(graph, tiles, given_by("float32"))
    return unscheduled(typed, emit(graph, sizes or SIZES, "float32").sizes, SM_90)


@pytest.fixture(scope="module")
def start():
    return start_of(depthwise())


def loops(program):
    serial = (s for nest in program.nests for s in statements(nest.body) if isinstance(s, For))
    return [loop.dim for loop in serial if not loop.parallel]


def test_taps_written_out_are_right():
    """Kernels by default, in Triton's interpreter, in float32: of small integers they are exact."""
    drawn, jobs, right = np.random.default_rng(0), [], []
    for geometry in ((1, 1, 1), (2, 0, 1), (1, 2, 2), (3, 1, 1)):
        shapes = (2, 6, 9, 7), (6, 1, 3, 3)
        x, w = (drawn.integers(-4, 5, shape).astype("float32") for shape in shapes)
        kernel = emit(depthwise(*geometry), SIZES, "float32")
        assert "unroll" in kernel.schedule
        assert loops(kernel.tile_program) == []
        jobs.append((kernel, {"x": x, "w": w}))
        right.append(F.conv2d(*map(torch.tensor, (x, w)), None, *geometry, groups=6).numpy())

    for made, expected in zip(run_batch(jobs), right, strict=True):
        np.testing.assert_array_equal(made["out"], expected)


def test_it_is_proved_down_to_padded_lanes():
    assert check_schedule(depthwise(), BY_HAND, SIZES, trials=2).equal


def test_maxima_are_written_out_and_positions_become_numbers():
    graph = graph_of(maxima, x="A C")
    schedule = emit(graph, dict(A=3, C=9), "float32").schedule

    assert "unroll" in schedule
    assert check_schedule(graph, schedule, dict(A=3, C=9), trials=2).equal


# refusals ----------------------------------------------------------------------------


@pytest.mark.parametrize(("loop", "why"), [
    ("A", "the loop over A is no serial one"),
    ("E", "the loop over E holds more than loads, operators and folds"),
    ("Z", "there is no nest 1 Z"),
])  # fmt: skip
def test_refusals(start, loop, why):
    assert UNROLL.why_not(start, Site(1, loop)).startswith(why)


SUMS = """
tiles {
  inputs x: [E, N], w: [N]
  outputs y: [N]
  units E
  sizes |E| = 3
  nest 1 {
    forall N {
      t1: [N] = init +
      for E {
        t2: [N] = load x[E, N]
        t1 += t2
      }
      store y[N] = t1
    }
  }
}
"""
FOLD = "        t1 += t2\n"


@pytest.mark.parametrize(("old", "new", "why"), [
    (FOLD, FOLD, ""),
    (FOLD, f"{FOLD}        t3: [N] = t1 * 2\n", "t1 is read in the loop that folds it"),
    (FOLD, f"{FOLD}{FOLD}", "t1 is folded by other statements, too"),
    (f"{FOLD}      }}\n", f"{FOLD}      }}\n      t3: [N] = load w[N]\n      t1 += t3\n",
     "t1 is folded by other statements, too"),
    (FOLD, f"{FOLD}        store y[N] = t2\n",
     "the loop over E holds more than loads, operators and folds"),
])  # fmt: skip
def test_sums_of_a_loop_are_its_own(old, new, why):
    assert SUMS.count(old) == 1
    program = parse_tiles(SUMS.replace(old, new))

    made = unscheduled(program, dict(E=3, N=40), SM_90)
    assert UNROLL.why_not(made, Site(1, "E")) == why
    if not why:
        assert prove_tiles(program, UNROLL.apply(made, Site(1, "E")).draft, trials=2).equal


@pytest.mark.parametrize("rules", [(), (Rule("E", whole(3), exact=False),)])
def test_a_size_that_is_not_known_is_not_written_out(start, rules):
    unknown = replace(start, draft=replace(start.draft, rules=rules))

    why = UNROLL.why_not(unknown, Site(1, "E'"))
    assert why == "the size of E' is not known for all calls"


@pytest.mark.parametrize(("old", "new"), [
    ("own.step * whole(at)", "whole(at)"), ("range(self.count)", "range(self.count - 1)"),
    ("(before, fold.value)", "(before, before)"), ("Const(float(at))", "Const(0.0)"),
    ("COMBINED[fold.monoid]", 'COMBINED["+"]'),
])  # fmt: skip
def test_mutants_are_caught(old, new):
    text = Path(unroll.__file__).read_text()
    assert text.count(old) == 1
    mutant = types.ModuleType("mutant")
    sys.modules["mutant"] = mutant
    exec(text.replace(old, new), vars(mutant))
    begun = start_of(graph_of(maxima, x="A C"), A=3, C=9)
    (site,) = UNROLL.sites(begun)
    after = mutant.Unroll().rewritten(begun, site)

    assert not prove_tiles(begun.draft, after, trials=4).equal


def test_loads_that_run_ahead_and_blocks_stay_loops():
    graph = graph_of(lambda x, w: x @ w, x="M K=32", w="K=32 N")
    made = start_of(graph, M=64, N=64)

    assert UNROLL.why_not(made, Site(1, "K")) == "the blocks of K have several elements"


# where it pays -----------------------------------------------------------------------


def test_taps_around_a_dot_stay_a_loop():
    graph = graph_of(lambda x, w: F.conv2d(x, w), x="A 32 C D", w="16 32 3 3")

    assert "unroll" not in emit(graph, dict(A=2, C=34, D=34), "float16").schedule


def test_many_taps_stay_a_loop_around_those_of_a_line(start):
    graph = graph_of(lambda x, w: F.conv2d(x, w, groups=6), x="A 6 C D", w="6 1 9 9")
    made = emit(graph, dict(A=2, C=34, D=34), "float16")

    assert made.schedule.count("unroll") == 1
    assert len(loops(made.tile_program)) == 1


def test_a_text_names_the_loop(start):
    made = replayed(start, "unroll nest 1 E'\nunroll nest 1 E")

    assert loops(made.draft) == []
