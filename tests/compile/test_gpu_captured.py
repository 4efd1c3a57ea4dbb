"""Arrays that a function reads without being given them, and layers of torch, on a GPU."""

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("cuda")]

from tests.compile.torch_code import PreNormBlock, SwiGLU, VitBlock, masked_loss  # noqa: E402


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2)


def test_a_numpy_array_goes_to_the_device_and_its_changes_follow():
    w = np.ones((64, 32), np.float32)
    jitted = bb.jit(lambda x: x @ w)
    x = torch.randn(16, 64, device="cuda")
    for value in (1.0, 2.0):
        w[:] = value
        for _ in range(2):
            close(jitted(x), x @ torch.tensor(w, device="cuda"))


def test_a_tensor_elsewhere_is_named():
    w = torch.ones(64, 32)
    with pytest.raises(bb.LaunchError, match="w is a tensor on cpu, x is a tensor on cuda:0"):
        bb.jit(lambda x: x @ w)(torch.randn(16, 64, device="cuda"))


@pytest.mark.parametrize("make", [
    lambda: PreNormBlock(64), SwiGLU, lambda: VitBlock(48)
])  # fmt: skip
def test_layers(make):
    torch.manual_seed(3)
    with torch.no_grad():
        layer = make().eval().cuda()
        width = next(layer.parameters()).shape[0]
        jitted = bb.jit(layer)
        for batch in (2, 3):
            x = torch.randn(batch, 32, width, device="cuda")
            close(jitted(x), layer(x))
        for parameter in layer.parameters():
            parameter.mul_(1.1)
        close(jitted(x), layer(x))


def test_a_loss_of_labels_and_a_mask():
    logits = torch.randn(64, 100, device="cuda")
    labels = torch.randint(0, 100, (64,), device="cuda")
    mask = torch.rand(64, device="cuda") > 0.3

    found = bb.jit(masked_loss)(logits, labels, mask)
    for name, wanted in masked_loss(logits, labels, mask).items():
        close(found[name], wanted)
