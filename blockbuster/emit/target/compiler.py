"""Compiles emitted kernels, and reports Triton's message if it refuses one.

For a GPU that is not there, it also counts shared memory, registers and spills: Triton's wheels
contain the assemblers of both vendors. The compiler itself does not check how much shared memory a
device has; ``compile_kernel`` does.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blockbuster.emit.target.assembler import Assembler, assembler_for
from blockbuster.emit.target.gpu import Gpu, with_cache
from blockbuster.emit.target.inspection import Inspection, Made, tools
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.starting import starter
from blockbuster.emit.target.targets import Target, target_of
from blockbuster.errors import EmitError, message, shown_lines

if TYPE_CHECKING:
    from blockbuster.emit.kernel import Kernel


@dataclass(frozen=True)
class CompileReport:
    """A compiled function: bytes of shared memory, registers per thread, spilled bytes.

    ``assembler``: what made the machine code; "" if no NVIDIA assembler did.
    """

    function: str
    target: str
    shared: int
    registers: int
    spills: int
    assembler: str = ""


def compile_kernel(kernel: Kernel, target: str | None = None) -> tuple[CompileReport, ...]:
    """Compile each function of ``kernel`` for ``target`` (default: its own), without a GPU.

    Raises EmitError if Triton refuses it, or if the target has too little shared memory.
    """
    chosen = target_of(target or kernel.target)
    if os.environ.get("TRITON_INTERPRET", "0") == "1":
        raise EmitError("TRITON_INTERPRET=1 is set: Triton compiles nothing in this process")
    module = load_module(kernel.source)
    return tuple(compile_entry(entry, chosen) for entry in module.KERNELS)


KNOBS = ("ptxas", "ptxas_blackwell")  # Triton takes one or the other, by architecture
_ONE_AT_A_TIME = threading.RLock()


def assembler_of(target: str) -> Assembler | None:
    """The assembler for a target; None if it is not an assembler of NVIDIA's."""
    chosen = target_of(target)
    return _assembler(chosen.backend, chosen.arch)


def _assembler(backend: str, arch: int | str) -> Assembler | None:
    if backend != "cuda":
        return None
    from triton.backends.nvidia.compiler import get_ptxas

    return assembler_for(f"sm_{arch}", get_ptxas(int(arch)).path, tools())


@contextmanager
def assembling(backend: str, arch: int | str) -> Iterator[Assembler | None]:
    """Inside, Triton assembles for this architecture with the assembler that is chosen for it.

    Triton asks for an assembler's version, which is part of its cache's key, once a process: here
    once for each assembler. The user's environment stays as it is.
    """
    with _ONE_AT_A_TIME:
        chosen = _assembler(backend, arch)
        if chosen is None:
            yield None
            return
        from triton import knobs
        from triton.backends.nvidia import compiler

        settings = vars(knobs.nvidia)  # assigning to the knobs would change the environment
        before, asked = dict(settings), compiler.get_ptxas_version
        settings.update(dict.fromkeys(KNOBS, chosen.path))
        compiler.get_ptxas_version = _version_of(chosen.path)
        try:
            assert compiler.get_ptxas(int(arch)).path == chosen.path
            yield chosen
        finally:
            compiler.get_ptxas_version = asked
            settings.clear()
            settings.update(before)


@functools.cache
def _version_of(path: str) -> Callable[..., str]:  # noqa: ARG001
    """Triton's function that asks for the version of the assembler in use, which is at ``path``."""
    from triton.backends.nvidia.compiler import get_ptxas_version

    return functools.cache(get_ptxas_version.__wrapped__)


def compile_entry(entry: dict[str, Any], target: Target) -> CompileReport:
    """The report of one kernel, an entry of a file's KERNELS. Raises as ``compile_kernel`` does."""
    name = entry["function"].__name__
    compiled, assembler = compiled_entry(entry, target)
    shared = int(compiled.metadata.shared)
    if shared > target.shared:
        raise EmitError(
            message(
                f"{name} needs {shared} bytes of shared memory, {target.name} has {target.shared}",
                hint="choose smaller tiles, or num_stages=1",
            )
        )
    if target.backend == "cuda":
        assert assembler is not None
        registers, spills = _assembled(compiled.asm["ptx"], int(target.arch), assembler)
    else:
        text = compiled.asm["amdgcn"]
        registers = number(r"\.vgpr_count:?\s+(\d+)", text)
        spills = 4 * number(r"\.vgpr_spill_count:?\s+(\d+)", text)
    return CompileReport(name, target.name, shared, registers, spills, str(assembler or ""))


def compiled_entry(entry: dict[str, Any], target: Target) -> tuple[Any, Assembler | None]:
    """Triton's output for an entry of a file's KERNELS and ``target``, and the assembler's name."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = entry["function"]
    names = function.arg_names
    ones = dict.fromkeys(entry["equal_to_1"], 1)  # a launch makes constants of these as well
    constants = {**entry["constants"], **ones}
    if "INDEX" in names:  # what emitted kernels count elements in
        constants["INDEX"] = tl.int32
    if "OVERLAPS" in names:  # whether there are dependent launches
        constants["OVERLAPS"] = target.overlaps
    signature = {n: "constexpr" if n in constants else entry["signature"][n] for n in names}
    source = ASTSource(
        fn=function,
        signature=signature,
        constexprs={(names.index(n),): value for n, value in constants.items()},
        attrs={(names.index(n),): [["tt.divisibility", 16]] for n in entry["divisible_by_16"]},
    )
    options = {**entry["options"], "enable_fp_fusion": True}
    machine = GPUTarget(target.backend, target.arch, target.warp_size)
    with assembling(target.backend, target.arch) as assembler:
        compiled = accepted(
            function.__name__, lambda: triton.compile(source, target=machine, options=options)
        )
    return compiled, assembler


class Refusal(EmitError):
    """Triton does not compile a kernel, for a reason of its own."""


@dataclass(frozen=True)
class Compilation:
    """A kernel that is compiled and loaded, while its machine code is still looked at.

    ``said``: why its assembler is no better one.
    """

    name: str
    compiled: Any
    assembler: str
    said: tuple[str, ...]
    inspection: Inspection

    def look(self) -> None:
        """Wait for what is found in the machine code. Raises Refusal for what is wrong in it."""
        reasons = self.inspection.finished().reasons
        if reasons:
            raise _refusal(self.name, reasons[0])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes: on the assembler, and on parts that could not be inspected."""
        return (*self.said, *self.inspection.finished().notes)


def compiled_for_launch(
    function: Any, arguments: Sequence[Any], options: Mapping[str, Any]
) -> Compilation:
    """``function`` compiled by Triton for these arguments and loaded; nothing is launched.

    Raises Refusal where it does not compile, needs more of the device than there is, or where the
    texts of what it compiles to are known to be wrong.
    """
    name = function.__name__

    def compile() -> Any:
        return function.warmup(*arguments, grid=(1,), **options)

    with assembling_here() as assembler:
        compiled = accepted(name, compile)
    inspection = Inspection(made_of(name, compiled, assembler))
    if inspection.reasons:
        raise _refusal(name, inspection.reasons[0])
    try:
        assert compiled.run  # loads it
    except _triton_error() as error:
        raise _refusal(name, str(error)) from error
    said = assembler.notes if assembler else ()
    return Compilation(name, compiled, str(assembler or ""), said, inspection)


Source = tuple[Any, Sequence[Any], Mapping[str, Any]]
"""Triton's function, the arguments and the options that it is compiled for."""


def compile_ahead(kernels: Sequence[Source], gpu: Gpu) -> None:
    """Compile several kernels at once, a thread for each processor of the host, so that
    ``compiled_for_launch`` finds them compiled.

    Triton's passes, the assembler and the compiler of its launchers in C, which take nine tenths of
    the time, do not hold Python's lock. A kernel that fails is left to ``compiled_for_launch``,
    which says why; so are the later of several starts of one function, whose state two threads
    would change, and all kernels while launches are captured in a CUDA graph, when other threads
    had better not ask CUDA anything.
    """

    def compile(function: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        with gpu.current():  # each thread has a current device of its own
            starter(function.warmup(*arguments, grid=(1,), **options))  # builds its launcher, too

    first: list[Source] = []
    for kernel in kernels:
        if not any(kernel[0] is other[0] for other in first):
            first.append(kernel)
    if len(first) > 1 and not gpu.is_capturing():
        with assembling_here(), ThreadPoolExecutor(min(len(first), os.cpu_count() or 1)) as pool:
            for kernel in first:
                pool.submit(compile, *kernel)


def made_of(name: str, compiled: Any, assembler: Assembler | None) -> Made:
    """A compiled kernel as a value that can be inspected."""
    import triton

    return Made(name, compiled.asm, assembler, triton.__version__)


@contextmanager
def assembling_here() -> Iterator[Assembler | None]:
    """``assembling`` for the current GPU; without effect where Triton sees none."""
    from triton.runtime import driver

    try:
        machine = driver.active.get_current_target()
    except RuntimeError:
        yield None
        return
    with assembling(machine.backend, machine.arch) as assembler:
        yield assembler


def accepted(name: str, compile: Callable[[], Any]) -> Any:
    """The result of ``compile``. Raises Refusal, with the compiler's reason, if it raises.

    A pass of Triton's that fails says why on standard error only, and the exception does not. So it
    is made to fail once more, and to say it to us.
    """
    try:
        return with_cache(compile)
    except (_triton_error(), RuntimeError) as error:
        reason = str(error)
        if isinstance(error, RuntimeError):
            reason = _first_complaint(_said_in(compile)) or reason
        raise _refusal(name, reason) from error


def _refusal(name: str, reason: str) -> Refusal:
    import triton

    last = shown_lines(reason.strip() or "it does not say why")
    return Refusal(f"Triton {triton.__version__} refuses {name}: {last[-1]}")


def _triton_error() -> type[Exception]:
    from triton.errors import TritonError

    found: type[Exception] = TritonError
    return found


def _said_in(failing: Callable[[], Any]) -> str:
    """What C code writes to standard error while ``failing`` runs and raises."""
    with tempfile.TemporaryFile() as file:
        try:
            kept = os.dup(2)
        except OSError:
            return ""  # there is no standard error
        os.dup2(file.fileno(), 2)
        try:
            failing()
        except (_triton_error(), RuntimeError):
            pass  # it is known to fail: what it says is asked for
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read().decode(errors="replace")


def _first_complaint(text: str) -> str:
    """The first line that tells of a failed assertion or an error, without the program's path."""
    for line in shown_lines(text):
        found = re.search(r"(\w+\.(?:cpp|h|py):\d+).*?((?:Assertion|error:).*)", line)
        if found:
            return f"{found[1]}: {found[2]}"
    return ""


def assembler_says(ptx: str, arch: int, assembler: Assembler) -> str:
    """The assembler's report on a kernel: registers, spilled bytes, and warnings."""
    device = f"sm_{arch}a" if arch >= 90 else f"sm_{arch}"
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command = [assembler.path, "-v", f"--gpu-name={device}", file.name, "-o", os.devnull]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise EmitError(message("the assembler refuses the kernel", origin=result.stderr))
    return result.stderr


def _assembled(ptx: str, arch: int, assembler: Assembler) -> tuple[int, int]:
    """Registers and spilled bytes, from the assembler."""
    said = assembler_says(ptx, arch, assembler)
    stores = number(r"(\d+) bytes spill stores", said)
    loads = number(r"(\d+) bytes spill loads", said)
    return number(r"Used (\d+) registers", said), stores + loads


def number(pattern: str, text: str) -> int:
    """The number that ``pattern`` finds first; 0 where it finds none."""
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0
