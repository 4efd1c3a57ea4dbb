"""A CUDA device: allocation through torch, torch's current stream, and the device's name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from blockbuster.emit.target.disk import instead_of
from blockbuster.errors import shown_lines
from blockbuster.machines import Machine, known_device, likely, measured
from blockbuster.machines.likely import BUS

_T = TypeVar("_T")
Tensor = Any

PROBED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("sm_90", "3.6.0"): ("ptxas 13.0.",),
}
"""By architecture and version of Triton: the assemblers under which thousands of random programs
(bench/gpu/fuzz) ran without one fault: bench/results has the runs."""


PIECE = 1 << 24
"""Elements that are compared at once."""


def with_cache(work: Callable[[], _T]) -> _T:
    """``work()``, which compiles with Triton; in a temporary folder where its cache cannot serve.

    Triton keeps what it compiles in the user's home, and fails where that is missing or full.
    """
    try:
        return work()
    except OSError as error:
        from triton import knobs

        place = Path(knobs.cache.dir)
        spare = instead_of(place, error.strerror or str(error))
        if spare == place:  # what fails is something else
            raise
        knobs.cache.dir = str(spare)
        return work()


class Gpu:
    """A device by its number."""

    def __init__(self, index: int) -> None:
        import torch
        from triton.runtime import driver

        self.index = index
        self._torch = torch
        self._device = torch.device("cuda", index)
        self._stream = with_cache(lambda: driver.active.get_current_stream)
        self._current = driver.active.get_current_device if torch.cuda.device_count() > 1 else None
        self._empty = torch.empty_strided  # the cheapest of torch's allocations with all arguments

    def dtype(self, name: str) -> Any:
        """torch's dtype of this name."""
        return getattr(self._torch, name)

    def empty(self, shape: tuple[int, ...], steps: tuple[int, ...], dtype: Any) -> Any:
        """A new tensor with these strides, not written yet."""
        return self._empty(shape, steps, dtype=dtype, device=self._device)

    def poisoned(self, shape: tuple[int, ...], steps: tuple[int, ...], dtype: Any) -> Any:
        """The same, full of what no kernel writes."""
        return poison(self.empty(shape, steps, dtype))

    def stream(self) -> Any:
        """The current stream of this device, as a number."""
        return self._stream(self.index)

    def elsewhere(self) -> bool:
        """True if another device is the current one."""
        return self._current is not None and self._current() != self.index

    def current(self) -> Any:
        """A context in which this device is the current one."""
        return self._torch.cuda.device(self._device)

    @property
    def name(self) -> str:
        """The name of the device, "NVIDIA H200" for example."""
        return str(self._torch.cuda.get_device_name(self._device))

    @property
    def machine(self) -> Machine | None:
        """Its numbers: measured on this computer, built in, or likely; None if there are none.

        Launches of an NVIDIA GPU cost what they cost the built-in machine that it is, or is most
        like: measured costs are those of the host and of empty kernels (the source of ``launch`` in
        machines/data/h100.toml has an example). Raises ValueError for a damaged file of
        measurements.
        """
        if self._torch.version.hip:
            return measured(self.name) or known_device(self.name)
        about = self._torch.cuda.get_device_properties(self._device)
        reported = {**reported_by(about), BUS: bus_bandwidth(about)}
        usual = likely(self.name, 10 * about.major + about.minor, reported)
        own = measured(self.name)
        return replace(own, launch=usual.launch) if own else usual

    @property
    def versions(self) -> str:
        """The device and the software that made and ran a kernel, in words."""
        import triton

        return f"{self.name}, torch {self._torch.__version__}, Triton {triton.__version__}"

    def is_probed(self, assemblers: Iterable[str]) -> bool:
        """True if random programs ran on such a device, with this Triton and these assemblers."""
        import triton

        known = PROBED.get((gpu_target(self.index), triton.__version__), ())
        return all(assembler.startswith(known) for assembler in assemblers)

    def is_capturing(self) -> bool:
        """True while what is launched becomes part of a CUDA graph."""
        return bool(self._torch.cuda.is_current_stream_capturing())

    def event(self) -> Any:
        """What is complete when all that was launched so far on the current stream is."""
        return self._torch.cuda.current_stream(self._device).record_event()

    def follow(self, event: Any, arrays: Iterable[Any]) -> None:
        """Let the current stream wait for an event, behind which it reads arrays of another one."""
        stream = self._torch.cuda.current_stream(self._device)
        stream.wait_event(event)
        for array in arrays:
            array.record_stream(stream)

    def recorded(self, work: Callable[[], _T]) -> tuple[Callable[[], None], _T]:
        """``work``, all of which runs on this device, as a CUDA graph: what starts it, its result.

        The result is written when the graph has run. Raises RuntimeError, from torch, for work that
        waits for the device.
        """
        torch = self._torch
        graph = torch.cuda.CUDAGraph()
        with self.current(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            made = work()
        return graph.replay, made

    def fault(self) -> str:
        """Wait for the device; what it says of a launch that failed, "" if none did."""
        try:
            self._torch.cuda.synchronize(self._device)
        except RuntimeError as error:
            return shown_lines(str(error))[0]
        return ""


def reported_by(about: Any) -> dict[str, int]:
    """The numbers of a machine's data file that torch's properties of a CUDA device have."""
    reported = {
        "processors": about.multi_processor_count,
        "tiers.hbm.bytes": about.total_memory,
        "tiers.l2.bytes": about.L2_cache_size,
        "tiers.shared.bytes": about.shared_memory_per_multiprocessor,
        "tiers.registers.bytes": 4 * about.regs_per_multiprocessor,
        "limits.shared_per_program": about.shared_memory_per_block_optin,
        "limits.shared_per_processor": about.shared_memory_per_multiprocessor,
        "limits.registers_per_processor": about.regs_per_multiprocessor,
        "limits.threads_per_processor": about.max_threads_per_multi_processor,
        "limits.warp": about.warp_size,
    }
    return {path: int(number) for path, number in reported.items()}


def bus_bandwidth(about: Any) -> float:
    """Bytes a second of a device's memory pins, by torch's properties; 0 if they do not say.

    Clocks are in kHz, a bus is so many bits wide, and data go twice a cycle.
    """
    clock = getattr(about, "memory_clock_rate", 0)
    return 2e3 * clock * getattr(about, "memory_bus_width", 0) / 8


def poison(tensor: Tensor) -> Tensor:
    """``tensor`` full of NaN, or of ones where its elements are truth values."""
    return tensor.fill_(math.nan if tensor.dtype.is_floating_point else 1)


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Bitwise equality, NaN included; a piece at a time, because a comparison allocates."""
    import torch

    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if one.shape != other.shape or one.dtype.itemsize != other.dtype.itemsize:
        return False
    views = [t.contiguous().view(kinds[t.dtype.itemsize]).view(-1) for t in (one, other)]
    pieces = zip(*(view.split(PIECE) for view in views), strict=True)
    return all(bool(torch.equal(*piece)) for piece in pieces)


def free_bytes(device: Any) -> int:
    """How many bytes can be allocated on a device, with those that torch keeps for itself."""
    import torch

    free = torch.cuda.mem_get_info(device)[0]
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free)


def current_gpu() -> int:
    """The number of torch's current GPU."""
    import torch

    return int(torch.cuda.current_device())


def gpu_target(index: int | None = None) -> str:
    """The name of the architecture of a GPU, by default of torch's current one, or an empty string
    where torch sees no GPU.
    """
    try:
        import torch
    except ImportError:
        return ""
    if not torch.cuda.is_available():
        return ""
    if torch.version.hip:
        return str(torch.cuda.get_device_properties(index).gcnArchName).split(":")[0]
    major, minor = torch.cuda.get_device_capability(index)
    return f"sm_{major}{minor}"


def tensor_descriptor(array: Any, tile: Sequence[int]) -> Any:
    """Triton's descriptor of a tensor whose layout permits one."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(array, list(tile))
