"""First results: wrong ones are found, right ones never refused."""

import subprocess
import sys
from random import Random

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.check import first_result, sample
from blockbuster.check.first_result import compare_first, drawn_like, same_bits
from blockbuster.testing.arrays import random_array_function
from tests.frontend.programs import OPAQUE, PROGRAMS, inputs_for
from tests.parameters import one_in

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def attention(q, k, v):
    return bb.softmax(q @ k.T * 0.1) @ v


def normal(*shape, dtype=torch.float16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def as_list(result):
    if isinstance(result, dict):
        return list(result.values())
    return list(result) if isinstance(result, tuple | list) else [result]


def setting(function, inputs, tensors):
    """A program and a run of it on the CPU, which gives a list."""
    compiled = bb.jit(function)
    return bb.trace(function, **inputs), lambda given: as_list(compiled(*given))


def broken(run, change):
    """The same run, its first result changed in place by ``change``."""

    def wrong(given):
        results = [result.clone() for result in run(given)]
        change(results[0])
        return results

    return wrong


QKV = dict(q="M D", k="N D", v="N L")


@pytest.fixture(scope="module")
def example():
    tensors = [normal(300, 64), normal(200, 64, seed=1), normal(200, 64, seed=2)]
    return *setting(attention, QKV, tensors), tensors


def test_a_right_result_passes(example):
    program, run, tensors = example
    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()


def exchange_rows(out):
    out[[3, 131]] = out[[131, 3]]


def set_one(out):
    out[299, 63] += 0.1


def set_nan(out):
    out[7, 7] = float("nan")


CHANGES = {
    "rows exchanged": exchange_rows,
    "one element": set_one,
    "one that is no number": set_nan,
    "last tile not written": lambda out: out[256:].fill_(0),
    "scaled": lambda out: out.mul_(1.05),
    "garbage": lambda out: out.copy_(normal(*out.shape, seed=9)),
}


def test_one_of_the_largest_is_wrong_where_roundings_leave_their_order_open():
    def largest(x):
        return bb.topk(bb.softmax(x), 9)

    program, run = setting(largest, {"x": "M N=40"}, [])
    x = normal(64, 40)
    wrong = broken(run, lambda values: values[:, 3].copy_(values[:, 4]))

    assert not compare_first(program, run, [x], run([x])).wrong
    assert "out0 has" in compare_first(program, wrong, [x], wrong([x])).wrong


@pytest.mark.parametrize("name", CHANGES)
def test_a_wrong_result_is_found(example, name):
    program, run, tensors = example
    wrong = broken(run, CHANGES[name])
    assert "out has" in compare_first(program, wrong, tensors, wrong(tensors)).wrong


def test_a_result_wrong_for_other_arrays_is_found(example):
    program, run, tensors = example
    wrong = broken(run, exchange_rows)
    found = compare_first(program, wrong, tensors, run(tensors)).wrong
    assert found.endswith("(on drawn arrays)")


def test_a_result_that_changes_is_found(example):
    program, run, tensors = example
    seed = iter(range(100))

    def moving(given):
        (out,) = run(given)
        return [out + normal(*out.shape, seed=next(seed)) * 1e-3]

    found = compare_first(program, moving, tensors, run(tensors)).wrong
    assert found == "out differs from run to run (on drawn arrays)"


@pytest.mark.parametrize("change", [exchange_rows, set_nan, CHANGES["garbage"]])
def test_sampled_rows_find_what_is_wrong_in_a_tile(example, change, monkeypatch):
    program, run, tensors = example
    monkeypatch.setattr(sample, "ELEMENTS", 1e4)
    wrong = broken(run, lambda out: [change(out), out[256:].fill_(0)])
    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()
    assert compare_first(program, wrong, tensors, wrong(tensors)).wrong


def test_what_is_too_large_to_compare_is_noted(example, monkeypatch):
    program, run, tensors = example
    monkeypatch.setattr(first_result, "room", lambda device: 1000)
    found = compare_first(program, run, tensors, run(tensors))
    assert "not compared" in found.note


@pytest.mark.parametrize("name", one_in(5, [name for name in PROGRAMS if name not in OPAQUE]))
def test_no_right_program_is_refused(name):
    function, dims = PROGRAMS[name]
    dtype = Random(name).choice(DTYPES)
    program = bb.trace(function, **dims)
    given = inputs_for(program, {dim: Random(name).randint(2, 9) for dim in program.dims})
    tensors = [torch.from_numpy(array).to(dtype) for array in given.values()]
    compiled = bb.jit(function)

    def run(arrays):
        return as_list(compiled(*arrays))

    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()


@pytest.mark.parametrize("seed", one_in(5, range(60)))
def test_no_right_random_program_is_refused(seed):
    random = Random(seed)
    function = random_array_function(random)
    program = bb.trace(function, **function.inputs)
    given = inputs_for(program, {dim: random.randint(1, 40) for dim in program.dims}, seed)
    tensors = [torch.from_numpy(a).to(random.choice(DTYPES)) for a in given.values()]
    tensors = [t.to(tensors[0].dtype) for t in tensors]
    compiled = bb.jit(function)

    def run(arrays):
        return as_list(compiled(*arrays))

    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()


@pytest.mark.parametrize("seed", range(12))
def test_luck_in_one_number_is_no_error(seed):
    """A loss is one number: its error may be many times eager's by luck alone."""
    tensors = [normal(64, 48, dtype=torch.float32, seed=seed)]
    program, run = setting(lambda x: bb.mean(bb.softmax(x) * x), dict(x="M N"), tensors)
    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()


@pytest.mark.parametrize("seed", range(5))
def test_a_jump_is_no_error_and_a_wrong_branch_is(seed):
    """Where a comparison is decided by a rounding, either side is right."""

    def gate(x, w):
        return bb.where(x @ w > 0.5, 1.0, 0.0)

    tensors = [normal(200, 64, seed=seed), normal(64, 80, seed=seed + 99)]
    program, run = setting(gate, dict(x="M K", w="K N"), tensors)
    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()

    wrong = broken(run, lambda out: out[:50, :20].copy_(1 - out[:50, :20]))
    assert compare_first(program, wrong, tensors, wrong(tensors)).wrong


@pytest.mark.parametrize("seed", range(5))
def test_what_cancels_may_leave_a_rounding(seed):
    """x - x is 0 exactly and in eager, but one side may be part of a fused multiply-add."""

    def rest(x, w):
        return x * w - x * w

    tensors = [normal(50, 60, dtype=torch.float32, seed=s) for s in (seed, seed + 50)]
    program, run = setting(rest, dict(x="M N", w="M N"), tensors)

    def left(given):
        (out,) = run(given)
        return [out + (given[0] * given[1]) * 2.0**-24]

    assert compare_first(program, left, tensors, left(tensors)) == first_result.Finding()

    wrong = broken(run, lambda out: out[3:9].add_(1e-3))
    assert compare_first(program, wrong, tensors, wrong(tensors)).wrong


@pytest.mark.parametrize("layout", ["plain", "transposed", "steps", "expanded", "unaligned"])
def test_drawn_arrays_lie_as_the_given_ones(layout):
    x = normal(40, 24)
    x = {
        "plain": x, "transposed": x.T, "steps": x[::2, ::3], "expanded": x[:1].expand(9, 24),
        "unaligned": normal(961)[1:].view(40, 24),
    }[layout]  # fmt: skip
    drawn = drawn_like(x, 3)
    assert (drawn.shape, drawn.stride(), drawn.dtype) == (x.shape, x.stride(), x.dtype)
    assert (drawn.data_ptr() % 16 == 0) == (x.data_ptr() % 16 == 0)
    assert not torch.equal(drawn, x)
    assert set(drawn.flatten().tolist()) <= set(x.flatten().tolist())
    assert same_bits(drawn, drawn_like(x, 3))


def test_drawn_masks_are_masks_and_constants_are_not_drawn_from():
    mask = torch.tensor([0.0, 1.0]).repeat(50)
    assert set(drawn_like(mask, 0).tolist()) == {0.0, 1.0}
    assert len(set(drawn_like(torch.zeros(100), 0).tolist())) > 90
    assert drawn_like(torch.full((), 3.0), 0).shape == ()


def test_the_users_random_numbers_stay_as_they_are(example):
    program, run, tensors = example
    torch.manual_seed(1)
    before = torch.get_rng_state()
    compare_first(program, run, tensors, run(tensors))
    assert torch.equal(before, torch.get_rng_state())


def zeroed_tile(out):
    out[..., 16:32, 16:32] = 0


def test_a_wrong_result_beside_an_empty_one_is_found():
    def two(x, y):
        return {"a": x + 1, "b": bb.exp(y)}

    tensors = [torch.zeros(0, 60), normal(50, 60, dtype=torch.float32)]
    program, run = setting(two, dict(x="M N", y="K L"), tensors)
    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()

    def wrong(given):
        a, b = run(given)
        b = b.clone()
        zeroed_tile(b)
        return [a, b]

    assert compare_first(program, wrong, tensors, wrong(tensors)).wrong.startswith("b has")


@pytest.mark.parametrize("x", [torch.zeros(0, 60), torch.zeros(5, 60)[:0, :20]])
def test_empty_arrays_have_results_too(x):
    program, run = setting(lambda x: bb.sum(x, axis=0), dict(x="M N"), [x])
    assert compare_first(program, run, [x], run([x])) == first_result.Finding()


def test_a_function_that_takes_no_drawn_arrays_is_noted():
    def root(x):
        return bb.custom(lambda a: np.linalg.cholesky(np.asarray(a, "f8")), x, shape=x.shape) * 2

    tensors = [torch.eye(32) * 3 + 0.1]
    program, run = setting(root, dict(x="M M"), tensors)
    found = compare_first(program, run, tensors, run(tensors))
    assert not found.wrong
    assert "not compared (on drawn arrays): LinAlgError" in found.note

    wrong = broken(run, lambda out: out[16:32, 16:32].zero_())
    assert compare_first(program, wrong, tensors, wrong(tensors)).wrong


def test_errors_of_a_plan_are_no_notes():
    tensors = [normal(40, 40)]
    program, run = setting(bb.exp, dict(x="M N"), tensors)

    def fails(given):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        compare_first(program, fails, tensors, run(tensors))


def test_results_in_the_upper_half_of_the_range_are_judged():
    tensors = [(torch.rand(50, 60) * 5000 + 58000).to(torch.float16)]
    program, run = setting(lambda x: x * 1.0 + 1, dict(x="M N"), tensors)
    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()
    infinite = broken(run, lambda out: out[3:5].fill_(float("inf")))  # of an inner overflow
    assert compare_first(program, infinite, tensors, infinite(tensors)) == first_result.Finding()
    wrong = broken(run, zeroed_tile)
    assert compare_first(program, wrong, tensors, wrong(tensors)).wrong


def test_a_number_in_place_of_an_infinity_is_found():
    tensors = [torch.rand(50, 60).to(torch.float16) + 20]
    program, run = setting(bb.exp, dict(x="M N"), tensors)
    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()
    wrong = broken(run, zeroed_tile)
    assert "no numbers" in compare_first(program, wrong, tensors, wrong(tensors)).wrong


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ties_of_whole_numbers_are_no_jumps(dtype):
    """Nothing is rounded where inputs are compared with their maximum: one side is wrong."""

    def ties(x):
        return bb.where(x >= bb.max(x, axis=-1, keepdims=True), 1.0, 0.0)

    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randint(0, 4, (50, 60), generator=generator).to(dtype)]
    program, run = setting(ties, dict(x="M N"), tensors)
    assert compare_first(program, run, tensors, run(tensors)) == first_result.Finding()
    wrong = broken(run, zeroed_tile)
    assert compare_first(program, wrong, tensors, wrong(tensors)).wrong


def test_a_constant_that_a_dtype_rounds_decides_as_it_will():
    """0.1 is another number in float32: x > 0.1 may be either where x is that number."""
    tensors = [torch.full((50, 60), 0.1)]
    program, run = setting(lambda x: bb.where(x > 0.1, 1.0, 0.0), dict(x="M N"), tensors)
    for value in (0.0, 1.0):
        other = broken(run, lambda out, value=value: out.fill_(value) if value else out)
        found = compare_first(program, run, tensors, other(tensors))
        assert found == first_result.Finding()


def test_subnormal_numbers_may_become_zero():
    tensors = [normal(50, 60, dtype=torch.float32) * 1e-20]
    program, run = setting(lambda x: x * x * 0.5, dict(x="M N"), tensors)
    flushed = broken(run, lambda out: out.zero_())
    found = compare_first(program, run, tensors, flushed(tensors))
    assert found == first_result.Finding()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("warns", [False, True])
def test_torch_insists_on_deterministic_functions_as_before(example, strict, warns):
    program, run, tensors = example
    torch.use_deterministic_algorithms(strict, warn_only=warns)
    try:
        assert not compare_first(program, run, tensors, run(tensors)).wrong
        assert torch.are_deterministic_algorithms_enabled() is strict
        assert torch.is_deterministic_algorithms_warn_only_enabled() is warns
    finally:
        torch.use_deterministic_algorithms(False)


COMPARES = """
import sys, torch
import blockbuster as bb
from blockbuster.check.first_result import compare_first
x = torch.ones(8, 8)
program = bb.trace(lambda x: x + 1, x="M N")
assert not compare_first(program, lambda given: [given[0] + 1], [x], [x + 1]).wrong
print(*sorted({"torch._dynamo", "torch._inductor", "sympy"} & {*sys.modules}))
"""


def test_comparing_imports_no_compiler():
    done = subprocess.run([sys.executable, "-c", COMPARES], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr
