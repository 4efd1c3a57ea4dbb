"""Runs emitted kernels on NumPy arrays, in Triton's interpreter; queries to torch.

When it is imported, Triton decides whether kernels are interpreted or compiled, and an access out
of bounds ends the process. So each kernel is interpreted in its own process, forked by a process
that has Triton loaded (see worker.py). It takes its arrays from a folder.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.target.load import load_module
from blockbuster.errors import LaunchError, message
from blockbuster.ir.dtypes import FLOAT8
from blockbuster.runtime import worker
from blockbuster.runtime.reduce_slices import reduce_slices

if TYPE_CHECKING:
    from blockbuster.emit.kernel import Kernel

Array = NDArray[Any]
Arrays = Mapping[str, Any]
Job = tuple["Kernel", Arrays]
ALIGNED = 16
"""Bytes: Triton compiles pointers to multiples of it into wider accesses."""


def as_parameters(
    module: ModuleType, inputs: Iterable[str], outputs: Iterable[str], given: Arrays
) -> dict[str, Any]:
    """Arrays under the names that the file gives them: not every name is an identifier."""
    names = dict(zip(inputs, module.INPUTS, strict=True))
    names |= zip(outputs, module.OUTPUTS, strict=True)
    return {names.get(name, name): value for name, value in given.items()}


def run_interpreted(kernel: Kernel, inputs: Arrays, *, timeout: float = 600) -> dict[str, Array]:
    """The outputs of ``kernel`` by name, from NumPy arrays, in Triton's interpreter.

    Raises LaunchError if the kernel refuses the arrays or its worker dies.
    """
    (result,) = run_batch([(kernel, inputs)], timeout=timeout)
    if isinstance(result, LaunchError):
        raise result
    return result


def run_batch(jobs: Sequence[Job], *, timeout: float = 600) -> list[dict[str, Array] | LaunchError]:
    """The outputs of many jobs, one after the other; a LaunchError stands for a job that failed.

    New outputs and workspaces start full of NaN. A job that crashes, or takes longer than
    ``timeout`` seconds, fails alone. The environment is that of the first job of this process.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
            return [
                _run_job(Path(name, str(number)), kernel, arrays, timeout)
                for number, (kernel, arrays) in enumerate(jobs)
            ]
    except OSError as error:
        reason = error.strerror or str(error)
        what = f"no temporary folder takes the arrays for Triton's interpreter: {reason}"
        raise LaunchError(message(what, hint="TMPDIR names another place")) from error


def _run_job(
    folder: Path, kernel: Kernel, arrays: Arrays, timeout: float
) -> dict[str, Array] | LaunchError:
    """The outputs of one job, by way of a folder."""
    _write_job(folder, kernel, arrays)
    environment = server_environment(interpreted=True)
    try:
        code = worker.run_job(folder, SERVER, environment, timeout)
    except (TimeoutError, LaunchError) as error:
        return LaunchError(message(f"{kernel.name} {error}"))
    if code == 0:
        return _read_result(folder, kernel.outputs)
    if code < 0:
        reason = f"killed its process with {signal.Signals(-code).name}: an access out of bounds?"
    else:
        log = (folder / "log").read_text(encoding="utf-8", errors="replace").strip()
        reason = f"ended its process with code {code}: {log[-2000:]}"
    return LaunchError(message(f"{kernel.name} {reason}"))


def server_environment(*, interpreted: bool) -> dict[str, str]:
    """The environment of a server: that of this process, with Blockbuster where it is here."""
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return found | {"TRITON_INTERPRET": "1"} if interpreted else found


def _write_job(folder: Path, kernel: Kernel, arrays: Arrays) -> None:
    folder.mkdir()
    (folder / "kernel.py").write_text(kernel.source, encoding="utf-8")
    about: dict[str, Any] = {"arrays": {}, "numbers": {}}
    about |= {"inputs": kernel.inputs, "outputs": kernel.outputs}
    for number, (name, value) in enumerate(arrays.items()):
        if not isinstance(value, np.ndarray):
            about["numbers"][name] = value
            continue
        first, length = _span(value)
        low = value.ctypes.data + first
        (folder / f"{number}.bin").write_bytes(ctypes.string_at(low, length))
        layout = [number, value.dtype.str, value.shape, value.strides, -first]
        about["arrays"][name] = layout
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def _span(array: Array) -> tuple[int, int]:
    """The bytes an array with any strides covers: the first, relative to its data, and how many."""
    if array.size == 0:
        return 0, 0
    steps = [step * (size - 1) for step, size in zip(array.strides, array.shape, strict=True)]
    first = sum(step for step in steps if step < 0)
    return first, sum(map(abs, steps)) + array.itemsize


def _read_job(folder: Path) -> tuple[dict[str, Any], list[str], list[str]]:
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    arrays: dict[str, Any] = dict(about["numbers"])
    for name, (number, dtype, shape, strides, start) in about["arrays"].items():
        data = bytearray((folder / f"{number}.bin").read_bytes())
        arrays[name] = np.ndarray(shape, np.dtype(dtype), data, start, strides)
    return arrays, about["inputs"], about["outputs"]


def _read_result(folder: Path, names: Iterable[str]) -> dict[str, Array] | LaunchError:
    error = folder / "error"
    if error.exists():
        return LaunchError(error.read_text(encoding="utf-8"))
    with np.load(folder / "result.npz") as found:
        return dict(zip(names, found.values(), strict=True))


def _poisoned(shape: tuple[int, ...], dtype: str, _: Array) -> Array:
    """A new array, whatever it shall be like, that shows what a kernel forgets to write."""
    least = 1 if np.dtype(dtype).kind in "bu" else np.iinfo(dtype).min if "int" in dtype else np.nan
    return np.full(shape, least, dtype)


SLOW_TO_LOAD = (
    "triton.language", "triton.runtime.interpreter", "triton.compiler.code_generator",
    "triton.experimental.gluon",
)  # fmt: skip
SERVER = "from blockbuster.runtime.launch import serve; serve()"


def serve() -> None:
    """The worker: run the jobs that it is sent, each in a fork of this process."""
    for name in SLOW_TO_LOAD:
        with suppress(ImportError):  # a job will say so, or does not need it
            import_module(name)
    with suppress(ImportError):
        reduce_slices()
    worker.serve(_work)


def _work(place: Path) -> None:
    arrays, inputs, outputs = _read_job(place)
    module = load_module((place / "kernel.py").read_text(encoding="utf-8"), place)
    vars(module)["empty"] = _poisoned
    try:
        found = module.launch(**as_parameters(module, inputs, outputs, arrays))
    except (ValueError, TypeError) as error:
        (place / "error").write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
    else:
        results = found if isinstance(found, tuple) else (found,)
        np.savez(place / "result.npz", *results)


# tensors: what other modules need of torch ------------------------------------------


def records_gradients() -> bool:
    """True if torch would record what is done to a tensor that requires a gradient."""
    import torch

    return bool(torch.is_grad_enabled())


def guard_of(values: Sequence[Any]) -> Callable[[tuple[Any, ...]], bool] | None:
    """Whether arguments are tensors that are described (tensors.py) as these are: asked of torch's
    own guard in one call. False says nothing.

    None unless these are aligned tensors with elements, and for a torch that has no such guard.
    """
    if not values or not all(map(_is_guarded, values)):
        return None
    differentiates = any(value.requires_grad for value in values)  # so does a guard, in any mode
    records = import_module("torch").is_grad_enabled
    try:
        guards: Any = import_module("torch._C._dynamo.guards")
        check = guards.TensorGuards(
            *values, dynamic_dims_sizes=None, dynamic_dims_strides=None
        ).check
    except (ImportError, AttributeError, TypeError):
        return None
    number = len(values)

    def same(given: tuple[Any, ...]) -> bool:
        if len(given) != number or not check(*given) or (differentiates and records()):
            return False
        for tensor in given:  # noqa: SIM110 -- a generator takes longer than all of this
            if tensor.data_ptr() % ALIGNED:
                return False
        return True

    return same


def _is_guarded(value: Any) -> bool:
    has_elements = hasattr(value, "data_ptr") and value.numel()
    return bool(has_elements) and not value.data_ptr() % ALIGNED


def to_host(tensor: Any) -> Array:
    """A tensor as a NumPy array: the same memory for a tensor on the CPU.

    NumPy has neither bfloat16 nor float8: such a tensor is copied to float32, which is exact.
    """
    tensor = tensor.detach()
    unknown = str(tensor.dtype).removeprefix("torch.") in ("bfloat16", FLOAT8)
    wide = tensor.float() if unknown else tensor
    array: Array = wide.cpu().numpy()
    return array


def from_host(array: Array, dtype: Any = None, device: Any = None) -> Any:
    """A NumPy array as a tensor, of the dtype and on the device given."""
    import torch

    kind = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    own = array if array.flags.c_contiguous and array.flags.writeable else array.copy()
    return torch.from_numpy(own).to(device=device, dtype=kind)


def new_like(tensor: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A tensor of this shape and dtype where ``tensor`` is, not written yet."""
    import torch

    return tensor.new_empty(shape, dtype=getattr(torch, dtype))


def watching(made: Any) -> Any:
    """A context in which ``made`` gives what takes the place of each tensor that is allocated."""
    import torch
    from torch.overrides import TorchFunctionMode

    tensor = torch.Tensor
    empty = {torch.empty, torch.empty_like, torch.empty_strided}
    empty |= {tensor.new_empty, tensor.new_empty_strided}
    full = {torch.zeros, torch.zeros_like, torch.ones, torch.ones_like, torch.full, torch.full_like}
    full |= {tensor.new_zeros, tensor.new_ones, tensor.new_full}

    class Watching(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            found = function(*args, **(kwargs or {}))
            if function not in empty and function not in full:
                return found
            return made(found, empty=function in empty) if _is_plain(found) else found

    return Watching()


def _is_plain(tensor: Any) -> bool:
    """True for a tensor in ordinary memory of its own, that may be exchanged for another one."""
    import torch

    if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided:
        return False
    if tensor.is_cuda:
        return not (tensor.requires_grad or torch.cuda.is_current_stream_capturing())
    return tensor.device.type == "cpu" and not (tensor.requires_grad or tensor.is_pinned())


def register(name: str, schema: str, compute: Any, fake: Any) -> Any:
    """A custom operator of torch: ``compute`` on tensors, ``fake`` on tensors without data."""
    import torch

    operator = torch.library.custom_op(name, compute, mutates_args=(), schema=schema)
    operator.register_fake(fake)
    return operator
