"""Programs that make larger values again: when they are chosen, their cost, and their results."""

import re
from functools import cache

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.runtime.launch import LaunchError, run_batch
from blockbuster.selection.candidates.again import Again, values_again
from blockbuster.selection.choice import Fused
from tests.gradients import ATTENTION, LARGE, PROGRAMS, SMALL, drawn, sized, traced
from tests.parameters import rest_slow

FEATURES = dict(q="H S D", k="H S D", v="H S D", p="F D")

KERNELS = {
    "attention": 2, "self": 2, "causal": 2, "grouped": 2, "biased": 2, "dropout": 2,
    "statistics": 2,
}  # fmt: skip


QUICK = ("statistics",)


def considered(name, sizes=LARGE, dtype="float16", target="sm_90", **more):
    program = traced(name)
    known = {**sized(program, sizes), **more}
    return Fused(bb.lower(program)).consider(known, dtype, target)


@cache
def best_of(name):
    """The best choice for a program at large sizes."""
    return considered(name).best


def elements(buffer, scheduled):
    return np.prod([scheduled.sizes[axis.dim.rstrip("'")] for axis in buffer.axes], dtype=float)


@pytest.mark.parametrize(
    "name", rest_slow([*ATTENTION, "cross-entropy"], ["statistics", "cross-entropy"])
)
def test_no_workspace_is_as_large_as_the_scores(name):
    best = best_of(name)
    given = (*best.program.inputs, *best.program.outputs)
    parts = {dim for chunks in best.program.chunks for dim in (chunks.number, chunks.lanes)}
    most = max(elements(buffer, best.scheduled) for buffer in given)
    spaces = [b for b in best.program.workspaces if parts.isdisjoint(a.dim for a in b.axes)]

    assert best.again
    assert all(elements(buffer, best.scheduled) <= most for buffer in spaces)
    assert best.kernels == KERNELS.get(name, best.kernels)


def test_statistics_that_are_given_need_no_workspace():
    assert best_of("statistics").program.workspaces == ()


@pytest.mark.slow
def test_where_arithmetic_is_long_values_are_stored():
    found = considered("gated", D=4096, F=11008, T=4096)

    assert not found.best.again
    assert any("it repeats too much" in reason for reason in found.refused)


def test_the_reason_says_what_counts():
    reason = considered("attention").reason

    assert " us (what it stores between kernels is larger than all that it is given)" in reason
    again = "computes large values where it reads them, D.* in one block [0-9,.]+ us"
    assert re.search(again, reason)


def test_the_report_names_what_is_made_again():
    program = traced("statistics")
    report = bb.compile(program, sized(program, LARGE), "float16", "h200").report
    details = " ".join(report.details.split())

    said = "ds and what they read are computed again where they are read: 1[0-9]+ billion"
    assert re.search(f"{said} operations instead of 8[0-9.]+ billion", details)


def test_nothing_is_made_again_on_the_cpu():
    found = considered("statistics", SMALL, "float32", "cpu")

    assert not any(choice.again for choice in (found.best, *found.others))


def test_programs_that_store_nothing_large_cost_what_they_did():
    program = bb.trace(lambda q, k, v: bb.softmax(q @ k.T, axis=-1) @ v, q="M D", k="N D", v="N L")
    one = Fused(bb.lower(program))
    found = one.consider(dict(M=64, N=64, D=32, L=32), "float16", "sm_90")

    assert not any(isinstance(beside, Again) for beside in one.beside)
    assert all(choice.weight == 1.0 for choice in (found.best, *found.others))


@pytest.mark.slow
def test_numbers_do_not_depend_on_which_sizes_come_first():
    program = traced("one head")
    keys = []
    for order in ((16, 1024), (1024, 16)):
        one = Fused(bb.lower(program))
        found = {d: one.consider(dict(M=512, N=512, D=d, L=16), "float16", "sm_90") for d in order}
        chosen = [choice for choice in (found[16].best, *found[16].others) if choice.again]
        keys.append(sorted((choice.snapshot, choice.name) for choice in chosen))

    assert keys[0] == keys[1]
    assert [name.rpartition(", ")[2] for _, name in keys[0]][-1].endswith("L in one block")


@pytest.mark.interpreter
@pytest.mark.parametrize(
    ("name", "wide"),
    [
        *(pytest.param(n, 1.0, marks=() if n in QUICK else pytest.mark.slow) for n in PROGRAMS),
        *(pytest.param(n, 30.0, marks=pytest.mark.slow) for n in ("attention", "causal")),
    ],
)
def test_the_kernels_compute_the_program(name, wide):
    program = traced(name)
    one, sizes = Fused(bb.lower(program)), sized(program, SMALL)
    for dtype, tolerance in (("float32", 1e-5 * wide), ("float16", 3e-3)):
        arrays = drawn(name, dtype, wide=wide)
        wanted = program.numpy({n: a.astype(float) for n, a in arrays.items()})
        found = one.consider(sizes, dtype, "sm_90")
        made = [c for c in (found.best, *found.others) if c.again]
        schedules = [choice.scheduled.schedule for choice in made]
        pairs = zip(made, schedules, strict=True)
        kernels = [bb.emit(c.graph, sizes, dtype, schedule=text) for c, text in pairs]
        assert len(made) == 2
        for got in run_batch([(kernel, arrays) for kernel in kernels]):
            assert not isinstance(got, LaunchError), got
            for array, right in zip(got.values(), wanted.values(), strict=True):
                most = max(np.abs(right).max(), 1.0)  # of wide scores, little comes back
                assert np.abs(array.astype(float) - right).max() <= tolerance * most


# larger values alone made again ---------------------------------------------------


BY_KERNEL = """
block D' 32 whole, D 32 whole
keep nest 1 @12
keep nest 1 @59
split
turn nest 2 @17
block nest 1 S' 32, F 64 whole
block nest 2 S' 16, F 32
block nest 3 S 16, F 64 whole
chunk nest 1 S' 2 at once
chunk nest 3 S' 2 at once
factor nest 3
factor nest 5
warps 4
overlap
"""


def linear(q, k, v, p):
    """Attention by positive random features."""

    def features(x, axes):
        x = x * x.shape[-1] ** -0.25
        u = x @ p.swapaxes(-1, -2)
        squares = 0.5 * bb.sum(x * x, axis=-1, keepdims=True)
        return bb.exp(u - squares - bb.max(u, axis=axes, keepdims=True)) + 1e-4

    fq, fk = features(q, -1), features(k, (-1, -2))
    return (fq @ (fk.swapaxes(-1, -2) @ v)) / (fq @ bb.sum(fk, axis=-2)[..., None])


@pytest.mark.slow
def test_keys_times_values_are_not_made_again_for_each_query():
    graph = bb.lower(bb.trace(linear, **FEATURES))
    found = Fused(graph).consider(dict(H=16, S=8192, D=64, F=256), "float16", "sm_90")

    best = found.best
    assert best.name == "the program with larger values alone made again, D in one block"
    assert best.kernels == 4  # chunks of the maximum, of products, their sums, the result
    assert any(
        "larger values made again is no choice: it repeats" in said for said in found.refused
    )
    assert not any(
        {"S", "F"} <= {a.dim.rstrip("'") for a in b.axes} for b in best.program.workspaces
    )
    assert "turn nest 2" in best.scheduled.schedule


@pytest.mark.interpreter
def test_kernels_with_features_made_again_compute_the_program():
    program = bb.trace(linear, **FEATURES)
    sizes = dict(H=2, S=37, D=18, F=34)
    draw = np.random.default_rng(0)
    shapes = {name: [sizes[dim] for dim in dims.split()] for name, dims in FEATURES.items()}
    one = Fused(bb.lower(program))
    for dtype, tolerance in (("float32", 1e-5), ("float16", 3e-3)):
        arrays = {n: draw.standard_normal(shape).astype(dtype) for n, shape in shapes.items()}
        (wanted,) = program.numpy({n: a.astype(float) for n, a in arrays.items()}).values()
        made = [values_again(one.derivation, dims, alone=True) for dims in ((), ("D",))]
        texts = (None, BY_KERNEL if dtype == "float16" else None)
        pairs = zip(made, texts, strict=True)
        kernels = [bb.emit(again.graph, sizes, dtype, schedule=text) for again, text in pairs]
        for got in run_batch([(kernel, arrays) for kernel in kernels]):
            assert not isinstance(got, LaunchError), got
            (array,) = got.values()
            assert np.abs(array.astype(float) - wanted).max() <= tolerance * np.abs(wanted).max()
