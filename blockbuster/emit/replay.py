"""Running a plan on a GPU: what the files' launchers do is recorded once and then repeated.

A file's own ``launch`` checks the arrays, allocates and launches. For tensors of one layout
(shapes, strides, dtypes, device, alignment) all that never changes but the addresses. So the first
call runs ``launch`` with stand-ins for its kernels that note the compiled kernel and its arguments;
later calls allocate, fill in addresses and start the compiled kernels. Nothing of that waits for
the GPU or copies to it, so a call can be captured in a CUDA graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from blockbuster.emit.launch import Gpu, from_host, to_host
from blockbuster.emit.load import load_module
from blockbuster.emit.pieces import Call
from blockbuster.emit.plan import File, Plan, Sizes, call_on_host, check_results, noted, shown
from blockbuster.errors import LaunchError, message

Tensor = Any
# what a function written for NumPy raises when it is given tensors; raised again if arrays fail too
REFUSALS = (TypeError, AttributeError, ValueError, NotImplementedError, RuntimeError)


class Replay:
    """A plan for tensors of one layout; the first call checks and compiles."""

    def __init__(self, plan: Plan, sizes: Sizes, gpu: Gpu) -> None:
        self._plan = plan
        self._dtype = gpu.dtype(plan.dtype)
        self._dtypes = [gpu.dtype(name) if name else None for name in plan.dtypes]
        self._steps = [
            Recording(step, sizes, gpu)
            if isinstance(step, File)
            else DeviceCall(step, sizes, self._dtype)
            for step in plan.steps
        ]
        self._names = tuple(plan.inputs)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the calls turned out to need."""
        return tuple(s.note for s in self._steps if isinstance(s, DeviceCall) and s.note)

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The program's outputs, for its inputs in order."""
        known: dict[str, Tensor] = dict(zip(self._names, tensors, strict=True))
        made: dict[str, None] = {}
        for step in self._steps:
            given = []
            for name in step.reads:
                tensor = known[name]
                if tensor.dtype is not self._dtype and (
                    name in made or isinstance(step, DeviceCall)
                ):
                    tensor = tensor.to(self._dtype)
                given.append(tensor)
            known.update(zip(step.writes, step(given), strict=True))
            made.update(dict.fromkeys(step.writes))
        results = [shown(known[seen.array], seen) for seen in self._plan.results]
        for position, dtype in enumerate(self._dtypes):
            if dtype is not None:
                results[position] = results[position].to(dtype)
        return results


@dataclass(frozen=True)
class Launch:
    """A kernel that was compiled and started: how to start it again.

    ``addresses`` are the arguments that point into arrays: (argument, array,
    bytes behind its start).
    """

    start: Callable[..., None]
    grid: int
    function: Any
    metadata: Any
    arguments: list[Any]
    addresses: tuple[tuple[int, int, int], ...]


class Recording:
    """The launches of one file: made by its launcher on the first call, repeated on later ones."""

    def __init__(self, file: File, sizes: Sizes, gpu: Gpu) -> None:
        self.reads, self.writes = file.reads, file.writes
        self._file, self._sizes = file, sizes
        self._gpu = gpu
        self._launches: list[Launch] | None = None
        self._made: list[tuple[tuple[int, ...], Any]] = []
        self._results: list[int] = []

    def __call__(self, tensors: list[Tensor]) -> list[Tensor]:
        """The file's outputs for its inputs."""
        if self._launches is None:
            return self._record(tensors)
        gpu = self._gpu
        if gpu.elsewhere():
            with gpu.current():
                return self._repeat(tensors)
        return self._repeat(tensors)

    def _repeat(self, tensors: list[Tensor]) -> list[Tensor]:
        gpu, launches = self._gpu, self._launches
        assert launches is not None
        arrays = tensors + [gpu.empty(shape, dtype) for shape, dtype in self._made]
        starts = [array.data_ptr() for array in arrays]
        stream = gpu.stream()
        for launch in launches:
            arguments = launch.arguments.copy()
            for position, array, offset in launch.addresses:
                arguments[position] = starts[array] + offset
            launch.start(
                launch.grid, 1, 1, stream, launch.function, launch.metadata,
                None, None, None, *arguments,
            )  # fmt: skip
        return [arrays[position] for position in self._results]

    def _record(self, tensors: list[Tensor]) -> list[Tensor]:
        aliases = [tensor.detach() for tensor in tensors]  # no two are the same object
        recorder = Recorder(load_module(self._file.text))
        try:
            results = recorder.launch(aliases, self._sizes)
        except ValueError as error:
            name = self._file.writes[0]
            raise LaunchError(message(str(error), origin=f"launching {name}")) from error
        arrays = [*aliases, *recorder.made]
        self._made = [(tuple(made.shape), made.dtype) for made in recorder.made]
        self._results = [next(i for i, a in enumerate(arrays) if a is r) for r in results]
        self._launches = [_as_launch(noted, arrays) for noted in recorder.noted]
        return results


@dataclass(frozen=True)
class Noted:
    """One start of a kernel, as the launcher asked for it."""

    name: str
    compiled: Any
    grid: tuple[int, ...]
    names: Sequence[str]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]


class Recorder:
    """A file's ``launch`` with stand-ins for its kernels and its allocator."""

    def __init__(self, module: ModuleType) -> None:
        self.made: list[Tensor] = []
        self.noted: list[Noted] = []
        self._module = module

    def launch(self, tensors: Sequence[Tensor], sizes: Sizes) -> list[Tensor]:
        """The outputs. What was started and allocated is noted."""
        module = self._module
        kernels = [entry["function"] for entry in module.KERNELS]
        seen = {kernel.__name__: _StandIn(kernel, self.noted) for kernel in kernels}
        names = {**vars(module), **seen, "empty": self._empty}
        own = module.launch
        launch = FunctionType(own.__code__, names, own.__name__, own.__defaults__)
        launch.__kwdefaults__ = own.__kwdefaults__
        parameters = inspect.signature(own).parameters.values()
        free = [p.name for p in parameters if p.default is p.empty][len(tensors) :]
        given = {name: sizes[dim] for name, dim in zip(free, module.FREE, strict=True)}
        found = launch(*tensors, **given)
        return list(found) if isinstance(found, tuple) else [found]

    def _empty(self, shape: tuple[int, ...], dtype: str, like: Tensor) -> Tensor:
        self.made.append(self._module.empty(shape, dtype, like))
        return self.made[-1]


@dataclass(frozen=True)
class _StandIn:
    """Starts a kernel as ``kernel[grid](...)`` does, and notes how."""

    kernel: Any
    noted: list[Noted]

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def start(*arguments: Any, **options: Any) -> None:
            compiled = self.kernel[grid](*arguments, **options)
            name, names = self.kernel.__name__, self.kernel.arg_names
            self.noted.append(Noted(name, compiled, grid, names, arguments, options))

        return start


def _as_launch(noted: Noted, arrays: Sequence[Tensor]) -> Launch:
    """The start of a compiled kernel, with the places where addresses go."""
    rest = noted.names[len(noted.arguments) :]
    arguments = [*noted.arguments, *(noted.options[name] for name in rest)]
    addresses = []
    for position, argument in enumerate(arguments):
        if hasattr(argument, "data_ptr"):
            array = _behind(argument, arrays)
            offset = argument.data_ptr() - arrays[array].data_ptr()
            addresses.append((position, array, offset))
            arguments[position] = 0
    compiled, (grid, *others) = noted.compiled, noted.grid
    assert all(size == 1 for size in others), "the grids of emitted kernels have one axis"
    start, metadata = compiled.run, compiled.packed_metadata
    return Launch(start, grid, compiled.function, metadata, arguments, tuple(addresses))


def _behind(argument: Tensor, arrays: Sequence[Tensor]) -> int:
    """The array that a kernel's argument is, or is a view of: truth values enter as bytes."""
    for position, array in enumerate(arrays):
        if array is argument:
            return position
    memory = argument.untyped_storage().data_ptr()
    return next(i for i, a in enumerate(arrays) if a.untyped_storage().data_ptr() == memory)


class DeviceCall:
    """A function of whole arrays, called with tensors if it takes them, else through the host."""

    def __init__(self, call: Call, sizes: Sizes, dtype: Any) -> None:
        self.reads = tuple(dict.fromkeys(seen.array for seen in call.operands))
        self.writes = call.writes
        self.note = ""
        self._call, self._sizes, self._dtype = call, sizes, dtype
        self._decided = False

    def __call__(self, tensors: list[Tensor]) -> list[Tensor]:
        """The function's results, laid out as later kernels were recorded with."""
        known = dict(zip(self.reads, tensors, strict=True))
        operands = [shown(known[seen.array], seen) for seen in self._call.operands]
        if not self._decided:
            results = self._tried(operands)
            self._decided = True
        elif self.note:
            results = self._on_host(operands)
        else:
            results = self._on_device(operands)
        return [self._laid_out(result, operands) for result in results]

    def _tried(self, operands: list[Tensor]) -> list[Tensor]:
        try:
            return self._on_device(operands)
        except REFUSALS as refusal:
            name = self._call.name
            reason = (str(refusal) or type(refusal).__name__).splitlines()[0]
            self.note = f"{name} runs on the host, with copies there and back: {reason}"
            try:
                return self._on_host(operands)
            except REFUSALS as error:
                error.add_note(f"{name} was tried with tensors first: {reason}")
                raise

    def _on_device(self, operands: list[Tensor]) -> list[Tensor]:
        made = noted(self._call, self._call.fn, operands)
        results = list(made) if isinstance(made, tuple) else [made]
        for result in results:
            if not hasattr(result, "data_ptr") or result.device != operands[0].device:
                raise TypeError(f"{self._call.name} gave a {type(result).__name__}, not a tensor")
        check_results(self._call, results, self._sizes)
        return results

    def _on_host(self, operands: list[Tensor]) -> list[Tensor]:
        arrays = [to_host(tensor) for tensor in operands]
        made = call_on_host(self._call, arrays, self._sizes)
        return [from_host(array, self._dtype, operands[0].device) for array in made]

    def _laid_out(self, result: Tensor, operands: list[Tensor]) -> Tensor:
        result = result.to(self._dtype).contiguous()
        memory = result.untyped_storage().data_ptr()
        shared = any(t.untyped_storage().data_ptr() == memory for t in operands)
        return result.clone() if shared or result.data_ptr() % 16 else result
