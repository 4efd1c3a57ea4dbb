"""Tracing: dims and their unification, listings, and what an error says."""

import math
import re

import numpy as np
import pytest

import blockbuster.frontend as bb
from blockbuster.errors import TraceError
from tests.frontend.programs import attention, without_line


def shapes(fn, **inputs):
    program = bb.trace(fn, **inputs)
    return [i.shape for i in program.inputs], program.shape_of(program.outputs[0].value)


def test_listing_shows_ops_as_called():
    assert bb.trace(attention, q="M D=64", k="N D", v="N L").listing() == (
        "attention(q: (M, D=64), k: (N, D=64), v: (N, L)) {\n"
        "  t0: (D, N) = transpose(k, axes=(1, 0))\n"
        "  t1: (M, N) = matmul(q, t0)\n"
        "  t2: (M, N) = t1 * |D| ** -0.5\n"
        "  t3: (M, N) = softmax(t2, axis=-1)\n"
        "  t4: (M, L) = matmul(t3, v)\n"
        "  return t4\n"
        "}\n"
    )


def test_listing_uses_the_users_words():
    def named(x):
        total = x.sum(0) * 2
        return {"a": total, "b": x}

    assert bb.trace(named, x="M N").listing() == (
        "named(x: (M, N)) {\n"
        "  t0: (N,) = sum(x, axis=0)\n"
        "  total: (N,) = t0 * 2\n"
        "  return a=total, b=x\n"
        "}\n"
    )


def test_programs_are_values():
    first = bb.trace(attention, q="M D", k="N D", v="N L")

    assert first == bb.trace(attention, q="M D", k="N D", v="N L")
    assert first.dims == ("M", "D", "N", "L")
    assert first.sizes == {}
    assert hash(first) == hash(bb.trace(attention, q="M D", k="N D", v="N L"))


def test_traces_of_opaque_functions_are_equal():
    def opaque(x):
        return np.sort(x, axis=0)

    assert bb.trace(opaque, x="M N") == bb.trace(opaque, x="M N")


def test_notes_name_what_fusion_cannot_look_into():
    (note,) = bb.trace(lambda x: bb.exp(np.sort(x)), x="M N").notes

    assert note.startswith("np.sort[-1] (test_trace.py:")
    assert note.endswith("is opaque: a kernel boundary runs around it")


def test_dim_strings():
    program = bb.trace(lambda x, y: x + y, x="B 1 D=4 3", y="B M D 3")

    assert program.inputs[0].shape == ("B", 1, "D", "A")
    assert program.inputs[1].shape == ("B", "M", "D", "A")
    assert program.sizes == {"D": 4, "A": 3}


def test_operations_unify_the_axes_of_examples():
    arrays = {"q": np.ones((4, 4)), "k": np.ones((4, 4)), "v": np.ones((4, 4))}

    assert shapes(attention, **arrays) == ([("A", "B"), ("C", "B"), ("C", "D")], ("A", "D"))


def test_equal_sizes_alone_never_unify():
    assert shapes(lambda x, y: x, x=np.ones((4, 4)), y=np.ones(4))[0] == [("A", "B"), ("C",)]


def test_an_axis_of_extent_1_stays_a_dim_until_it_is_broadcast():
    one, many = np.ones((1, 4)), np.ones((3, 4))

    assert shapes(lambda x: x * 2, x=one) == ([("A", "B")], ("A", "B"))
    assert shapes(lambda x, y: x + y, x=one, y=many) == ([(1, "A"), ("B", "A")], ("B", "A"))
    assert shapes(lambda x, y: x + y, x=one, y=one) == ([("A", "B"), ("A", "B")], ("A", "B"))


def test_a_later_broadcast_reaches_back():
    one, many = np.ones((1, 4)), np.ones((3, 4))
    program = bb.trace(lambda x, y: x.shape[0] * bb.exp(x) + y, x=one, y=many)

    assert program.equations[0].shape == (1, "A")
    np.testing.assert_allclose(program.numpy({"x": one, "y": many})["out"], np.e + many)


def test_example_axes_take_the_names_they_meet():
    assert shapes(lambda x, w: x @ w, x="M D", w=np.ones((3, 2))) == (
        [("M", "D"), ("D", "A")],
        ("M", "A"),
    )


def test_dtypes_are_recorded():
    class Tensor:  # all that is read of a torch tensor
        shape, dtype = (2, 3), "torch.bfloat16"

    program = bb.trace(lambda x, y: x + y, x=np.ones((2, 3), np.float16), y=Tensor())

    assert [i.dtype for i in program.inputs] == ["float16", "bfloat16"]


def test_parameters_with_defaults_and_positional_only_ones():
    assert bb.trace(lambda x, scale=2.0: x * scale, x="M").inputs[0].name == "x"

    def positional(x, /, y):
        return x @ y

    assert [i.name for i in bb.trace(positional, y="K N", x="M K").inputs] == ["x", "y"]


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x, y: x @ y, r"matmul of \(M, D\) and \(N, L\): D and N differ"),
        (lambda x, y: x + y, r"add of \(M, D\) and \(N, L\): M and N differ"),
        (lambda x, y: bb.rms_norm(x, y), r"rms_norm of \(M, D\) and \(N, L\): M and N differ"),
        (lambda x, y: bb.rms_norm(x, y[:1]), "D and L differ"),
        (lambda x, y: x.sum(2), r"sum of \(M, D\): axis 2 is out of range for 2 axes"),
        (lambda x, y: x.sum((0, 2)), "sum: axis 2 is out of range"),
        (lambda x, y: bb.softmax(x, axis=None), "axis must be an int, got None"),
        (lambda x, y: x.transpose(0, 0), r"axes \(0, 0\) do not reorder the axes of \(M, D\)"),
        (lambda x, y: x.sum(0).mT, r"transpose of \(D,\): axis -2 is out of range for 1 axes"),
        (lambda x, y: math.sqrt(x.shape[0]), r"use n \*\* 0.5"),
        (lambda x, y: x if x.shape[0] > 2 else y, "not a truth value"),
        (lambda x, y: x * int(x.shape[0]), "not an int"),
        (lambda x, y: x * (x.shape[0] % 2), "not known modulo 2"),
        (lambda x, y: x * (x.shape[0] // 2), "may be no whole number"),
        (lambda x, y: bb.arange(x.shape[0] ** 0.5), "arange takes a size"),
        (lambda x, y: x // 2, "// and % are for integers"),
        (lambda x, y: x[x > 0], r"indexing of \(M, D\): a mask as an index[\s\S]*bb.where"),
        (lambda x, y: -(x > 0), r"negates nor subtracts masks[\s\S]*use ~mask"),
        (lambda x, y: (x > 0) - (x > 1), "negates nor subtracts masks"),
        (lambda x, y: x & y, "& takes masks or integers, not floats"),
        (lambda x, y: bb.where(x, x, x), "condition of where is not a mask"),
        (lambda x, y: np.exp(x, where=False), r"np.exp with where cannot be traced"),
        (lambda x, y: x + np.ma.ones(3), "a MaskedArray is read: plain arrays are needed"),
        (lambda x, y: x + "a", "a str is neither an array nor a number"),
        (lambda x, y: x + None, "add of .*: None is neither an array nor a number"),
        (lambda x, y: x == None, "eq of .*: None is neither an array"),  # noqa: E711
        (lambda x, y: x * 10**400, "too large for float64"),
        (lambda x, y: x.sum((0, -2)), r"sum: an axis stands twice in \(0, -2\)"),
        (lambda x, y: x.sum(1.0), "sum: axis must be an int, got 1.0"),
        (lambda x, y: np.cumsum(x), "cumsum of .*: axis must be an int, got None"),
        (lambda x, y: {1: x}, "an array under the key 1"),
        (lambda x, y: {"a b": x}, "under the key 'a b'[\\s\\S]*letters, digits and _"),
        (lambda x, y: x.astype(np.uint64), "a cast to uint64 cannot be traced"),
        (lambda x, y: bb.custom(np.flip, x, shape=(3,)), "3 is not the size of a dim"),
        (lambda x, y: bb.custom(np.add, x, 1, shape=x.shape), "add takes traced arrays only"),
        (lambda x, y: None, "returned None for out"),
        (lambda x, y: (x, object()), "returned an object for out1"),
        (lambda x, y: (), "returned no array"),
    ],
)  # fmt: skip
def test_errors_say_what_and_where(fn, message):
    with pytest.raises(TraceError) as caught:
        bb.trace(fn, x="M D", y="N L")

    assert re.search(message, without_line(caught.value, "test_trace.py"))


def test_an_error_shows_the_users_line():
    def wrong(x, y):
        return bb.exp(x) @ y

    with pytest.raises(TraceError, match=r"test_trace.py:\d+: return bb.exp\(x\) @ y"):
        bb.trace(wrong, x="M D", y="N L")


def test_sizes_of_examples_stand_for_their_dims():
    with pytest.raises(TraceError, match=r"matmul of \(3, 4\) and \(5, 6\): 4 and 5 differ"):
        bb.trace(lambda x, y: x @ y, x=np.ones((3, 4)), y=np.ones((5, 6)))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": "M"}, r"needs the input 'y'"),
        ({"x": "M", "y": "M", "z": "M"}, r"has no parameter 'z'[\s\S]*it takes x, y"),
        ({"x": "M", "y": "M,N"}, r"input y: 'M,N' in 'M,N' is no dim"),
        ({"x": "M", "y": f"M={2**63}"}, r"input y: 'M=9223372036854775808' in .* is no dim"),
        ({"x": "M", "y": "9" * 5000}, r"input y: '9999\d*\.\.\.\d*99' is no dim"),
        ({"x": "M=2", "y": "M=3"}, r"input y: M has sizes 2 and 3"),
        ({"x": "M", "y": np.arange(3, dtype=np.uint64)}, "an array of uint64 cannot be traced"),
        ({"x": "M", "y": "float16: M"}, "'float16' in 'float16: M' is no dtype"),
        ({"x": "M", "y": 3}, "an int is neither a dim string nor an array"),
    ],
)  # fmt: skip
def test_errors_about_inputs(inputs, message):
    with pytest.raises(TraceError, match=message):
        bb.trace(lambda x, y: x + y, **inputs)


def test_attributes_can_be_probed():
    seen = []
    bb.trace(lambda x: seen.append(hasattr(x, "put")) or x, x="M")

    assert seen == [False]


def test_arrays_of_another_trace_are_refused():
    kept = []
    bb.trace(lambda x: kept.append(x) or x, x="M")

    with pytest.raises(TraceError, match="belongs to another trace"):
        bb.trace(lambda x: x + kept[0], x="M")
    with pytest.raises(TraceError, match="returned an array of another trace"):
        bb.trace(lambda x: kept[0], x="M")
