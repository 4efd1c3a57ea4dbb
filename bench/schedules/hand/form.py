"""What a hand-written form is: kernels in order, what they are launched with, and its result.

A form is prepared for inputs, which allocates its outputs and workspaces; then it is run, timed or
compiled. For compiling, the inputs may be torch's meta tensors: nothing is allocated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Array = Any
Inputs = Mapping[str, Array]

NAMES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}


@dataclass(frozen=True)
class Launch:
    """One kernel with its grid and arguments (arrays, descriptors, integers, in order).

    ``constants`` are its constexpr parameters. ``dependent``: it may begin before the kernel in
    front of it has ended (programmatic dependent launch); it waits for it itself.
    """

    function: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    constants: Mapping[str, Any]
    warps: int = 4
    stages: int = 1
    dependent: bool = False

    @property
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"num_warps": self.warps, "num_stages": self.stages}
        return options | ({"launch_pdl": True} if self.dependent else {})

    def run(self) -> None:
        self.function[self.grid](*self.arguments, **self.constants, **self.options)

    def entry(self) -> dict[str, Any]:
        """What ``blockbuster.emit.target.compiler`` compiles, as in an emitted file's KERNELS."""
        names = [n for n in self.function.arg_names if n not in self.constants]
        given = dict(zip(names, self.arguments, strict=True))
        numbers = {n: x for n, x in given.items() if isinstance(x, int)}
        aligned = [n for n, x in given.items() if hasattr(x, "stride")]
        return {
            "function": self.function,
            "signature": {n: _type(x) for n, x in given.items()},
            "constants": dict(self.constants),
            "equal_to_1": [n for n, x in numbers.items() if x == 1],
            "divisible_by_16": [*aligned, *(n for n, x in numbers.items() if x % 16 == 0)],
            "options": self.options,
        }


def _type(argument: Any) -> str:
    """The type that Triton's launcher finds for an argument."""
    if isinstance(argument, int):
        return "i32"
    if isinstance(argument, float):
        return "fp32"
    if hasattr(argument, "block_shape"):
        base = NAMES[_dtype(argument.base)]
        return f"tensordesc<{base}[{', '.join(map(str, argument.block_shape))}]>"
    return f"*{NAMES[_dtype(argument)]}"


def _dtype(array: Array) -> str:
    return str(array.dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Ready:
    """A form with everything allocated: running it fills ``outputs``."""

    launches: tuple[Launch, ...]
    outputs: tuple[Array, ...]

    def run(self) -> tuple[Array, ...]:
        for launch in self.launches:
            launch.run()
        return self.outputs


@dataclass(frozen=True)
class Form:
    """A hand form: ``prepare(inputs, **settings)`` gives what is run.

    ``settings``: block sizes and the like, as measured; ``small``: what is different where tests
    run it at small sizes. ``microseconds``: what it took on one H200, by CUDA graph below 100.
    """

    name: str
    prepare: Callable[..., Ready]
    settings: Mapping[str, Any] = field(default_factory=dict)
    small: Mapping[str, Any] = field(default_factory=dict)
    microseconds: float = 0.0

    def ready(self, inputs: Inputs, *, small: bool = False) -> Ready:
        return self.prepare(inputs, **{**self.settings, **(self.small if small else {})})


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def power_of_two(n: int) -> int:
    """The least power of two that is not below ``n``."""
    return 1 << (n - 1).bit_length()


def described(array: Array, *block: int) -> Any:
    """A host descriptor of a contiguous array, as a matrix of its last axis, in blocks."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(array.reshape(-1, array.shape[-1]), list(block))
