"""The trial of a kernel: its first launch, in another process, which may fault alone.

An access out of bounds ends all use of a GPU in its process. So a launch that may fault is made in
a process forked by one that has torch and Triton loaded and no GPU in use (worker.py), on drawn
arrays of the same layout, several times. A kernel that reads a register that nothing has written
faults in one run and not in the next, but its results differ between runs. A trial costs some five
seconds for the first kernel, when that process starts, and about a second for each later one. It
holds the inputs and what two runs allocate; where that is too much (room.py), there is no trial.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from blockbuster.emit.target.compiler import assembling_here
from blockbuster.emit.target.gpu import poison, same_bits
from blockbuster.emit.target.load import load_module
from blockbuster.errors import LaunchError, shown_lines
from blockbuster.runtime import worker
from blockbuster.runtime.room import NoRoom, room, too_much

SERVER = "from blockbuster.runtime.trial import serve; serve()"
TIME_LIMIT = 120.0
RUNS = 8
PIECE = 1 << 24  # elements that are drawn at once
FAULTED, UNTRIED = "faulted", "untried"


def fault_in_trial(
    text: str, tensors: Sequence[Any], sizes: Mapping[str, int], *, server: str = SERVER
) -> str:
    """The fault of an emitted file's launch in another process; "" if there is none.

    Raises NoRoom if a trial would take too much memory.
    """
    layouts = [_layout(tensor) for tensor in tensors]
    with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
        folder = Path(name, "job")
        folder.mkdir()
        (folder / "kernel.py").write_text(text, encoding="utf-8", newline="\n")
        about = {"layouts": layouts, "sizes": dict(sizes)}
        (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
        try:
            code = worker.run_job(folder, server, _environment(), TIME_LIMIT)
        except (TimeoutError, LaunchError) as error:
            return f"its first launch, in a process of its own, {error}"
        untried = folder / UNTRIED
        if code == 0 and untried.exists():
            raise NoRoom(untried.read_text())
        if code == 0:
            return ""
        fault = folder / FAULTED
        if fault.exists():
            return f"its first launch, in a process of its own, failed: {fault.read_text()}"
        if code < 0:
            return f"its first launch ended a process of its own with signal {-code}"
        log = (folder / "log").read_text(encoding="utf-8", errors="replace").strip()
        raise LaunchError(f"a process to try kernels in ended with code {code}: {log[-2000:]}")


def _environment() -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _layout(tensor: Any) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "steps": list(tensor.stride()),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "offset": tensor.data_ptr() % 16 // tensor.element_size(),
        "device": str(tensor.device),
    }


# the other process -------------------------------------------------------------------


def serve() -> None:
    """The process that forks others: it loads what is slow to load, and uses no GPU."""
    from importlib import import_module

    for name in ("torch", "triton", "triton.compiler"):
        import_module(name)
    worker.serve(_work)


def _work(folder: Path) -> None:
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    module = load_module((folder / "kernel.py").read_text(encoding="utf-8"))
    try:
        equal = _repeats(module, about["layouts"], about["sizes"])
    except NoRoom as error:
        (folder / UNTRIED).write_text(str(error), encoding="utf-8")
        return
    except RuntimeError as error:
        _say(folder, shown_lines(str(error))[0])
        raise
    if not equal:
        _say(folder, "results differ from run to run")
        raise SystemExit(1)


def _repeats(
    module: ModuleType, layouts: Sequence[Mapping[str, Any]], sizes: Mapping[str, int]
) -> bool:
    """True if all runs on drawn arrays give the same."""
    import torch

    allowed = room(torch.device(layouts[0]["device"]))
    inputs = sum(_bytes(layout["dtype"]) * _count(layout) for layout in layouts)
    _check_room(inputs, allowed)
    tensors = [_tensor(layout) for layout in layouts]

    def run() -> list[Any]:
        return _run(module, tensors, sizes, (allowed - inputs) // 2)

    first = run()
    return all(all(map(same_bits, first, run())) for _ in range(RUNS - 1))


def _check_room(needed: int, allowed: int) -> None:
    if needed > allowed:
        raise NoRoom(too_much(needed, allowed))


def _run(
    module: ModuleType, tensors: Sequence[Any], sizes: Mapping[str, int], allowed: int
) -> list[Any]:
    """The outputs of the file, which may allocate so many bytes.

    The process that asks has looked at the compiled kernels.
    """
    plain, made = module.empty, [0]
    names = vars(module)

    def empty(shape: Sequence[int], dtype: str, like: Any) -> Any:
        made[0] += math.prod(shape) * _bytes(dtype)
        _check_room(made[0], allowed)
        return poison(plain(shape, dtype, like))

    names["empty"] = empty
    names["check_assembler"] = lambda: None
    parameters = inspect.signature(module.launch).parameters.values()
    free = [p.name for p in parameters if p.default is p.empty][len(tensors) :]
    given = {name: sizes[dim] for name, dim in zip(free, module.FREE, strict=True)}
    try:
        with assembling_here():
            found = module.launch(*tensors, **given)
    finally:
        names["empty"] = plain
    return list(found) if isinstance(found, tuple) else [found]


def _say(folder: Path, fault: str) -> None:
    (folder / FAULTED).write_text(fault, encoding="utf-8")


def _count(layout: Mapping[str, Any]) -> int:
    """How many elements the memory of an array spans."""
    spans = [(n - 1) * s for n, s in zip(layout["shape"], layout["steps"], strict=True)]
    return int(1 + sum(spans) + layout["offset"])


def _bytes(dtype: str) -> int:
    import torch

    found: int = getattr(torch, dtype).itemsize
    return found


def _tensor(layout: Mapping[str, Any]) -> Any:
    import torch

    device, dtype = layout["device"], getattr(torch, layout["dtype"])
    flat = torch.empty(_count(layout), dtype=dtype, device=device)
    for piece in flat.split(PIECE):
        piece.copy_(torch.randn(len(piece), device=device))
    return flat.as_strided(layout["shape"], layout["steps"], layout["offset"])
