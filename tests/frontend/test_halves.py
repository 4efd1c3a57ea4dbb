"""A number that halves an axis is written as its half, so that pieces meet at one place."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.trace import trace_with_facts
from blockbuster.ir.ops import Map

torch = pytest.importorskip("torch")


def turned(middle):
    """Rotary positions, with the halves of x cut at ``middle`` of its columns."""

    def rotate(x, c, s):
        at = middle(x)
        t = torch.cat((-x[..., at:], x[..., :at]), -1)
        return x * torch.cat((c, c), -1) + t * torch.cat((s, s), -1)

    return rotate


MIDDLES = {"half": lambda x: x.shape[-1] // 2, "number": lambda _: 8, "from the end": lambda _: -8}


@pytest.mark.parametrize("middle", MIDDLES.values(), ids=MIDDLES)
def test_one_nest_for_both_halves(middle):
    x, c = torch.randn(3, 5, 16, dtype=torch.float64), torch.randn(5, 8, dtype=torch.float64)
    program, _ = trace_with_facts(turned(middle), x=x, c=c, s=c.sin())
    fused = bb.fuse(bb.lower(program)).final
    assert [type(node.op) for node in fused.nodes] == [Map]
    found = bb.jit(turned(middle))(x, c, c.sin())
    torch.testing.assert_close(found, turned(middle)(x, c, c.sin()))


@pytest.mark.parametrize("extent", [16, 17, 8, 6, 40])
def test_other_sizes_are_traced_anew(extent):
    """The program of 16 columns is for those alone; no slice changes its meaning."""
    jitted = bb.jit(lambda x: (x[:, 8:], x[:, :8], x[:, -8:] * 2))
    for columns in (16, extent, 16):
        x = np.arange(3.0 * columns).reshape(3, columns)
        for one, other in zip(jitted(x), (x[:, 8:], x[:, :8], x[:, -8:] * 2), strict=True):
            np.testing.assert_array_equal(one, other)


def lengths(trace, columns, at):
    program = trace(lambda x: x[:, :at], x=np.zeros((3, columns)))
    program = program[0] if isinstance(program, tuple) else program
    return [str(e.param("length")) for e in program.equations]


@pytest.mark.parametrize(("trace", "columns", "at", "wanted"), [
    (trace_with_facts, 16, 8, "|B| / 2"),
    (trace_with_facts, 17, 8, "8"),
    (trace_with_facts, 16, 4, "4"),
    (trace_with_facts, 2, 1, "1"),
    (bb.trace, 16, 8, "|B| - maximum(|B| - 8, 0)"),  # it is for all sizes
])  # fmt: skip
def test_which_numbers_are_halves(trace, columns, at, wanted):
    assert lengths(trace, columns, at) == [wanted]


def flat(x, w):
    return x.flatten(1) @ w.reshape(12, 5)


def test_a_product_of_sizes_that_is_a_number_makes_no_copy():
    """Columns that flatten merges meet columns that a number names."""
    x, w = torch.randn(7, 3, 4, dtype=torch.float64), torch.randn(3, 4, 5, dtype=torch.float64)
    program, _ = trace_with_facts(flat, x=x, w=w)
    assert program.sizes.items() >= {"B": 3, "C": 4}.items()
    assert "A" not in program.sizes  # rows may be others
    assert "custom" not in str(bb.lower(program))

    jitted = bb.jit(flat)
    for rows, b, c in ((7, 3, 4), (2, 3, 4), (7, 6, 2), (7, 12, 1)):
        x = torch.randn(rows, b, c, dtype=torch.float64)
        torch.testing.assert_close(jitted(x, w), flat(x, w))


def test_programs_for_all_sizes_keep_their_rule():
    program = bb.trace(lambda x, w: x.reshape(x.shape[0], -1) @ w, x="A B C", w="D=12 E")
    assert not {"B", "C"} & {*program.sizes}


def test_one_size_is_a_multiple_of_another():
    """Rotary positions of a half of each head: a quarter of it is as long as the cosines."""

    def partly(x, c, s):
        y, rest = x[..., :16], x[..., 16:]
        return torch.cat((turned(MIDDLES["half"])(y, c, s), rest), -1)

    x, c = torch.randn(3, 5, 32, dtype=torch.float64), torch.randn(5, 8, dtype=torch.float64)
    program, _ = trace_with_facts(partly, x=x, c=c, s=c.sin())
    fused = bb.fuse(bb.lower(program)).final
    assert all(isinstance(node.op, Map) for node in fused.nodes)
    torch.testing.assert_close(bb.jit(partly)(x, c, c.sin()), partly(x, c, c.sin()))
