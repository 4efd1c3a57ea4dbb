"""Calls of one emitted kernel on tensors: what is compiled for them is looked at first."""

import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

import blockbuster as bb
from blockbuster.emit.target.compiler import Compilation, Refusal
from blockbuster.emit.target.inspection import Findings
from blockbuster.emit.target.load import load_module
from blockbuster.runtime import file_launches, first_launch, kernel_call

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")


class Stage:
    """Tensors of the CPU taken for those of a GPU, and a kernel that does what ``run`` does."""

    def __init__(self, kernel, run):
        self.kernel, self.run = kernel, run
        self.launched, self.compiled = 0, 0
        self.probed, self.capturing, self.refusal = True, False, ""

    def compile(self, function, arguments, options):
        self.compiled += 1
        if self.refusal:
            raise Refusal(self.refusal)
        loaded = dict(run=None, function=1, packed_metadata=None)
        made = SimpleNamespace(kernel=b"code", asm={"ptx": "a text"}, **loaded)
        return Compilation("k", made, "ptxas 13.3.0", (), SimpleNamespace(finished=Findings))

    def start(self, *arguments, **options):
        self.launched += 1
        self.run(*[a for a in arguments if hasattr(a, "data_ptr")])


@pytest.fixture
def stage(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph = bb.fuse(bb.lower(bb.trace(lambda x, y: x + y, x="M N", y="M N"))).final
    kernel = bb.emit(graph, dict(M=32, N=16), "float32")
    made = Stage(kernel, lambda x, y, out: torch.add(x, y, out=out))
    module = load_module(kernel.source)
    (entry,) = module.KERNELS
    name, arguments = entry["function"].__name__, entry["function"].arg_names

    class Started:
        __name__, arg_names = name, arguments

        def __getitem__(self, grid):
            return made.start

    def empty(shape, dtype, like):
        return torch.zeros(shape, dtype=getattr(torch, dtype))

    monkeypatch.setattr(module.triton.knobs.runtime, "interpret", True)
    monkeypatch.setattr(module, "empty", empty)
    monkeypatch.setitem(entry, "function", Started())
    monkeypatch.setattr(module, name, entry["function"])
    monkeypatch.setattr(file_launches, "compiled_for_launch", made.compile)
    monkeypatch.setattr(kernel_call, "LOOKED_AT", {})
    monkeypatch.setattr(kernel_call, "_is_on_gpu", lambda value: True)
    gpu = SimpleNamespace(
        name="a device", versions="versions", is_probed=lambda assemblers: made.probed,
        is_capturing=lambda: made.capturing, fault=lambda: "", current=nullcontext,
        dtype=lambda name: getattr(torch, name),
        empty=lambda shape, steps, dtype: torch.zeros(shape, dtype=dtype),
    )  # fmt: skip
    monkeypatch.setattr(kernel_call, "Gpu", lambda index: gpu)
    return made


@pytest.fixture
def arrays():
    return torch.arange(512.0).reshape(32, 16), torch.ones(32, 16)


def test_a_right_kernel_is_looked_at_once_for_each_layout(stage, arrays):
    x, y = arrays
    assert torch.equal(stage.kernel(x, y), x + y)
    assert (stage.compiled, stage.launched) == (3, 3)
    assert torch.equal(stage.kernel(x, y), x + y)
    assert (stage.compiled, stage.launched) == (3, 4)
    stage.kernel(x.T.contiguous().T, y)
    assert stage.compiled == 6


@pytest.mark.parametrize("given", [False, True])
def test_what_is_not_written_is_an_error(stage, arrays, given):
    stage.run = lambda x, y, out: torch.add(x[:31], y[:31], out=out[:31])
    places = {"out": torch.zeros(32, 16)} if given else {}
    with pytest.raises(bb.LaunchError, match="depend on memory that no kernel has written"):
        stage.kernel(*arrays, **places)


def test_runs_that_differ_are_an_error_that_names_a_file(stage, arrays):
    place = torch.zeros(32, 16)
    count = iter(range(9))
    stage.run = lambda x, y, out: torch.add(x, next(count), out=out)
    error = r"(?s)out_kernel must not run: results differ .* reproduce it: (\S+\.py)"
    with pytest.raises(bb.LaunchError, match=error) as refused:
        stage.kernel(*arrays, out=place)
    (evidence,) = re.search(error, str(refused.value)).groups()
    assert Path(evidence).read_text().endswith(stage.kernel.source)
    assert not place.any()

    launched = stage.launched
    with pytest.raises(bb.LaunchError, match="failed its check earlier"):
        stage.kernel(*arrays)
    assert stage.launched == launched


def test_a_kernel_that_faults_elsewhere_is_not_launched_here(stage, arrays, monkeypatch):
    stage.probed = False
    monkeypatch.setattr(first_launch, "fault_in_trial", lambda *a: "it faults")
    with pytest.raises(bb.LaunchError, match="must not run: it faults"):
        stage.kernel(*arrays)
    assert not stage.launched


def test_what_inspection_refuses_is_not_launched(stage, arrays):
    stage.refusal = "rows are exchanged"
    with pytest.raises(bb.EmitError, match="rows are exchanged"):
        stage.kernel(*arrays)
    assert not stage.launched


def test_a_capture_is_no_first_call(stage, arrays):
    stage.capturing = True
    with pytest.raises(bb.LaunchError, match="captured in a CUDA graph before"):
        stage.kernel(*arrays)
    assert not stage.launched


def test_an_array_may_be_read_and_written(stage, arrays):
    """What is tried writes into memory of its own, laid out as the user's."""
    x, y = arrays
    right = x + y
    seen = []

    def run(x, y, out):
        seen.append((out.stride(), out.data_ptr() % 16, out.data_ptr() == x.data_ptr()))
        torch.add(x, y, out=out)

    stage.run = run
    wide = torch.zeros(32, 20)
    place = wide[:, 1:17]
    place.copy_(x)
    assert stage.kernel(place, y, out=place) is place
    assert torch.equal(place, right)
    assert {(steps, offset) for steps, offset, _ in seen} == {((20, 1), 4)}
    assert [inside for *_, inside in seen] == [False, False, True]


def test_what_ran_here_is_not_remembered_as_compared(stage, arrays, tmp_path):
    stage.kernel(*arrays)
    (entry,) = (tmp_path / "blockbuster" / "checked").iterdir()
    assert '"passed"' not in entry.read_text()
