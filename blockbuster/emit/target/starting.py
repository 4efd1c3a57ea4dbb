"""Starts compiled kernels by the function in C below Triton's launcher, for versions listed here.

Triton's launcher for NVIDIA's devices is a Python object around a C function. At every start it
asks for scratch memory, which these kernels do not need, and encodes all descriptors anew, although
an encoded descriptor depends only on an address and on what is fixed for a layout. So a start calls
the C function, and descriptors are encoded once for an address. For other versions, for AMD's
devices and for kernels with scratch memory the launcher itself is called: it does the same, and
takes longer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Arguments = Sequence[Any]
Start = Callable[[int, Any, Arguments], Any]
"""Starts a kernel: so many programs, on a stream, with all arguments of the kernel."""


class Starter(NamedTuple):
    """How a compiled kernel is started.

    ``expand`` encodes the descriptors among a kernel's arguments for ``start``; what it returns
    holds no tensor. None: ``start`` takes the arguments as they are.
    """

    start: Start
    expand: Callable[[Arguments], Arguments] | None = None


def starter(compiled: Any) -> Starter:
    """How ``compiled``, which Triton compiled and loaded, is started."""
    run = compiled.run
    known = _known_launcher(run)
    if known is None:
        return Starter(_by_launcher(compiled))
    bind, expanding = known
    if not inspect.isfunction(run.launch):  # a function in C: no argument is a descriptor
        return Starter(bind(run.launch, compiled))
    if None in (getattr(compiled.metadata, "tensordesc_meta", None) or [None]):
        return Starter(_by_launcher(compiled))  # descriptors enter as arrays, shapes and strides
    launch = inspect.getclosurevars(run.launch).nonlocals["launcher"]
    return Starter(bind(launch, compiled), expanding(compiled))


def _known_launcher(run: Any) -> tuple[Callable[..., Start], Callable[..., Any]] | None:
    """How the C function is called below this launcher; None if that is not known."""
    import triton

    needs = [getattr(run, f"{kind}_scratch_size", 1) for kind in ("global", "profile")]
    if type(run).__name__ != "CudaLauncher" or any(needs) or getattr(run, "gsan_enabled", False):
        return None
    return LAUNCHERS.get(".".join(triton.__version__.split(".")[:2]))


def _by_launcher(compiled: Any) -> Start:
    run, function, metadata = compiled.run, compiled.function, compiled.packed_metadata

    def start(grid: int, stream: Any, arguments: Arguments) -> Any:
        return run(grid, 1, 1, stream, function, metadata, None, None, None, *arguments)

    return start


def _one_by_one(launch: Callable[..., Any], compiled: Any) -> Start:
    """A C function of each kernel's own, which takes its arguments one by one."""
    run, nothing = compiled.run, (None, None)
    function, how = compiled.function, (run.launch_cooperative_grid, run.launch_pdl)
    fixed = (*how, *nothing, compiled.packed_metadata, None, *nothing)

    def start(grid: int, stream: Any, arguments: Arguments) -> Any:
        return launch(grid, 1, 1, stream, function, *fixed, *arguments)

    return start


def _together(launch: Callable[..., Any], compiled: Any) -> Start:
    """A C function for all kernels, which takes the arguments in a tuple, with their types."""
    run, nothing = compiled.run, (None, None, None, None, None)
    how = run.launch_cooperative_grid, run.launch_pdl, compiled.packed_metadata
    fixed = (compiled.function, *how, *nothing, run.arg_annotations, run.kernel_signature)

    def start(grid: int, stream: Any, arguments: Arguments) -> Any:
        return launch(grid, 1, 1, stream, *fixed, arguments)

    return start


def _encoder(compiled: Any) -> Callable[..., tuple[Any, ...]]:
    """Triton's wrapper that encodes descriptors, around a function that returns its arguments."""
    from triton.backends.nvidia.driver import wrap_handle_tensordesc

    signature = dict(enumerate(compiled.src.signature.values()))
    about = compiled.metadata.tensordesc_meta
    found: Callable[..., tuple[Any, ...]] = wrap_handle_tensordesc(_given, signature, about)
    return found


def _given(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def _expanding_one_by_one(compiled: Any) -> Callable[[Arguments], Arguments]:
    encode, others = _encoder(compiled), (None,) * 13  # the C function takes 13 before a kernel's
    return lambda arguments: encode(*others, *arguments)[len(others) :]


def _expanding_together(compiled: Any) -> Callable[[Arguments], Arguments]:
    encode = _encoder(compiled)
    return lambda arguments: tuple(encode(tuple(arguments))[-1])


LAUNCHERS: dict[str, tuple[Callable[..., Start], Callable[..., Any]]] = {
    "3.6": (_one_by_one, _expanding_one_by_one),
    "3.9": (_together, _expanding_together),
}
"""By version of Triton: how the C function is called, and how descriptors are encoded for it."""
