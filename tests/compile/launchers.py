"""Triton's own launcher for NVIDIA's devices, around stand-ins for its functions in C.

Kernels are not compiled; what would reach the C function of a start is given to a function instead.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from triton import runtime
from triton.backends.nvidia.driver import CudaLauncher, wrap_handle_tensordesc


class Encoded(NamedTuple):
    """An encoded descriptor."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    tile: tuple[int, ...]


def encode(address, swizzle, size, kind, tile, shape, strides, padding):
    """Stands for the function in C that encodes a descriptor."""
    return Encoded(address, tuple(shape), tuple(strides), tuple(tile))


class Driver:
    """Triton's driver where there is no GPU."""

    utils = SimpleNamespace(fill_tma_descriptor_tiled=encode)

    def get_current_target(self):
        raise RuntimeError("no GPU")


def with_driver():
    """A context in which Triton encodes descriptors by ``encode``."""
    return mock.patch.object(runtime.driver, "_active", Driver())


def type_of(argument: Any) -> str:
    """An argument's type, as a kernel's signature has it."""
    if hasattr(argument, "data_ptr"):
        return "*fp16"
    if hasattr(argument, "block_shape"):
        return f"tensordesc<fp16{list(argument.block_shape)}>"
    return "i32" if isinstance(argument, int) else "constexpr"


class Compiled:
    """A compiled kernel of Triton's whose starts end in ``launch``."""

    function, packed_metadata = 1, (4, 1, 0)

    def __init__(self, name, values, launch, asm=None):
        types = [type_of(value) for value in values]
        described = [value for value in values if hasattr(value, "block_shape")]
        about = [
            dict(
                swizzle=3,
                elem_size=2,
                elem_type=6,
                block_size=[*one.block_shape],
                fp4_padded=False,
            )
            for one in described
        ]
        self.name, self.asm = name, asm or {}
        signature = dict(enumerate(types))
        self.src = SimpleNamespace(signature=signature)
        self.metadata = SimpleNamespace(tensordesc_meta=about or None)
        self.run = run = CudaLauncher.__new__(CudaLauncher)
        run.num_ctas, run.gsan_enabled = 1, False
        run.launch = wrap_handle_tensordesc(launch, signature, about or None)
        run.global_scratch_size = run.profile_scratch_size = 0
        run.global_scratch_align = run.profile_scratch_align = 1
        run.launch_cooperative_grid = run.launch_pdl = False
        run.arg_annotations, run.kernel_signature = (), b""


class Kernel:
    """A kernel of an emitted file, in place of Triton's."""

    def __init__(self, kernel, launch):
        self.__name__, self.arg_names = kernel.__name__, kernel.arg_names
        self._launch = launch

    def warmup(self, *arguments, grid, **options):
        rest = [options[name] for name in self.arg_names[len(arguments) :]]
        return Compiled(self.__name__, [*arguments, *rest], self._launch)

    def __getitem__(self, grid):
        return lambda *arguments, **options: SimpleNamespace(function=1)
