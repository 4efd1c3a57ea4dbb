"""Tensors that a function makes itself and changes in place, and those that it may not change."""

import pytest
import torch

import blockbuster as bb


def scattered(x, at):
    return torch.zeros(x.shape[0], x.shape[1]).scatter_(1, at, 1.0) * x


def filled_by_rows(x, at):
    made = torch.empty(x.shape)
    for row in range(x.shape[0]):
        made[row] = x[row] * row
    return made


def masked(x, at):
    seen = torch.ones(4, 6, dtype=torch.bool)
    seen[:, 1] = x[:, 0] > 0
    return torch.where(seen, x, 0.0)


def counted(x, at):
    rows = torch.zeros(4, dtype=torch.long)
    return rows.index_add_(0, at[:, 0] % 4, torch.full((4,), 3))


def places(x, at):
    place = torch.arange(2, 14, 2).expand(4, 6).clone()
    place[x > 0] = 6
    return place


def least_cost(x, at):
    cost = torch.full((3, 3), float("inf"))
    cost[0, 0] = 0
    for row in range(2):
        for column in range(2):
            ways = torch.stack([cost[row, column], cost[row, column + 1], cost[row + 1, column]])
            cost[row + 1, column + 1] = x[row, column] + ways.amin()
    return cost


def without_diagonal(x, at):
    return (x @ x.T).fill_diagonal_(float("-inf")).softmax(-1)


MADE = (
    scattered, filled_by_rows, masked, counted, places, least_cost, without_diagonal,
)  # fmt: skip


def given():
    torch.manual_seed(0)
    return torch.randn(4, 6), torch.randint(6, (4, 2))


@pytest.mark.parametrize("function", MADE)
def test_what_is_made_here_may_change(function):
    wanted, made = function(*given()), bb.jit(function)(*given())

    assert made.dtype == wanted.dtype
    torch.testing.assert_close(made, wanted)


def test_dtypes_are_those_of_torch():
    def wide(x, at):
        made = torch.zeros(4, 6)
        made[:, 0] = x[:, 0]
        return made + x

    x, at = given()
    assert bb.jit(wide)(x.half(), at).dtype == wide(x.half(), at).dtype == torch.float32


def test_what_stays_a_constant_has_values():
    def by_values(x, at):
        weights = torch.arange(6)
        return x * sum(weights.tolist())

    torch.testing.assert_close(bb.jit(by_values)(*given()), by_values(*given()))


def test_what_others_made_stays_as_it_is():
    kept = torch.zeros(4, 6)

    def changes(x, at):
        kept[:, 1] = x[:, 0]
        return kept * x

    with pytest.raises(bb.TraceError, match="takes no traced values"):
        bb.jit(changes)(*given())
    assert not kept.any()


def test_the_error_of_what_was_traced_further_is_told():
    def unknown(x, at):
        return torch.zeros(4, 6).scatter_(1, at, 1.0) * torch.special.i0(x)

    with pytest.raises(bb.TraceError, match=r"special\.i0 cannot be traced"):
        bb.jit(unknown)(*given())


def test_diagonals_of_matrices_alone_are_filled():
    with pytest.raises(bb.TraceError, match="fill_diagonal_ of 3 axes"):
        bb.jit(lambda x: (x + 1).fill_diagonal_(0.0))(torch.ones(2, 2, 2))
