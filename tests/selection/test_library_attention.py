"""Attention that a library computes: which is found, that it is the same, and when it is chosen."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.library_calls import LibraryAttention
from blockbuster.machines import built_in
from blockbuster.machines.library import library_of

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from tests.selection import calls  # noqa: E402 - it imports torch

F = torch.nn.functional
attend = F.scaled_dot_product_attention


def drawn(*shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))


def three(*batches, rows=5, keys=7, columns=4, values=6):
    shapes = ((rows, columns), (keys, columns), (keys, values))
    return [drawn(*batches, *shape, seed=n) for n, shape in enumerate(shapes)]


def checked(fn, *arrays):
    """The attention among the calls; with them the program computes the same."""
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    found = calls.checked(fn, *arrays, same=close)
    return [fn for fn in found if isinstance(fn, LibraryAttention)]


def by_hand(q, k, v):
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


def divided(q, k, v):
    return torch.softmax(q @ k.mT / 3.0, -1) @ v


def einsums(q, k, v):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * 0.3
    return torch.einsum("bhij,bhjd->bhid", torch.softmax(scores, -1), v)


def causal(q, k, v):
    return attend(q, k, v, is_causal=True)


def causal_by_hand(q, k, v):
    hidden = torch.arange(k.shape[-2]) > torch.arange(q.shape[-2])[:, None]
    return torch.softmax((q @ k.mT).masked_fill(hidden, -math.inf), -1) @ v


@pytest.mark.parametrize("batches", [(), (3,), (2, 3), (1, 3), (2, 1)])
@pytest.mark.parametrize("fn", [attend, causal])
def test_attention_of_any_batches_is_a_call(batches, fn):
    (call,) = checked(lambda q, k, v: fn(q, k, v), *three(*batches))
    assert call.is_causal == (fn is causal)
    assert call.scale == 0.0, "the usual one"


@pytest.mark.parametrize(
    ("fn", "scale"),
    [(by_hand, 0.0), (divided, 1 / 3), (einsums, 0.3), (causal_by_hand, 1.0)],
)
def test_other_spellings(fn, scale):
    (call,) = checked(fn, *three(2, 3))
    assert call.scale == pytest.approx(scale)
    assert call.is_causal == (fn is causal_by_hand)


def test_heads_behind_rows_are_read_where_they_lie():
    def heads(q, k, v):
        return attend(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)

    q, k, v = (x.transpose(1, 2).contiguous() for x in three(2, 3))
    (call,) = checked(heads, q, k, v)
    assert call == LibraryAttention((0, 2, 1, 3), (0, 2, 1, 3), (0, 2, 1, 3), 0.0, is_causal=False)
    assert call.extents(q.shape, k.shape, v.shape) == (6, 5, 7, 4, 6)
    assert call(q, k, v).shape == (2, 5, 3, 6), "the result lies as q does"


def other_direction(q, k, v):
    hidden = torch.arange(k.shape[-2]) < torch.arange(q.shape[-2])[:, None]
    return torch.softmax((q @ k.mT).masked_fill(hidden, -math.inf), -1) @ v


def before_its_own(q, k, v):
    hidden = torch.arange(k.shape[-2]) >= torch.arange(q.shape[-2])[:, None]
    return torch.softmax((q @ k.mT).masked_fill(hidden, -math.inf), -1) @ v


def seen_elsewhere(q, k, v):
    seen = torch.arange(k.shape[-2]) <= torch.arange(q.shape[-2])[:, None]
    return torch.softmax((q @ k.mT).masked_fill(seen, -math.inf), -1) @ v


def finite(q, k, v):
    hidden = torch.arange(k.shape[-2]) > torch.arange(q.shape[-2])[:, None]
    return torch.softmax((q @ k.mT).masked_fill(hidden, -1.0), -1) @ v


def windows_of_keys(q, k, v):
    return attend(q, k[:, :, 1:], v[:, :, 1:])


def scaled_by_values(q, k, v):
    return torch.softmax(q @ k.mT * v.shape[-1] ** -0.5, -1) @ v


REFUSED = {
    "keys that are computed": lambda q, k, v: attend(q, torch.relu(k), v),
    "a bias": lambda q, k, v: torch.softmax(q @ k.mT + q.shape[-1], -1) @ v,
    "a mask of an upper triangle": other_direction,
    "a mask of a row's own key": before_its_own,
    "keys that are seen elsewhere": seen_elsewhere,
    "a mask of finite numbers": finite,
    "softmax of columns": lambda q, k, v: torch.softmax(q @ k.mT, -2) @ v,
    "a scale by another size": scaled_by_values,
    "a negative scale": lambda q, k, v: torch.softmax(q @ k.mT * -0.5, -1) @ v,
    "a scale of nothing": lambda q, k, v: torch.softmax(q @ k.mT * 0.0, -1) @ v,
    "keys without the first": windows_of_keys,
}


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_none(case):
    assert not checked(REFUSED[case], *three(2, 3))


def test_one_row_or_fewer_heads_of_keys_are_none():
    q, k, v = three(2, 3)
    one_row = bb.trace(lambda q, k, v: attend(q, k, v), q="H 1 D", k="H N D", v="H N D")
    found = calls.calls_of(calls.with_calls(one_row))
    assert not any(isinstance(fn, LibraryAttention) for fn in found)
    assert not checked(lambda q, k, v: attend(q, k, v), q, k[:, :1], v[:, :1])
    five = three(2, 2, 3)
    assert not checked(lambda q, k, v: attend(q, k, v), *five), "three axes of batches"


def test_times():
    library = library_of(built_in("h100"))
    square = library.attention_us(32, 4096, 4096, 128, 128, is_causal=False)
    half = library.attention_us(32, 4096, 4096, 128, 128, is_causal=True)
    assert 0.5 < half / square < 0.75
    for sizes in ((4096, 1024, 128, 128), (64, 64, 256, 256), (64, 64, 100, 100), (64, 64, 64, 8)):
        assert library.attention_us(32, *sizes, is_causal=True) == math.inf
    largest = library.attention_us(32, 16384, 16384, 128, 128, is_causal=True)
    beyond = library.attention_us(32, 32768, 32768, 128, 128, is_causal=True)
    assert beyond == pytest.approx(4 * largest)


def test_a_call_is_chosen_where_it_is_faster_and_the_host_keeps_up():
    program = bb.trace(by_hand, q="H M D", k="H N D", v="H N D")
    long = dict(H=16, M=4096, N=4096, D=128)
    plan = bb.select(program, long, machine="h100")
    assert [call.name for call in plan.calls] == ["torch.scaled_dot_product_attention"]
    assert plan.kernels == 0
    assert "torch.scaled_dot_product_attention" in plan.explain()
    assert not bb.select(program, long, machine="h100", library=False).calls
    assert not bb.select(program, long | dict(M=512, N=512), machine="h100").calls
    assert not bb.select(program, long | dict(M=1), machine="h100").calls


def test_a_plan_with_attention_computes_the_same_and_is_saved(tmp_path):
    program = bb.trace(by_hand, q="H M D", k="H N D", v="H N D")
    compiled = bb.compile(program, dict(H=16, M=4096, N=4096, D=128), machine="h100")
    compiled.save(tmp_path / "plan.json")
    assert bb.load(tmp_path / "plan.json").plan.calls == compiled.plan.calls
