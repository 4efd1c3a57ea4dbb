"""Starts compiled kernels as their emitted launcher starts them, without its other work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.costs.variations import TARGET
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.gpu import Gpu, poison
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of

Array = Any
SIXTEEN = 16


@dataclass(frozen=True)
class Start:
    """One start of a compiled kernel: its grid and arguments, addresses and constants included."""

    compiled: Any
    grid: int
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Ready:
    """All starts of a file for some inputs; ``kept``: the arrays whose addresses are held."""

    gpu: Gpu
    starts: tuple[Start, ...]
    outputs: tuple[Array, ...]
    kept: tuple[Array, ...]

    def __call__(self) -> None:
        """Start the kernels on the current stream."""
        stream = self.gpu.stream()
        for start in self.starts:
            made = start.compiled
            made.run(
                start.grid, 1, 1, stream, made.function, made.packed_metadata, None, None, None,
                *start.arguments,
            )  # fmt: skip


def ready(source: Path, inputs: Mapping[str, Array]) -> Ready:
    """The kernels of a file, compiled before, for these inputs; workspaces are poisoned."""
    module = load_module(source.read_text(encoding="utf-8"))
    before = dict(vars(module))
    noting = _Noting(module)
    try:
        found = module.launch(**dict(zip(module.INPUTS, inputs.values(), strict=True)))
    finally:
        vars(module).clear()
        vars(module).update(before)
    outputs = found if isinstance(found, tuple) else (found,)
    kept = (*inputs.values(), *noting.made)
    return Ready(Gpu(0), tuple(noting.starts), outputs, kept)


class _Noting:
    """A file whose starts are noted with the kernels of its own table: nothing is launched."""

    def __init__(self, module: Any) -> None:
        self.starts: list[Start] = []
        self.made: list[Array] = []
        self._entries = iter(module.KERNELS)
        empty = module.empty

        def poisoned(shape: Sequence[int], dtype: str, like: Array) -> Array:
            self.made.append(poison(empty(shape, dtype, like)))
            return self.made[-1]

        vars(module).update(empty=poisoned, check_assembler=lambda: None)
        for entry in module.KERNELS:
            kernel = entry["function"]
            setattr(module, kernel.__name__, _StandIn(kernel, self.start))

    def start(
        self, kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], options: Any
    ) -> Any:
        """Note a start, and return the compiled kernel, of which launchers ask for room.

        Raises ValueError where the table is for other arguments.
        """
        entry = next(self._entries)
        assert entry["function"] is kernel, "the table lists kernels as they are started"
        given = dict(zip(kernel.arg_names, arguments, strict=False))
        _check(entry, given)
        without = [name for name, value in options.items() if value is None]
        compiled, _ = compiled_entry(without_descriptors(entry, without), target_of(TARGET))
        rest = kernel.arg_names[len(arguments) :]
        plain = [x.data_ptr() if hasattr(x, "data_ptr") else x for x in arguments]
        self.starts.append(Start(compiled, grid[0], (*plain, *(options[name] for name in rest))))
        compiled._init_handles()
        return compiled


@dataclass(frozen=True)
class _StandIn:
    """Stands for a kernel in a launcher."""

    kernel: Any
    start: Any

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments, **options: self.start(self.kernel, grid, arguments, options)


def without_descriptors(entry: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The entry of a kernel that is started with None for these descriptors.

    The launcher has no descriptor of an array whose rows begin at other addresses than multiples of
    16 numbers. The kernel that Triton compiles for None reads such an array by pointers.
    """
    unknown = [name for name in names if name not in entry["signature"]]
    assert not unknown, f"{unknown} are no arguments of {entry['function'].__name__}"
    return {**entry, "constants": {**entry["constants"], **dict.fromkeys(names)}}


def _check(entry: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise ValueError if arguments are not what the entry's kernel is compiled for."""

    def number(name: str) -> int:
        value = given[name]
        return int(value.data_ptr() if hasattr(value, "data_ptr") else value)

    wrong = [name for name in entry["equal_to_1"] if number(name) != 1]
    wrong += [name for name in entry["divisible_by_16"] if number(name) % SIXTEEN]
    if wrong:
        raise ValueError(f"{entry['function'].__name__} is compiled for another {wrong[0]}")
