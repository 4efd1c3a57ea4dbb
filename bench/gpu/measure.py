"""How an emitted kernel is judged on one set of inputs: against float64, beside torch eager.

The error ratio of an output is our error over eager's, both against the same function in float64
on the same (rounded) inputs: once for the largest absolute error, once for the root mean square.
An output passes where both ratios are at most 1.5, or where our error, over the largest result (or
its root mean square), is no more than one rounding to the dtype of the result: a ratio to eager's
error means nothing where eager is exact. For float32, in which the arithmetic itself is done, two
such roundings are allowed. Several draws are judged together: of few numbers the ratio is luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

import blockbuster as bb
from bench.programs import Workload, eager
from blockbuster.emit.load import load_module

Tensor = Any
RATIO = 1.5
BITS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32}


@dataclass(frozen=True)
class Error:
    """The worst output of one run: ratios to eager, and our largest error over the largest value.

    ``lost``: elements that are not finite though eager's are; ``spared``: elements on which no
    error is measured: eager's are not finite, or the exact ones leave half the dtype's range.
    """

    ratio_max: float
    ratio_rms: float
    relative: float
    lost: int
    spared: int
    passed: bool

    def data(self) -> dict[str, Any]:
        return asdict(self)


def compare(ours: Tensor, theirs: Tensor, exact: Tensor) -> Error:
    """The errors of one output."""
    if exact.dtype == torch.bool:
        wrong = int((ours != exact).sum())
        return Error(float(wrong), float(wrong), float(wrong), wrong, 0, wrong == 0)
    judged = torch.isfinite(exact) & torch.isfinite(theirs)
    judged &= exact.abs() <= torch.finfo(ours.dtype).max / 2
    lost = int((judged & ~torch.isfinite(ours)).sum())
    spared = int((~judged).sum())
    a, b, c = ours.double()[judged], theirs.double()[judged], exact[judged]
    if lost or c.numel() == 0:
        return Error(
            math.inf if lost else 0.0, math.inf if lost else 0.0, 0.0, lost, spared, not lost
        )
    mine, other = (a - c).abs(), (b - c).abs()
    largest, rms = c.abs().max().item(), _rms(c)
    unit = torch.finfo(ours.dtype).eps * (1 if ours.dtype == torch.float32 else 0.5)
    peaks = mine.max().item(), other.max().item()
    means = _rms(mine), _rms(other)
    good = all(
        x <= RATIO * y or x <= unit * size for (x, y), size in ((peaks, largest), (means, rms))
    )
    return Error(_over(*peaks), _over(*means), peaks[0] / max(largest, 1e-30), lost, spared, good)


def _rms(x: Tensor) -> float:
    return float(x.square().mean().sqrt().item())


def _over(x: float, y: float) -> float:
    if x == 0:
        return 0.0
    return x / y if y else math.inf


def worst(errors: list[Error]) -> Error:
    """Over the outputs of a program."""
    return Error(
        max(e.ratio_max for e in errors),
        max(e.ratio_rms for e in errors),
        max(e.relative for e in errors),
        sum(e.lost for e in errors),
        sum(e.spared for e in errors),
        all(e.passed for e in errors),
    )


def as_tuple(result: Any) -> tuple[Tensor, ...]:
    if isinstance(result, dict):
        return tuple(result.values())
    return result if isinstance(result, tuple) else (result,)


def same_bits(left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> bool:
    """Bitwise equality, NaN included."""
    return all(torch.equal(_bits(a), _bits(b)) for a, b in zip(left, right, strict=True))


def _bits(x: Tensor) -> Tensor:
    return x.contiguous().view(BITS[x.dtype]) if x.dtype in BITS else x


# inputs --------------------------------------------------------------------------


def make_inputs(
    workload: Workload, sizes: Mapping[str, int], kind: str, dtype: Any, device: str, seed: int = 0
) -> dict[str, Tensor]:
    """Random inputs of a kind: random, peaked, extreme, shifted (far from mean zero), strided."""
    random = torch.Generator(device=device).manual_seed(seed)
    made = {}
    for at, (name, dims) in enumerate(workload.inputs.items()):
        shape = [sizes[d] for d in dims.split()]
        strided = kind == "strided"
        whole = [2 * n + 1 for n in shape] if strided else shape
        x = 0.5 * torch.randn(whole, generator=random, device=device, dtype=torch.float32)
        if kind == "peaked":
            x = torch.where(x.abs() > 1.2, x * 20, x)
        elif kind == "extreme":
            x = x * (8 if dtype == torch.float16 else 100)
        elif kind == "shifted":
            x = x + 4
        x = x.to(dtype)
        if strided:
            x = x[tuple(slice(1, None, 2) for _ in shape)]
            if at % 2 == 0 and len(shape) > 1:  # the last axis is the slow one
                x = x.transpose(-1, -2).contiguous().transpose(-1, -2)
        made[name] = x
    return made


# one kernel ----------------------------------------------------------------------


def final_graph(workload: Workload) -> Any:
    return bb.fuse(bb.lower(bb.trace(workload.fn, **workload.inputs))).final


def poisoned(like: tuple[Tensor, ...], strided: bool = False) -> tuple[Tensor, ...]:
    """Outputs full of NaN (True for truth values); with gaps between elements if ``strided``."""
    made = []
    for x in like:
        shape = [2 * n for n in x.shape] if strided else list(x.shape)
        y = torch.full(shape, 1 if x.dtype == torch.bool else math.nan, device=x.device).to(x.dtype)
        made.append(y[tuple(slice(None, None, 2) for _ in shape)] if strided else y)
    return tuple(made)


def poison_workspaces(kernel: Any) -> None:
    """From now on the file's own allocations start full of NaN."""
    module: Any = load_module(kernel.source)
    plain: Callable[..., Any] = torch.empty

    def empty(shape: Any, dtype: str, like: Tensor) -> Tensor:
        new = plain(shape, dtype=getattr(torch, dtype), device=like.device)
        return new.fill_(1 if dtype in ("bool", "uint8") else math.nan)

    module.empty = empty


def run_into(kernel: Any, inputs: Mapping[str, Tensor], outputs: tuple[Tensor, ...]) -> None:
    kernel(**inputs, **dict(zip(kernel.outputs, outputs, strict=True)))


def judge(
    workload: Workload, kernel: Any, draws: Sequence[Mapping[str, Tensor]], *, strided: bool = False
) -> tuple[Error, tuple[Tensor, ...]]:
    """The errors of runs into poisoned outputs, taken together, and the outputs of the last."""
    fn = eager(workload.fn)
    runs: list[list[tuple[Tensor, ...]]] = []
    for inputs in draws:
        exact = as_tuple(fn(**{n: x.double() for n, x in inputs.items()}))
        theirs = as_tuple(fn(**inputs))
        outputs = poisoned(theirs, strided)
        run_into(kernel, inputs, outputs)
        runs.append(list(zip(outputs, theirs, exact, strict=True)))
    joined = [
        [torch.cat([x.reshape(-1) for x in row]) for row in zip(*o, strict=True)]
        for o in zip(*runs, strict=True)
    ]
    return worst([compare(*output) for output in joined]), outputs


def judge_call(workload: Workload, call: Callable[..., Any], inputs: Mapping[str, Tensor]) -> Error:
    """The errors of a function that makes its own outputs, such as one from ``bb.jit``."""
    fn = eager(workload.fn)
    found = (call(**inputs), fn(**inputs), fn(**{n: x.double() for n, x in inputs.items()}))
    return worst([compare(*row) for row in zip(*map(as_tuple, found), strict=True)])
