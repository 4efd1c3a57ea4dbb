"""Convolutions, pools and windows: what is refused, modules, emitted files, and proofs."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.functions.torch_transposed import Phases
from blockbuster.frontend.functions.windows import windowed
from blockbuster.frontend.merged_axes import merged
from blockbuster.frontend.saved_program import program_to_json, read_program
from blockbuster.interp.binding import dims_of

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

X = (2, 4, 5, 5)
WRONG = [
    (lambda x, w: F.conv2d(x, w, padding=-1), "conv2d with padding=-1"),
    (lambda x, w: F.conv2d(x, w, stride=0), "conv2d with stride=0"),
    (lambda x, w: F.conv2d(x, w, stride=(1, 2, 3)), r"stride=\(1, 2, 3\)(.|\n)*or 2 of them"),
    (lambda x, w: F.conv2d(x, w, dilation=0), "dilation=0(.|\n)*at least 1"),
    (lambda x, w: F.conv2d(x, w, groups=3), "conv2d of 4 channels, and 6 rows of weights, in 3"),
    (lambda x, w: F.conv2d(x, w, groups=2), "conv2d of 4 channels with weights for 8"),
    (lambda x, w: F.conv2d(x, w, padding="full"), "padding='full'"),
    (lambda x, w: F.conv2d(x, w, padding="same", stride=2), "the stride is 1"),
    (lambda x, w: F.conv2d(x[:, :3], w), "conv2d of 3 channels with weights for 4"),
    (lambda x, w: F.conv2d(x[0, 0], w), "conv2d of an array of 2 axes"),
    (lambda x, w: F.conv1d(x[0], w), "conv1d with weights of 4 axes"),
    (lambda x, w: F.conv2d(x[:, :, :2], w), "no window of 3 elements fits in 2 elements"),
    (lambda x, w: F.conv_transpose2d(x, w[:4], output_padding=1), "output_padding=1"),
    (lambda x, w: F.conv_transpose2d(x, w[:4], padding=-1), "conv_transpose2d with padding=-1"),
    (lambda x, w: F.conv_transpose2d(x, w), "conv_transpose2d of 4 channels with weights for 6"),
    (lambda x, w: F.max_pool2d(x, 3, padding=2), "padding is at most half of a window"),
    (lambda x, w: F.max_pool2d(x, 0), "kernel_size=0"),
    (lambda x, w: F.max_pool2d(x, 3, 0), "max_pool2d with stride=0"),
    (lambda x, w: F.max_pool2d(x, 6), "no window of 6 elements fits"),
    (lambda x, w: F.avg_pool2d(x, 2, divisor_override=0), "divisor_override=0"),
    (lambda x, w: F.adaptive_avg_pool2d(x, (2, 2, 2)), "output_size="),
    (lambda x, w: F.pad(x, (5, 0), "reflect"), r"pad by 5 with mode 'reflect' of 5 elements"),
    (lambda x, w: F.pad(x, (6, 0), "circular"), r"pad by 6 with mode 'wrap' of 5 elements"),
    (lambda x, w: F.unfold(x, 6), "no window of 6 elements fits"),
    (lambda x, w: x.unfold(1, 2, 0), "unfold with step=0"),
    (lambda x, w: x.narrow(1, 2, 3), "narrow to 3 elements from 2 on, of 4"),
    (lambda x, w: F.interpolate(x, scale_factor=0.1), "greater than 0, but got(.|\n)*output"),
    (lambda x, w: F.interpolate(x, (8, 8), 2), "only one of size or scale_factor"),
    (lambda x, w: F.interpolate(x, (8,)), "same number of spatial dimensions"),
    (lambda x, w: F.interpolate(x, 8, align_corners=True), "align_corners option can only be set"),
    (lambda x, w: F.interpolate(x, 8, mode="linear"), "Got 4D input, but linear mode needs 3D"),
    (lambda x, w: F.interpolate(x, scale_factor=float("nan")), "interpolate"),
    (lambda x, w: F.interpolate(x[:, :, :0], 8), "greater than 0"),
    (lambda x, w: F.pixel_shuffle(x, 3), "pixel_shuffle of 4 channels by 3"),
    (lambda x, w: F.pixel_unshuffle(x, 3), "pixel_unshuffle of 5 x 5 pixels by 3"),
    (lambda x, w: F.channel_shuffle(x, 3), "channel_shuffle of 4 channels in 3 groups"),
    (lambda x, w: F.instance_norm(x, use_input_stats=False), "no running statistics"),
]
UNKNOWN = [
    (lambda x, w: F.max_pool2d(x, 2, return_indices=True)[0], "return_indices=False"),
    (lambda x, w: F.fold(x[:, :, 0], (5, 5), 1), r"fold of windows(.|\n)*conv_transpose2d"),
    (nn.InstanceNorm2d(4, track_running_stats=True), "changes its running statistics"),
]


@pytest.mark.parametrize(("function", "message"), WRONG)
def test_what_torch_refuses_is_refused(function, message):
    arrays = torch.ones(X), torch.ones(6, 4, 3, 3)
    with pytest.raises((RuntimeError, ValueError)):
        function(*arrays)
    with pytest.raises(bb.TraceError, match=message) as caught:
        bb.jit(function)(*arrays)
    assert "test_images.py:" in str(caught.value)


@pytest.mark.parametrize(("function", "message"), UNKNOWN)
def test_what_cannot_be_traced_is_refused(function, message):
    arrays = torch.ones(X), torch.ones(6, 4, 3, 3)
    with pytest.raises(bb.TraceError, match=message):
        bb.jit(function)(*arrays[: 1 if isinstance(function, nn.Module) else 2])


MODULES = [
    (nn.Conv1d(4, 6, 3, 2, 1), (2, 4, 9)),
    (nn.Conv2d(4, 6, 3, padding="same", bias=False), (4, 5, 6)),
    (nn.Conv3d(4, 4, 2, groups=4), (1, 4, 3, 4, 5)),
    (nn.ConvTranspose1d(4, 6, 3, 2, 1, 1), (2, 4, 5)),
    (nn.ConvTranspose2d(4, 6, 2, 2), (2, 4, 3, 4)),
    (nn.ConvTranspose3d(4, 2, 3, 2, 1), (1, 4, 2, 3, 2)),
    (nn.MaxPool1d(3, 2, 1), (2, 4, 9)),
    (nn.MaxPool2d(3, 2, ceil_mode=True), (2, 4, 6, 8)),
    (nn.MaxPool3d(2), (1, 4, 4, 3, 2)),
    (nn.AvgPool1d(3, 2, 1), (2, 4, 9)),
    (nn.AvgPool2d(3, 2, 1, count_include_pad=False), (2, 4, 6, 5)),
    (nn.AvgPool3d(2, 1), (1, 4, 4, 3, 2)),
    (nn.LPPool2d(2, 2), (2, 4, 6, 5)),
    (nn.AdaptiveAvgPool2d(1), (2, 4, 6, 5)),
    (nn.AdaptiveMaxPool2d((3, None)), (2, 4, 6, 5)),
    (nn.AdaptiveAvgPool2d((4, 3)), (2, 4, 6, 5)),
    (nn.AdaptiveMaxPool1d(7), (2, 4, 5)),
    (nn.Unfold(2, stride=2), (2, 4, 6, 4)),
    (nn.Fold((4, 6), 2, stride=2), (2, 16, 6)),
    (nn.InstanceNorm1d(4, affine=True), (2, 4, 9)),
    (nn.InstanceNorm2d(4), (4, 5, 6)),
    (nn.InstanceNorm2d(4, track_running_stats=True).eval(), (2, 4, 5, 6)),
    (nn.BatchNorm3d(4).eval(), (2, 4, 3, 2, 2)),
    (nn.GroupNorm(2, 4), (2, 4, 3, 5)),
    (nn.LocalResponseNorm(3), (2, 4, 3, 5)),
    (nn.PixelShuffle(2), (2, 8, 3, 5)),
    (nn.PixelUnshuffle(2), (2, 2, 4, 6)),
    (nn.ChannelShuffle(2), (2, 4, 4, 6)),
    (nn.Upsample(scale_factor=2), (2, 4, 3, 5)),
    (nn.ZeroPad2d(1), (2, 4, 3, 5)),
]


@pytest.mark.parametrize(("module", "shape"), MODULES, ids=lambda x: type(x).__name__)
def test_modules(module, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    module.requires_grad_(False)
    torch.testing.assert_close(bb.jit(module)(x), module(x), rtol=1e-4, atol=1e-4)


# NumPy's ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["valid", "same", "full"])
@pytest.mark.parametrize("function", [np.convolve, np.correlate])
@pytest.mark.parametrize("sizes", [(7, 3), (3, 7), (6, 4), (4, 4), (5, 1), (1, 1)])
def test_numpys_convolutions(function, mode, sizes):
    rng = np.random.default_rng(5)
    a, v = (rng.normal(size=size) for size in sizes)
    found = bb.jit(lambda a, v: function(a, v, mode))(a, v)
    np.testing.assert_allclose(found, function(a, v, mode), atol=1e-12)
    whole = [rng.integers(-9, 9, size) for size in sizes]
    np.testing.assert_array_equal(bb.jit(lambda v: function(whole[0], v, mode))(whole[1]),
                                  function(*whole, mode))  # fmt: skip


@pytest.mark.parametrize(("function", "message"), [
    (lambda a: np.convolve(a, a, "both"), "mode='both'"),
    (lambda a: np.convolve(a[None], a), "of arrays of 2 and 1 axes"),
    (lambda a: np.lib.stride_tricks.sliding_window_view(a, 0), "window_shape=0"),
    (lambda a: np.lib.stride_tricks.sliding_window_view(a, 9), "no window of 9 elements"),
])  # fmt: skip
def test_numpys_refusals(function, message):
    with pytest.raises(bb.TraceError, match=message):
        bb.jit(function)(np.ones(5))


# windows themselves -------------------------------------------------------------------


def test_axes_of_windows_do_not_merge():
    x = torch.arange(36.0).reshape(4, 9)
    assert merged(bb.trace(lambda x: x.unfold(1, 3, 1), x=x)) is None
    assert torch.equal(bb.jit(lambda x: x.unfold(1, 3, 1))(x), x.unfold(1, 3, 1))


@pytest.mark.parametrize(("step", "dilation", "pads"), [
    (1, -1, (0, 0)), (2, -2, (1, 3)), (1, -1, (-1, 2)), (3, 2, (2, -1)), (4, 1, (0, 0)),
])  # fmt: skip
def test_windows_everywhere(step, dilation, pads):
    x = np.arange(22.0).reshape(2, 11)
    wanted = windowed(x, 1, 3, step, dilation, pads)
    padded = np.pad(x, ((0, 0), (2, 4)))
    for h in range(wanted.shape[1]):
        places = 2 - pads[0] + h * step + np.arange(3) * abs(dilation)
        np.testing.assert_array_equal(wanted[:, h], padded[:, places][:, :: np.sign(dilation)])

    def taken(x):
        return windowed(x, 1, 3, step, dilation, pads) * 2.0

    program = bb.trace(taken, x="M N")
    graph = bb.lower(program)
    final = bb.fuse(graph).final
    assert bb.prove_equal(graph, final)
    np.testing.assert_array_equal(program.numpy({"x": x})["out"], wanted * 2)
    np.testing.assert_array_equal(bb.evaluate(final, {"x": x})["out"], wanted * 2)
    np.testing.assert_array_equal(bb.jit(taken)(x), wanted * 2)
    np.testing.assert_array_equal(bb.jit(taken)(torch.from_numpy(x)), wanted * 2)
    np.testing.assert_array_equal(bb.jit(lambda x: taken(x + 0.0))(x), wanted * 2)


def test_zeros_outside_are_terms_where_programs_compare_positions():
    graph = bb.lower(bb.trace(lambda x: F.avg_pool1d(x, 3, 2, 1, False, False), x="C H"))
    assert bb.prove_equal(graph, bb.fuse(graph).final)


PATCHES = {
    "two axes": (F.conv2d, (2, 3, 8, 12), (5, 3, 4, 4), dict(stride=4)),
    "more than the patches fill": (F.conv2d, (2, 3, 11, 9), (5, 3, 4, 4), dict(stride=4)),
    "one axis, in groups": (F.conv1d, (2, 4, 17), (6, 2, 8), dict(stride=8, groups=2)),
    "three axes, no batch": (F.conv3d, (2, 4, 6, 9), (3, 2, 2, 3, 3), dict(stride=(2, 3, 3))),
}
WINDOWS = {
    "that overlap": (F.conv2d, (2, 3, 8, 12), (5, 3, 4, 4), dict(stride=(4, 3))),
    "with zeros around": (F.conv2d, (2, 3, 8, 12), (5, 3, 4, 4), dict(stride=4, padding=(0, 1))),
    "with gaps": (F.conv2d, (2, 3, 8, 12), (5, 3, 4, 2), dict(stride=(4, 2), dilation=(1, 2))),
    "shorter than the channels": (F.conv2d, (2, 4, 8, 12), (5, 4, 4, 4), dict(stride=4)),
}


@pytest.mark.parametrize("name", [*PATCHES, *WINDOWS])
def test_patches_of_few_channels_are_a_reshape(name):
    """Then their rows are the inner axis of a product, and what is left over is not read."""
    function, *shapes, options = {**PATCHES, **WINDOWS}[name]
    rng = np.random.default_rng(0)
    x, w = (torch.from_numpy(rng.integers(-4, 5, shape).astype(float)) for shape in shapes)

    def patches(x, w):
        return function(x, w, **options)

    program = bb.trace(patches, x=x, w=w)
    assert ("windows" in [one.op for one in program.equations]) == (name in WINDOWS)
    wanted = patches(x, w).numpy()
    np.testing.assert_array_equal(program.numpy({"x": x.numpy(), "w": w.numpy()})["out"], wanted)
    np.testing.assert_array_equal(bb.jit(patches)(x, w).numpy(), wanted)


def test_patches_of_other_sizes_are_right():
    jitted = bb.jit(lambda x, w: F.conv2d(x, w, stride=4))
    w = torch.arange(96.0).reshape(2, 3, 4, 4)
    for rows in (8, 11, 4, 40, 9):
        x = torch.arange(3.0 * rows * 8).reshape(1, 3, rows, 8)
        np.testing.assert_array_equal(jitted(x, w), F.conv2d(x, w, stride=4))
    with pytest.raises(bb.TraceError, match="no window of 4 elements fits in 3 elements"):
        jitted(torch.ones(1, 3, 3, 8), w)
    program = bb.trace(lambda x, w: F.conv2d(x, w, stride=4), x="N 3 H W", w="K 3 4 4")
    assert "windows" in [one.op for one in program.equations]  # H may be no multiple of 4


FILES = [
    (lambda x, w: F.conv2d(x, w, stride=4), dict(x="N C=3 H=9 W=8", w="K=5 C=3 4 4")),
    (lambda x, w, b: F.conv2d(x, w, b, padding=1), dict(x="N C=5 H W", w="K=4 C=5 3 3", b="K=4")),
    (lambda x, w: F.conv2d(x, w, stride=2, groups=2), dict(x="N C=6 H W", w="K=4 3 3 2")),
    (lambda x, w: F.conv2d(x, w, padding=1, groups=2), dict(x="N C=2 H W", w="C=2 1 3 2")),
    (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1), dict(x="N C=3 H W", w="C=3 K=2 4 4")),
    (lambda x: F.max_pool2d(F.relu(x), 3, 2, 1), dict(x="N C=3 H W")),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, False, False), dict(x="N C=3 H W")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "dims"), FILES)
def test_emitted_files(function, dims, tmp_path):
    pytest.importorskip("triton")
    program = bb.trace(function, **dims)
    derivation = bb.fuse(bb.lower(program))
    given = dict(N=1, C=3, H=5, W=4) | dict(program.fixed_sizes)
    sizes = {dim: given[dim] for dim in dims_of(derivation.final) if dim in given}
    path = tmp_path / "kernel.py"
    kernel = bb.emit(derivation, sizes=sizes, dtype="float32", target="sm_90")
    path.write_text(kernel.source)
    said = subprocess.run([sys.executable, str(path), "--check"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert re.search(r"out: .*: PASS", said.stdout)


def test_programs_with_windows_in_reverse_are_read_back():
    arrays = {"x": torch.ones(2, 3, 5), "w": torch.ones(3, 4, 4)}
    program = bb.trace(lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1), **arrays)
    assert read_program(json.loads(json.dumps(program_to_json(program, {}))), {}) == program


@pytest.mark.parametrize(("size", "step", "padding", "taps"), [
    (4, 2, 1, 2), (6, 2, 3, 3), (3, 2, 1, 2), (4, 2, 2, 2), (4, 3, 1, 2), (2, 2, 0, 1),
])  # fmt: skip
def test_phases_read_as_few_taps_as_there_are(size, step, padding, taps):
    """No phase of a transposed convolution has more weights than size / step, rounded up."""
    of = Phases(size, step, 1, padding, 0)

    assert of.taps == taps == -(-size // step)
