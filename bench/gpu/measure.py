"""How an emitted kernel is judged on inputs of one kind: against float64, beside torch eager.

What is right is defined in blockbuster/check/judge.py, for ``bb.check_kernel`` too. Here are the
inputs: independent draws, of which small results are joined until 100 are in a sample, are dealt
into 15 groups until each has errors enough, at most ``DRAWS`` of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import torch

import blockbuster as bb
from bench.programs import Workload, eager
from blockbuster.check.judge import (
    ENOUGH,
    GROUPS,
    Sample,
    Verdict,
    sampled,
    verdict,
    worst,
)
from blockbuster.emit.target.load import load_module

Tensor = Any
Inputs = Mapping[str, Tensor]
Row = tuple[Tensor, ...]
DRAWS = 1000
BITS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32}


def compare(ours: Row, theirs: Row, exact: Row) -> Verdict:
    """The errors of all outputs of one run."""
    rows = zip(ours, theirs, exact, strict=True)
    return worst(verdict([sample(*row)], _name(row[0])) for row in rows)


def sample(ours: Tensor, theirs: Tensor, exact: Tensor) -> Sample:
    """The errors of one output."""
    if exact.dtype == torch.bool:
        return sampled(ours, theirs, exact, "bool")
    return sampled(ours.double(), theirs.double(), exact.double(), _name(ours))


def _name(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


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


def into_poisoned(kernel: Any, like: Row, *, strided: bool = False) -> Callable[[Inputs], Row]:
    """A call of ``kernel`` into new outputs, which are as ``like`` and full of NaN."""

    def run(inputs: Inputs) -> Row:
        outputs = poisoned(like, strided)
        run_into(kernel, inputs, outputs)
        return outputs

    return run


def judge(
    workload: Workload,
    run: Callable[[Inputs], Any],
    draw: Callable[[int], Inputs],
    *,
    draws: int = DRAWS,
) -> tuple[Verdict, int]:
    """The errors of ``run`` on what ``draw`` makes of seeds 0, 1, ..., and how many were drawn.

    With fewer ``draws`` than groups, there are as many groups.
    """
    fn, seeds = eager(workload.fn), count()
    first = as_tuple(fn(**draw(0)))
    groups: list[list[Sample]] = [[Sample()] * len(first) for _ in range(min(GROUPS, draws))]
    fewest = max(1, min(x.numel() for x in first))
    joined = max(1, min(-(-ENOUGH // fewest), draws // len(groups)))
    a_round, taken = joined * len(groups), 0
    while not all(s.is_enough for g in groups for s in g) and taken + a_round <= draws:
        for group in groups:
            rows = [_errors(fn, run, draw(next(seeds))) for _ in range(joined)]
            group[:] = [
                known + sample(*map(torch.cat, zip(*output, strict=True)))
                for known, output in zip(group, zip(*rows, strict=True), strict=True)
            ]
        taken += a_round
    outputs = zip(*groups, strict=True)
    return worst(verdict(s, _name(x)) for s, x in zip(outputs, first, strict=True)), taken


def _errors(
    fn: Callable[..., Any], run: Callable[[Inputs], Any], inputs: Inputs
) -> Iterator[tuple[Tensor, ...]]:
    """Our results, eager's and the exact ones, flat, of each output."""
    exact = as_tuple(fn(**{n: x.double() for n, x in inputs.items()}))
    found = (as_tuple(run(inputs)), as_tuple(fn(**inputs)), exact)
    return (tuple(x.reshape(-1) for x in row) for row in zip(*found, strict=True))
