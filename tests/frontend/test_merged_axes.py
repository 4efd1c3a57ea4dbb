"""Adjacent axes that no operator tells apart are one: what merges, what forbids it, and the values.

Every case is evaluated: the merged program gives what the original does, reshaped.
"""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.errors import TraceError
from blockbuster.frontend.decompose import decompose
from blockbuster.frontend.merged_axes import Merged, merged
from blockbuster.frontend.program import ArrayProgram
from tests.frontend.merging_programs import MergingProgram


def drawn(program: ArrayProgram, random: np.random.Generator, least: int = 2):
    """Whole numbers for a program's inputs; dims have up to three more elements than ``least``."""
    sizes = {dim: int(random.integers(least, least + 4)) for dim in program.dims}
    sizes |= program.sizes
    return {
        i.name: random.integers(-3, 4, [sizes[a] if isinstance(a, str) else 1 for a in i.shape])
        for i in program.inputs
    }


def regrouped(array, groups):
    ends = np.cumsum((0, *groups))
    return np.reshape(array, [np.prod(array.shape[a:b], dtype=int) for a, b in pairwise(ends)])


def check_values(program: ArrayProgram, found: Merged, arrays) -> None:
    """The merged program gives what the original does."""
    wanted = program.numpy(arrays)
    viewed = {
        name: regrouped(array, groups)
        for (name, array), groups in zip(arrays.items(), found.inputs, strict=True)
    }
    results = found.program.numpy(viewed)
    assert results.keys() == wanted.keys()
    for (name, array), groups in zip(wanted.items(), found.outputs, strict=True):
        assert results[name].dtype == array.dtype
        assert results[name].shape == regrouped(array, groups).shape
        np.testing.assert_allclose(
            results[name].reshape(array.shape), array, rtol=1e-11, atol=1e-11
        )


def traced_and_merged(fn, texts):
    program = bb.trace(fn, **texts)
    found = merged(program)
    if found is not None:
        assert {rule.dim for rule in found.program.rules} <= {*found.program.dims}
        assert {*found.program.sizes} <= {*found.program.dims}
        for seed in range(3):
            check_values(program, found, drawn(program, np.random.default_rng(seed)))
    return found


def linear(x, w):
    return x @ w


def group_norm(x, g):
    n, c, h, w = x.shape
    y = bb.reshape(x, (n, 4, c // 4, h, w))
    y = y - y.mean((2, 3, 4), keepdims=True)
    return bb.reshape(y, x.shape) * g[:, None, None]


def spatial_softmax(x):
    n, c, h, w = x.shape
    return bb.reshape(bb.softmax(bb.reshape(x, (n, c, h * w))), x.shape)


def normed_groups(x):
    n, c, s = x.shape
    y = bb.reshape(x, (n, 4, c // 4, s))
    return bb.reshape(y - y.mean((2, 3), keepdims=True), x.shape)


def groups_beside_their_rows(x):
    """The last axis of the groups is brought together with that of the input."""
    n, c, s = x.shape
    groups = bb.reshape(x, (n, 4, c // 4, s))
    return groups.sum((2, 3)), bb.max(groups, 1) * x[:, :1]


def layer_norm_of_three(x, g):
    over = (1, 2, 3)
    centered = x - x.mean(over, keepdims=True)
    return centered * bb.rsqrt(bb.square(centered).mean(over, keepdims=True) + 1e-5) * g


def attention(q, k, v):
    return bb.softmax(q @ k.mT) @ v


def heads(x, w):
    return bb.merge_heads(bb.relu(bb.split_heads(x @ w, 4)))


MERGES = {
    "rows": (linear, "B S K; K N", "21 11 -> 21"),
    "rows of four axes": (linear, "A B S K; K N", "31 11 -> 31"),
    "rows beside a vector": (linear, "B S K; K", "21 1 -> 2"),
    "rows beside batched weights": (linear, "B S M K; 1 1 K N", "31 1111 -> 31"),
    "rows under a batch": (linear, "B S M K; B 1 K N", "121 1111 -> 121"),
    "batches": (linear, "A B M K; A B K N", "211 211 -> 211"),
    "batches of a vector": (linear, "K; A B K N", "1 211 -> 21"),
    "batches beside one matrix": (linear, "M K; A B K N", "11 211 -> 211"),
    "batches of three beside units": (linear, "A B C M K; 1 1 C K N", "2111 11111 -> 2111"),
    "attention": (attention, "B H M D; B H N D; B H N L", "211 211 211 -> 211"),
    "pointwise": (lambda x, y: bb.exp(x) * y, "A B C; A B C", "3 3 -> 3"),
    "two axes": (lambda x: bb.exp(x), "A B", "2 -> 2"),
    "mean of all": (lambda x, y: bb.square(x - y).mean(), "A B; A B", "2 2 -> "),
    "length of all": (lambda x: x / bb.sqrt(bb.square(x).sum()), "A B C", "3 -> 3"),
    "bias of rows": (lambda x, y: x + y, "A B C; C", "21 1 -> 21"),
    "bias of columns": (lambda x, y: x + y, "A B C; A 1 1", "12 111 -> 12"),
    "units in front": (lambda x, y: x + y, "1 1 1; A B C", "111 3 -> 3"),
    "short bias": (lambda x, y: x + y, "A B C; 1", "3 1 -> 3"),
    "number": (lambda x: x * 2 + 1, "A B C", "3 -> 3"),
    "sizes multiplied": (
        lambda x: x.sum((1, 2)) / (x.shape[1] * x.shape[2]), "A B C", "12 -> 1",
    ),
    "sizes squared": (
        lambda x: x.sum((1, 2)) / (x.shape[1] * x.shape[2] * x.shape[2] * x.shape[1]), "A B C",
        "12 -> 1",
    ),
    "mean of two": (lambda x: x.mean((1, 2)), "A B C", "12 -> 1"),
    "mean of two, the first one first": (lambda x: x.mean(1).mean(1), "A B C", "12 -> 1"),
    "sum of three": (lambda x: x.sum((1, 2, 3)), "A B C D", "13 -> 1"),
    "maximum kept": (lambda x: x - x.max((0, 1), keepdims=True), "A B C", "21 -> 21"),
    "minimum of the first": (lambda x: x.min(0), "A B C", "12 -> 2"),
    "variance": (lambda x: x.var((2, 3)), "A B C D", "22 -> 2"),
    "softmax of channels": (lambda x: bb.softmax(x, 1), "A B C D", "112 -> 112"),
    "softmax of the first": (lambda x: bb.log_softmax(x, 0), "A B C", "12 -> 12"),
    "softmax of the last": (lambda x: bb.softmax(x, -1), "A B C", "21 -> 21"),
    "logsumexp": (lambda x: bb.logsumexp(x, 1), "A B C D", "112 -> 12"),
    "logsumexp kept": (lambda x: bb.logsumexp(x, 0, True), "A B C", "12 -> 12"),
    "norm": (bb.layer_norm, "A B C; C; C", "21 1 1 -> 21"),
    "norm with weights of rows": (bb.rms_norm, "A B C; A B C", "21 21 -> 21"),
    "norm with weights of units": (bb.rms_norm, "A B C; 1 1 C", "21 111 -> 21"),
    "transposed": (lambda x: bb.transpose(x, (1, 2, 0)), "A B C", "12 -> 21"),
    "new axis": (lambda x: x[:, None], "A B C", "12 -> 112"),
    "cast": (lambda x: x.astype("float16"), "A B C", "3 -> 3"),
    "slice of another": (lambda x: x[1:], "A B C", "12 -> 12"),
    "every second of another": (lambda x: x[..., ::2], "A B C", "21 -> 21"),
    "joined along another": (lambda x, y: bb.concat((x, y), -1), "A B C; A B D", "21 21 -> 21"),
    "flattened": (
        lambda x: bb.softmax(bb.reshape(x, (x.shape[0], -1))), "A B C D", "13 -> 11",
    ),
    "split and summed": (
        lambda x: bb.reshape(x, (x.shape[0], 4, x.shape[1] // 4)).sum((1, 2)), "A B=12", "11 -> 1",
    ),
    "flattened across": (
        lambda x: (bb.reshape(x, (-1, x.shape[2])), bb.reshape(x, (x.shape[0], -1))), "A B C",
        "3 -> 2 2",
    ),
    "flattened and back": (spatial_softmax, "N C H W", "22 -> 22"),
    "norm of groups": (group_norm, "N C=8 H W; C=8", "112 1 -> 112"),
    "groups of fixed sizes": (normed_groups, "N C=8 S=6", "12 -> 12"),
    "groups added up": (
        lambda x: x.reshape(x.shape[0], 2, 4, x.shape[2]).sum(1).reshape(x.shape[0], -1),
        "N C=8 S=6", "12 -> 11",
    ),
    "norm of three": (layer_norm_of_three, "A B C D; B C D", "13 3 -> 13"),
    "heads of a batch": (heads, "A B S D; D E=8", "211 11 -> 211"),
    "twice in a shape": (lambda x: bb.exp(x)[:, :, None, None] * x, "P Q", "2 -> 22"),
    "three times in a shape": (
        lambda x: bb.exp(x)[:, :, None, None, None, None] * x[:, :, None, None] * x, "P Q",
        "2 -> 222",
    ),
    "rows twice in a shape": (linear, "P Q P Q K; P Q 1 K N", "221 2111 -> 221"),
    "split in three": (
        lambda x: bb.reshape(
            bb.softmax(bb.reshape(x, (x.shape[0], 2, 2, x.shape[1] // 4))), x.shape
        ), "A B=8", "11 -> 11",
    ),
    "flattened, one of fixed size": (
        lambda x: bb.softmax(bb.reshape(x, (x.shape[0], -1))), "A B=4 C", "12 -> 11",
    ),
    "one head": (lambda x: bb.merge_heads(x), "A B 1 S E", "2111 -> 211"),
    "function beside": (lambda x, y: (x + x, rolled(y)), "A B C; D", "3 1 -> 3 1"),
    "indices of another": (lambda x: x * bb.arange(x.shape[2]), "A B C", "21 -> 21"),
    "of a name that stays behind a reshape": (
        lambda x: bb.reshape(x * 2, (4, 2, 6)).sum(1), "A=8 B=6", "2 -> 11",
    ),
    "unread": (lambda x: (bb.softmax(x, 0), x * 2)[1], "A B C", "3 -> 3"),
}  # fmt: skip
"""A function, its inputs, and how many axes each axis of its inputs and outputs stands for."""


def rolled(x):
    return bb.custom(lambda a: np.roll(a, 1, axis=0), x, shape=x.shape)


def named(texts):
    return dict(zip("xyzuvw", texts.split("; "), strict=False))


def in_order(fn):
    return lambda **arrays: fn(*arrays.values())


def grouping(found: Merged) -> str:
    sides = [" ".join("".join(map(str, g)) for g in side) for side in (found.inputs, found.outputs)]
    return " -> ".join(sides)


@pytest.mark.parametrize("name", MERGES)
def test_merges(name):
    fn, texts, wanted = MERGES[name]

    found = traced_and_merged(in_order(fn), named(texts))

    assert found is not None
    assert grouping(found) == wanted
    decompose(found.program)


def masked(x):
    return bb.where(bb.arange(x.shape[0])[:, None, None] < 2, x, 0)


STAY = {
    "sum over one": (lambda x: x.sum(1), "A B C"),
    "folds of two kinds": (lambda x: x.sum(2).max(1).sum(0), "A B C"),
    "folded, then read": (lambda x: (lambda s: s.sum(1) + s[:, 0])(x.sum(2)), "A B C"),
    "folded and returned": (lambda x: (lambda s: (s, s.sum(1)))(x.sum(2)), "A B C"),
    "folded, then cast": (lambda x: x.sum(2).astype("float16").sum(1), "A B C"),
    "folded over one of each": (lambda x: x.sum(1).sum(1), "P Q P Q"),
    "transposed, one of each": (lambda x: bb.transpose(x, (0, 3, 2, 1)), "P Q P Q"),
    "softmax over each": (lambda x: bb.softmax(bb.softmax(x, 1), 2) + bb.softmax(x, 0), "A B C"),
    "norm over the last": (lambda x: bb.layer_norm(bb.softmax(x, 0)) + x.sum(1)[:, None], "A B C"),
    "an operand has one": (lambda x, y, z: x * y + z, "A B C; A 1 C; A B 1"),
    "an operand has one of rows": (lambda x, y: x + y, "A B C; B 1"),
    "softmax of two axes": (lambda x: bb.softmax(x, 1), "A B"),
    "weights of each batch": (linear, "B S K; B K N"),
    "weights of each row": (lambda x, y: bb.softmax(x @ y, 1), "B S K; B K N"),
    "summed by a product": (lambda x, y: bb.softmax(x, 0) @ y, "A B C; C N"),
    "transposed apart": (lambda x: bb.transpose(x, (2, 1, 0)), "A B C"),
    "a view between": (lambda x: (x[:, None], x[:, :, None]), "A B C"),
    "cut": (lambda x: (x[:, 1:], x[0:, :, 1:]), "A B C"),
    "joined": (lambda x, y: bb.concat((x, y), 1), "A B C; A D C"),
    "positions": (lambda x: masked(x).sum(2), "A B C"),
    "a size alone": (lambda x: x * x.shape[0] + x.shape[1], "A B C"),
    "less than a size": (
        lambda x: (bb.softmax(x), bb.arange(x.shape[0] - 1) * 1.0), "A B C",
    ),
    "a function": (lambda x: rolled(x) + x, "A B C"),
    "heads": (heads, "B S D; D E=8"),
    "groups of whose rows a size alone follows": (normed_groups, "N C=8 S"),
    "groups beside their rows": (groups_beside_their_rows, "N C=8 S"),
    "regrouped otherwise": (
        lambda x: bb.softmax(bb.reshape(x, (x.shape[0], -1, 4)), 1), "A B C=8",
    ),
    "another input has one": (lambda x, y: (x * 2, y * 2), "A B C; B"),
    "another order": (lambda x, y: (x * 2, y * 2), "A B C; C B A"),
}  # fmt: skip


@pytest.mark.parametrize("name", STAY)
def test_stay_apart(name):
    fn, texts = STAY[name]

    found = traced_and_merged(in_order(fn), named(texts))

    assert found is None, grouping(found)


def test_axes_of_arrays_that_must_stay_whole():
    program = bb.trace(linear, x="B S K", w="K N")

    assert merged(program, ["x"]) is None
    assert merged(program, ["w"]) is not None

    apart = bb.trace(lambda x, y: (bb.exp(x), bb.exp(y)), x="A B", y="C D")
    found = merged(apart, ["y"])
    assert found is not None
    assert grouping(found) == "2 11 -> 2 11"


def test_a_dim_of_the_same_size_gives_its_name():
    program = bb.trace(spatial_softmax, x="N C H W")

    found = merged(program)

    assert found.program.rules == ()
    assert [e.op for e in found.program.equations] == ["softmax"]
    assert {*found.program.dims} <= {*program.dims, "NC"}


def test_a_merged_dim_whose_size_follows():
    def in_fours(x):
        rows, columns = x.shape
        y = bb.softmax(bb.reshape(x, (rows, columns // 4, 2, 2)))
        return bb.reshape(y, x.shape)

    program = bb.trace(in_fours, x="A B")
    found = merged(program)

    assert [str(rule) for rule in found.program.rules if rule.dim not in program.dims] == [
        "|CD| is |B| / 2"
    ]
    check_values(program, found, {"x": np.random.default_rng(0).normal(size=(3, 8))})


def test_fixed_sizes_multiply():
    found = merged(bb.trace(lambda x: bb.softmax(x, 0), x="A B=3 C=5"))

    assert found.program.sizes == {"BC": 15}


def test_sizes_that_nobody_reads_do_not_stay():
    x = np.arange(72.0).reshape(6, 4, 3)

    def function(x):
        x.reshape(3, 3, 8)  # nobody reads it
        return x.reshape(3, 2, 12), x * 2

    for found, wanted in zip(bb.jit(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_name_that_is_taken():
    found = merged(bb.trace(lambda x, y: (bb.softmax(x, 0), y), x="A B C", y="BC"))

    assert found.program.inputs[0].shape == ("A", "BC_")


@given(seed=st.integers(0, 2**32))
def test_random_programs_keep_their_meaning(seed):
    drawn_program = MergingProgram(Random(seed))
    try:
        program = bb.trace(drawn_program, **drawn_program.inputs)
    except TraceError:  # sizes of which only some are equal
        return
    found = merged(program)
    if found is not None:
        check_values(program, found, drawn(program, np.random.default_rng(seed)))
        decompose(found.program)


def test_random_programs_merge_often():
    count = 0
    for seed in range(200):
        drawn_program = MergingProgram(Random(seed))
        try:
            count += merged(bb.trace(drawn_program, **drawn_program.inputs)) is not None
        except TraceError:
            continue

    assert count > 60


def test_numbers_that_are_equal_by_chance_are_no_one_dim():
    """8 rows of 8 pairs: one dim for both would give both loops blocks of one size."""

    def pairs(x, c):
        t = x.reshape(2, 4, 5, 8, 2)
        return t * c[:, :, None]

    found = merged(bb.trace(pairs, x=np.zeros((2, 4, 5, 16)), c=np.zeros((5, 8))))
    (rows, _, _) = found.program.inputs[0].shape
    assert rows not in found.program.inputs[1].shape


def test_numbers_of_a_reshape_are_one_dim():
    def rows(x, y):
        return x.reshape(8, 5) + y

    program = bb.trace(rows, x=np.zeros((2, 4, 5)), y=np.zeros((8, 5)))
    found = merged(program)
    assert found.program.inputs[0].shape == found.program.inputs[1].shape
