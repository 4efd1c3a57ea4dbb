"""Statistics apart: which programs have such a form, what its kernels do, and when it is chosen."""

import re
from functools import cache

import numpy as np
import pytest

import blockbuster as bb
from bench.programs import OURS, WORKLOADS
from blockbuster.emit.tile.array_dtypes import Given
from blockbuster.emit.tile.constants import kept_nests, running_nests
from blockbuster.emit.tile.program import Let, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.errors import LaunchError
from blockbuster.ir.parse import parse
from blockbuster.rules import safe
from blockbuster.runtime.launch import run_batch
from blockbuster.selection.candidates.apart import LOSES, statistics_apart, sums_beside_dots
from blockbuster.selection.choice import Fused

LARGE = {"M": 2048, "K": 4096, "N": 4096}
APART = {"layernorm-matmul", "rmsnorm-matmul", "rmsnorm-swiglu", "residual-block",
         "pairwise-scores", "l2-normalized-scores"}  # fmt: skip


@cache
def fused(name):
    workload = WORKLOADS[name]
    return Fused(bb.lower(bb.trace(workload.fn, **workload.inputs)))


def number(made):
    """Which snapshot it was, by its name."""
    return int(made.name.split()[1])


def test_programs_with_statistics_beside_dots():
    assert {w.name for w in OURS if fused(w.name).apart} == APART


@pytest.mark.parametrize("name", sorted(APART))
def test_they_compute_the_same_and_leave_no_sum_beside_a_dot(name):
    one = fused(name)
    for made in one.apart:
        whole = one.derivation.snapshots[number(made) - 1]
        assert made.derivation.start == one.derivation.start
        assert sums_beside_dots(made.graph) == 0
        assert sums_beside_dots(whole) or made is one.apart[-1]
        assert bb.prove_equal(whole, made.graph).equal
        assert made.derivation.replay() == made.graph
        assert {step.rule for step in made.derivation.steps[-1:]} == {"materialize"}


def test_a_mean_that_is_taken_off_behind_the_dots_loses_digits():
    (plain,) = fused("layernorm-matmul").apart

    assert LOSES in plain.notes
    assert "outer(" in safe(plain.graph).show()
    assert not any(LOSES in made.notes for made in fused("rmsnorm-matmul").apart)


def test_the_last_one_has_kernels_of_its_own_for_sums_that_stand_before_the_dots():
    *_, last = fused("rmsnorm-swiglu").apart
    whole = last.derivation.snapshots[number(last) - 1]
    chunked, made = (
        bb.emit(graph, dict(M=128, D=2048, K=8192, N=2048), "float16").schedule
        for graph in (fused("rmsnorm-swiglu").derivation.snapshots[number(last) - 1], last.graph)
    )

    assert number(last) == 1
    assert sums_beside_dots(whole) == 0
    assert "chunk nest 1" in chunked
    assert "chunk nest 1" not in made
    assert "sink nest 2" in made


def test_a_program_whose_sums_must_stay_has_no_other_form():
    graph = parse("""graph(x: M,K[M,K], w: N,K[N,K]) {
      y = map M (x_1 in !x, w_1 = !w) {
        z = map N (x_2 = !x_1, w_2 in !w_1) {
          p, s = map K (a in !x_2, b in !w_2) {
            d = dot(a, b)
            e = exp(a)
            t = row_sum(e)
            yield +d
            yield +t
          }
          u = row_scale(p, s)
          yield u
        }
        yield z
      }
      return y
    }""")
    derivation = bb.fuse(graph)

    assert sums_beside_dots(derivation.final) == 1
    assert statistics_apart(derivation) == ()


@pytest.mark.parametrize(("name", "kernels"), [("rmsnorm-matmul", 2), ("layernorm-matmul", 3)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_kernel_of_the_dots_reads_nothing_for_two_ends(name, kernels, dtype):
    made = fused(name).apart[0]
    program = bb.emit(made.graph, LARGE, dtype, chunks={}).tile_program
    matmul = program.nests[-1]
    uses = [Uses(nest, tiling_of(program, nest)) for nest in program.nests]

    assert len(program.nests) == kernels
    assert [is_dot(nest) for nest in program.nests] == [False] * (kernels - 1) + [True]
    assert not any(use.mixed() for use in uses)
    assert not any(isinstance(s, Let) and "sum" in str(s.op) for s in statements(matmul.body))


def is_dot(nest):
    lets = (s for s in statements(nest.body) if isinstance(s, Let))
    return any("dot" in str(s.op) for s in lets)


@pytest.mark.parametrize("name", ["rmsnorm-matmul", "layernorm-matmul"])
def test_without_it_a_loop_does_both(name):
    program = bb.emit(fused(name).derivation.final, LARGE, "float16", chunks={}).tile_program

    assert [is_dot(nest) for nest in program.nests] == [True]
    assert any(isinstance(s, Let) and "sum" in str(s.op) for s in statements(program.nests[0].body))


def chosen(name, dtype="float16", target="sm_90", kind="timed", **rest):
    return fused(name).consider(WORKLOADS[name].sizes_of(kind), dtype, target, **rest)


@pytest.mark.slow
def test_only_norms_before_products_change_what_is_chosen():
    best = {name: chosen(name).best for name in sorted(APART)}

    changed = {n for n, choice in best.items() if re.search("apart|stored", choice.name)}
    assert changed == {"layernorm-matmul", "rmsnorm-matmul"}
    assert "apart" not in chosen("layernorm-matmul", target="cpu").best.name


def test_the_choice_says_what_it_costs():
    found = chosen("layernorm-matmul")
    plain = next(c for c in found.others if c.snapshot == 3)

    assert plain.name == "snapshot 1 with statistics apart"
    assert plain.kernels == 3
    assert found.best.price < plain.price
    assert "least time on h200 (closed form, cold cache, in a CUDA graph): " in found.reason
    assert f"{plain.name} {plain.price:.1f} us, limited by " in found.reason
    assert LOSES in plain.notes


@pytest.mark.parametrize(
    ("target", "rest"), [("cpu", {}), ("sm_90", {"one_kernel": True})], ids=["cpu", "one kernel"]
)
def test_where_it_is_not_chosen(target, rest):
    assert "apart" not in chosen("layernorm-matmul", target=target, **rest).best.name


@pytest.mark.parametrize("size", [64, 128, 256, 384])
def test_small_programs_stay_one_kernel(size):
    sizes = dict.fromkeys("MKN", size)

    assert "apart" not in fused("layernorm-matmul").consider(sizes, "float16", "sm_90").best.name


def test_what_loses_digits_is_not_considered_in_float32():
    def apart(name):
        found = chosen(name, "float32")
        return [c.name for c in (found.best, *found.others) if "apart" in c.name]

    assert apart("layernorm-matmul") == []
    assert apart("rmsnorm-matmul") == ["snapshot 2 with statistics apart"]


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["rmsnorm-matmul", "layernorm-matmul", "rmsnorm-swiglu"])
def test_the_kernels_compute_the_program(name):
    workload = WORKLOADS[name]
    program = bb.trace(workload.fn, **workload.inputs)
    sizes = {d: n for d, n in zip("MKND", (40, 70, 50, 36), strict=True) if d in workload.sizes}
    draw = np.random.default_rng(7)
    arrays = {
        n: draw.standard_normal([sizes[d] for d in dims.split()]).astype(np.float32)
        for n, dims in workload.inputs.items()
    }
    wanted = program.numpy({n: a.astype(float) for n, a in arrays.items()})
    jobs = [(bb.emit(made.graph, sizes, "float32"), arrays) for made in fused(name).apart]
    for got in run_batch(jobs):
        assert not isinstance(got, LaunchError), got
        for array, right in zip(got.values(), wanted.values(), strict=True):
            np.testing.assert_allclose(array, right, rtol=1e-4, atol=1e-4)


def test_safe_forms_of_all_of_them_are_what_they_say():
    for name in APART:
        for made in fused(name).apart:
            said = []
            safe(made.graph, said.append)
            assert said == []


def affine(x, w, g, b):
    return bb.layer_norm(x, g, b) @ w


def test_where_weights_are_constant_their_factors_are_stored_as_well():
    graph = bb.lower(bb.trace(affine, x="M K", w="K N", g="K", b="K"))
    usual, more = Fused(graph), Fused(graph, constants=True)

    assert more.snapshots[: len(usual.snapshots)] == usual.snapshots
    added = more.beside[len(usual.beside) :]
    assert [*map(number, added)] == [*map(number, usual.apart)]
    assert all(made.name.endswith("statistics apart and operands of dots stored") for made in added)
    for made in added:
        assert bb.prove_equal(graph, made.graph).equal


def test_products_then_run_alone_beside_statistics():
    """What a hand-written form does: only the rows' statistics and the product run in a call."""
    graph = bb.lower(bb.trace(affine, x="M K", w="K N", g="K", b="K"))
    sizes = dict(M=2048, K=1024, N=1024)
    given = Given(common="float16", constants=("w", "g", "b"))
    best = Fused(graph, constants=True).consider(sizes, given, "sm_90").best

    running = running_nests(best.scheduled.program)
    assert len(running) == 2
    assert kept_nests(best.scheduled.program)
    uses = [Uses(nest, tiling_of(best.program, nest)).mixed() for nest in running]
    assert uses == [0, 0]  # dots read what is stored, as it is
