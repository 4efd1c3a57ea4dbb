"""Reshapes: which are views, which are copied with a note, what they say of sizes, and refusals."""

import re
from functools import partial
from itertools import pairwise
from math import prod

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import blockbuster as bb
import blockbuster.frontend as fe
from blockbuster.errors import TraceError
from blockbuster.frontend.moves import Take
from blockbuster.frontend.regrouping import parts_of
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.lengths import ONE, product_of, share_of, size, whole
from blockbuster.ir.ops import Misc
from tests.frontend.programs import without_line
from tests.frontend.view_programs import attention, rope_in_pairs
from tests.parameters import one_in


def written_with_reshape(x, wq, wk, wv, wo):
    b, s, _ = x.shape
    n = wq.shape[-1]
    q, k, v = ((x @ w).reshape(b, s, 4, n // 4).transpose(0, 2, 1, 3) for w in (wq, wk, wv))
    return attention(q, k, v).transpose(0, 2, 1, 3).reshape(b, s, n) @ wo


def written_with_heads(x, wq, wk, wv, wo):
    q, k, v = (bb.split_heads(x @ w, 4) for w in (wq, wk, wv))
    return bb.merge_heads(attention(q, k, v)) @ wo


def qkv(x, w):
    b, s, d = x.shape
    both = (x @ w).reshape(b, s, 3, 4, d // 4).transpose(2, 0, 3, 1, 4)
    return attention(both[0], both[1], both[2]).transpose(0, 2, 1, 3).reshape(b, s, d)


def grouped(q, k, v):
    """Eight heads of queries read two heads of keys and values, repeated four times."""
    k, v = (np.repeat(each, 4, axis=1) for each in (k, v))
    return attention(q, k, v)


def unit(x):
    return bb.eye(x.shape[1])


def turned_pairs(x):
    """Rotary embeddings on pairs of neighbours: every second column is written."""
    pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
    return bb.flatten(bb.stack([-pairs[..., 1], pairs[..., 0]], -1), -2)


BLOCK = dict(x="B S D", wq="D N", wk="D N", wv="D N", wo="N P")
VIEWS = {
    "attention with reshape": (written_with_reshape, BLOCK),
    "packed heads": (qkv, dict(x="B S D", w="D N")),
    "repeated heads": (grouped, dict(q="B 8 S D", k="B 2 T D", v="B 2 T D")),
    "a split": (lambda x: x.reshape(x.shape[0], 4, -1) * 2, dict(x="M D")),
    "a split in three": (lambda x: x.reshape(2, 3, -1).sum(-1), dict(x="D")),
    "a merge": (lambda x: bb.softmax(x.reshape(x.shape[0], -1)), dict(x="B M D")),
    "all of it": (lambda x: x.ravel() * 2, dict(x="B M D")),
    "split and merged": (lambda x: x.reshape(8, 3, -1) + 1, dict(x="4 6 D")),
    "units come and go": (
        lambda x: x.reshape(1, x.shape[1], 1, x.shape[2])[0, :, 0] * 2,
        dict(x="1 M D"),
    ),
    "rows of a batch": (
        lambda x, w: (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:2], -1),
        dict(x="B S D", w="D N"),
    ),
    "there and back": (
        lambda x: bb.exp(x.reshape(-1)).reshape(*x.shape),
        dict(x="B M D"),
    ),
    "in other factors": (lambda x: bb.exp(x.reshape(12)).reshape(6, 2) * 2, dict(x="3 4")),
    "in other factors, outer": (lambda x: bb.exp(x.reshape(12)).reshape(2, 6), dict(x="4 3")),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_need_no_copy(name):
    fn, dims = VIEWS[name]
    program = bb.trace(fn, **dims)

    assert program.notes == ()
    assert not [*bb.lower(program).of_type(Misc)]


def test_reshape_gives_the_kernels_of_split_heads():
    """The two spellings of an attention block are one block program, which fuses to one kernel."""
    graphs = [fe.lower(bb.trace(fn, **BLOCK)) for fn in (written_with_reshape, written_with_heads)]

    assert graphs[0] == graphs[1]
    assert len(bb.fuse(graphs[0]).final.nodes) == 1


def test_packed_heads_become_one_kernel():
    program = bb.trace(qkv, x="B S D", w="D N")

    assert [str(rule) for rule in program.rules if rule.dim == "N"] == ["|N| is 3 * |D|"]
    assert len(bb.fuse(bb.lower(program)).final.nodes) == 1


@pytest.mark.parametrize(
    ("fn", "dims", "shape"),
    [
        (lambda x: x.reshape(4, 6) * 2, dict(x="6 4"), (6, 4)),
        (lambda x: x.reshape(x.shape[1], x.shape[0]) * 2, dict(x="M N"), (3, 4)),
        (lambda x: x.reshape(4, -1) * 2, dict(x="M N"), (6, 2)),
        (lambda x: np.sort(x).reshape(x.shape[0], 2, -1) * 2, dict(x="M N"), (3, 4)),
    ],
)
def test_copies_are_noted(fn, dims, shape):
    program = bb.trace(fn, **dims)
    x = np.arange(float(prod(shape))).reshape(shape)

    assert re.search(r"(reshape|split).* \(.*test_reshapes.py:\d+\) is", program.notes[-1])
    for found in (program.numpy({"x": x}), evaluate(bb.lower(program), {"x": x})):
        np.testing.assert_array_equal(found["out"], fn(x))


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x, y: y[0].reshape(4), r"reshape of \(6,\): to \(4\): 6 and 4 elements differ"),
        (lambda x, y: y[0].reshape(4, -1), r"of \(6,\): to \(4, -1\): 6 elements are no multiple"),
        (lambda x, y: x.reshape(2, 3), r"of \(M, D\): to \(2, 3\): .* elements may differ"),
        (lambda x, y: x.reshape(x.shape[0] + y.shape[0], -1), "left for -1 does not follow"),
        (lambda x, y: x.reshape(-1, -1), "-1 stands twice"),
        (lambda x, y: x.reshape(0, -1), "to .0, -1.: beside an axis of no elements"),
        (lambda x, y: x.reshape(-2, 3), "-2 as the extent of an axis"),
        (lambda x, y: x.reshape(-1, 2 * x.shape[0], x.shape[1] * 2), "are no multiple of 4"),
        (lambda x, y: x[0].reshape(x.shape[1] * 2), r"of \(D,\): to \(2 \* D\): .* differ"),
        (lambda x, y: x.reshape(2.5, -1), "2.5 as the extent of an axis"),
        (lambda x, y: x.reshape("M", -1), "'M' as the extent of an axis"),
        (lambda x, y: x.squeeze(0), "axis 0 of .* is not known to have one element"),
        (lambda x, y: bb.unbind(x), "the size .M. is not known"),
        (lambda x, y: bb.split(y, 4, axis=1), "split of 6 elements into 4 equal parts"),
        (lambda x, y: bb.broadcast_to(x, (x.shape[1],)), "no shape of 1"),
        (lambda x, y: bb.broadcast_to(y, (y.shape[0], 8)), "6 and 8 elements differ"),
        (lambda x, y: np.pad(x, 1, mode="mean"), "pad with mode 'mean'"),
        (lambda x, y: np.roll(x, 1), "a copy of shape .* does not follow"),
        (lambda x, y: bb.moveaxis(x, 0, (0, 1)), "moves 1 axes to 2 places"),
        (lambda x, y: bb.flip(x, (0, -2)), "an axis stands twice"),
        (lambda x, y: x * (x.shape[0] // (y.shape[0] + 1)), "is no known number"),
        (lambda x, y: x * (x.shape[0] // y.shape[0]), "M / N of a size that is not known may be"),
        (lambda x, y: x * (3 // x.shape[0]), "3 / M of a size that is not known may be no whole"),
        (lambda x, y: x * (3 % x.shape[0]), "not known modulo"),
        (lambda x, y: bb.take(x, y), "take of float elements at float positions"),
        (lambda x, y: x[x > 0], "a mask as an index"),
        (lambda x, y: x[None][0, :, bb.arange(2)], "an array beside other positions"),
    ],
)  # fmt: skip
def test_refusals_name_the_line_and_both_shapes(fn, message):
    with pytest.raises(TraceError) as caught:
        bb.trace(fn, x="M D", y="N 6")

    assert re.search(message, without_line(caught.value, "test_reshapes.py"))


def test_sizes_that_do_not_divide_are_refused_when_run():
    program = bb.trace(lambda x: x.reshape(x.shape[0], 4, -1) * 2, x="M D")

    with pytest.raises(ValueError, match="is 3/2 for D = 6"):
        evaluate(bb.lower(program), {"x": np.ones((2, 6))})


def test_quotients_of_sizes():
    found = []

    def fn(x, y):
        found.append((y.shape[1] // 4, y.shape[1] % 4, int(y.shape[1] // 4)))
        scale = (x.shape[1] // 4) ** -0.5
        return x.reshape(x.shape[0], 4, x.shape[1] // 4) * scale, y

    program = bb.trace(fn, x="M D", y="N 10")

    assert [(str(a), b, c) for a, b, c in found] == [("2", 2, 2)]
    x = np.ones((2, 16))
    np.testing.assert_array_equal(
        program.numpy({"x": x, "y": np.ones((1, 10))})["out0"], np.full((2, 4, 4), 0.5)
    )


def test_quotients_of_examples_round_down():
    """An odd axis is halved as NumPy does; the program is for odd sizes then."""
    fn = lambda x: x[: x.shape[0] // 2] + x.shape[0] % 2  # noqa: E731
    x = np.arange(5.0)

    np.testing.assert_array_equal(bb.jit(fn)(x), fn(x))
    np.testing.assert_array_equal(bb.jit(fn)(x[:4]), fn(x[:4]))


def test_examples_fix_sizes_where_only_those_fit():
    program = bb.trace(lambda x: x.reshape(2, 3, 4) * 2, x=np.ones((6, 4)))

    assert sorted(program.sizes.values()) == [2, 3, 4, 6]
    assert bb.trace(lambda x: x.reshape(8, 3) * 2, x=np.ones((6, 4))).sizes == {
        "A": 6,
        "B": 4,
        "C": 8,
        "D": 3,
    }


ROWS = np.array([[3001, 4097], [4999, -1]])

ON_ARRAYS = {
    "attention": (written_with_reshape, [(2, 5, 6), (6, 8), (6, 8), (6, 8), (8, 3)]),
    "packed heads": (qkv, [(2, 5, 8), (8, 24)]),
    "repeated heads": (grouped, [(2, 8, 5, 4), (2, 2, 6, 4), (2, 2, 6, 4)]),
    "turned pairs": (turned_pairs, [(2, 4, 6)]),
    "turned pairs of rows": (turned_pairs, [(4, 6)]),
    "rope in pairs": (rope_in_pairs, [(2, 5, 6), (5, 3), (5, 3)]),
    "every other, every third from behind": (lambda x: x[::2] * x[1::-3, None, 0], [(3, 4)]),
    "rolled": (lambda x: np.roll(x, 1, 0) + x, [(5, 4)]),
    "padded": (lambda x: np.pad(x, ((1, 0), (0, 2))) * 2, [(5, 4)]),
    "lower": (lambda x: np.tril(x @ x.T, -1), [(5, 4)]),
    "flipped": (lambda x: np.flip(x, 0) + x, [(5, 4)]),
    "stacked, summed": (lambda x, y: np.stack([x, y]).sum(0), [(5, 4), (5, 4)]),
    "parts that are not equal": (lambda x: tuple(bb.chunk(x, 3, 1)), [(4, 8)]),
    "constants": (
        lambda x: bb.where(bb.tril(bb.ones(x.shape)) == 0, bb.zeros(x.shape), x @ unit(x)),
        [(3, 4)],
    ),
    "filled": (lambda x: bb.full((2, x.shape[0]), 0.5), [(3, 4)]),
    "rows of an embedding": (lambda w: np.take(w, ROWS, axis=0), [(5000, 2)]),
    "rows by index": (lambda w: w[:, ROWS, None] * 2, [(2, 5000)]),
    "rows by index, from behind": (lambda w: w[..., ROWS, :] * 2, [(2, 5000, 1)]),
    "rows of integers": (lambda x: bb.take(ROWS, bb.arange(x.shape[0]), 0), [(2, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", one_in(3, ON_ARRAYS))
def test_compiled_for_arrays(name):
    fn, shapes = ON_ARRAYS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]

    found, expected = bb.jit(fn)(*arrays), fn(*arrays)
    both = (value if isinstance(value, tuple) else (value,) for value in (found, expected))
    for one, wanted in zip(*both, strict=True):
        assert one.dtype == (wanted.dtype if wanted.dtype != np.float64 else np.float32)
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


def test_a_pad_is_a_view():
    x = np.arange(6.0).reshape(2, 3)
    for value in (0.0, 0.5, -np.inf):
        pad = partial(np.pad, pad_width=((1, 0), (0, 2)), constant_values=value)
        program = fe.trace(lambda x: pad(x), x="M N")  # noqa: B023 - it has one argument
        assert program.notes == ()
        np.testing.assert_array_equal(evaluate(bb.lower(program), {"x": x})["out"], pad(x))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [((1, 0), (0, 2)), ((2, 2), (4, 4)), ((3, 0), (1, 3))])
def test_pads_of_what_an_array_holds(mode, width):
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    np.testing.assert_array_equal(
        bb.jit(lambda x: np.pad(x, width, mode=mode))(x), np.pad(x, width, mode=mode)
    )


@pytest.mark.parametrize("width", [1, 4, 9])
def test_edges_are_two_choices_along_each_axis_however_wide(width):
    x = np.arange(6.0).reshape(2, 3)
    program = fe.trace(lambda x: np.pad(x, width, mode="edge"), x="M N")

    assert [one.op for one in program.equations].count("where") == 4
    made = evaluate(bb.lower(program), {"x": x})["out"]
    np.testing.assert_array_equal(made, np.pad(x, width, mode="edge"))


@pytest.mark.parametrize("kind", [bool, np.int8, np.int64, np.float32])
def test_a_pad_keeps_the_dtype(kind):
    x = np.arange(6).reshape(2, 3).astype(kind)

    np.testing.assert_array_equal(bb.jit(lambda x: np.pad(x, 1))(x), np.pad(x, 1), strict=True)


def test_positions_are_never_rounded():
    """Float16 holds whole numbers up to 2048 only; rows of a table may be more."""
    table = np.arange(5000.0).astype(np.float16)[:, None]

    for ids in (ROWS, ROWS.astype(np.int32)):
        for fn in (lambda w, i: np.take(w, i, axis=0), lambda w, i: np.flip(w[i], 0) + w[i]):
            np.testing.assert_array_equal(bb.jit(fn)(table, ids), fn(table, ids))


LENGTHS = st.lists(
    st.sampled_from([whole(2), whole(3), whole(6), size("D"), size("S"), size("D") * share_of(2),
                     ONE]), max_size=4,
)  # fmt: skip


@given(LENGTHS, st.randoms())
def test_parts_put_together_are_both_shapes(old, random):
    """Merged and reordered factors: parts multiply to the axes of both, in order."""
    cuts = sorted(random.sample(range(len(old) + 1), k=min(2, len(old) + 1)))
    bounds = [0, *cuts, len(old)]
    new = [product_of(old[a:b]) for a, b in pairwise(bounds)]
    for one, other in ((old, new), (new, old), (old, old)):
        parts = parts_of(one, other)
        assert parts is not None
        for axes, name in ((one, "old"), (other, "new")):
            places = [getattr(part, name) for part in parts]
            assert places == sorted(places)
            for axis, length in enumerate(axes):
                own = (part.length for part in parts if getattr(part, name) == axis)
                assert product_of(own) == length


def steps(draw, shape):
    """A step that NumPy can do with an array of this shape."""
    kinds = ["turn", "reshape", "cut", "flip", "exp", "squeeze"] if shape else ["exp"]
    kind = draw(st.sampled_from(kinds))
    if kind == "turn":
        axes = tuple(draw(st.permutations(range(len(shape)))))
        return lambda x: x.transpose(axes)
    if kind == "reshape":
        new = tuple(draw(st.sampled_from(factorings(prod(shape)))))
        return lambda x: x.reshape(new)
    if kind == "cut":
        axis = draw(st.integers(0, len(shape) - 1))
        start = draw(st.integers(0, shape[axis] - 1))
        stop = draw(st.integers(start + 1, shape[axis]))
        return lambda x: x[(*(slice(None),) * axis, slice(start, stop))]
    if kind == "flip":
        axis = draw(st.integers(0, len(shape) - 1))
        return lambda x: np.flip(x, axis)
    return (lambda x: x * 2 + 1) if kind == "exp" else np.squeeze


def factorings(count, most=4):
    """Shapes of that many elements."""
    if most == 1:
        return [(count,)]
    ways = [
        (first, *rest)
        for first in range(1, count + 1)
        if count % first == 0
        for rest in factorings(count // first, most - 1)
    ]
    return [(count,), *ways[:40]]


@st.composite
def chains(draw):
    """An array and steps that move its elements."""
    shape = draw(st.sampled_from([(2, 6), (4, 3), (2, 2, 3), (12,), (2, 3, 4), (1, 8)]))
    x = np.arange(float(prod(shape))).reshape(shape)
    made, taken = x, []
    for _ in range(draw(st.integers(1, 5))):
        step = steps(draw, made.shape)
        made = step(made)
        taken.append(step)
    return x, taken, made


@settings(max_examples=60, deadline=None)
@given(chains(), st.booleans())
def test_random_chains_are_what_numpy_gives(chain, fixed):
    """Exactly, with named fixed sizes and with examples, as an oracle, lowered and fused."""
    x, taken, wanted = chain

    def fn(x):
        for step in taken:
            x = step(x)
        return x + 0

    given_as = " ".join(map(str, x.shape)) if fixed else x
    program = bb.trace(fn, x=given_as)
    graph = bb.lower(program)

    np.testing.assert_array_equal(program.numpy({"x": x})["out"], wanted)
    for each in (graph, bb.fuse(graph).final):
        np.testing.assert_array_equal(evaluate(each, {"x": x})["out"], wanted)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_of_tensors_are_taken_from_behind_too(axis):
    torch = pytest.importorskip("torch")
    array = np.arange(60.0).reshape(3, 4, 5)
    for indices in (np.array(-1), np.array([0, -3]), np.array([[2, -1], [-2, 0]], np.int32)):
        found = Take(axis)(torch.from_numpy(array), torch.from_numpy(indices))
        np.testing.assert_array_equal(found.numpy(), np.take(array, indices, axis))
