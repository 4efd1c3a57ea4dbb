"""The trial of a kernel: its first launch, in another process, which may fault alone.

An access out of bounds ends all use of a GPU in its process. So a launch that may fault is made in
a process forked by one that has torch and Triton loaded and no GPU in use (worker.py), on drawn
arrays of the same layout, several times. A kernel that reads a register that nothing has written
faults in one run and not in the next, but its results differ between runs. A trial costs some five
seconds for the first kernel, when that process starts, and about a second for each later one.
"""

from __future__ import annotations

import inspect
import json
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

SERVER = "from blockbuster.runtime.trial import serve; serve()"
TIME_LIMIT = 120.0
RUNS = 8
FAULTED = "faulted"


def fault_in_trial(
    text: str, tensors: Sequence[Any], sizes: Mapping[str, int], *, server: str = SERVER
) -> str:
    """The fault of an emitted file's launch in another process; "" if there is none."""
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
    tensors = [_tensor(layout) for layout in about["layouts"]]
    try:
        found = [_run(module, tensors, about["sizes"]) for _ in range(RUNS)]
        equal = all(all(map(same_bits, found[0], other)) for other in found)
    except RuntimeError as error:
        _say(folder, shown_lines(str(error))[0])
        raise
    if not equal:
        _say(folder, "results differ from run to run")
        raise SystemExit(1)


def _run(module: ModuleType, tensors: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
    """The outputs of the file; the process that asks has looked at the compiled kernels."""
    plain = module.empty
    names = vars(module)
    names["empty"] = lambda shape, dtype, like: poison(plain(shape, dtype, like))
    names["check_assembler"] = lambda: None
    parameters = inspect.signature(module.launch).parameters.values()
    free = [p.name for p in parameters if p.default is p.empty][len(tensors) :]
    given = {name: sizes[dim] for name, dim in zip(free, module.FREE, strict=True)}
    with assembling_here():
        found = module.launch(*tensors, **given)
    names["empty"] = plain
    return list(found) if isinstance(found, tuple) else [found]


def _say(folder: Path, fault: str) -> None:
    (folder / FAULTED).write_text(fault, encoding="utf-8")


def _tensor(layout: Mapping[str, Any]) -> Any:
    import torch

    spans = [(n - 1) * s for n, s in zip(layout["shape"], layout["steps"], strict=True)]
    count = 1 + sum(spans) + layout["offset"]
    flat = torch.randn(count, device=layout["device"]).to(getattr(torch, layout["dtype"]))
    return flat.as_strided(layout["shape"], layout["steps"], layout["offset"])
