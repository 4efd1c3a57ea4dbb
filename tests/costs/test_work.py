"""What kernels do in closed form equals what a run of the tile interpreter counts."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import blockbuster as bb
from bench.schedules.measure import emitted
from bench.schedules.programs import BY_NAME
from blockbuster.costs import work, work_of
from blockbuster.costs.operands import LANES, PRODUCTS, TF32
from blockbuster.costs.phases import besides
from blockbuster.costs.scalars import scalar
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.observer import TileObserver
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.program import For, Issue, Let, Load, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.told_sizes import told_sizes
from blockbuster.emit.tile.typed import arithmetic_of, takes_matrix_units
from blockbuster.interp.semantics import Float64
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.types import size_class
from blockbuster.ir.views import Strided
from tests.emit.random_spans import with_spans
from tests.emit.random_tiles import all_cut, is_cut, lowered, random_graph, some_moves

RANDOMS = st.integers(0, 2**32 - 1).map(Random)
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)


class Counting(TileObserver):
    """Bytes by array, operations by unit, special functions; and which elements were loaded."""

    def __init__(self, program):
        self.program, self.arithmetic = program, arithmetic_of(program)
        self.loaded, self.stored, self.operations = Counter(), Counter(), Counter()
        self.special, self.seen = 0, {}
        lets = [s for n in program.nests for s in statements(n.body) if isinstance(s, Let)]
        self.joined = {let.target for let in lets if let.into is not None}

    def load(self, view, elements):
        self.loaded[view.buffer.name] += elements.size * MEMORY[view.buffer.dtype].bytes
        inside = elements[elements > 0]  # elements count from 1, and zeros stand outside
        self.seen.setdefault(view.buffer.name, set()).update(inside.ravel().tolist())

    def store(self, view, elements):
        self.stored[view.buffer.name] += elements.size * MEMORY[view.buffer.dtype].bytes

    def let(self, stmt, args, made, real):
        match stmt.op:
            case Functional("dot") if takes_matrix_units(stmt, self.program.units):
                dtype = stmt.args[0].dtype
                unit = "vector" if dtype == "float32" else "matrix"
                (shared,) = {*stmt.args[0].axes} & {*stmt.args[1].axes} - {*stmt.target.axes}
                each = 2 * made.size * args[0].shape[stmt.args[0].axes.index(shared)]
                if stmt.split:
                    self.operations["matrix", TF32] += PRODUCTS * each
                else:
                    self.operations[unit, dtype] += each
            case Functional("dot"):
                axes = dict(zip(stmt.args[0].axes, args[0].shape, strict=True))
                axes |= dict(zip(stmt.args[1].axes, args[1].shape, strict=True))
                self.operations["vector", self.arithmetic] += 2 * int(np.prod([*axes.values()]))
            case Functional():
                self.operations["vector", self.arithmetic] += args[0].size
            case Pointwise(expr):
                self.scalar(expr, made.size)

    def scalar(self, expr, size):
        each = scalar(expr)
        self.operations["vector", self.arithmetic] += each.calls * size
        self.special += each.special * size

    def fold(self, stmt, values, real):
        if not stmt.ahead and stmt.value not in self.joined:
            self.operations["vector", self.arithmetic] += values[0].size
        for member, value in zip(stmt.members, values[1:], strict=True):
            self.operations["vector", self.arithmetic] += value.size
            for _ in range(1 if stmt.ahead else 2):
                self.scalar(member.factor, value.size)


def counted(program, sizes):
    """A run with all lanes of all tiles, on inputs whose elements are told apart."""
    counting = Counting(program)
    inputs = {
        buffer.name: 1.0 + np.arange(np.prod(shape, dtype=int)).reshape(shape)
        for buffer in program.inputs
        for shape in [[sizes[size_class(a.dim)] if a.dim else 1 for a in buffer.axes]]
    }
    run_tiles(program, inputs, sizes, semantics=Float64, padded=True, observer=counting)
    return counting


def total(works, part):
    found = Counter()
    for one in works:
        found.update(part(one))
    return +found


def scheduled_at_random(random, spans):
    scheduled = lowered(random_graph(random), random)
    scheduled = all_cut(scheduled, random)
    if spans:
        scheduled = with_spans(scheduled, random)
    scheduled = some_moves(scheduled, random, 3)
    nests = (replace(n, warps=n.warps or random.choice((1, 4, 8))) for n in scheduled.draft.nests)
    return replace(scheduled, draft=replace(scheduled.draft, nests=tuple(nests)))


def agrees(scheduled):
    program, sizes = scheduled.program, scheduled.sizes
    works, run = work(scheduled), counted(program, sizes)
    assert total(works, lambda w: w.loaded) == +run.loaded
    assert total(works, lambda w: w.stored) == +run.stored
    operations = total(works, lambda w: w.operations)
    if any(told_sizes(nest, tiling_of(program, nest)) for nest in program.nests):
        assert operations <= +run.operations, "lanes past the end of short dims compute nothing"
        assert sum(w.special for w in works) <= run.special
    else:
        assert operations == +run.operations
        assert sum(w.special for w in works) == run.special
    assert all(sum(p.each) == p.runs for w in works for p in w.phases if p.each)
    return works, run


def has_spans(program):
    """True where a move left blocks out: arrays count whole that a loop reads in part."""
    loops = (s for nest in program.nests for s in statements(nest.body) if isinstance(s, For))
    return any(loop.span is not None for loop in loops)


def in_windows(program, buffer):
    """True if windows or their taps read an array: they may skip elements of an axis."""
    loads = (s for n in program.nests for s in statements(n.body) if isinstance(s, Load | Issue))
    axes = (axis for load in loads if load.view.buffer == buffer for axis in load.view.dims)
    return any(isinstance(axis, Strided) for axis in axes)


@settings(max_examples=25, phases=UNSHRUNK, deadline=None)
@given(RANDOMS)
def test_of_random_programs(random):
    scheduled = scheduled_at_random(random, spans=False)
    if not is_cut(scheduled):
        return
    works, run = agrees(scheduled)
    unique = total(works, lambda w: {n: w.unique[n] for n in w.loaded})
    for buffer in scheduled.program.inputs:
        touched = len(run.seen.get(buffer.name, ())) * MEMORY[buffer.dtype].bytes
        nests = sum(buffer.name in w.loaded for w in works)
        assert touched <= unique[buffer.name]
        in_part = has_spans(scheduled.program) or in_windows(scheduled.draft, buffer)
        assert unique[buffer.name] <= nests * touched or in_part


@settings(max_examples=15, phases=UNSHRUNK, deadline=None)
@given(RANDOMS)
def test_of_loops_over_spans(random):
    scheduled = scheduled_at_random(random, spans=True)
    if is_cut(scheduled):
        agrees(scheduled)


def test_each_program_of_a_narrowed_loop_has_its_own_length():
    case = BY_NAME["causal-attention"]
    for word, lengths in (("narrow", range(1, 65)), ("longest-first", range(64, 0, -1))):
        made = emitted(case, case.alternatives()[word], case.sizes)
        (one,) = work_of(made.tile_program, made.sizes, made.target)
        heads = case.sizes["H"]
        assert one.phases[-1].each == tuple(lengths) * heads
        assert one.phases[-1].runs == heads * 64 * 65 // 2


def test_of_very_many_programs_the_average_is_kept():
    case = BY_NAME["causal-attention"]
    sizes = {**case.sizes, "H": 1024}
    made = emitted(case, case.alternatives()["narrow"], sizes)
    (one,) = work_of(made.tile_program, made.sizes, made.target)
    assert one.phases[-1].each == ()
    assert one.phases[-1].runs == 1024 * 64 * 65 // 2


# what a compiler makes of it ---------------------------------------------------------


def row_softmax(warps):
    """Rows of 2048 elements in one block: their exponentials stand in the program twice."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.softmax(x, axis=-1), x="M N"))).final
    text = f"block M 1, N 2048 whole\nwarps {warps}\n"
    made = bb.emit(graph, dict(M=64, N=2048), "float16", "sm_90", schedule=text)
    (one,) = work_of(made.tile_program, made.sizes, made.target)
    return one


def test_equal_expressions_are_computed_once():
    (phase,) = row_softmax(4).phases
    assert phase.special == phase.repeated + 64 * 2049  # an exponential each, a quotient a row
    assert phase.repeated == 64 * 2048


def test_each_warp_issues_what_no_statement_asks_for():
    few, many = row_softmax(2), row_softmax(8)
    assert few.phases[0].instructions == many.phases[0].instructions
    assert many.phases[0].besides > 3 * few.phases[0].besides
    loop = emitted(BY_NAME["matmul"], None, dict(M=64, N=64, K=256))
    (one,) = work_of(loop.tile_program, loop.sizes, loop.target)
    outside, inside = one.phases
    lanes = LANES * one.warps
    assert outside.besides == outside.runs * lanes * besides(True, True, 1, False, 0, 0)
    assert inside.besides == inside.runs * lanes * besides(False, False, 0, True, 0, 0)


def test_what_no_statement_asks_for_is_not_repeated_by_warps_that_do_the_same():
    (phase,) = row_softmax(4).phases
    assert phase.issued(1) == phase.instructions + phase.besides
    assert phase.issued(2) == 2 * phase.instructions + phase.besides


def test_equal_kernels_of_two_programs_are_counted_once():
    """A schedule that changes one kernel leaves the work of the other as it is."""
    case = BY_NAME["chain-two-kernels"]
    texts = [case.text.replace("warps 4", f"warps nest 1 4\nwarps nest 2 {n}") for n in (4, 8)]
    made = [emitted(case, text, case.sizes) for text in texts]
    before, after = (work_of(one.tile_program, one.sizes, one.target) for one in made)

    assert before[0] is after[0]
    assert before[1] != after[1]


def layer_norm(columns, rows=64):
    """Rows of a block each, with weights that all programs read: 2 bytes for each column."""

    def program(x, g, b):
        d = x - bb.mean(x, axis=-1, keepdims=True)
        return d * bb.rsqrt(bb.mean(d * d, axis=-1, keepdims=True) + 1e-5) * g + b

    graph = bb.fuse(bb.lower(bb.trace(program, x="M K", g="K", b="K"))).final
    text = f"block M 1, K {columns} whole\nwarps 4\n"
    made = bb.emit(graph, dict(M=rows, K=columns), "float16", "sm_90", schedule=text)
    (one,) = work_of(made.tile_program, made.sizes, made.target)
    return one


@pytest.mark.parametrize(("columns", "near"), [(8192, True), (16384, False)])
def test_a_processor_keeps_what_all_programs_read(columns, near):
    """Of two arrays of 16 kB, which do not count, and of 32 kB, which do."""
    (phase,) = layer_norm(columns).phases
    rows = 2 * 64 * columns * 2  # x and the results
    weights = 0 if near else 2 * 64 * columns * 2
    assert phase.sectors == rows + weights
    assert sum(phase.loaded.values()) == 3 * 64 * columns * 2


def test_sums_beside_each_other_are_exchanged_at_once():
    """Of three sums two are added up together: 5 shuffles and 2 for the warps, then exchanges."""
    (norm,), (softmax,) = layer_norm(1024).phases, row_softmax(4).phases
    assert (norm.folds, norm.exchanges) == (softmax.folds, softmax.exchanges)
