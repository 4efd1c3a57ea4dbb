"""The present CUDA GPU: its arrays, timed runs of kernels on it, and the properties it reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blockbuster.calibration.kernel_texts import FORMS, TEXT
from blockbuster.emit.target.gpu import reported_by, with_cache
from blockbuster.emit.target.load import load_module
from blockbuster.errors import LaunchError, message
from blockbuster.extras import install_hint

FILLER = 1 << 27
"""Elements of an array that takes longer to fill (0.1 ms and more) than calls take to queue."""

A_WHILE = 0.1  # seconds

Tensor = Any
Call = Callable[[], object]


def torch_with_gpu() -> Any:
    """The module torch, which sees a GPU that can be measured. Raises LaunchError otherwise."""
    try:
        import torch
    except ImportError as error:
        raise LaunchError(
            message("measuring a GPU takes torch", hint=install_hint("torch"))
        ) from error
    if not torch.cuda.is_available() or torch.version.hip:
        hint = "measure the processor with --device cpu"
        raise LaunchError(message("torch sees no NVIDIA GPU here", hint=hint))
    return torch


class Device:
    """The first CUDA GPU that this process sees. Raises LaunchError if there is none."""

    where = "cuda"

    def __init__(self) -> None:
        self.torch: Any = torch_with_gpu()
        self.name = str(self.torch.cuda.get_device_name())
        self.about: Any = self.torch.cuda.get_device_properties(0)
        self._kernels: Any = load_module(TEXT)
        self._filler = self.empty(FILLER)

    @property
    def architecture(self) -> int:
        """The compute capability as one number: 90 for 9.0."""
        return int(10 * self.about.major + self.about.minor)

    def empty(self, count: int, dtype: str = "float32") -> Tensor:
        """An array on the device, not written yet."""
        return self.torch.empty(count, dtype=getattr(self.torch, dtype), device=self.where)

    def random(self, rows: int, columns: int, dtype: str) -> Tensor:
        """A matrix of normal random numbers on the device."""
        made = self.torch.randn(rows, columns, device=self.where)
        return made.to(getattr(self.torch, dtype))

    def launch(self, kernel: str, programs: int, *arguments: object) -> None:
        """Launch a kernel of ``TEXT`` as its form says."""
        form = FORMS[kernel]
        options: dict[str, Any] = {"num_warps": form.warps, "num_stages": form.stages}
        if form.pdl:
            options["launch_pdl"] = True
        function = getattr(self._kernels, kernel)
        with_cache(lambda: function[(programs,)](*arguments, **form.constants, **options))

    def seconds(self, call: Call, repeat: int = 1, *, before: Call | None = None) -> float:
        """The time of each of ``repeat`` calls on the device, by its own events.

        The device is given something to do, and ``before``, while the calls are queued: the time of
        the host does not count.
        """
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda.synchronize()
        self._filler.zero_()
        if before is not None:
            before()
        begin.record()
        for _ in range(repeat):
            call()
        end.record()
        self.torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 1000 / repeat

    def sustained(self, call: Call) -> float:
        """The time of a call that is repeated for a while, so that power lowers the clocks."""
        return self.seconds(call, max(1, round(A_WHILE / self.seconds(call))))

    def captured(self, call: Call, times: int) -> Call:
        """A call that replays a CUDA graph of ``times`` calls, one after the other."""
        call()  # compiled before it is captured
        self.torch.cuda.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for _ in range(times):
                call()
        replay: Call = graph.replay
        return replay

    def numbers(self) -> dict[str, int | float]:
        """The numbers of a machine's file that the driver reports, by their paths."""
        return dict(reported_by(self.about))
