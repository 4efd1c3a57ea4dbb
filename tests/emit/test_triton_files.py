"""Emitted files as scripts, run without Blockbuster on the path; kernels compiled without a GPU."""

import os
import subprocess
import sys

import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.targets import TARGETS
from blockbuster.errors import EmitError
from tests.emit.cases import graph_of, sizes_of
from tests.parameters import rest_slow

BIG = {
    "attention safe": {"M": 1024, "N": 1024, "D": 128, "L": 128},
    "layer norm final": {"M": 1024, "N": 1024, "K": 512},
    "swiglu final": {"M": 1024, "N": 512, "K": 1024, "D": 512},
}


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    """Triton's own cache would hide that a kernel no longer compiles."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


WITHOUT_TORCH = """
import runpy, sys

class NoTorch:
    @staticmethod
    def find_spec(name, path, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoTorch)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(path, *options, torch=False):
    """A file as a script, isolated: nothing of ours, or of the current folder, can be imported.

    Without ``torch`` that cannot be imported either: it takes seconds, to say there is no GPU.
    """
    hide = {"PYTHONPATH", "TRITON_INTERPRET"}
    script = [str(path)] if torch else ["-c", WITHOUT_TORCH, str(path)]
    return subprocess.run(
        [sys.executable, "-I", *script, *options],
        env={name: value for name, value in os.environ.items() if name not in hide},
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.interpreter
@pytest.mark.parametrize("name", rest_slow(BIG, ["layer norm final"]))
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_check_passes(tmp_path, name, dtype):
    path = emit(graph_of(name), BIG[name], dtype, tiles=dict.fromkeys("MN", 32)).write(
        tmp_path / "kernel.py"
    )

    done = run(path, "--check")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS" in done.stdout


@pytest.mark.interpreter
def test_check_finds_a_wrong_kernel(tmp_path):
    kernel = emit(graph_of("layer norm final"), {"M": 20, "N": 20, "K": 20}, "float32")
    path = kernel.write(tmp_path / "kernel.py")
    assert kernel.source.count("tl.sum(") >= 1
    path.write_text(kernel.source.replace("tl.sum(", "0.5 * tl.sum("))

    done = run(path, "--check", "--sizes", "M=17", "--seed", "3", torch=True)

    assert done.returncode == 1
    assert "FAIL" in done.stdout


@pytest.mark.interpreter
def test_command_line(tmp_path):
    path = emit(graph_of("two outputs"), {"M": 20, "K": 20, "N": 20}).write(tmp_path / "kernel.py")

    shown = run(path, "--help", torch=True)
    assert shown.returncode == 0
    assert "python this_file.py --check" in shown.stdout
    assert run(path).returncode == 2
    for asked in ("Q=3", "M", "M=-1", "M=1e3", "M=²", "M=99999999999", f"M={'9' * 5000}"):
        refused = run(path, "--check", "--sizes", asked)
        assert refused.returncode == 2
        assert "error: --sizes takes numbers below 2**31 of the dims M" in refused.stderr
    assert "error: --seed takes 0 or more; got -1" in run(path, "--check", "--seed", "-1").stderr


@pytest.mark.interpreter
@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("B=100 D=10", "C would be 2.5 for"),
        ("D=100", "C is 25: it has to be 16"),
        ("B=2000000000 D=2000000000", "it has to be"),
    ],
)
def test_sizes_that_a_kernel_does_not_take_are_a_usage_error(tmp_path, sizes, said):
    def heads(x):
        return bb.softmax(x.reshape(x.shape[0], 4, x.shape[1] // 4), axis=-1)

    graph = bb.fuse(bb.lower(bb.trace(heads, x="B D"))).final
    path = emit(graph, {"B": 32, "D": 64}, "float32").write(tmp_path / "kernel.py")

    refused = run(path, "--check", "--sizes", *sizes.split())

    assert refused.returncode == 2
    assert "error: --sizes: " in refused.stderr
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", rest_slow(BIG, ["layer norm final"]))
def test_compiles_for(name, target):
    kernel = emit(graph_of(name), BIG[name], "float16", target, chunks={})
    reports = compile_kernel(kernel)

    assert len(reports) == 1
    for report in reports:
        assert 0 < report.shared <= TARGETS[target].shared
        assert 0 < report.registers <= 512
        assert report.spills == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", rest_slow(BIG, ["layer norm final"]))
def test_compiles_in_other_dtypes(name, dtype):
    assert compile_kernel(emit(graph_of(name), BIG[name], dtype))


def test_compiles_unfused_programs():
    graph = graph_of("two outputs")
    reports = compile_kernel(emit(graph, dict.fromkeys(sizes_of(graph), 256)))

    assert len(reports) > 1


@pytest.mark.slow
def test_shared_memory_is_checked():
    tiles = {"M": 16, "N": 16, "K": 128, "D": 512}  # much to keep, little to compile
    kernel = emit(graph_of("swiglu final"), BIG["swiglu final"], "float16", "sm_80", tiles)

    with pytest.raises(EmitError, match="bytes of shared memory, sm_80 has 166912"):
        compile_kernel(kernel)
