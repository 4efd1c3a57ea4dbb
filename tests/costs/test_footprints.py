"""Estimates of shared memory and registers, beside what Triton and the assembler took.

tests/golden/footprints.json was written by ``python -m bench.costs.footprints``.
"""

from dataclasses import replace
from functools import cache
from math import inf
from statistics import median

import pytest
from torch.nn.functional import conv2d

import blockbuster as bb
from bench.costs.footprints import estimated, records, scheduled
from blockbuster.costs.coefficients import FITTED
from blockbuster.costs.footprint import Footprint, footprint
from blockbuster.costs.lines import SHIFTED
from blockbuster.costs.operands import LANES
from blockbuster.costs.phases import FLAT, ITERATION
from blockbuster.costs.registers import _element_by_element, _lives
from blockbuster.costs.steps import Rates
from blockbuster.costs.work import work_of
from blockbuster.emit.tile.each_nest import Same
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.emit.tile.program import For, Let, statements
from blockbuster.ir.ops import Functional
from blockbuster.machines import machine


@cache
def pairs():
    """(target, estimate, shared bytes, registers, spills) of each compiled kernel."""
    return [
        (record["target"], footprint, *kernel)
        for record in records()
        for footprint, kernel in zip(estimated(record), record["kernels"], strict=True)
    ]


@pytest.mark.parametrize("target", ["sm_90", "sm_80"])
def test_shared_memory_is_within_a_tenth_of_nine_in_ten(target):
    near = [abs(e.shared - took) <= took / 10 for at, e, took, *_ in pairs() if at == target]

    assert sum(near) >= 0.9 * len(near)


def test_there_are_enough_of_them():
    assert len(records()) >= 200
    assert sum(took > 1024 for _, _, took, *_ in pairs()) >= 200, "most take more than a few words"


def test_no_program_is_taken_to_fit_that_does_not():
    """Estimates that are too low by more than a tenth would let a schedule pass that cannot run."""
    low = [(e.shared, took) for _, e, took, *_ in pairs() if e.shared < 0.9 * took > 4096]

    assert low == []


def test_registers_are_near_where_none_spill():
    held = [(e.registers, took) for _, e, _, took, spilled in pairs() if not spilled]
    errors = [abs(guess - took) / took for guess, took in held]

    assert median(errors) < 0.2
    assert sum(error < 0.25 for error in errors) > 0.6 * len(errors)


def test_registers_of_kernels_without_dots_and_loops_are_neither_too_many_nor_too_few():
    """They have constants of their own: such kernels run many programs side by side."""
    ratios = [
        estimate.registers / took
        for record in records()
        for estimate, (_, took, spilled), nest in zip(
            estimated(record), record["kernels"], scheduled(record).program.nests, strict=True
        )
        if not spilled and not any(is_loop_or_dot(stmt) for stmt in statements(nest.body))
    ]

    assert len(ratios) > 20
    assert 0.9 < median(ratios) < 1.1


def is_loop_or_dot(stmt):
    return isinstance(stmt, For) or (isinstance(stmt, Let) and stmt.op == Functional("dot"))


# how many run side by side ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("footprint", "resident"),
    [
        (Footprint(shared=0, registers=32, warps=4), 16),  # threads: 2048 of 128
        (Footprint(shared=0, registers=16, warps=1), 32),  # programs
        (Footprint(shared=0, registers=128, warps=4), 4),  # registers: 65,536
        (Footprint(shared=0, registers=129, warps=4), 3),  # in eights: 136
        (Footprint(shared=57_344, registers=64, warps=4), 4),  # with what the system takes: 4
        (Footprint(shared=76_800, registers=64, warps=4), 3),
        (Footprint(shared=77_824, registers=64, warps=4), 2),
        (Footprint(shared=232_448, registers=64, warps=4), 1),
    ],
)
def test_programs_run_side_by_side_as_many_as_fit(footprint, resident):
    assert footprint.resident(machine("h200")) == resident


def test_what_does_not_fit_is_refused_in_words():
    large = Footprint(shared=232_449, registers=64, warps=4)
    with pytest.raises(ValueError, match="needs 232,449 bytes of shared memory, h200 has 232,448"):
        large.resident(machine("h200"))
    with pytest.raises(ValueError, match=r"a program of 128 warps does not fit .* 2048 threads"):
        Footprint(shared=0, registers=32, warps=128).resident(machine("h200"))


def registers_of(fn, **inputs):
    """Of a thread of a product with tiles of 128 x 128, and what ``fn`` does with its result."""
    graph = bb.fuse(bb.lower(bb.trace(fn, x="M K", y="K N", **inputs))).final
    text = "block M 128, K 64, N 128\nwarps 4\nstage nest 1 K 2\n"
    sizes = dict(M=256, K=256, N=256)
    program = bb.emit(graph, sizes, "float16", "sm_90", schedule=text).tile_program
    return footprint(layouts_of(program, program.nests[0], "sm_90")).registers


def test_values_go_element_by_element_through_what_follows_a_product():
    """Triton 3.6 makes kernels of 171 to 203 registers of these, and 168 of the product alone."""
    alone = registers_of(lambda x, y: x @ y)

    def mish(x, y):
        p = x @ y
        s = bb.sigmoid(p)
        return p * (s * (2.0 - s) / (2.0 - s * (2.0 - s)))

    def outer(x, y, a, b):
        both = a[:, None] * b
        return (x @ y) * both + both

    assert alone <= registers_of(mish) < alone + 8
    assert alone <= registers_of(outer, a="M", b="N") < alone + 8


def test_values_that_a_sum_reads_first_are_held():
    def normed(x):
        e = bb.exp(x)
        return e / bb.sum(e, axis=-1, keepdims=True) * 2.0

    graph = bb.fuse(bb.lower(bb.trace(normed, x="M N"))).final
    text = "block M 1, N 128 whole\nwarps 1\n"
    program = bb.emit(graph, dict(M=256, N=128), "float16", "sm_90", schedule=text).tile_program
    (nest,) = program.nests
    lets = [stmt for stmt in statements(nest.body) if isinstance(stmt, Let)]
    summed = {tile for let in lets if isinstance(let.op, Functional) for tile in let.args}
    passing = set(_element_by_element(_lives(Same(nest.body), program.units)))

    assert summed
    assert passing
    assert not summed & passing


def test_a_tile_that_lives_on_in_its_layout_is_held_twice_where_it_takes_another():
    """Twice 128 elements to a thread: the copy that meets the product, and what is made of it."""

    def once(x, y, t):
        return bb.sum((x @ y) * bb.exp(t), axis=-1)

    def lives_on(x, y, t):
        e = bb.exp(t)
        return bb.sum((x @ y) * e, axis=-1) / bb.sum(e, axis=-1)

    def registers(fn):
        graph = bb.fuse(bb.lower(bb.trace(fn, x="M K", y="K N", t="M N"))).final
        text = "block M 64, K 64 whole, N 128\nwarps 4\nstage nest 1 N 2\n"
        program = bb.emit(graph, dict(M=256, K=64, N=1024), "float16", schedule=text).tile_program
        return footprint(layouts_of(program, program.nests[0], "sm_90")).registers

    assert registers(lives_on) > registers(once) + 32


def test_registers_that_are_not_there_are_spilled():
    wide = Footprint(shared=0, registers=248, warps=16)
    assert wide.available(machine("h200")) == 128
    assert wide.resident(machine("h200")) == 1
    assert Footprint(shared=0, registers=300, warps=4).available(machine("h200")) == 256


def test_of_loops_in_a_row_the_largest_takes_registers_for_its_addresses():
    def causal(q, k, v):
        seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
        return bb.softmax(bb.where(seen, q @ k.T, -inf), axis=-1) @ v

    graph = bb.fuse(bb.lower(bb.trace(causal, q="M D", k="N D", v="N L"))).final
    sizes = dict(M=2048, N=2048, D=128, L=128)
    blocks = "block M 64, D 128 whole, N 64, L 128 whole\nnarrow nest 1 N\n"
    texts = (blocks + "warps 4\n", blocks + "part nest 1 N\nwarps 4\n")

    programs = (bb.emit(graph, sizes, schedule=text).tile_program for text in texts)
    one, two = (footprint(layouts_of(p, p.nests[0], "sm_90")) for p in programs)
    assert two.registers == one.registers


def convolution():
    """A kernel of 64 rows by 64 channels in 4 warps: each thread loads 4 times 16 bytes of rows."""

    def convolved(x, w):
        return conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2))

    graph = bb.fuse(bb.lower(bb.trace(convolved, x="A C D B", w="E F F B"))).final
    sizes = dict(A=2, B=64, C=66, D=66, E=64, F=3)
    schedule = "block B 64 whole, E 64, H 64\nwarps 4\nstage nest 1 F' 3"
    return bb.emit(graph, sizes, "float16", schedule=schedule).tile_program, sizes


def test_loops_that_are_one_divide_once_in_an_iteration():
    (found,) = work_of(*convolution(), "sm_90")

    outer, inner = found.phases[1:]
    assert (outer.besides, inner.flat) == (0, 1)
    assert inner.besides == inner.runs * 4 * LANES * (ITERATION + FLAT)
    assert inner.places == inner.runs * 4 * LANES * (FLAT + 4 * SHIFTED)


def test_dots_wait_for_places_of_windows():
    """As long with four programs on a processor as with one, of which none has dots meanwhile."""
    (found,) = work_of(*convolution(), "sm_90")
    own, h100 = FITTED.place * (FLAT + 4 * SHIFTED), machine("h100")

    def seconds(place, programs):
        rates = Rates(found, h100, replace(FITTED, place=place), dict(found.loaded))
        return rates.steps(h100.processors)[-1].seconds(programs)

    for programs in (1, 4):
        waited = seconds(FITTED.place, programs) - seconds(0.0, programs)
        assert waited * h100.clock == pytest.approx(own)
