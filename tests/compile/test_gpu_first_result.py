"""First results on a GPU: wrong ones are not returned, faults stay in another process."""

import pytest

import blockbuster as bb
from blockbuster.check import loading
from blockbuster.runtime.first_launch import Finding
from blockbuster.runtime.trial import fault_in_trial
from tests.compile.functions import attention, close

pytestmark = pytest.mark.gpu


@pytest.fixture
def arrays(torch, cuda, tmp_path, monkeypatch):
    """Queries, keys and values; nothing is known of any kernel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return [torch.randn(n, 64, device=cuda, dtype=torch.float16) for n in (256, 512, 512)]


def check(torch, got, arrays):
    q, k, v = (x.double() for x in arrays)
    exact = torch.softmax(q @ k.T * q.shape[-1] ** -0.5, -1) @ v
    close(got.double().cpu().numpy(), exact.cpu().numpy(), 5e-3)


def test_a_right_result_is_compared_once(torch, arrays, monkeypatch):
    check(torch, bb.jit(attention)(*arrays), arrays)
    monkeypatch.setattr(loading, "compare_first", lambda *_: pytest.fail("compared again"))
    check(torch, bb.jit(attention)(*arrays), arrays)


def test_a_wrong_result_is_not_returned(torch, arrays, monkeypatch):
    findings = iter([Finding("out is off"), *[Finding()] * 9])
    monkeypatch.setattr(loading, "compare_first", lambda *_: next(findings))
    jitted = bb.jit(attention)

    with pytest.warns(RuntimeWarning, match=r"for out is not used, .* out is off"):
        out = jitted(*arrays)

    check(torch, out, arrays)
    assert any("out is off" in note for note in jitted.report_for(*arrays).notes)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_what_is_captured_has_to_be_checked_before(torch, arrays):
    jitted = bb.jit(attention)
    with (
        pytest.raises(bb.LaunchError, match="before its first result was checked"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        jitted(*arrays)

    jitted(*arrays)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = jitted(*arrays)
    graph.replay()
    check(torch, out, arrays)


def test_a_fault_stays_in_another_process(torch, arrays):
    plan = bb.jit(attention).plan_for(*arrays)
    (file,) = plan.files
    assert fault_in_trial(file.text, arrays, plan.sizes) == ""

    far = file.text.replace("        out_ptr + ", "        out_ptr + 10**13 + ")
    assert far != file.text
    assert "illegal memory access" in fault_in_trial(far, arrays, plan.sizes)
    check(torch, bb.jit(attention)(*arrays), arrays)


def test_an_unknown_assembler_is_tried_first(torch, arrays, monkeypatch):
    from blockbuster.emit.target import gpu
    from blockbuster.runtime import first_launch

    tried = []

    def trial(*args):
        tried.append(args)
        return fault_in_trial(*args)

    monkeypatch.setattr(gpu, "PROBED", {})
    monkeypatch.setattr(first_launch, "fault_in_trial", trial)
    check(torch, bb.jit(attention)(*arrays), arrays)
    assert len(tried) == 1
