"""Programs drawn at random, of the sizes that GPUs are used for, and what is chosen for them.

    python -m bench.outside.drawn --first 0 --count 200            the worst choices, without a GPU
    python -m bench.outside.drawn --seed 30                        one program and its plan

A seed is a function of one to four steps (pointwise functions, folds and norms along any axes,
products along any axis, transposes, reshapes) of an array of 2 to 5 axes, some of odd lengths, in
float16. Each is priced beside its floor: bytes of inputs and results over the bandwidth or
operations of products over the peak, and a launch. A choice far above its floor is wrong, or
misses something that kernels can do; nobody made the list, so nobody tuned for it.
"""

from __future__ import annotations

import argparse
import linecache
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any

import blockbuster as bb
from bench.peers.report import geometric_mean
from blockbuster.machines import Machine

EXTENTS = (2, 3, 5, 7, 8, 16, 21, 31, 33, 48, 64, 77, 96, 100, 128, 197, 255, 256, 257, 384, 512,
           768, 1000, 1023, 1024, 2048, 2049, 4097)  # fmt: skip
FEWEST, MOST = 1 << 18, 1 << 24  # elements of the first array
COLUMNS = (16, 32, 64, 100, 128, 256, 384, 512, 1000)
PARTS = (2, 3, 4, 7, 8, 16)
POINTWISE = ("torch.relu(x)", "F.gelu(x)", "torch.tanh(x)", "x * 0.5 + 1", "torch.sigmoid(x)",
             "x.abs().sqrt()", "x.clamp(-1, 1)", "F.softplus(x)", "x * x", "F.mish(x)")  # fmt: skip
FOLDS = ("sum", "mean", "amax", "amin", "logsumexp", "var", "std")
OF_AN_AXIS = ("x.argmax({0}).half()", "x.prod({0})", "torch.linalg.vector_norm(x, dim={0})")
NORMS = ("torch.softmax(x, {0})", "torch.log_softmax(x, {0})", "F.normalize(x, dim={0})",
         "x - x.mean({0}, keepdim=True)", "x / (x.abs().sum({0}, keepdim=True) + 1)",
         "F.layer_norm(x.transpose({0}, -1), ({1},)).transpose({0}, -1)")  # fmt: skip


@dataclass
class Drawing:
    """A function while it is drawn: the shapes of its arrays, its lines, that of its result."""

    random: Random
    arrays: list[list[int]]
    shape: list[int]
    lines: list[str] = field(default_factory=list)

    def array(self, shape: list[int]) -> str:
        """The name of another array."""
        self.arrays.append(shape)
        return f"a{len(self.arrays) - 1}"

    def step(self) -> None:
        """One more line."""
        steps = (self.pointwise, self.beside, self.fold, self.norm, self.product, self.product,
                 self.along, self.transpose, self.split, self.merge)  # fmt: skip
        self.random.choice(steps)()

    def pointwise(self) -> None:
        self.lines.append(self.random.choice(POINTWISE))

    def beside(self) -> None:
        """Another array beside it, with some axes of 1, or without the first ones."""
        other = [extent if self.random.random() < 0.5 else 1 for extent in self.shape]
        first = self.random.choice([0, *range(len(other))]) if other[0] == 1 else 0
        while first and other[first - 1] != 1:
            first -= 1
        self.lines.append(f"x {self.random.choice('+*-')} {self.array(other[first:])}")

    def fold(self) -> None:
        axes = sorted(self.random.sample(range(len(self.shape)), self._few()))
        if len(axes) == 1 and self.random.random() < 0.3:
            self.lines.append(self.random.choice(OF_AN_AXIS).format(axes[0]))
        else:
            self.lines.append(f"x.{self.random.choice(FOLDS)}({tuple(axes)})")
        self.shape = [extent for at, extent in enumerate(self.shape) if at not in axes]

    def _few(self) -> int:
        return 1 if len(self.shape) < 2 or self.random.random() < 0.6 else 2

    def norm(self) -> None:
        axis = self._axis()
        self.lines.append(self.random.choice(NORMS).format(axis, self.shape[axis]))

    def product(self) -> None:
        """Of the last axis."""
        columns = self.random.choice(COLUMNS)
        if prod(self.shape[:-1]) * columns > MOST:
            columns = COLUMNS[0]
        self.lines.append(f"x @ {self.array([self.shape[-1], columns])}")
        self.shape = [*self.shape[:-1], columns]

    def along(self) -> None:
        """A product of any axis, in place."""
        axis, rows = self._axis(), self.random.choice(COLUMNS[:5])
        letters = "abcde"[: len(self.shape)]
        made = letters.replace(letters[axis], "z")
        w = self.array([rows, self.shape[axis]])
        spec = f"{letters},z{letters[axis]}->{made}"
        self.lines.append(f"torch.einsum({spec!r}, x, {w})")
        self.shape[axis] = rows

    def transpose(self) -> None:
        order = self.random.sample(range(len(self.shape)), len(self.shape))
        copied = self.random.choice(("", ".contiguous()"))
        self.lines.append(f"x.permute({tuple(order)}){copied}")
        self.shape = [self.shape[at] for at in order]

    def split(self) -> None:
        axis = self._axis()
        fit = [n for n in PARTS if self.shape[axis] % n == 0 and self.shape[axis] > n]
        if fit and len(self.shape) < 5:
            part = self.random.choice(fit)
            self._reshape([*self.shape[:axis], self.shape[axis] // part, part,
                           *self.shape[axis + 1 :]])  # fmt: skip

    def merge(self) -> None:
        if len(self.shape) > 1:
            at = self.random.randrange(len(self.shape) - 1)
            merged = self.shape[at] * self.shape[at + 1]
            self._reshape([*self.shape[:at], merged, *self.shape[at + 2 :]])

    def _reshape(self, shape: list[int]) -> None:
        self.lines.append(f"x.reshape({shape})")
        self.shape = shape

    def _axis(self) -> int:
        return self.random.randrange(len(self.shape))


@dataclass(frozen=True)
class Drawn:
    """A function, its text, and the shapes of its arrays."""

    fn: Callable[..., Any]
    text: str
    shapes: list[list[int]]


def drawn(seed: int) -> Drawn:
    """The program of a seed."""
    import torch

    random = Random(seed)
    shape: list[int] = []
    while not FEWEST <= prod(shape) <= MOST:
        rank = random.choice((2, 3, 3, 4, 4, 5))
        shape = [random.choice(EXTENTS if rank < 4 else EXTENTS[:20]) for _ in range(rank)]
    drawing = Drawing(random, [shape], list(shape))
    for _ in range(random.choice((1, 2, 2, 3, 3, 4))):
        if drawing.shape:
            drawing.step()
    names = ["x", *(f"a{n}" for n in range(1, len(drawing.arrays)))]
    lines = [f"    x = {line}\n" for line in drawing.lines]
    text = "".join([f"def f({', '.join(names)}):\n", *lines, "    return x\n"])
    where = f"<program {seed}>"
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
    made: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(compile(text, where, "exec"), made)
    return Drawn(made["f"], text, drawing.arrays)


def floor(program: Drawn, machine: Machine) -> float:
    """Microseconds below which no kernel computes a program as it is written."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    arrays = [torch.empty(s, dtype=torch.float16, device="meta") for s in program.shapes]
    with FlopCounterMode(display=False) as counted:
        result = program.fn(*arrays)
    moved = 2 * (sum(array.numel() for array in arrays) + result.numel())
    peak = machine.compute["matrix"]["float16"]
    seconds = max(moved / machine.tiers[0].bandwidth, counted.get_total_flops() / peak)
    return float(1e6 * (seconds + machine.launch.graph))


def plan_of(program: Drawn, machine: str, *, library: bool) -> bb.Plan:
    """What is chosen for a program. Raises BlockbusterError if it is refused."""
    import torch

    arrays = [torch.empty(shape, dtype=torch.float16) for shape in program.shapes]
    return bb.jit(program.fn, machine=machine, library=library).plan_for(*arrays)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, help="print this program and its plan")
    parser.add_argument("--machine", default="h100")
    parser.add_argument("--no-library", action="store_true", help="without calls of a library")
    parser.add_argument("--worst", type=int, default=10, help="programs that are printed")
    options = parser.parse_args()
    machine, library = bb.machine(options.machine), not options.no_library
    if options.seed is not None:
        program = drawn(options.seed)
        print(program.text, *program.shapes)
        print(plan_of(program, options.machine, library=library).explain())
        return 0
    found: list[tuple[float, float, float, int]] = []
    refused: list[str] = []
    for seed in range(options.first, options.first + options.count):
        program, begun = drawn(seed), time.process_time()
        try:
            plan = plan_of(program, options.machine, library=library)
        except bb.BlockbusterError as error:
            refused.append(f"{seed}: {str(error).splitlines()[0]}")
            continue
        ratio = plan.total_us / floor(program, machine)
        found.append((ratio, plan.total_us, time.process_time() - begun, seed))
        if sys.stderr.isatty():
            print(f"\r{len(found)} of {options.count}", end="", file=sys.stderr, flush=True)
    for ratio, us, seconds, seed in sorted(found, reverse=True)[: options.worst]:
        print(f"{ratio:.1f} times its floor: {us:.1f} us, {seconds:.1f} s to choose, seed {seed}")
        print(drawn(seed).text, *drawn(seed).shapes, "\n")
    print("\n".join(["refused:", *refused]) if refused else "none was refused")
    mean = geometric_mean(ratio for ratio, _, _, _ in found)
    print(f"{len(found)} programs, {mean:.2f} of their floors in the geometric mean")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
