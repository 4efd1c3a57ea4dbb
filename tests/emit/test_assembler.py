"""Which ptxas is taken: the best that is there and that the driver follows."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from blockbuster.emit.target import assembler, driver
from blockbuster.emit.target.assembler import assembler_for
from blockbuster.errors import EmitError


def ptxas(folder, version, *, name="ptxas", runs=True):
    """A program that says it is this version, and makes binaries that hold its version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    said = f"Cuda compilation tools, release {version.rpartition('.')[0]}, V{version}"
    body = f'if [ "$1" = --version ]; then echo "{said}"; else echo {version} > "$4"; fi'
    path.write_text(f"#!/bin/sh\n{body if runs else 'exit 3'}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with nothing but Triton's tools, and ``choose`` on it."""
    for name in assembler.READ:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    monkeypatch.setattr(assembler, "_places", without_the_toolkit(assembler._places))
    monkeypatch.setattr(assembler.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(driver, "device_architecture", lambda: "")
    triton = tmp_path / "triton"

    def choose(own="12.8.93", blackwell="", target="sm_90"):
        path = ptxas(triton, own)
        if blackwell:
            ptxas(triton, blackwell, name="ptxas-blackwell")
        for remembered in (assembler._assembler_for, assembler.version_of, assembler._refused):
            remembered.cache_clear()
        return assembler_for(target, path, triton)

    yield choose
    for remembered in (assembler._assembler_for, assembler.version_of, assembler._refused):
        remembered.cache_clear()


def without_the_toolkit(places):
    return lambda *given: (found for found in places(*given) if "/usr/local/" not in found[0])


def test_a_sound_one_is_taken_before_a_newer_one_that_is_not_triton_s(
    machine, monkeypatch, tmp_path
):
    assert str(machine()) == "ptxas 12.8.93 (from Triton)"
    assert machine().broken == "loses the base of wgmma descriptors"
    assert str(machine(blackwell="12.9.86")) == "ptxas 12.9.86 (from Triton, for Blackwell)"
    ptxas(tmp_path / "cuda" / "bin", "13.0.88")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert str(machine(blackwell="12.9.86")) == "ptxas 13.0.88 (from CUDA_HOME)"
    ptxas(tmp_path / "own", "13.3.33")
    monkeypatch.setenv("PATH", f"{tmp_path / 'own'}:/bin:/usr/bin")
    assert str(machine(blackwell="12.9.86")) == "ptxas 13.3.33 (from PATH)"
    assert str(machine(own="13.4.59")) == "ptxas 13.4.59 (from Triton)"


def test_a_package_brings_one(machine, monkeypatch, tmp_path):
    ptxas(tmp_path / "nvidia" / "cu13" / "bin", "13.5.37")
    places = type("Spec", (), {"submodule_search_locations": [str(tmp_path / "nvidia")]})
    monkeypatch.setattr(assembler.importlib.util, "find_spec", lambda name: places)
    assert str(machine()) == "ptxas 13.5.37 (from the package nvidia-cuda-nvcc)"


def test_an_older_one_is_not_taken(machine, monkeypatch, tmp_path):
    ptxas(tmp_path / "cuda" / "bin", "12.4.131")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert machine().version == (12, 8, 93)


def test_what_the_user_sets_wins(machine, monkeypatch, tmp_path):
    given = ptxas(tmp_path / "mine", "12.8.90")
    monkeypatch.setenv("TRITON_PTXAS_PATH", given)
    chosen = machine(blackwell="13.4.59")
    assert (chosen.path, chosen.source) == (given, "TRITON_PTXAS_PATH")


def test_what_the_user_sets_has_to_run(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_PTXAS_PATH", ptxas(tmp_path / "mine", "12.8.90", runs=False))
    with pytest.raises(EmitError, match=r"is no ptxas that runs \(TRITON_PTXAS_PATH\)"):
        machine()


def test_one_that_does_not_run_is_noted(machine, tmp_path):
    ptxas(tmp_path / "triton", "13.4.59", name="ptxas-blackwell", runs=False)
    chosen = machine()
    assert chosen.version == (12, 8, 93)
    assert [note.partition("ptxas-blackwell")[2] for note in chosen.notes] == [
        " is not used: it does not run"
    ]


def test_a_driver_that_does_not_load_what_it_makes_is_a_reason(machine, monkeypatch, tmp_path):
    ptxas(tmp_path / "cuda" / "bin", "13.5.37")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.setattr(driver, "device_architecture", lambda: "sm_90")
    monkeypatch.setattr(driver, "driver_version", lambda: "12.8")
    monkeypatch.setattr(
        driver, "load_error", lambda cubin: "CUDA_ERROR_X" if cubin.startswith(b"13") else ""
    )
    chosen = machine(blackwell="12.9.86")
    assert chosen.version == (12, 9, 86)
    assert chosen.notes == (
        "ptxas 13.5.37 (from CUDA_HOME) is not used: the driver, for CUDA 12.8, does not load what"
        " it makes (CUDA_ERROR_X)",
    )


def test_other_targets_keep_triton_s(machine):
    assert machine(blackwell="13.4.59", target="sm_80").version == (12, 8, 93)


# Triton itself ------------------------------------------------------------------------


def test_triton_compiles_with_the_one_that_is_chosen_and_does_not_mix_them_up(
    monkeypatch, tmp_path
):
    """In one process and one cache. Each is asked for its version once."""
    from triton.backends.nvidia import compiler as nvidia

    import blockbuster as bb
    from blockbuster.emit.target import compiler
    from blockbuster.emit.target.compiler import compile_kernel, compiled_entry, tools
    from blockbuster.emit.target.load import load_module
    from blockbuster.emit.target.targets import TARGETS

    paths = [str(tools() / "ptxas"), str(tools() / "ptxas-blackwell")]
    versions = [assembler.version_of(path) for path in paths]
    if None in versions or versions[0] == versions[1]:
        pytest.fail("Triton 3.6 and later bring two assemblers")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    own, asked, ask = nvidia.get_ptxas_version, [], subprocess.check_output

    def counted(command, **how):
        asked.extend([] if how else command[:1])  # Triton asks tools that are set in another way
        return ask(command, **how)

    compiler._version_of.cache_clear()
    monkeypatch.setattr(subprocess, "check_output", counted)
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.exp(x), x="M"))).final
    kernel = bb.emit(graph, {"M": 1000}, "float32")
    (entry,) = load_module(kernel.source).KERNELS
    made = []
    for path in (*paths, *paths):
        monkeypatch.setenv("TRITON_PTXAS_PATH", path)
        before = dict(os.environ)
        compiled, by = compiled_entry(entry, TARGETS["sm_90"])
        assert by.path == path
        assert dict(os.environ) == before
        made.append(compiled.asm["cubin"])
        (report,) = compile_kernel(kernel)
        assert report.assembler == str(by)
    assert asked == paths
    assert nvidia.get_ptxas_version is own
    assert made[:2] == made[2:]
    assert made[0] != made[1]
    assert [f"V{'.'.join(map(str, versions[1]))}".encode() in cubin for cubin in made[:2]] == [
        False,
        True,
    ]


def test_the_extra_brings_a_sound_one():
    root = Path(__file__).parents[2]
    (line,) = (
        line for line in (root / "constraints.txt").read_text().splitlines() if "cuda-nvcc" in line
    )
    version = tuple(map(int, line.partition("==")[2].split(".")))
    assert version >= assembler.SOUND
    least = ".".join(map(str, assembler.SOUND))
    assert f'ptxas = ["nvidia-cuda-nvcc>={least}' in (root / "pyproject.toml").read_text()
