"""Products of float8 with scales that a library computes: which are found, and when chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.arguments import shape_from_names
from blockbuster.frontend.library_calls import LibraryScaled
from blockbuster.ir.dtypes import FLOAT8
from blockbuster.machines import built_in
from blockbuster.machines.library import library_of
from blockbuster.runtime.compiled import Compiled
from blockbuster.runtime.device_call import DeviceCall
from blockbuster.runtime.given import family_of
from blockbuster.selection.library.program import library_program
from blockbuster.selection.plans.plan_dtypes import stored_by_eager

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from tests.selection.calls import calls_of, drawn, traced  # noqa: E402 - it imports torch

F8, BF16 = torch.float8_e4m3fn, torch.bfloat16
BY_ROWS = ((5, 1), (1, 16))


def operands(*scales, x=(5, 32), w=(16, 32)):
    """Arrays of float8 and scales: their products are exact."""
    two = [0.5 ** drawn(*shape, seed=n).abs() for n, shape in enumerate(scales or ((), ()))]
    return [drawn(*x).to(F8), drawn(*w, seed=1).to(F8), *two]


def with_calls(fn, *arrays, kept="bfloat16"):
    program, _ = traced(fn, *arrays)
    dtypes = {one.name: one.dtype for one in program.inputs}
    stored = stored_by_eager(program)
    return program, library_program(program, dtypes.__getitem__, lambda _: kept, stored)


def checked(fn, *arrays, kept="bfloat16"):
    """The calls in place of products; with them the program computes the same."""
    program, found = with_calls(fn, *arrays, kept=kept)
    given = {f"a{n}": array.float().numpy() for n, array in enumerate(arrays)}
    for name, value in program.numpy(given).items() if found else ():
        np.testing.assert_allclose(found.numpy(given)[name], value, rtol=2.0**-8)
    return calls_of(found)


def by_torch(x, w, s, t):
    return torch._scaled_mm(x, w.T, s, t, out_dtype=BF16)


def by_hand(x, w, s, t):
    return (t * (s * (x @ w.T))).to(BF16)


def other_order(x, w, s, t):
    return ((x @ w.T) * t * s).to(torch.bfloat16)


def with_a_row(x, w, s, t, b):
    return ((x @ w.T) * s * t + b).to(b.dtype)


@pytest.mark.parametrize("fn", [by_torch, by_hand, other_order])
@pytest.mark.parametrize("scales", [(), ((1, 1), (1, 1)), BY_ROWS])
def test_products_with_scales_are_calls(fn, scales):
    (call,) = checked(fn, *operands(*scales))
    assert call == LibraryScaled(by_rows=len(scales) > 0 and scales[0] == (5, 1), dtype="bfloat16")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_row_is_added_before_the_rounding(dtype):
    row = drawn(16, seed=5).to(getattr(torch, dtype))
    (call,) = checked(with_a_row, *operands((5, 1), (16,)), row, kept=dtype)
    assert call.dtype == dtype


@pytest.mark.parametrize("leading", [(2, 5), (1, 5), (2, 1, 5)])
def test_rows_of_several_axes(leading):
    arrays = operands((*leading, 1), (16,), x=(*leading, 32))
    (call,) = checked(other_order, *arrays)
    assert call.by_rows
    assert call.extents((*leading, 32), (16, 32)) == (math.prod(leading), 16, 32)


def test_the_call_gives_what_its_words_say():
    """torch computes it on the CPU, too."""
    x, w, s, t = operands(*BY_ROWS)
    b = drawn(16, seed=5)
    exact = x.double() @ w.double().T * s * t
    whole = LibraryScaled(by_rows=False, dtype="bfloat16")(x, w, s[0], t[0, :1])
    assert torch.equal(whole, (x.double() @ w.double().T * s[0, 0] * t[0, 0]).bfloat16())
    fn = LibraryScaled(by_rows=True, dtype="bfloat16")
    assert torch.equal(fn(x, w, s[:, 0], t[0]), exact.bfloat16())
    several = fn(x[None].expand(2, -1, -1), w, s[None].expand(2, -1, -1), t)
    assert torch.equal(several, exact.bfloat16().expand(2, -1, -1))
    plain = fn(x.double(), w.double(), s.double(), t.double(), b.double())
    assert torch.equal(plain, exact + b), "not rounded: of other dtypes"


def turned(x, w, s, t):
    return ((x.T @ w.T) * s * t).to(BF16)


def columns_that_do_not_lie_along_the_sum(x, w, s, t):
    return ((x @ w) * s * t).to(BF16)


def one_scale(x, w, s, t):
    return (((x @ w.T) * s).to(BF16), t)[0]


def a_row_before_the_scales(x, w, s, t):
    return (((x @ w.T) + t) * s * t).to(BF16)


def not_rounded(x, w, s, t):
    return (x @ w.T) * s * t


def rounded_to_float32(x, w, s, t):
    return ((x @ w.T) * s * t).to(torch.float32)


def read_twice(x, w, s, t):
    scaled = (x @ w.T) * s * t
    return scaled.to(BF16) + scaled.amax().to(BF16)


def computed(x, w, s, t):
    return ((x @ w.T) * s.exp() * t).to(BF16)


def sliced(x, w, s, t):
    return ((x[:, :16] @ w[:, :16].T) * s * t).to(BF16)


def divided(x, w, s, t):
    return ((x @ w.T) * s / t).to(BF16)


SQUARE = dict(x=(16, 16), w=(16, 16))
REFUSED = {
    "rows that do not lie along the sum": (turned, operands(**SQUARE)),
    "columns that do not": (columns_that_do_not_lie_along_the_sum, operands(**SQUARE)),
    "one scale": (one_scale, operands()),
    "a row before the scales": (a_row_before_the_scales, operands()),
    "no cast": (not_rounded, operands()),
    "a cast to float32": (rounded_to_float32, operands()),
    "a product that is read twice": (read_twice, operands()),
    "a scale that is computed": (computed, operands()),
    "a part of the sum": (sliced, operands()),
    "a scale that divides": (divided, operands()),
    "one scale for all rows": (by_hand, operands((), (1, 16))),
    "two scales of rows": (by_hand, operands((5, 1), (5, 1))),
    "a scale for each element": (by_hand, operands((5, 16), ())),
    "one row": (by_hand, operands((1, 16), (1, 1), x=(1, 32))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_products_are_none(case):
    fn, arrays = REFUSED[case]
    assert not checked(fn, *arrays)


@pytest.mark.parametrize(
    ("number", "dtype"), [(0, torch.float16), (1, BF16), (2, torch.float16), (3, BF16), (4, F8)]
)
def test_operands_of_other_dtypes_are_none(number, dtype):
    arrays = [*operands(*BY_ROWS), drawn(16, seed=5).to(BF16)]
    assert checked(with_a_row, *arrays)
    arrays[number] = arrays[number].to(dtype)
    fn = with_a_row if number < 4 else lambda x, w, s, t, b: ((x @ w.T) * s * t + b).to(BF16)
    assert not checked(fn, *arrays)


def test_a_result_that_is_kept_wider_is_none():
    program, _ = traced(by_hand, *operands())
    dtypes = {one.name: one.dtype for one in program.inputs}
    stored = stored_by_eager(program)
    assert library_program(program, dtypes.__getitem__, lambda _: "float32", stored) is None


LARGE = dict(M=8192, K=8192, N=8192)


def large():
    names = dict(x="M K", w="N K", s="M 1", t="1 N")
    dtypes = dict(x=FLOAT8, w=FLOAT8, s="float32", t="float32")
    program = bb.trace(other_order, **names)
    return family_of(program, "bfloat16", "h200", others=dtypes)


def test_a_call_is_chosen_where_it_is_faster_and_takes_the_lengths():
    family = large()
    plan = family.like(LARGE)
    assert [call.name for call in plan.calls] == ["torch._scaled_mm"]
    assert plan.divided.loaded_whole == {"K": 16, "N": 16}
    assert not family.like(LARGE | dict(N=8200)).calls, "rows of 16 elements are asked for"
    assert family.like(LARGE | dict(M=8190)).calls


def test_lengths_of_a_call():
    known = library_of(built_in("h200"))
    assert known.scaled_us(8192, 8192, 8200, by_rows=False) == math.inf
    assert known.scaled_us(8192, 8200, 8192, by_rows=True) == math.inf
    assert 0 < known.scaled_us(17, 8192, 8192, by_rows=True) < 100
    assert known.scaled_us(8192, 8192, 8192, by_rows=False) < 0.7 * known.product_us(1, *[8192] * 3)


def test_a_library_that_refuses_is_asked_no_more():
    family = large()
    plan = family.like(LARGE)
    family.refuse(plan, plan.calls, "torch._scaled_mm: no such kernel")
    other = family.like(LARGE)
    assert not other.calls
    assert other.kernels
    told = "a library's call is left out: torch._scaled_mm: no such kernel"
    assert any(told in note for note in other.notes)
    assert told in other.explain()


def test_a_plan_runs_its_call(tmp_path):
    """By torch on the CPU, as a GPU's replay does."""
    names, dtypes = dict(x="1 M K", w="N K", s="1 M 1", t="1 N"), dict(s="float32", t="float32")
    program = bb.trace(other_order, **names)
    dtypes |= dict(x=FLOAT8, w=FLOAT8)
    plan = family_of(program, "bfloat16", "h200", others=dtypes).at(LARGE)
    assert plan.result_dtypes == ("bfloat16",)
    compiled = Compiled(plan, shape_from_names(["out"]), program=program)
    compiled.save(tmp_path / "plan.json")
    (call,) = bb.load(tmp_path / "plan.json").plan.calls
    assert call == plan.calls[0]
    arrays = operands((1, 5, 1), (1, 16), x=(1, 5, 32))
    named = dict(zip(plan.inputs, arrays, strict=True))
    run = DeviceCall(call, dict(M=5, K=32, N=16), [BF16])
    (made,) = run.first([named[name] for name in call.reads])
    x, w, s, t = (array.double() for array in arrays)
    assert not run.note
    assert torch.equal(made.reshape(5, 16), (x @ w.T * s * t).bfloat16()[0])
