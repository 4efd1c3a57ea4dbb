"""Views as data: what is free, what is copied, what is refused, and how it prints."""

import re

import numpy as np
import pytest

import blockbuster.frontend as bb
from blockbuster.errors import TraceError
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.graph import Read
from blockbuster.ir.lengths import clamped, share_of, size, whole
from blockbuster.ir.ops import Map, Misc, Transpose
from blockbuster.ir.views import Run, Strided
from blockbuster.rules import fuse
from tests.frontend.programs import without_line
from tests.frontend.view_programs import COPIED, FREE, attention, cached, rope


def lowered(fn, **dims):
    return bb.lower(bb.trace(fn, **dims))


def views(graph):
    """How each input is read, as text."""
    return [
        f"{i.view.source}({','.join('1' if a is None else str(a) for a in i.view.axes)})"
        for i in graph.inputs
        if isinstance(i.view, Read)
    ]


def misc(graph):
    return [op.name for _, op in graph.of_type(Misc)]


@pytest.mark.parametrize("name", FREE)
def test_free(name):
    program = bb.trace(FREE[name][0], **FREE[name][1])
    graph = bb.lower(program)

    assert program.notes == ()
    assert misc(graph) == []
    assert not [op for _, op in graph.of_type(Transpose)]


@pytest.mark.parametrize("name", COPIED)
def test_copied_with_a_note(name):
    program = bb.trace(COPIED[name][0], **COPIED[name][1])

    assert misc(bb.lower(program))
    assert any("is a copy: a kernel boundary runs around it" in note for note in program.notes)
    assert all("view_programs.py:" in note for note in program.notes)


def test_a_slice_of_an_input_is_a_view():
    graph = lowered(lambda x: bb.exp(x[1:, :-2]), x="M D")

    assert graph.inputs[0].view == Read(
        "x",
        (
            Strided("M", (Run("A", clamped(size("M") - whole(1))),), whole(1)),
            Strided("D", (Run("B", clamped(size("D") - whole(2))),)),
        ),
    )
    assert views(graph) == ["x(M[A = maximum(|M| - 1, 0) from 1],D[B = maximum(|D| - 2, 0)])"]


def test_heads_of_an_input_are_a_view():
    graph = lowered(lambda x: bb.split_heads(x, 4) * 2, x="S D")

    each = size("D") * share_of(4)
    split = Strided("D", (Run("A", whole(4), each), Run("B", each)), extent=size("D"))
    assert graph.inputs[0].view == Read("x", ("S", split))
    assert graph.inputs[0].type.lists == ("A", "S", "B")
    assert graph.inputs[0].type.axes == ("S", "B")


def test_a_slice_of_a_product_slices_the_weight():
    graph = lowered(lambda x, w: (x @ w)[:, 2:], x="M D", w="D N")

    assert views(graph) == ["x(M,D)", "w(D,N[A = maximum(|N| - 2, 0) from 2])"]
    assert len(graph.nodes) == 1


def test_heads_of_a_product_are_heads_of_the_weight():
    graph = lowered(lambda x, w: bb.split_heads(x @ w, 2), x="S D", w="D N")

    assert views(graph) == ["x(S,D)", "w(D,N[A = 2 step |N| / 2, B = |N| / 2 of |N|])"]
    assert len(graph.nodes) == 1


def test_a_slice_of_heads_of_a_slice_is_one_view():
    def fn(x):
        return bb.split_heads(x[:, 8:], 4)[1:3, :, 1:]

    assert views(lowered(fn, x="S 40")) == ["x(S,A[E = 2 step 8, F = 7 from 17 of 40])"]


def test_merged_heads_are_written_in_place():
    graph = lowered(lambda x: bb.merge_heads(bb.exp(x)), x="B H S D")

    (output,) = graph.outputs
    assert str(output.axes[2]) == "A[H step |D|, D of |D| * |H|]"


def test_merged_heads_are_summed_head_by_head():
    graph = lowered(lambda x, w: bb.merge_heads(x) @ w, x="H S D", w="N K")

    assert views(graph)[1] == "w(N[H step |D|, D of |D| * |H|],K)"
    assert [type(node.op) for node in graph.nodes] == [Map, Map]


def test_joined_arrays_are_outputs_part_by_part():
    graph = lowered(lambda x, y: bb.concat([x, y], axis=0), x="M D", y="N D")

    assert [o.name for o in graph.outputs] == ["out", "out"]
    assert [str(o.axes[0]) for o in graph.outputs] == [
        "A[M of |M| + |N|]",
        "A[N from |M| of |M| + |N|]",
    ]


def test_a_product_over_joined_arrays_is_a_sum_of_products():
    graph = lowered(lambda x, y, w: bb.concat([x, y]) @ w, x="M D", y="M E", w="F N")

    assert len(graph.nodes) == 3
    assert views(graph)[2:] == ["w(F[D of |D| + |E|],N)", "w(F[E from |D| of |D| + |E|],N)"]


def test_equal_pieces_are_taken_once():
    def fn(x, w):
        h = x @ w
        return h[:, :2] * h[:, :2] + h[:, :2]

    assert len(lowered(fn, x="M D", w="D N").inputs) == 2


def test_rope_attention_becomes_one_kernel():
    def fn(q, k, v, c, s):
        return attention(rope(q, c, s), rope(k, c, s), v)

    dims = dict(q="B H S D", k="B H S D", v="B H S D", c="S E", s="S E")
    assert len(fuse(lowered(fn, **dims)).final.nodes) == 1


def test_halves_of_an_axis_are_one_dim():
    program = bb.trace(lambda x: x[:, : x.shape[1] // 2] * x[:, x.shape[1] // 2 :], x="M D")

    assert program.equations[-1].shape == ("M", "A")
    assert [str(rule) for rule in program.rules] == ["|A| is |D| / 2"]


def test_slices_end_with_an_axis_of_known_size():
    program = bb.trace(lambda x: x[:, 1:100] + x[:, -100:3], x="M D=4")

    assert [e.param("length") for e in program.equations[:2]] == [whole(3), whole(3)]


def test_known_sizes_meet():
    program = bb.trace(lambda x: x[:, :32] + x[:, 32:], x="M D=64")

    assert program.sizes == {"D": 64, "A": 32}


def test_listing_shows_views():
    def fn(x):
        return bb.concat([bb.split_heads(x, 2)[..., 1:], bb.split_heads(x, 2)[..., :1]])

    assert bb.trace(fn, x="S D").listing().splitlines()[1:] == [
        "  t0: (S, A, B) = reshape(x, shape=(|S|, 2, |D| / 2))",
        "  t1: (A, S, B) = transpose(t0, axes=(1, 0, 2))",
        "  t2: (A, S, C) = slice(t1, axis=2, start=1, length=maximum(|D| / 2 - 1, 0))",
        "  t3: (S, A, B) = reshape(x, shape=(|S|, 2, |D| / 2))",
        "  t4: (A, S, B) = transpose(t3, axes=(1, 0, 2))",
        "  t5: (A, S, E) = slice(t4, axis=2, start=0, length=|D| / 2 - maximum(|D| / 2 - 1, 0))",
        "  t6: (A, S, F) = concat(t2, t5, axis=-1)",
        "  return t6",
        "}",
    ]


def test_plain_arrays_are_computed_at_once():
    x = np.arange(24.0).reshape(3, 8)
    heads = bb.split_heads(x, 2)

    assert heads.shape == (2, 3, 4)
    assert heads[1, 2, 3] == x[2, 7]
    np.testing.assert_array_equal(bb.merge_heads(heads), x)
    np.testing.assert_array_equal(bb.concat([x[:, :3], x[:, 3:]]), x)
    with pytest.raises(TraceError, match="an axis of 8 does not split into 3 heads"):
        bb.split_heads(x, 3)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x, y: x[..., ::0], r"slice of \(M, D\): a step of 0[\s\S]*x\[..., ::2\]"),
        (lambda x, y: x[:: x.shape[1]], r"a step of .D.[\s\S]*whole numbers"),
        (lambda x, y: x[:, x.shape[1]], "there is no position .D. on an axis of D"),
        (lambda x, y: x[:, : x.shape[1] ** 2.5], "begins or ends at no whole number"),
        (lambda x, y: x[:, 0.5:], "begins or ends at no whole number"),
        (lambda x, y: x[{0: 1}], r"a dict as an index[\s\S]*bb.custom"),
        (lambda x, y: x[True, 0], r"True as an index[\s\S]*x\[None\]"),
        (lambda x, y: x[0, 0, 0], "more indices than axes"),
        (lambda x, y: x[..., ...], r"\.\.\. stands twice"),
        (lambda x, y: x[:, : x.shape[1] // 0], r".D. // 0 is no known number"),
        (lambda x, y: y[:, 4], "there is no position 4 on an axis of 4 elements"),
        (lambda x, y: y[:, -5], "there is no position -5 on an axis of 4 elements"),
        (lambda x, y: bb.split_heads(y, 3), "an axis of 4 does not split into 3 heads"),
        (lambda x, y: bb.split_heads(x, 0), "the number of heads is 0"),
        (lambda x, y: bb.split_heads(x, x.shape[0]), r"the number of heads is \|M\|"),
        (lambda x, y: bb.split_heads(x[0], 2), "heads are split off"),
        (lambda x, y: bb.merge_heads(x), "heads are merged from"),
        (lambda x, y: bb.concat([x, y[None]]), "equally many axes"),
        (lambda x, y: bb.concat([x, y], 1), r"concat of \(M, D\) and \(N, 4\): M and N differ"),
        (lambda x, y: bb.concat([x, y], 2), "axis 2 is out of range"),
        (lambda x, y: x[:, 1:] + x[:, 2:], "add of .*: D - 1 and D - 2 differ"),
    ],
)  # fmt: skip
def test_refused_by_name(fn, message):
    with pytest.raises(TraceError) as caught:
        bb.trace(fn, x="M D", y="N 4")

    assert re.search(message, without_line(caught.value, "test_views.py"))


@pytest.mark.parametrize(
    ("fn", "shape", "message"),
    [
        (lambda x: x[:, : x.shape[1] // 2] * 2, (3, 5), "is 5/2 for D = 5"),
        (lambda x: bb.split_heads(x, 4) * 2, (3, 6), "is 3/2 for D = 6"),
        (lambda x: x[:, 4] * 2, (3, 4), r"of shape \(3, 0\)|at least 5"),
    ],
)  # fmt: skip
def test_sizes_that_do_not_fit_are_refused(fn, shape, message):
    program = bb.trace(fn, x="M D")
    arrays = {"x": np.ones(shape)}

    with pytest.raises(ValueError, match=message):
        program.numpy(arrays)
    with pytest.raises(ValueError, match=message):
        evaluate(bb.lower(program), arrays)


ENDS = (None, 0, 1, 2, 5, 9, -1, -2, -5, -9)


@pytest.mark.parametrize("step", [None, 1, 2, 3, 9, -1, -2, -3, -9])
@pytest.mark.parametrize("dims", ["5 2", "M D"])
def test_slices_take_the_elements_that_numpy_takes(step, dims):
    x = np.arange(10.0).reshape(5, 2)
    for entry in (slice(start, stop, step) for start in ENDS for stop in ENDS):
        program = bb.trace(lambda x, entry=entry: x[entry], x=dims)
        np.testing.assert_array_equal(program.numpy({"x": x})["out"], x[entry])


@pytest.mark.parametrize("extent", [6, 7, 8])
def test_steps_of_examples_need_not_divide_their_axes(extent):
    x = np.arange(2.0 * extent).reshape(extent, 2)

    def fn(x):
        return x[::2][:2] * x[1::3][:2], x[-2::-3]

    program = bb.trace(fn, x=x)
    found = evaluate(bb.lower(program), {"x": x})

    for one, expected in zip(found.values(), fn(x), strict=True):
        np.testing.assert_array_equal(one, expected)


def test_steps_of_unknown_sizes_divide_them():
    program = bb.trace(lambda x: x[::2] * x[1::2], x="M")

    assert [str(rule) for rule in program.rules] == ["|A| is |M| / 2"]
    with pytest.raises(ValueError, match="is 5/2 for M = 5: no whole number"):
        program.numpy({"x": np.ones(5)})


def test_the_same_elements_in_two_spellings_are_one_view():
    graph = lowered(lambda x: x[:, ::2] + x.reshape(-1, x.shape[1] // 2, 2)[..., 0], x="M D")

    assert views(graph) == ["x(M,D[A = |D| / 2 step 2])"]


def test_slices_backwards_are_views():
    graph = lowered(lambda x: x[:, ::-1] + x, x="M D")

    assert views(graph) == ["x(M,D)", "x(M,D[D step -1 from |D| - 1])"]
    assert bb.trace(lambda x: x[5::-2], x="M").notes == ()


JOINED = {
    "all of it": lambda x: np.flip(np.concatenate([x[:, 3:] * 2, x[:, :5]], 1), 1) + 1,
    "both parts": lambda x: np.concatenate([x[:, 3:] * 2, x[:, :5]], 1)[:, 6:1:-1] + 1,
    "the first part": lambda x: np.concatenate([x[:, 3:] * 2, x[:, :5]], 1)[:, 3::-1] + 1,
    "the second part": lambda x: np.concatenate([x[:, 3:] * 2, x[:, :5]], 1)[:, :5:-1] + 1,
}


@pytest.mark.parametrize("fn", JOINED.values(), ids=JOINED)
def test_joined_arrays_backwards(fn):
    x = np.arange(24.0).reshape(3, 8)

    graph = bb.lower(bb.trace(fn, x="M=3 N=8"))

    np.testing.assert_array_equal(evaluate(graph, {"x": x})["out"], fn(x))


def test_sizes_that_follow_are_checked():
    graph = lowered(lambda x, y, w: bb.concat([x, y]) @ w, x="M D", y="M E", w="F N")
    arrays = {"x": np.ones((2, 3)), "y": np.ones((2, 4)), "w": np.ones((8, 2))}

    with pytest.raises(ValueError, match=r"dim F has size 8, but \|F\| is \|D\| \+ \|E\|"):
        evaluate(graph, arrays)


def test_empty_arrays_have_empty_slices():
    graph = lowered(lambda x: bb.split_heads(x, 2)[..., : x.shape[1] // 4] * 2, x="M D")

    assert evaluate(graph, {"x": np.ones((3, 0))})["out"].shape == (2, 3, 0)
    assert evaluate(graph, {"x": np.ones((0, 8))})["out"].shape == (2, 0, 2)


def test_joined_keys_meet_a_query_part_by_part():
    graph = lowered(cached, q="M D", past="N D", new="P D")

    assert misc(graph) == []
    assert [loop.dim for _, loop in graph.of_type(Map)].count("A") == 0  # of both parts
    (final,) = fuse(graph).snapshots[-1:]
    assert not final.buffered_edges()


def test_a_copy_of_joined_tokens_is_made_before_they_meet_weights():
    graph = lowered(*COPIED["joined tokens"][:1], **COPIED["joined tokens"][1])

    assert misc(graph) == ["concat axis 1"]
    assert "with |A| = |M| + 1" in graph.show()
