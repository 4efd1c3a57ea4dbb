"""A call of one emitted kernel: interpreted on NumPy arrays, run on their device for CUDA tensors.

Before the first call with tensors of a layout, Triton's output is inspected, and refused if it has
a known fault. A binary that is new on the device runs twice, in memory full of zeros and in memory
full of a pattern that no kernel writes, and must give the same result twice. Its numbers are not
compared with exact ones: the file has a reference on the host, which does not tell how much
roundings may change a result. So nothing is recorded as right on disk, and ``bb.compile`` compares
the same binary when it first runs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.emit.target.compiler import assembling_here
from blockbuster.emit.target.gpu import Gpu, poison
from blockbuster.emit.target.load import load_module
from blockbuster.errors import LaunchError, message
from blockbuster.runtime.file_launches import FileLaunches, First
from blockbuster.runtime.first_launch import Finding, FirstChecks, Refused, Run
from blockbuster.runtime.kept import Kept
from blockbuster.runtime.launch import ALIGNED, as_parameters, run_interpreted
from blockbuster.runtime.tensors import described

if TYPE_CHECKING:
    from blockbuster.emit.kernel import Kernel

Tensor = Any

LOOKED_AT: dict[Any, None] = {}
"""In this process: modules (named by content, as in load.py), and layouts of tensors for them."""
KEPT = 1 << 14

UNCOMPARED = Finding(note="its numbers are not compared")


def launch(kernel: Kernel, *arrays: Any, **named: Any) -> Any:
    """The outputs of ``kernel``: one array, or a tuple of several.

    Inputs come in order or by name; outputs to write into by name. Raises TypeError for arguments
    that do not fit, LaunchError for a kernel that must not run, EmitError for one that Triton does
    not compile.
    """
    if len(arrays) > len(kernel.inputs):
        raise TypeError(f"{kernel.name} takes {len(kernel.inputs)} arrays, got {len(arrays)}")
    given = dict(zip(kernel.inputs, arrays, strict=False))
    twice = [name for name in named if name in given]
    if twice:
        raise TypeError(f"{kernel.name} got {twice[0]} twice, in order and by name")
    given.update(named)
    missing = [name for name in kernel.inputs if name not in given]
    if missing:
        raise TypeError(f"{kernel.name} lacks {', '.join(missing)}")
    if any(isinstance(value, np.ndarray) for value in given.values()):
        results = run_interpreted(kernel, given)
        outputs = tuple(_into(given.get(name), results[name]) for name in kernel.outputs)
        return outputs[0] if len(outputs) == 1 else outputs
    module = load_module(kernel.source)
    parameters = as_parameters(module, kernel.inputs, kernel.outputs, given)
    if all(_is_on_gpu(parameters[name]) for name in module.INPUTS):
        _check_first(kernel, module, parameters)
    with assembling_here():
        return module.launch(**parameters)


def _is_on_gpu(value: Any) -> bool:
    return bool(getattr(value, "is_cuda", False))


def _into(place: Any, result: Any) -> Any:
    if place is None:
        return result
    place[...] = result
    return place


# the first call with tensors of a layout ------------------------------------------------


def _check_first(kernel: Kernel, module: ModuleType, parameters: Mapping[str, Any]) -> None:
    """Raise LaunchError if what is compiled for these tensors must not run."""
    layout = tuple((name, described(value) or value) for name, value in parameters.items())
    key = module.__name__, layout
    if key in LOOKED_AT:
        return
    inspect.signature(module.launch).bind(**parameters)  # a TypeError names what is missing
    first = parameters[next(iter(module.INPUTS))]
    gpu = Gpu(first.device.index)
    checks = FirstChecks(gpu, _uncompared)
    checks.expect_no_capture(kernel.name)
    call = _Call(kernel, module, gpu, parameters)
    file: Any = _Written(kernel.source, kernel.outputs)
    try:
        made = call.compiled(call.inputs, call.places, gpu.empty).compilations
        checks.admit(file, made, call.inputs, call.sizes)
        if checks.is_waiting:
            checks.judge(call, call.inputs, call(call.inputs))
    except Refused as refused:
        origin = f"to reproduce it: {refused.evidence}" if refused.evidence else None
        hint = "emit it with other tiles, or for a newer Triton; bb.compile chooses by itself"
        what = f"{kernel.name} must not run: {refused.reason}"
        raise LaunchError(message(what, origin=origin, hint=hint)) from refused
    if len(LOOKED_AT) >= KEPT:
        LOOKED_AT.clear()
    LOOKED_AT[key] = None


def _uncompared(run: Run, tensors: Sequence[Tensor], results: Sequence[Tensor]) -> Finding:  # noqa: ARG001
    return UNCOMPARED


@dataclass(frozen=True)
class _Written:
    """What a check knows of a file: its text and what it writes."""

    text: str
    writes: tuple[str, ...]


@dataclass(frozen=True)
class _Call:
    """A call that writes into memory of its own, full of what no kernel writes."""

    kernel: Kernel
    module: ModuleType
    gpu: Gpu
    parameters: Mapping[str, Any]

    @property
    def inputs(self) -> list[Tensor]:
        """The arrays that are read, in order."""
        return [self.parameters[name] for name in self.module.INPUTS]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that no array shows, by dim."""
        needed = inspect.signature(self.module.launch).parameters.values()
        free = [p.name for p in needed if p.default is p.empty][len(self.module.INPUTS) :]
        return {d: self.parameters[name] for d, name in zip(self.module.FREE, free, strict=True)}

    @property
    def places(self) -> dict[str, Tensor]:
        """The arrays that the user gave to write into."""
        given = {name: self.parameters.get(name) for name in self.module.OUTPUTS}
        return {name: place for name, place in given.items() if place is not None}

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, laid out as those that the user gave, if any; memory is zero before."""
        return self._written(tensors, lambda tensor: tensor.zero_())

    def poisoned(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The same, in memory full of what no kernel writes."""
        return self._written(tensors, poison)

    def _written(self, tensors: Sequence[Tensor], fill: Callable[[Tensor], Any]) -> list[Tensor]:
        def empty(*layout: Any) -> Tensor:
            made = self.gpu.empty(*layout)
            fill(made)
            return made

        places = {name: _laid_out_as(place) for name, place in self.places.items()}
        for place in places.values():
            fill(place)
        return self.compiled(tensors, places, empty)()

    def compiled(
        self,
        tensors: Sequence[Tensor],
        places: Mapping[str, Tensor],
        empty: Callable[..., Tensor],
    ) -> First:
        """The launches for these inputs, compiled, and arrays to write into."""
        spec, kept = self.kernel.launches, self.parameters.get("prepared")
        assert spec is not None, "emitted kernels say what their launcher does"
        spec = spec.given(places, prepared=kept is not None)
        given = [*tensors, *places.values(), *(kept or ())]
        return FileLaunches(self.module, spec, self.gpu).first(given, self.sizes, Kept(), empty)


def _laid_out_as(place: Tensor) -> Tensor:
    """New memory with these strides, and aligned alike."""
    steps = zip(place.shape, place.stride(), strict=True)
    span = 1 + max(0, sum((extent - 1) * step for extent, step in steps))
    offset = place.data_ptr() % ALIGNED // place.element_size()
    return place.new_empty(span + offset).as_strided(place.shape, place.stride(), offset)
