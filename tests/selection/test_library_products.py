"""Products of a library: which products are calls, that they compute the same, in which dtypes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import permutations, product

import pytest

import blockbuster as bb
from blockbuster.frontend.library_calls import LibraryProduct
from blockbuster.machines import built_in
from blockbuster.machines.library import library_of

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from tests.selection.calls import (  # noqa: E402 - it imports torch
    HALF,
    checked,
    drawn,
    fn_of,
    stand_ins,
    traced,
    with_calls,
)

WIDE = "float32"


def only(fn, *arrays):
    """The only call of a program, which takes the place of all equations but views of one element;
    it computes the same.
    """
    (call,) = checked(fn, *arrays, units=True)
    left = with_calls(bb.trace(fn_of(fn), **stand_ins(*arrays))).equations
    assert {one.op for one in left} <= {"custom", "expand"}
    return call


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("row", [False, True])
def test_products_are_calls_that_compute_the_same(turned, row):
    x, w, b = drawn(5, 7), drawn(7, 3, seed=1), drawn(3, seed=2)

    def layer(x, w, b):
        y = x @ (w.T if turned else w)
        return torch.relu(y + b if row else y)

    (call,) = checked(layer, x, w.T.contiguous() if turned else w, b)
    assert call == LibraryProduct((0, 1), (1, 0) if turned else (0, 1))


@pytest.mark.parametrize("row", [False, True])
def test_rows_of_several_axes(row):
    x, w, b = drawn(2, 5, 7), drawn(7, 3, seed=1), drawn(3, seed=2)
    call = only(lambda x, w, b: x @ w + b if row else x @ w, x, w, b)
    assert call.extents((2, 5, 7), (7, 3)) == (1, 10, 3, 7)


def test_rows_of_several_axes_behind_the_sum():
    call = only(lambda x, w: x.permute(1, 2, 0) @ w, drawn(7, 2, 5), drawn(7, 3, seed=1))
    assert call == LibraryProduct((1, 2, 0), (0, 1))
    assert call.extents((7, 2, 5), (7, 3)) == (1, 10, 3, 7)


@pytest.mark.parametrize("shape", [(1, 5, 7), (5, 1, 7), (2, 1, 5, 7), (1, 1, 5, 7)])
@pytest.mark.parametrize("row", [False, True])
def test_axes_of_one_element_are_none_of_the_call(shape, row):
    x, w, b = drawn(*shape), drawn(7, 3, seed=1), drawn(3, seed=2)
    call = only(lambda x, w, b: x @ w + b if row else x @ w, x, w, b)
    assert call == LibraryProduct((*range(len([n for n in shape if n != 1])),), (0, 1))


@pytest.mark.parametrize("rows", ["M K", "1 M K"])
def test_rows_behind_an_axis_of_one_element_are_chosen_as_others_are(rows):
    program = bb.trace(lambda x, w: x @ w, x=rows, w="K N")
    (call,) = bb.select(program, dict(M=4096, K=4096, N=4096), machine="h100").calls
    assert call.name == "torch.matmul"


BATCHED = {
    "abk,akc->abc": ((2, 5, 7), (2, 7, 3)),
    "abk,ack->abc": ((2, 5, 7), (2, 3, 7)),
    "akb,akc->abc": ((2, 7, 5), (2, 7, 3)),
    "bak,kac->abc": ((5, 2, 7), (7, 2, 3)),
    "abik,abkc->abic": ((2, 4, 5, 7), (2, 4, 7, 3)),
    "abik,abkc->abic, one": ((2, 1, 5, 7), (2, 1, 7, 3)),
}


@pytest.mark.parametrize("spec", BATCHED)
def test_products_one_by_one(spec):
    fn = partial(torch.einsum, spec.removesuffix(", one"))
    (call,) = checked(fn, *(drawn(*shape) for shape in BATCHED[spec]), units=True)
    long = [[n for n in shape if n != 1] for shape in BATCHED[spec]]
    assert call.extents(*long) == (8 if spec == "abik,abkc->abic" else 2, 5, 3, 7)


def test_bmm_and_a_row_behind_it():
    x, w, b = drawn(2, 5, 7), drawn(2, 7, 3, seed=1), drawn(3, seed=2)
    only(torch.bmm, x, w)
    program = with_calls(traced(lambda x, w, b: torch.bmm(x, w) + b, x, w, b)[0])
    assert [one.op for one in program.equations] == ["custom", "add"], "a row is added by us"


def turned_back(left, right, x, w):
    return x.permute(left) @ w.permute(right)


def in_any_order(x, w):
    """A product for each order in which the axes of both arrays lie: as it reads them, and how
    many calls it is.
    """
    for left, right in product(permutations(range(x.ndim)), permutations(range(w.ndim))):
        lying = x.permute(*left).contiguous(), w.permute(*right).contiguous()
        back = [[order.index(axis) for axis in range(len(order))] for order in (left, right)]
        yield back, len(checked(partial(turned_back, *back), *lying))


def test_orders_of_axes_in_which_a_library_reads_matrices():
    """One by one, the batches are not last in memory; of one matrix, the rows lie as one axis."""
    for back, found in in_any_order(drawn(2, 5, 7), drawn(2, 7, 3)):
        assert found == all(max(order) in order[1:] for order in back), back
    for (left, _), found in in_any_order(drawn(2, 5, 7), drawn(7, 3)):
        assert found == (left[1] == left[0] + 1), left


def computed(x, w):
    return torch.relu(x) @ w


def batches(x, w):
    return x[None] @ w.expand(2, *w.shape)


REFUSED = {
    "an operand that is computed": (computed, (5, 7), (7, 3)),
    "a product for each batch": (batches, (5, 7), (7, 3)),
    "one row": (torch.matmul, (1, 7), (7, 3)),
    "one row of each matrix": (torch.bmm, (2, 1, 7), (2, 7, 3)),
    "one column": (torch.matmul, (5, 7), (7, 1)),
    "one element of the sum": (torch.matmul, (5, 1), (1, 3)),
    "a vector": (torch.matmul, (5, 7), (7,)),
    "batches last in memory": (partial(torch.einsum, "mka,akc->amc"), (5, 7, 2), (2, 7, 3)),
    "batches apart": (partial(torch.einsum, "amhk,ahkc->ahmc"), (2, 5, 4, 7), (2, 4, 7, 3)),
    "fewer matrices": (torch.matmul, (4, 2, 5, 7), (2, 7, 3)),
    "matrices for the same rows": (torch.matmul, (5, 7), (2, 7, 3)),
    "rows apart": (lambda x, w: x.permute(2, 0, 1) @ w, (5, 7, 2), (7, 3)),
    "half of its rows": (lambda x, w: x[::2] @ w, (6, 7), (7, 3)),
    "a part of the sum": (lambda x, w: x[:, :4] @ w, (5, 7), (4, 3)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_products_are_none(case):
    fn, *shapes = REFUSED[case]
    arrays = [drawn(*shape, seed=n) for n, shape in enumerate(shapes)]
    assert not checked(fn, *arrays, units=True)


def test_one_row_is_no_call():
    program = bb.trace(lambda x, w: x @ w, x="1 K", w="K N")
    assert not bb.select(program, dict(K=65536, N=65536), machine="h100").calls


def test_dtypes():
    program, _ = traced(lambda x, w: x @ w, drawn(5, 7), drawn(7, 3))
    assert with_calls(program)
    assert with_calls(program, given=lambda _: WIDE, kept=lambda _: WIDE)
    assert with_calls(program, given=lambda _: "float64", kept=lambda _: "float64") is None
    assert with_calls(program, given=lambda _: WIDE) is None, "it would be rounded behind the call"
    assert with_calls(program, given=lambda name: HALF if name == "a0" else "bfloat16") is None
    assert with_calls(program, kept=lambda _: WIDE) is None, "it would be rounded"


def test_products_of_float32_are_not_rounded_whatever_torch_may(monkeypatch):
    """Users may let torch round products to tf32: a call does so no more than our kernels do."""
    asked, set_to = ["high"], torch.set_float32_matmul_precision
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: asked[-1])
    monkeypatch.setattr(torch, "set_float32_matmul_precision", asked.append)
    x, w = drawn(5, 7), drawn(7, 3)
    assert torch.equal(LibraryProduct((0, 1), (0, 1))(x, w), x @ w)
    assert asked == ["high", "highest", "high"]
    LibraryProduct((0, 1), (0, 1))(x.half(), w.half())
    assert len(asked) == 3, "halves are asked nothing"
    set_to("highest")


def test_times_by_dtype_and_number():
    known = library_of(built_in("h100"))
    assert known.product_us(8, 256, 256, 255) > known.product_us(8, 256, 256, 256)
    assert known.product_us(1, 4096, 4096, 4096, WIDE) > 4 * known.product_us(1, 4096, 4096, 4096)
    assert known.product_us(8, 256, 256, 255, WIDE) == math.inf, "not measured"
    fewer = replace(known, more={})
    assert fewer.product_us(2, 64, 64, 64) == fewer.scaled_us(64, 64, 64, by_rows=True) == math.inf
    assert fewer.product_us(1, 64, 64, 64) == known.product_us(1, 64, 64, 64)
    four = known.product_us(4, 4096, 256, 4096)
    assert known.product_us(2, 4096, 256, 4096) < four < known.product_us(8, 4096, 256, 4096)


@pytest.mark.parametrize("dtype", [HALF, WIDE])
def test_products_one_by_one_are_chosen_where_they_are_faster(dtype):
    program = bb.trace(lambda x, w: torch.bmm(x, w), x="B M K", w="B K N")
    sizes = dict(B=4, M=4096, K=4096, N=256)
    (part,) = bb.select(program, sizes, dtype=dtype, machine="h200").divided.parts
    assert part is not None


def test_a_call_writes_the_axes_of_one_element_that_kernels_read():
    def queries(x, w, g):
        q = torch.nn.functional.linear(x, w).unflatten(-1, (-1, 96))
        return torch.nn.functional.rms_norm(q, (96,), g).transpose(1, 2)

    program = bb.trace(queries, x="1 S E", w="4032 E", g="96")
    plan = bb.select(program, dict(S=1024, E=4096), machine="h200")
    (call,) = plan.calls
    assert call.axes[0][0] is None
    assert len(call.axes[0]) == 3
    assert plan.kernels == 1, "no copy between the call and the norms"
