"""Convolutions of every kind as calls of a library: which are found, and that they compute the
same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.library_calls import LibraryConvolution
from blockbuster.ir.lengths import whole
from blockbuster.selection.library.origins import Index
from blockbuster.selection.library.places import Geometry, Run

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from tests.selection.calls import calls_of, checked, drawn, with_calls  # noqa: E402 - torch

F = torch.nn.functional


@st.composite
def convolutions(draw):
    """A convolution's function, its arrays and its options."""
    rank = draw(st.integers(1, 3))

    def each(least, most):
        return [draw(st.integers(least, most)) for _ in range(rank)]

    extents, taps, step, dilation = each(4, 8 - rank), each(1, 3), each(1, 3), each(1, 2)
    groups, own, filters = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    options = dict(stride=step, dilation=dilation, padding=each(0, 2), groups=groups)
    turned = draw(st.booleans())
    shape = (groups * own, filters) if turned else (groups * filters, own)
    if turned:
        most = [max(one) - 1 for one in zip(step, dilation, strict=True)]
        options["output_padding"] = [min(*one) for one in zip(each(0, 2), most, strict=True)]
    x, w = drawn(2, groups * own, *extents), drawn(*shape, *taps, seed=1)
    function = getattr(F, f"conv{'_transpose' if turned else ''}{rank}d")
    return function, x, w, options


LASTS = {
    "as they are": lambda y: y,
    "merged": lambda y: y.flatten(2),
    "places first": lambda y: y.movedim(1, -1),
}


@given(convolutions(), st.booleans(), st.sampled_from([*LASTS]))
def test_convolutions_are_calls_that_compute_the_same(case, last, way):
    function, x, w, options = case
    rank = x.ndim - 2
    back = (0, rank + 1, *range(1, rank + 1)) if last else (*range(x.ndim),)

    def conv(x, w):
        return torch.relu(LASTS[way](function(x.permute(back), w, **options)))

    try:
        made = conv(x.permute(*np.argsort(back)), w)
    except RuntimeError:  # nothing is left of an axis
        return
    calls = checked(conv, x.permute(*np.argsort(back)).contiguous(), w)
    assert all(isinstance(call, LibraryConvolution) for call in calls)
    if has_several_taps(w, options) and 1 not in (*made.shape, *x.shape):
        assert len(calls) == 1
        assert calls[0].channels_last == last
        assert calls[0].groups == options["groups"]


def has_several_taps(w, options):
    """True if each axis has, and, in a transposed convolution, each element of its result; and if
    that has neither a stride and a dilation, nor more padding than its filters reach.
    """
    turned = "output_padding" in options
    each = zip(w.shape[2:], options["stride"], options["dilation"], options["padding"], strict=True)
    return all(
        taps > step and 1 in (step, dilation) and pad < taps if turned else taps > 1
        for taps, step, dilation, pad in each
    )


def phases_in_another_order(x, w):
    y = F.conv_transpose1d(x, w, stride=2)
    return y.unflatten(2, (-1, 2)).mT.flatten(2)


def first_filters(x, w):
    return F.conv_transpose1d(x, w, stride=2)[:, :2]


def more_behind_than_a_stride(x, w):
    return F.pad(F.conv_transpose1d(x, w, stride=2), (0, 2))


USUAL = [
    (F.conv_transpose1d, (3, 5), (3, 4, 2), dict(stride=2)),
    (F.conv_transpose1d, (3, 5), (3, 4, 3), dict(stride=2, padding=1)),
    (F.conv_transpose1d, (3, 5), (3, 4, 3), dict(stride=2, padding=1, output_padding=1)),
    (F.conv_transpose1d, (3, 5), (3, 4, 5), dict(stride=3, padding=1, output_padding=2)),
    (F.conv_transpose1d, (3, 5), (3, 4, 3), dict(dilation=2, padding=1)),
    (F.conv_transpose1d, (4, 5), (4, 3, 4), dict(stride=2, groups=2)),
    (F.conv_transpose2d, (3, 5, 4), (3, 4, 4, 4), dict(stride=2)),
    (F.conv1d, (4, 9), (8, 1, 3), dict(groups=4)),
    (F.conv2d, (6, 5, 5), (6, 1, 3, 3), dict(groups=6, stride=2, padding=1)),
    (F.conv2d, (6, 5, 5), (4, 3, 3, 3), dict(groups=2, dilation=2, padding=2)),
]

OURS = [
    (F.conv2d, (3, 5, 5), (4, 3, 1, 1), dict(stride=2)),  # a product
    (F.conv_transpose2d, (3, 5, 4), (3, 4, 4, 4), dict(stride=2, padding=1)),  # a tap less
]
"""Convolutions that are kernels of ours in any case."""


def test_usual_convolutions_are_calls():
    for function, image, filters, options in USUAL:
        x, w = drawn(2, *image), drawn(*filters, seed=1)
        calls = checked(lambda x, w, f=function, given=options: f(x, w, **given), x, w)
        assert [*map(str, calls)] == [f"torch.{function.__name__}"], options


def test_convolutions_of_one_tap_and_those_that_read_crosswise_are_kernels_of_ours():
    for function, image, filters, options in OURS:
        x, w = drawn(2, *image), drawn(*filters, seed=1)
        assert not checked(lambda x, w, f=function, given=options: f(x, w, **given), x, w), options


def run(x, w, given, count, taps):
    """Five places (variable 0), taps (1) and two phases (2), if there are some."""
    tap = 3 if 2 not in dict(w) else 2
    lengths = tuple(map(whole, (5, tap, 2)))
    phase = 2 if 2 in dict(w) else None
    before, front = x.pop("at"), w.pop("at")
    return Run(
        0, 1, phase, Index.of(x, before), Index.of(w, front), 2, *map(whole, (given, count, taps)),
        lengths,
    )  # fmt: skip


def test_an_axis_is_convolved_if_all_indices_say_so():
    def forward(given=10, taps=3, w=1, at=0):
        return run({0: 2, 1: 1, "at": -1}, {1: w, "at": at}, given, 5, taps).forward()

    assert forward() == Geometry(2, 1, 1)
    assert not any((forward(taps=4), forward(w=2), forward(at=1), forward(given=11)))

    def transposed(count=10, taps=3, x=1, tap=-1, w=2, at=-1):
        read = {0: x, 1: tap, "at": 1}
        return run(read, {1: w, 2: 1, "at": at}, 5, count, taps).transposed()

    assert transposed() == Geometry(2, 1, 1, 1)
    assert transposed(count=9) == Geometry(2, 1, 1, 0)
    refused = [dict(count=8), dict(count=11), dict(taps=4), dict(x=2), dict(w=3), dict(at=1)]
    refused += [dict(tap=-2, count=12), dict(tap=1), dict(at=-3)]
    assert not any(transposed(**one) for one in refused)


def filters_in_front(x, w):
    return torch.einsum("kcr,nchr->nkh", w, x.unfold(2, 3, 1))


def with_an_axis_of_one_element(x, w):
    return F.conv1d(x[:, :, 0], w, groups=4)


def test_arrays_as_they_come():
    """The filters in front, and an axis that lowering takes away from what a call is given."""
    (call,) = checked(filters_in_front, drawn(2, 3, 9), drawn(4, 3, 3, seed=1))
    assert call.x_axes == (0, 1, 2)
    shapes = {"x": "N C=4 1 L", "w": "C=4 1 R=3"}
    program = bb.trace(with_an_axis_of_one_element, **shapes)
    arrays = {"x": drawn(2, 4, 1, 9).numpy(), "w": drawn(4, 1, 3, seed=1).numpy()}
    found = with_calls(program)
    np.testing.assert_equal(found.numpy(arrays), program.numpy(arrays))
    (call,) = calls_of(found)
    assert (call.groups, call.x_axes) == (4, (0, 1, 2))


def test_phases_are_one_axis_with_their_places():
    x, w = drawn(2, 3, 5), drawn(3, 4, 4, seed=1)
    (call,) = checked(phases_in_another_order, x, w)
    assert call.step == (2,), "the call, and what moves its result"
    assert len(checked(first_filters, x, w)) == 1, "the call, and what cuts its result"
    (call,) = checked(more_behind_than_a_stride, x, w)
    assert call.more == (0,)


def zeros_where_it_goes_on(x, w):
    return F.conv1d(x[:, :, :5], w, padding=1, stride=2)


def test_zeros_of_a_library_lie_around_the_input():
    """Of known sizes, for which it would cut as many windows."""
    program = bb.trace(zeros_where_it_goes_on, x="N C=3 L=6", w="K C=3 R=3")
    assert with_calls(program) is None
