"""Einstein sums: random subscripts against NumPy, what they are made of, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.errors import TraceError

EXTENTS = {"a": 1, "b": 2, "c": 3, "d": 2, "e": 4}
TERMS = st.permutations("abcde").flatmap(
    lambda letters: st.integers(1, 4).map(lambda count: "".join(letters[:count]))
)


@st.composite
def subscripts(draw):
    terms = draw(st.lists(TERMS, min_size=1, max_size=4))
    known = sorted(set("".join(terms)))
    output = draw(st.permutations(known))[: draw(st.integers(0, len(known)))]
    return ",".join(terms) + draw(st.sampled_from(["->" + "".join(output), ""]))


@settings(max_examples=150, deadline=None)
@given(subscripts())
def test_random_subscripts_are_exact(text):
    terms = text.partition("->")[0].split(",")
    rng = np.random.default_rng(0)
    arrays = {
        f"x{i}": rng.integers(-3, 4, [EXTENTS[c] for c in term]).astype(float)
        for i, term in enumerate(terms)
    }
    program = bb.trace(lambda **given: bb.einsum(text, *given.values()), **arrays)

    wanted = np.einsum(text, *arrays.values())
    np.testing.assert_array_equal(program.numpy(arrays)["out"], wanted)


def listing(fn, **inputs):
    return bb.trace(fn, **inputs).listing()


def test_attention_is_what_matmul_makes_of_it():
    dims = dict(q="B H M D", k="B H N D", v="B H N E")

    def by_letters(q, k, v):
        s = bb.einsum("bhqd,bhkd->bhqk", q, k)
        return bb.einsum("bhqk,bhkd->bhqd", bb.softmax(s), v)

    def by_matmul(q, k, v):
        s = q @ k.mT
        return bb.softmax(s) @ v

    def name_apart(text):
        return text.replace("by_letters", "f").replace("by_matmul", "f")

    assert name_apart(listing(by_letters, **dims)) == name_apart(listing(by_matmul, **dims))


@pytest.mark.parametrize(("scores", "values"), [
    ("bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd"),
    ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"),
])  # fmt: skip
def test_attention_is_one_kernel(scores, values):
    def attention(q, k, v):
        return bb.einsum(values, bb.softmax(bb.einsum(scores, q, k)), v)

    axes = ("B H M D", "B H N D") if scores.startswith("bhqd") else ("B M H D", "B N H D")
    program = bb.trace(attention, q=axes[0], k=axes[1], v=axes[1])

    assert not bb.fuse(bb.lower(program)).final.buffered_edges()


def test_heads_are_summed_after_their_products():
    """Where the summed axes do not lie side by side in both arrays; else they are one axis."""
    program = bb.trace(lambda x, w: bb.einsum("bhsd,hde->bse", x, w), x="B H S D", w="H D E")

    assert [e.op for e in program.equations if e.op not in ("transpose", "expand")] == [
        "matmul", "sum",
    ]  # fmt: skip


def test_letters_that_are_summed_side_by_side_are_one_axis():
    """By letters, pair by pair, and by reshapes: one program, of one product."""

    def by_letters(x, y, t):
        return bb.einsum("bi,bj,ijk->bk", x, y, t)

    def by_pairs(x, y, t):
        return bb.einsum("bij,ijk->bk", x[:, :, None] * y[:, None], t)

    def by_reshapes(x, y, t):
        b, i, j = *x.shape, y.shape[1]
        return (x[:, :, None] * y[:, None]).reshape(b, i * j) @ t.reshape(i * j, t.shape[2])

    dims = dict(x="B I", y="B J", t="I J K")
    for fn in (by_letters, by_pairs, by_reshapes):
        ops = [equation.op for equation in bb.trace(fn, **dims).equations]
        assert sorted(op for op in ops if op not in ("expand", "transpose")) == [
            "matmul", "mul", "reshape", "reshape",
        ]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), [
    ("ii->i", "reads a diagonal: 'i' stands twice in 'ii'"),
    ("ii", "reads a diagonal"),
    ("ij,jk->ik", "it names 2 operands, and 1 are given"),
    ("ijk->i", "'ijk' has 3 letters for 2 axes"),
    ("ij->ijj", "stand once there"),
    ("ij->ik", "and in an operand"),
    ("ij->i;", "subscripts are letters"),
    ("i...j...->i", "an ellipsis a term"),
])  # fmt: skip
def test_refused(text, message):
    with pytest.raises(TraceError, match=message):
        bb.trace(lambda x: bb.einsum(text, x), x="M N")


def test_lists_of_axes_are_refused():
    with pytest.raises(TraceError, match="takes its subscripts as text"):
        bb.trace(lambda x: np.einsum(x, [0, 1], [1, 0]), x="M N")


TEXTS = ("ik,jk->ij", "ij,ij->ij", "ij,ij->", "ij,j->i", "bij,bjk->bik", "...ij,...jk->...ik",
         "ab,bc,cd->ad", "ij,jk,ik->i", "i,i->")  # fmt: skip


@given(data=st.data(), text=st.sampled_from(TEXTS))
def test_axes_of_one_element_meet_longer_ones(data, text):
    """As in NumPy, where an axis of one element broadcasts to the others of its letter."""
    terms = text.partition("->")[0].replace("...", "z").split(",")
    letters = sorted({*"".join(terms)})
    extents = {letter: data.draw(st.integers(2, 4), label=letter) for letter in letters}
    shapes = [[data.draw(st.sampled_from([1, extents[c]]), label=c) for c in t] for t in terms]
    arrays = {f"x{n}": np.random.default_rng(n).normal(size=s) for n, s in enumerate(shapes)}
    right = np.einsum(text, *arrays.values())

    found = bb.jit(lambda **given: np.einsum(text, *given.values()))(**arrays)

    np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)
    assert found.shape == right.shape


def test_three_operands_meet_in_the_order_of_the_examples_sizes():
    """A bilinear layer of few results: the product of both inputs would be the largest array."""
    m, k, i, j = 64, 2, 16, 32
    arrays = {"x": np.ones((m, i)), "w": np.ones((k, i, j)), "y": np.ones((m, j))}

    program = bb.trace(lambda x, w, y: np.einsum("mi,kij,mj->mk", x, w, y), **arrays)

    largest = max(len(equation.shape) for equation in program.equations)
    products = [e for e in program.equations if e.op == "matmul"]
    assert largest == 3
    assert [len(e.shape) for e in products] == [3]
    np.testing.assert_allclose(program.numpy(arrays)["out"], np.full((m, k), i * j))
