"""Records what an emitted file's launcher allocates and starts, by running it with stand-ins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from blockbuster.emit.target.compiler import Compilation, compiled_for_launch
from blockbuster.emit.target.gpu import poison
from blockbuster.errors import EmitError, message

if TYPE_CHECKING:
    from blockbuster.selection.plans.plan import File, Sizes

Tensor = Any


class Refused(EmitError):
    """Files that Triton does not compile, or that gave wrong results, and why.

    ``wrong``: it is compiled, and must not be run; ``evidence``: the file that shows it.
    """

    def __init__(
        self, files: tuple[File, ...], reason: str, *, wrong: bool = False, evidence: str = ""
    ) -> None:
        names = ", ".join(name for file in files for name in file.writes)
        hint = "compile the program again here: where a kernel is refused, another one is chosen"
        origin = f"to reproduce it: {evidence}" if evidence else ""
        super().__init__(message(f"no kernel for {names}: {reason}", origin=origin, hint=hint))
        self.files, self.reason = files, reason
        self.wrong, self.evidence = wrong, evidence


@dataclass(frozen=True)
class Noted:
    """One start of a kernel, as the launcher asked for it.

    ``views``: arguments that are views of arrays, truth values as bytes, each with its array.
    """

    name: str
    made: Compilation
    grid: tuple[int, ...]
    names: Sequence[str]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    views: Sequence[tuple[Tensor, Tensor]] = ()


class Recorder:
    """A file's ``launch`` with stand-ins for its kernels and its allocator.

    ``prepared`` counts the arrays and starts of the launcher's ``prepare``, which are the first.
    A kernel is started when its machine code has been looked at. Where ``earlier`` starts are given
    of a recorder that did not launch, for the same arguments, theirs are the kernels, and whoever
    gives them looks at the code. What is allocated is full of what no kernel writes if it
    ``poisons``, of zeros if it ``clears``.
    """

    def __init__(
        self,
        module: ModuleType,
        *,
        launches: bool = True,
        earlier: Sequence[Noted] = (),
        poisons: bool = False,
        clears: bool = False,
    ) -> None:
        self.made: list[Tensor] = []
        self.noted: list[Noted] = []
        self.prepared = (0, 0)
        self._module = module
        self._views: list[tuple[Tensor, Tensor]] = []
        self._earlier = iter(earlier)
        self._launches, self._poisons, self._clears = launches, poisons, clears

    def launch(self, tensors: Sequence[Tensor], sizes: Sizes) -> list[Tensor]:
        """The outputs. What was started and allocated is noted."""
        parameters = inspect.signature(self._module.launch).parameters.values()
        free = [p.name for p in parameters if p.default is p.empty][len(tensors) :]
        return self.call(
            *tensors, **{n: sizes[d] for n, d in zip(free, self._module.FREE, strict=True)}
        )

    def call(self, *tensors: Tensor, **named: Any) -> list[Tensor]:
        """The same for the launcher's own arguments: arrays, sizes, arrays to write into."""
        module = self._module
        kernels = [entry["function"] for entry in module.KERNELS]
        seen = {k.__name__: _StandIn(k, self) for k in kernels}
        # compiled kernels are looked at one by one (inspection.py): files refuse more than is wrong
        own_checks = {"check_assembler": lambda: None}
        stand_ins = {"empty": self._empty, "argument": self._argument}
        names = {**vars(module), **seen, **own_checks, **stand_ins}
        if hasattr(module, "prepare"):
            names["prepare"] = self._preparing(rebound(module.prepare, names))
        found = rebound(module.launch, names)(*tensors, **named)
        return list(found) if isinstance(found, tuple) else [found]

    def _preparing(self, prepare: Callable[..., Any]) -> Callable[..., Any]:
        """``prepare``, behind which it is noted how many arrays and starts were its own."""

        def call(*tensors: Tensor, **named: Any) -> Any:
            found = prepare(*tensors, **named)
            self.prepared = len(self.made), len(self.noted)
            return found

        return call

    def _empty(self, shape: tuple[int, ...], dtype: str, like: Tensor) -> Tensor:
        new = self._module.empty(shape, dtype, like)
        if self._clears:
            new.zero_()
        self.made.append(poison(new) if self._poisons else new)
        return new

    def _argument(self, array: Tensor) -> Tensor:
        taken = self._module.argument(array)
        if taken is not array:
            self._views.append((taken, array))
        return taken

    def start(
        self, kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], options: Any
    ) -> Any:
        """Start a kernel as ``kernel[grid](...)`` does, and note how; or compile it only. As that
        does, it returns Triton's compiled kernel.
        """
        known = next(self._earlier, None)
        made = known.made if known else compiled_for_launch(kernel, arguments, options)
        if self._launches:
            if not known:
                made.look()  # a lost register can be an address
            kernel[grid](*arguments, **options)
        views = tuple(self._views)
        noted = Noted(kernel.__name__, made, grid, kernel.arg_names, arguments, options, views)
        self.noted.append(noted)
        return made.compiled


def rebound(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """``function`` with other names around it."""
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


@dataclass(frozen=True)
class _StandIn:
    """Stands for a kernel in a launcher."""

    kernel: Any
    recorder: Recorder

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]:
        return lambda *arguments, **options: self.recorder.start(
            self.kernel, grid, arguments, options
        )
