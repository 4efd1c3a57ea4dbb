"""One draw: run twice and judged against float64 and against torch eager.

Wrong is a result of another dtype or shape; two runs that differ in a bit (memory is full of NaN
before each where torch allocates it); an input that changed; an element that is not finite, or not
the infinity that it should be (``fitting`` in blockbuster/check/judge.py); a largest error above 4
times eager's and above the floor of the dtype, relative to the largest result.

What bb refuses is counted by its reason, and is never right. With a snapshot forced, the function
that takes a refused one's place is judged all the same.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from bench.gpu.fuzz.draw import Draw
from bench.gpu.fuzz.force import forced_by

Record = dict[str, Any]

INTERPRETER, INTERPRETED = "interpreter", "sm_90"
FLOOR = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float32": 2.0**-18}
BOUND = 4.0
LEAST = 2.0**-5  # inputs are about 1: errors are never measured by anything smaller
RIGHT, REFUSED, WRONG, RAISED, NO_ORACLE = "right", "refused", "WRONG", "raised", "no oracle"
OTHERS = ("differs between runs", "other dtype or shape", "input changed")
BAD = (WRONG, RAISED, "died", "hung", "device error", *OTHERS)


def tried(draw: Draw, device: str, *, check: bool | None = None) -> Record:
    """The verdict on a draw, as plain data.

    ``device``: "cuda", "cpu", a target to compile for, or "interpreter" (Triton's, which has no
    bfloat16: float32 then). ``check``: given to ``bb.jit`` if it is not None.
    """
    if device == INTERPRETER and draw.dtype == "bfloat16":
        draw = replace(draw, dtype="float32")
    record = draw.described()
    began = time.perf_counter()
    for act in (lambda: _verdict(draw, device, check), lambda: _waited(device)):
        try:
            record |= act()
        except Exception as error:
            record |= _failure(error)
    record["seconds"] = round(time.perf_counter() - began, 3)
    return record if record["verdict"] == RIGHT else record | draw.described(source=True)


def _waited(device: str) -> Record:
    """Wait for the GPU: what a kernel broke is told to whoever asks next."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    return {}


def _failure(error: Exception) -> Record:
    """What an exception means: a refusal, a bug, or a device that is of no more use."""
    import blockbuster as bb

    reason = f"{type(error).__name__}: {error}"[:1500]
    if re.search(r"CUDA error|illegal memory access|unspecified launch|Triton Error .CUDA", reason):
        return {"verdict": "device error", "reason": reason}
    bugs = bb.VerifyError, bb.RuleError, bb.LaunchError
    if isinstance(error, bb.BlockbusterError) and not isinstance(error, bugs):
        return {"verdict": REFUSED, "reason": reason}
    return {"verdict": RAISED, "reason": reason}


def _verdict(draw: Draw, device: str, check: bool | None) -> Record:
    import torch

    import blockbuster as bb

    where = device if device in ("cuda", "cpu") else "cpu"
    function, given = draw.function(), draw.tensors(where)
    eager = draw.eager(where)
    try:
        theirs = _listed(eager(*given))
        exact = _listed(eager(*(x.double() for x in given)))
    except Exception as error:
        if "CUDA error" in str(error):
            raise
        return {"verdict": NO_ORACLE, "reason": f"{type(error).__name__}: {error}"[:600]}
    options = {} if check is None else {"check": check}
    with forced_by(draw.forced) as refusals:
        if device == INTERPRETER:
            shapes = [y.shape for y in theirs]
            first = _interpreted(bb.jit(function, machine=INTERPRETED), given, shapes)
            return _judged(first, first, theirs, exact)
        if where != device:
            return _compiled(bb.jit(function, machine=device), given, refusals)
        kept = [x.clone() for x in given]
        jitted = bb.jit(function, **options)
        with poisoned(torch):
            first = _listed(jitted(*given))
            again = _listed(jitted(*given))
    found = _judged(first, again, theirs, exact)
    if any(not _same(x, y) for x, y in zip(given, kept, strict=True)):
        found = {"verdict": "input changed"}
    if refusals:
        found["refusals"] = refusals
        if draw.forced and found["verdict"] == RIGHT:
            found |= {"verdict": REFUSED, "reason": refusals[0]}
    return found


def _judged(first: list[Any], again: list[Any], theirs: list[Any], exact: list[Any]) -> Record:
    """The verdict on the results of two runs."""
    for x, y in zip(first, theirs, strict=True):
        if x.dtype is not y.dtype or x.shape != y.shape:
            what = f"{x.dtype} {tuple(x.shape)}, not {y.dtype} {tuple(y.shape)}"
            return {"verdict": "other dtype or shape", "reason": what}
    rows = zip(first, theirs, exact, strict=True)
    found = max((_errors(*row) for row in rows), key=lambda found: found["excess"])
    if not all(map(_same, first, again)):
        found["verdict"] = "differs between runs"
    return found


def _errors(ours: Any, theirs: Any, exact: Any) -> Record:
    """The verdict on one result. ``excess``: our error over what is allowed."""
    from blockbuster.check.judge import sampled

    name = str(ours.dtype).removeprefix("torch.")
    if name == "bool":
        lost = int((ours != exact).sum())
        return {"verdict": WRONG if lost else RIGHT, "excess": float(lost), "lost": lost}
    sample = sampled(ours.double(), theirs.double(), exact.double(), name)
    scale = max(sample.exact_peak, LEAST)
    allowed = max(BOUND * sample.eager_peak, FLOOR.get(name, 2.0**-40) * scale)
    lost = sample.lost + sample.odd
    excess = float("inf") if lost else sample.peak / allowed
    return {
        "verdict": WRONG if excess > 1 else RIGHT,
        "excess": excess,
        "error": sample.peak / scale,
        "eager": sample.eager_peak / scale,
        "lost": lost,
        "judged": sample.results,
    }


def _compiled(jitted: Any, given: list[Any], refusals: list[str]) -> Record:
    """The verdict of the compiler alone, for a GPU that is not there."""
    from blockbuster.emit.kernel import Kernel
    from blockbuster.emit.target.compiler import compile_kernel

    plan = jitted.plan_for(*given)
    reports = []
    for file in plan.files:
        kernel = Kernel("_".join(file.writes), file.text, plan.sizes, {}, plan.dtype, plan.target,
                        file.reads, file.writes)  # fmt: skip
        reports += compile_kernel(kernel)
    found: Record = {"verdict": RIGHT, "kernels": len(reports)}
    found["spills"] = sum(report.spills for report in reports)
    return found | ({"refusals": refusals} if refusals else {})


def _interpreted(jitted: Any, given: list[Any], shapes: list[Any]) -> list[Any]:
    """The results of the kernels for a GPU in Triton's interpreter, in these shapes."""
    import torch

    from blockbuster.runtime.run_plan import run_in_interpreter

    plan = jitted.plan_for(*given)
    taken = jitted.compiled_for(*given).shapes_taken(given)
    arrays = {n: x.numpy().reshape(taken[n]) for n, x in zip(plan.inputs, given, strict=True)}
    found = run_in_interpreter(plan, arrays)
    dtypes = [getattr(torch, name) for name in plan.result_dtypes]
    rows = zip(found, dtypes, shapes, strict=True)
    return [torch.from_numpy(x.copy()).to(dtype).reshape(shape) for x, dtype, shape in rows]


@contextmanager
def poisoned(torch: Any) -> Iterator[None]:
    """Memory that torch allocates starts full of NaN."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _same(x: Any, y: Any) -> bool:
    """Bitwise equality, NaN included."""
    import torch

    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = kinds[x.element_size()]
    return bool(torch.equal(x.contiguous().view(bits), y.contiguous().view(bits)))
