"""On a GPU: calls of one function with any mixture of arrays give what PyTorch gives."""

import random
import threading

import pytest

import blockbuster as bb
from blockbuster.emit.target.starting import LAUNCHERS

pytestmark = pytest.mark.gpu


def two_products(x, a, b):
    return bb.maximum(x @ a, 0) @ b


@pytest.fixture
def jitted(cuda):
    """Two kernels, which take all operands by descriptors where layouts permit it."""
    return bb.jit(two_products, library=False)


SIZES = ((512, 512, 1024), (512, 1024, 512), (2048, 1024, 1024))


def drawn(torch, draw):
    """New arrays of a drawn layout: memory of earlier ones comes again."""
    m, k, n = draw.choice(SIZES)

    def one(*shape):
        pad = draw.choice([0, 0, 8, 1])
        made = torch.randn(shape[0], shape[1] + pad, device="cuda", dtype=torch.float16)
        return (made / shape[1] ** 0.5)[:, pad:] if draw.random() < 0.7 else made[:, : shape[1]]

    return one(m, k), one(k, n), one(n, k)


def is_right(torch, out, arrays):
    x, a, b = (array.double() for array in arrays)
    exact = torch.relu(x @ a) @ b
    return bool((out.double() - exact).abs().max() <= 1e-2 * exact.abs().max())


def check(torch, jitted, seed, count):
    draw = random.Random(seed)
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    for at in range(count):
        stream = draw.choice(streams)
        with torch.cuda.stream(stream):
            arrays = drawn(torch, draw)
            out = jitted(*arrays)
            assert is_right(torch, out, arrays), (seed, at, [(a.shape, a.stride()) for a in arrays])


def test_any_mixture_of_arrays(torch, jitted):
    check(torch, jitted, seed=0, count=60)


def test_threads(torch, jitted):
    failed = []

    def work(seed):
        try:
            check(torch, jitted, seed, count=20)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_captured_calls_read_their_own_arrays(torch, jitted):
    draw = random.Random(3)
    arrays = drawn(torch, draw)
    jitted(*arrays)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = jitted(*arrays)
    others = [torch.randn_like(array) for array in arrays]
    jitted(*others)  # its descriptors are for other addresses
    for array in arrays:
        array.copy_(torch.randn_like(array) / array.shape[1] ** 0.5)
    graph.replay()
    torch.cuda.synchronize()

    assert is_right(torch, out, arrays)


def test_the_launcher_of_this_triton_is_known(cuda):
    """If not, starts take longer: read the new launcher and enter it in starting.py."""
    triton = pytest.importorskip("triton")
    assert ".".join(triton.__version__.split(".")[:2]) in LAUNCHERS
