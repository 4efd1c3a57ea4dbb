"""What launchers of some files call, beside what all files share (`harness.py`).

These texts are copied into stand-alone files, so they are written for the readers of those files.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.emit.print.triton.launcher import Kernel
from blockbuster.emit.tile.constants import kept_nests, running_nests
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.room import leaving_room
from blockbuster.emit.tile.verify_waits import waits

EARLY = '''
def can_overlap(array):
    """True if a kernel can begin before the one before has ended, on the device of ``array``."""
    torch = sys.modules.get("torch")
    if triton.knobs.runtime.interpret or not torch or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(array.device) >= (9, 0)
'''

EVEN = '''
def even(*numbers):
    """The largest power of two, up to 16, that divides all of ``numbers``."""
    bits = 16
    for number in numbers:
        bits |= number
    return bits & -bits
'''

PREPARED = '''
def of_constants(size):
    """``size`` with numbers that fit for dims that no constant shows."""
    return {**dict.fromkeys([*MULTIPLES, *AT_MOST], 0), **EXACTLY, **size}


def check_prepared(prepared, expected, like):
    """Raise ValueError unless ``prepared`` is what ``prepare`` returns for these sizes."""
    found = [(tuple(array.shape), dtype_name(array)) for array in prepared]
    if found != [(shape, dtype) for _, shape, dtype in expected]:
        names = ", ".join(f"{name} {list(shape)} {dtype}" for name, shape, dtype in expected)
        raise ValueError(f"prepared holds {found}, expected {names}: call prepare again")
    for array in prepared:
        if not isinstance(array, np.ndarray) and array.device != like.device:
            raise ValueError(f"what was prepared is on {array.device}, expected {like.device}")
'''

ROOM = '''
@functools.cache  # of a kernel that Triton compiled: it stays set
def leave_room(started):
    """Let programs of the next kernel start on processors on which this one's programs still run.

    A processor has one memory for its cache and for shared memory, and divides it anew only while
    nothing runs there. Behind a kernel with little shared memory, one with large tiles would have
    to wait for that. So this kernel makes all of it shared memory, from its next launch on.
    """
    PREFERRED_CARVEOUT, ALL = 9, 100  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent
    cuda = ctypes.CDLL("libcuda.so.1")
    error = cuda.cuFuncSetAttribute(ctypes.c_void_p(started.function), PREFERRED_CARVEOUT, ALL)
    if error:
        raise RuntimeError(f"{started.name}: error {error} of cuFuncSetAttribute")
'''

DESCRIPTORS = '''
def descriptor(array, tile):
    """The descriptor of an array for tiles of this shape; None if its layout has none."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    steps = strides(array)
    apart = all(step > 0 and step % 16 == 0 for step in steps[:-1])
    if steps[-1] != 1 or not apart or argument(array).data_ptr() % 16:
        return None
    return TensorDescriptor(argument(array), list(array.shape), list(steps), list(tile))
'''


def leaves_room(program: TileProgram) -> bool:
    """True if a kernel of each call leaves room in shared memory."""
    return any(leaving_room(running_nests(program)))


def launch_helpers(program: TileProgram, kernels: Sequence[Kernel]) -> list[str]:
    """The functions that the launcher of a program with these kernels calls."""
    return [
        *([EARLY] if waits(program) else []),
        *([EVEN] if any(k.parameters.rows or k.parameters.parts for k in kernels) else []),
        *([PREPARED] if kept_nests(program) else []),
        *([ROOM] if leaves_room(program) else []),
        *([DESCRIPTORS] if any(kernel.parameters.descriptors for kernel in kernels) else []),
    ]
