"""jit(graph=True) on a GPU: a replayed call gives what a launched one gives."""

import pytest

import blockbuster as bb
from tests.compile.functions import attention, with_custom

pytestmark = pytest.mark.gpu


@pytest.fixture
def arrays(torch, cuda):
    return [torch.randn(n, 64, device=cuda, dtype=torch.float16) for n in (256, 512, 512)]


def test_a_replay_gives_what_a_launch_gives(torch, arrays):
    plain, graphed = bb.jit(attention), bb.jit(graph=True)(attention)
    for _ in range(4):
        assert torch.equal(graphed(*arrays), plain(*arrays))
        for array in arrays:
            array.copy_(torch.randn_like(array))


def test_results_are_overwritten_and_recordings_kept_apart(torch, arrays):
    graphed = bb.jit(graph=True)(attention)
    graphed(*arrays)
    first = graphed(*arrays)
    kept = first.clone()
    others = [torch.randn_like(array) for array in arrays]
    second = graphed(*others)
    assert torch.equal(first, kept)
    assert not torch.equal(first, second)
    arrays[0].zero_()
    third = graphed(*arrays)
    assert third.data_ptr() == first.data_ptr()
    assert not torch.equal(first, kept)


def test_inside_a_graph_of_the_callers(torch, arrays):
    plain, graphed = bb.jit(attention), bb.jit(graph=True)(attention)
    for _ in range(2):
        graphed(*arrays)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = graphed(*arrays)
    arrays[1].copy_(torch.randn_like(arrays[1]))
    graph.replay()
    assert torch.equal(result, plain(*arrays))


def test_other_streams_and_memory_in_use(torch, arrays):
    """What is allocated between replays does not disturb them, nor do they disturb it."""
    plain, graphed = bb.jit(attention), bb.jit(graph=True)(attention)
    expected = plain(*arrays).clone()
    for _ in range(3):
        graphed(*arrays)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        noise = [torch.full((1 << 20,), 7.0, device=arrays[0].device) for _ in range(8)]
        assert torch.equal(graphed(*arrays), expected)
    torch.cuda.synchronize()
    assert all(bool((one == 7.0).all()) for one in noise)


def test_a_function_on_the_host_is_refused(torch, arrays):
    def strict(array):
        if hasattr(array, "data_ptr"):
            raise TypeError("NumPy only")
        return array * 2

    graphed = bb.jit(graph=True)(with_custom(strict))
    graphed(arrays[0])
    with pytest.raises(bb.LaunchError, match="cannot become a graph: strict runs on the host"):
        graphed(arrays[0])
