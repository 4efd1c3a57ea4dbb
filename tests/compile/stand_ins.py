"""A GPU's stand-ins, on tensors of the CPU: a device, and kernels that only note their starts."""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any

from blockbuster.runtime.file_launches import LARGEST
from blockbuster.runtime.replay import OnGpu, Replay
from blockbuster.selection.plans.plan import Plan


class Started:
    """A compiled kernel that only tells how it was started."""

    function, packed_metadata = "function", "metadata"

    def __init__(self, log, **asm):
        self.log, self.asm = log, asm

    def run(self, *arguments):
        self.log.append(arguments)


class Kernel:
    """A kernel that is compiled to ``Started``."""

    def __init__(self, kernel, log):
        self.__name__, self.arg_names = kernel.__name__, kernel.arg_names
        self.log = log

    def warmup(self, *arguments, grid, **options):
        return Started(self.log)

    def __getitem__(self, grid):
        return lambda *arguments, **options: Started(self.log)


@dataclass(frozen=True)
class Device:
    """What a ``Gpu`` is asked for at every call."""

    torch: Any
    index: int = 0
    where: str = "cpu"

    def dtype(self, name):
        return getattr(self.torch, name)

    def empty(self, shape, steps, dtype):
        return self.torch.empty_strided(shape, steps, dtype=dtype, device=self.where)

    def poisoned(self, shape, steps, dtype):
        return self.empty(shape, steps, dtype).fill_(float("nan"))

    def stream(self):
        return 77

    def elsewhere(self):
        return False

    def current(self):
        return nullcontext()

    def is_capturing(self):
        return False

    def event(self):
        return "event"

    def put_into(self, module, log, monkeypatch):
        """``module``, a loaded file, with stand-ins for its kernels and its allocator."""

        def zeros(shape, dtype, like):
            return self.torch.zeros(shape, dtype=self.dtype(dtype), device=self.where)

        monkeypatch.setattr(module.triton.knobs.runtime, "interpret", True)
        monkeypatch.setattr(module, "empty", zeros)
        for entry in module.KERNELS:
            if not isinstance(entry["function"], Kernel):
                monkeypatch.setitem(entry, "function", Kernel(entry["function"], log))
        return module


def launched(module, monkeypatch, *arrays, **sizes):
    """What the text of a file's launcher starts: grids, numbers, and all that is given by name.

    It runs on stand-ins for its kernels; this is what replay has to compute without it.
    """
    seen = []

    class Starts:
        def __init__(self, name):
            self.name = name

        def __getitem__(self, grid):
            return lambda *given, **options: seen.append((self.name, *told(grid, given, options)))

    for entry in module.KERNELS:
        name = entry["function"].__name__
        monkeypatch.setattr(module, name, Starts(name))
    monkeypatch.setattr(module, "check_assembler", lambda: None, raising=False)
    module.launch(*arrays, **sizes)
    return seen


def told(grid, arguments, options):
    """A start without addresses: arrays are their dtypes, descriptors their shapes."""
    plain = [getattr(given, "dtype", given) for given in arguments]
    named = {
        name: (given.shape, given.strides, given.block_shape)
        if hasattr(given, "block_shape")
        else given
        for name, given in options.items()
    }
    return grid, plain, named


@dataclass(frozen=True)
class Stage:
    """A plan for a GPU whose kernels note their starts in ``log``."""

    plan: Plan
    gpu: Device
    log: list

    def on_gpu(self):
        """The plan on a GPU where nothing of it ran yet."""
        return OnGpu(self.plan, self.gpu)

    def replay(self, arrays, on_gpu=None):
        """A replay for arrays of this layout."""
        shapes = {name: a.shape for name, a in zip(self.plan.inputs, arrays, strict=True)}
        return Replay(on_gpu or self.on_gpu(), self.plan.bind(shapes))


def starts(log):
    """What kernels were started with, addresses apart: they come first, and are large."""
    return [(*call[:4], *dropwhile(lambda given: given > LARGEST, call[9:])) for call in log]
