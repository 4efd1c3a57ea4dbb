"""One row instead of a block of them: loops of vectors meet, and batches become rows."""

import numpy as np
import pytest

import blockbuster as bb

ONE = dict(q="1 D", k="N D", v="N L")
GROUPED = dict(q="B G R 1 D", k="B G N D")


def attention(q, k, v):
    return bb.softmax(q @ k.T) @ v


def shifted(q, k, v):
    """The sum is added to the weights: no factor that leaves the second sum."""
    e = np.exp(q @ k.T)
    return (e + 1 / e.sum(axis=-1, keepdims=True)) @ v


def of_groups(q, k):
    return np.exp(q @ k[:, :, None].swapaxes(-1, -2)) + 1


def of_softmax(q, k):
    return bb.softmax(q @ k[:, :, None].swapaxes(-1, -2))


def of_own_keys(q, k):
    """Each head has keys of its own: no rows of one matrix."""
    return np.exp(q @ k.swapaxes(-1, -2)) + 1


def fused(function, dims):
    return bb.fuse(bb.lower(bb.trace(function, **dims)))


def test_one_query_attends_in_one_pass():
    derivation = fused(attention, ONE)

    assert not derivation.final.buffered_edges()
    assert any("without" in step.description for step in derivation.steps)
    assert derivation.prove().equal


def test_what_is_added_does_not_leave_the_sum():
    final = fused(shifted, ONE).final

    assert final.buffered_edges()
    assert "they share no list" in str(bb.explain(final)[0])


@pytest.mark.parametrize(("function", "dims", "rows"), [
    (of_groups, GROUPED, True),
    (of_own_keys, dict(q="B R 1 D", k="B R N D"), False),
])  # fmt: skip
def test_batches_are_rows_where_they_meet_one_matrix(function, dims, rows):
    final = fused(function, dims).final

    assert ("dot" in str(final)) == rows
    assert not final.buffered_edges()
    check(final, function, dims)


@pytest.mark.parametrize(("function", "dims"), [
    (lambda q, k: bb.softmax((q[..., 0, :] @ k.T)[..., None, :]), dict(GROUPED, k="N D")),
    (lambda q, k: bb.softmax((q @ k.swapaxes(-1, -2))[:, :, None]), dict(q="B R D", k="B N D")),
    (lambda q, k: np.exp((k @ q.swapaxes(-1, -2)).swapaxes(-1, -2)[..., None]).sum(-2),
     dict(q="B R D", k="B N D")),
    (lambda q, k: (k @ q).sum(-1), dict(q="B R D 1", k="N D")),
    (lambda q, k: np.exp(k @ q).max(-1, keepdims=True), dict(q="B R D 1", k="N D")),
    (lambda q, k: bb.softmax(k @ q, axis=-2), dict(q="B R D 1", k="N D")),
])  # fmt: skip
def test_functions_of_rows_that_stand_elsewhere(function, dims):
    """A new axis of one element stands where the rows or columns of a product were; folds along it
    and along others.
    """
    lowered = bb.lower(bb.trace(function, **dims))

    check(lowered, function, dims)
    check(bb.fuse(lowered).final, function, dims)


def test_a_new_axis_beside_rows_leaves_them_in_blocks():
    """However grouped queries meet their keys, the softmax is of blocks of heads by keys."""

    def of_rows(q, k):
        return bb.softmax((q[:, :, :, 0] @ k.swapaxes(-1, -2))[:, :, :, None])

    def of_sums(q, k):
        keys = k.swapaxes(-1, -2)
        scores = q[:, :, :, 0] @ keys + (2 * q[:, :, :, 0]) @ keys
        return bb.softmax((scores * 0.5)[:, :, :, None])

    by_hand, as_it_is = (fused(fn, GROUPED).final for fn in (of_rows, of_softmax))
    assert "over [N]" not in str(by_hand)
    assert by_hand.show() == as_it_is.show()
    assert "over [N]" not in str(fused(of_sums, GROUPED).final)


def check(graph, function, dims):
    rng = np.random.default_rng(0)
    sizes = dict(B=2, G=2, R=3, D=4, N=5)
    given = {
        name: rng.standard_normal([sizes.get(a) or int(a) for a in axes.split()])
        for name, axes in dims.items()
    }
    (made,) = bb.evaluate(graph, given).values()
    assert made.shape == function(**given).shape
    np.testing.assert_allclose(made, function(**given), rtol=1e-12)
