"""bb.check_kernel on a GPU: a kernel that faults or hangs does so in a process of its own."""

import pytest

import blockbuster as bb

pytestmark = pytest.mark.gpu


@pytest.fixture
def check(torch, cuda):
    pytest.importorskip("triton")
    from tests.compile import gpu_kernels  # it needs torch and Triton

    def run(name, dtype="float32", shape=(37, 5), **options):
        x = torch.randn(shape, device=cuda).to(getattr(torch, dtype))
        own = x.clone()
        kernel = getattr(gpu_kernels, name) if isinstance(name, str) else name
        report = bb.check_kernel(
            kernel, gpu_kernels.double, {"x": x}, outputs=["out"], runs=2, **options
        )
        torch.cuda.synchronize()
        assert torch.equal(x, own)  # this process still works, and its arrays are untouched
        return report

    return run


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(37, 5), (64, 64), (1, 1)])
def test_a_right_kernel_passes(check, dtype, shape):
    report = check("right", dtype, shape)

    assert report.passed, str(report)
    assert "ran in this process" not in str(report)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stores_one_past_the_end", "writes past the end of an array of shape (37, 5) that the"),
        ("stores_far_away", "most likely it reads or writes out of bounds, during run 1"),
        ("changes_its_input", "changes its input x: 185 of 185 elements"),
    ],
)
def test_what_is_wrong_is_named(check, name, words):
    report = check(name)

    assert words in str(report), str(report)
    assert "ran in this process" not in str(report)
    assert check("right").passed


def test_a_kernel_that_never_ends_is_ended(check):
    report = check("never_ends", time_limit=60.0)

    assert "did not finish within 60 s (time_limit=), during run 1" in str(report)
    assert check("right").passed


def test_a_kernel_without_a_name_says_where_it_ran(check):
    report = check(lambda x, out=None: x * 2 if out is None else out.copy_(x * 2))

    assert report.passed, str(report)
    assert "the kernel ran in this process, because another process cannot import it" in str(report)


def test_a_kernel_of_ours(torch, cuda):
    def softmax(x):
        return bb.softmax(x, -1)

    graph = bb.fuse(bb.lower(bb.trace(softmax, x="M N"))).final
    kernel = bb.emit(graph, {"M": 33, "N": 70}, "float32")
    torch.manual_seed(0)  # the largest of 2310 errors of either is a matter of luck
    x = torch.randn(33, 70, device=cuda)
    eager = lambda x: torch.softmax(x, -1)  # noqa: E731
    report = bb.check_kernel(kernel, eager, {"x": x}, eager=eager, draws=3)

    assert report.passed, str(report)
    assert report.notes == ()
