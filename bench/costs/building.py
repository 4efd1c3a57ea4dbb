"""Compiles pairs, and reads the facts in their binaries.

Runs in processes of its own, without a GPU; Triton's cache hands the binaries to those that time.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.costs.binary import as_data, read, texts_of
from bench.costs.variations import TARGET, Pair
from bench.costs.workloads import BY_NAME
from blockbuster.emit.target.assembler import Assembler
from blockbuster.emit.target.compiler import compiled_entry, made_of
from blockbuster.emit.target.inspection import reasons_to_refuse
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import Target, target_of

Record = dict[str, Any]
BUILT, REFUSED = "built", "refused"


def kernel_of(pair: Pair, sizes: dict[str, int]) -> bb.Kernel:
    """The emitted file of a pair."""
    workload = BY_NAME[pair.workload]
    graph = workload.graph(pair.snapshot)
    return bb.emit(graph, sizes, workload.dtype, TARGET, schedule=pair.schedule)


def built(pair: Pair, folder: Path) -> Record:
    """What each kernel of a pair became; its file is kept in ``folder`` by the pair's key."""
    began = time.perf_counter()
    record: Record = {"key": pair.key, "state": BUILT}
    try:
        kernel = kernel_of(pair, dict(BY_NAME[pair.workload].sizes))
        entries = load_module(kernel.source).KERNELS
        record["kernels"] = [
            _kernel(entry, folder / f"{pair.key}.{at}") for at, entry in enumerate(entries)
        ]
    except bb.BlockbusterError as error:
        return record | {"state": REFUSED, "reason": str(error)[:600]}
    kernel.write(folder / f"{pair.key}.py")
    return record | {"seconds": round(time.perf_counter() - began, 2)}


def _kernel(entry: dict[str, Any], stem: Path) -> Record:
    """The facts of one kernel, kept beside. Raises EmitError for one that must not run."""
    target = target_of(TARGET)
    compiled, assembler = runnable(entry, target)
    texts = texts_of(entry["function"].__name__, target, compiled, assembler)
    Path(f"{stem}.cubin").write_bytes(compiled.asm["cubin"])
    Path(f"{stem}.ttgir").write_text(texts.ttgir, encoding="utf-8")
    return as_data(read(texts))


def runnable(entry: dict[str, Any], target: Target) -> tuple[Any, Assembler]:
    """What Triton makes of a kernel, ready to launch, and by which assembler.

    Raises EmitError for one that must not run: it does not fit, or is known to be miscompiled.
    """
    name = entry["function"].__name__
    compiled, assembler = compiled_entry(entry, target)
    shared = int(compiled.metadata.shared)
    if shared > target.shared:
        raise bb.EmitError(f"{name} needs {shared} bytes of shared memory, not {target.shared}")
    assert assembler is not None
    for reason in reasons_to_refuse(made_of(name, compiled, assembler)):
        raise bb.EmitError(reason)
    prepare_launcher(compiled)
    return compiled, assembler


def prepare_launcher(compiled: Any) -> None:
    """Have Triton compile what launches a kernel, which it keeps, where there is a driver."""
    from triton.runtime import driver

    try:
        launcher = driver.active.launcher_cls
    except RuntimeError:
        return  # no GPU: nothing is launched here
    if shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"):
        launcher(compiled.src, compiled.metadata)
