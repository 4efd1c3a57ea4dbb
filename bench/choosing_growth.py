"""The growth of choosing with the size of a program: seconds for programs of repeated layers.

    python -m bench.choosing_growth [--programs chain,residual] [--sizes 24,48,96] [--machine h100]

No GPU. Seconds are those of the processor, so that other work on the machine counts less. The
exponent is the slope of log(seconds) over log(layers) between two sizes.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import torch

import blockbuster as bb

ROWS = 512

Function = Callable[..., Any]
Program = tuple[Function, list[torch.Tensor]]


def array(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float16)


def chain(count: int) -> Program:
    def function(x: Any, w: Any) -> Any:
        for _ in range(count):
            x = torch.relu(x @ w)
        return x

    return function, [array(ROWS, ROWS)] * 2


def network(count: int) -> Program:
    def function(x: Any, *weights: Any) -> Any:
        for weight in weights:
            x = torch.nn.functional.gelu(x @ weight)
        return x

    return function, [array(ROWS, ROWS)] * (count + 1)


def residual(count: int) -> Program:
    def function(x: Any, *weights: Any) -> Any:
        for weight in weights:
            x = x + torch.relu(x @ weight)
        return x

    return function, [array(ROWS, ROWS)] * (count + 1)


def cell(count: int) -> Program:
    def function(steps: Any, state: Any, w: Any, u: Any) -> Any:
        for step in range(count):
            state = torch.tanh(steps[step] @ w + state @ u)
        return state

    return function, [array(count, 64, 256), array(64, 256), *[array(256, 256)] * 2]


def sums(count: int) -> Program:
    def function(x: Any, *others: Any) -> Any:
        for other in others:
            x = x + other
        return x

    return function, [array(ROWS, ROWS)] * (count + 1)


PROGRAMS = {one.__name__: one for one in (chain, network, residual, cell, sums)}


def seconds(program: Program, machine: str) -> float:
    function, arrays = program
    begun = time.process_time()
    bb.jit(machine=machine)(function).plan_for(*arrays)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--sizes", default="24,48,96")
    parser.add_argument("--machine", default="h100")
    asked = parser.parse_args()
    seconds(sums(1), asked.machine)  # imports are not counted
    for name in asked.programs.split(","):
        before: tuple[int, float] | None = None
        for size in map(int, asked.sizes.split(",")):
            taken = seconds(PROGRAMS[name](size), asked.machine)
            growth = "" if before is None else f"  n^{exponent(before, (size, taken)):.2f}"
            print(f"{name:10} {size:5} {taken:8.2f} s{growth}", flush=True)
            before = size, taken


def exponent(before: tuple[int, float], after: tuple[int, float]) -> float:
    return math.log(after[1] / before[1]) / math.log(after[0] / before[0])


if __name__ == "__main__":
    main()
