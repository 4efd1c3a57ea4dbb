"""bb.jit on a GPU: values in every dtype, replays, streams, captured graphs, functions between."""

import numpy as np
import pytest

import blockbuster as bb
from tests.compile.functions import attention, close, doubled, several, with_custom

pytestmark = pytest.mark.gpu

TOLERANCE = {"float16": 5e-3, "bfloat16": 3e-2, "float32": 2e-3}  # float32 dots may be tf32


@pytest.fixture
def random(torch, cuda):
    def make(*shapes, dtype="float16", scale=1.0):
        kind = getattr(torch, dtype)
        return [(scale * torch.randn(shape, device=cuda)).to(kind) for shape in shapes]

    return make


def check(got, expected, tolerance=5e-3):
    close(got.double().cpu().numpy(), expected.double().cpu().numpy(), tolerance)


def exact(torch, q, k, v):
    q, k, v = q.double(), k.double(), v.double()
    return torch.softmax(q @ k.T * q.shape[-1] ** -0.5, -1) @ v


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("sizes", [(128, 256), (100, 37), (1024, 2048), (1, 5), (0, 4)])
def test_attention(torch, random, dtype, sizes):
    m, n = sizes
    arrays = random((m, 64), (n, 64), (n, 64), dtype=dtype)
    jitted = bb.jit(attention)

    first = jitted(*arrays)
    again = jitted(*arrays)

    assert again.dtype == arrays[0].dtype
    check(first, exact(torch, *arrays), TOLERANCE[dtype])
    assert torch.equal(first, again)


def test_strides_alignment_and_repeated_tensors(torch, random):
    x, y = random((64, 64), (64, 64))
    jitted = bb.jit(lambda a, b: bb.exp(a) - b)
    (flat,) = random((64 * 64 + 1,))
    odd = flat[1:].view(64, 64)

    for a, b in ((x, x), (x, y), (y, x), (odd, y), (x, odd), (x.t(), y), (x, y[:, :1]), (x, y)):
        check(jitted(a, b), a.double().exp() - b.double())
        check(jitted(a, b), a.double().exp() - b.double())


def test_functions_between_kernels(torch, random):
    x, w = random((64, 64), (64, 32), scale=0.25)
    jitted = bb.jit(several)
    y = x.double().exp() @ w.double()

    for _ in range(2):
        results = jitted(x, w)
        check(results["sorted"], y.T.sort(-1).values, 2e-2)
        check(results["turned"], y.T, 2e-2)
    assert "runs on the host" not in str(jitted.report_for(x, w))
    on_device = bb.jit(with_custom(doubled))
    for _ in range(2):
        check(on_device(x), (x + 1) * 2 - 1)
    assert on_device.report_for(x).notes == ()


def test_dtypes_of_results(torch, random):
    (x,) = random((32, 32), dtype="float32")

    assert bb.jit(lambda a, b: a @ b)(x, x.half()).dtype == torch.float32
    assert bb.jit(lambda a: (a * 2).astype("float16"))(x).dtype == torch.float16
    assert torch.equal(bb.jit(lambda a, b: a > b)(x, x.T), x > x.T)
    check(bb.jit(lambda a: a.sum())(x), x.sum(), 1e-3)
    with pytest.raises(bb.LaunchError, match=r"(?s)a is float64 on cuda.*a.float\(\)"):
        bb.jit(lambda a: a + 1)(x.double())
    with pytest.raises(bb.LaunchError, match="b is a tensor on cpu, a is a tensor on cuda"):
        bb.jit(lambda a, b: a + b)(x, x.cpu())


def test_streams_and_captured_graphs(torch, random):
    x, w = random((128, 64), (64, 128), scale=0.25)
    jitted = bb.jit(lambda x, w: bb.softmax(bb.exp(x) @ w, axis=0))

    def right():
        return torch.softmax(x.double().exp() @ w.double(), 0)

    check(jitted(x, w), right(), 2e-2)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        out = jitted(x, w)
    stream.synchronize()
    check(out, right(), 2e-2)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = jitted(x, w)
    x.copy_(0.25 * torch.randn_like(x))
    graph.replay()
    check(out, right(), 2e-2)


def test_another_device(torch, random):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    x = random((64, 64))[0].to("cuda:1")

    for _ in range(2):
        out = bb.jit(lambda x: x + 1)(x)
        assert out.device == x.device
        check(out, x + 1)


def test_saved_and_as_a_custom_operator(torch, random, tmp_path):
    arrays = random((128, 64), (256, 64), (256, 64))
    program = bb.trace(attention, q="M D", k="N D", v="N L")
    compiled = bb.compile(program, dict(M=128, N=256, D=64, L=64))

    loaded = bb.load(compiled.save(tmp_path / "a.json"))
    operator = loaded.as_custom_op("blockbuster_tests::on_gpu")

    assert torch.equal(operator(*arrays), compiled(*arrays))
    torch.library.opcheck(operator, tuple(arrays))
    with pytest.raises(bb.LaunchError, match="multiple of"):
        compiled(*(a[:100] for a in arrays))
    assert np.prod(compiled(*arrays).shape) == 128 * 64
