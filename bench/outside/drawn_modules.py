"""Convolutional modules drawn at random: does ``bb.jit`` take them, and is it right?

    python -m bench.outside.drawn_modules --seed heather --count 60       the table, without a GPU
    python -m bench.outside.drawn_modules --seed heather --only 17        one module and its result

A seed and a number are a module of two to six layers for images of one to three axes: convolutions
and transposed ones with strides, paddings, dilations, groups and biases, norms, pools to windows or
to sizes, activations, and residuals. Each runs in float32 on the CPU and is compared with eager
torch; then it is planned for an H100 in float16. Nobody made the list, so nobody mended for it.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import nn

import blockbuster as bb
from bench.outside.blocks import Residual, with_statistics
from bench.outside.convolutions import (
    ACTIVATIONS,
    AVG_POOLS,
    BATCH_NORMS,
    CONVS,
    INSTANCE_NORMS,
    MAX_POOLS,
    TRANSPOSED,
)
from bench.peers.case import Array
from bench.peers.report import markdown

BATCH = 2
CHANNELS = (4, 8, 12)
EXTENTS = ((11, 16, 24, 31), (7, 8, 12, 13), (4, 5, 6, 7))
"""Of the places along each axis, for images of one, two and three axes."""
MOST = 40  # places along an axis: transposed convolutions make no more
TOLERANCE = 1e-4
NORMALIZATIONS = (
    "BatchNorm", "BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "LocalResponseNorm",
)  # fmt: skip
ADAPTIVE_POOLS = (
    (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
    (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
)
LP_POOLS = (nn.LPPool1d, nn.LPPool2d, nn.LPPool3d)
UPSAMPLED = ("linear", "bilinear", "trilinear")


@dataclass
class Drawing:
    """A module while it is drawn, and the shape of its result."""

    random: Random
    layers: list[nn.Module]
    shape: tuple[int, ...]

    @property
    def at(self) -> int:
        """The number of axes of places, less one."""
        return len(self.shape) - 3

    def add(self, layer: nn.Module) -> bool:
        """Put a layer behind the others if the result is a legal image; whether it was."""
        try:
            with torch.no_grad():
                made = nn.Sequential(*self.layers, layer)(torch.zeros(self.first))
        except (RuntimeError, ValueError):
            return False
        if 0 in made.shape or max(made.shape[2:]) > MOST or made.ndim != len(self.shape):
            return False
        self.layers.append(layer)
        self.shape = tuple(made.shape)
        return True

    first: tuple[int, ...] = ()

    def each(self, *choices: int) -> int | tuple[int, ...]:
        """A number for all axes, or one for each."""
        if self.random.random() < 0.7:
            return self.random.choice(choices)
        return tuple(self.random.choice(choices) for _ in range(self.at + 1))

    def convolution(self) -> nn.Module:
        channels = self.shape[1]
        groups = self.random.choice((1, 1, 1, 2, 4, channels))
        made = groups * self.random.randint(1, 3) if groups > 1 else self.random.choice(CHANNELS)
        size, step = self.each(1, 2, 3, 3, 5), self.each(1, 1, 2, 3)
        bias, dilation = self.random.random() < 0.6, self.each(1, 1, 1, 2)
        if self.random.random() < 0.35:
            more = self.each(0, 0, 1)
            return TRANSPOSED[self.at](
                channels, made, size, step, self.each(0, 1), more, groups, bias, dilation
            )
        mode = self.random.choice(("zeros",) * 5 + ("reflect", "circular", "replicate"))
        pads = "same" if self.random.random() < 0.15 else self.each(0, 1, 1, 2)
        step = 1 if pads == "same" else step
        kind = CONVS[self.at]
        return kind(channels, made, size, step, pads, dilation, groups, bias, padding_mode=mode)

    def norm(self) -> nn.Module:
        channels, word = self.shape[1], self.random.choice(NORMALIZATIONS)
        if word == "GroupNorm":
            return nn.GroupNorm(self.random.choice([n for n in (1, 2, 4) if not channels % n]),
                                channels)  # fmt: skip
        if word == "LayerNorm":
            return nn.LayerNorm(self.shape[self.random.randint(1, len(self.shape) - 1) :])
        if word == "LocalResponseNorm":
            return nn.LocalResponseNorm(self.random.choice((2, 3, 5)))
        kinds = BATCH_NORMS if word == "BatchNorm" else INSTANCE_NORMS
        return kinds[self.at](channels, affine=self.random.random() < 0.7)

    def activation(self) -> nn.Module:
        if self.random.random() < 0.2:
            return self.random.choice((nn.PReLU(self.shape[1]), nn.GLU(1), nn.Softmax(1)))
        return ACTIVATIONS[self.random.choice(sorted(ACTIVATIONS))](self.at, self.shape[1])

    def pool(self) -> nn.Module:
        if self.random.random() < 0.4:
            return self.random.choice(ADAPTIVE_POOLS)[self.at](self.each(1, 2, 3, 5))
        size, step, ceil = self.each(2, 2, 3), self.each(1, 2, 3), self.random.random() < 0.3
        kind = self.random.choice(("max", "average", "norm"))
        if kind == "max":
            pads, dilation = self.each(0, 0, 1), self.each(1, 1, 2)
            return MAX_POOLS[self.at](size, step, pads, dilation, ceil_mode=ceil)
        if kind == "norm":
            return LP_POOLS[self.at](2, size, step, ceil_mode=ceil)
        counts = self.random.random() < 0.5
        return AVG_POOLS[self.at](size, step, self.each(0, 0, 1), ceil, counts)

    def upsample(self) -> nn.Module:
        factor = self.random.choice((2, 2, 3, 1.5))
        if self.random.random() < 0.5:
            return nn.Upsample(scale_factor=factor)
        aligned = self.random.random() < 0.5
        return nn.Upsample(scale_factor=factor, mode=UPSAMPLED[self.at], align_corners=aligned)

    def residual(self) -> nn.Module:
        channels, size = self.shape[1], self.random.choice((1, 3))
        groups = self.random.choice((1, channels))
        path = [CONVS[self.at](channels, channels, size, padding=size // 2, groups=groups)]
        return Residual(nn.Sequential(*path, self.norm(), self.activation()))


def drawn(seed: str, number: int) -> tuple[nn.Module, tuple[int, ...]]:
    """The module of a seed and a number, and the shape of its input."""
    random = Random(f"modules {seed} {number}")
    at = random.choice((0, 0, 1, 1, 1, 2))
    extents = [random.choice(EXTENTS[at]) for _ in range(at + 1)]
    shape = (BATCH, random.choice(CHANNELS), *extents)
    torch.manual_seed(random.randrange(1 << 30))
    drawing = Drawing(random, [], shape, shape)
    while not drawing.add(drawing.convolution()):
        pass
    kinds: Sequence[Callable[[Drawing], nn.Module]] = (
        Drawing.convolution, Drawing.norm, Drawing.norm, Drawing.activation, Drawing.activation,
        Drawing.pool, Drawing.pool, Drawing.residual, Drawing.upsample,
    )  # fmt: skip
    for kind in random.sample(kinds, random.randint(1, 5)):
        drawing.add(kind(drawing))
    module = with_statistics(nn.Sequential(*drawing.layers))
    return module.eval().requires_grad_(False), shape


@dataclass(frozen=True)
class Found:
    """What became of one module: on the CPU, and planned for a GPU."""

    name: str
    layers: str
    on_cpu: str
    for_gpu: str
    seconds: float


def found(seed: str, number: int, machine: str, seconds: float) -> Found:
    """Run a module on the CPU in float32 and plan it for ``machine`` in float16."""
    module, shape = drawn(seed, number)
    x, begun = torch.randn(shape), time.process_time()
    on_cpu = _tried(lambda: compared(module, x), seconds)
    for_gpu = _tried(lambda: planned(module.half(), x.half(), machine), seconds)
    layers = ", ".join(type(layer).__name__ for layer in module)
    return Found(f"{seed} {number}", layers, on_cpu, for_gpu, time.process_time() - begun)


def _tried(work: Callable[[], str], seconds: float) -> str:
    """What ``work`` says, or why it says nothing: it may take ``seconds`` of the processor."""

    def given_up(*_: object) -> None:
        raise TimeoutError(f"{seconds:.0f} seconds of the processor")

    signal.signal(signal.SIGVTALRM, given_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return work()
    except TimeoutError as error:
        return f"lost: {error}"
    except bb.BlockbusterError as error:
        return f"refused: {error}"
    except Exception as error:  # a fault of ours: it must not end the list
        return f"broken: {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def compared(module: nn.Module, x: Array) -> str:
    """``right``, or by how much the result on the CPU differs from eager torch's."""
    wanted, made = module(x), bb.jit(module)(x)
    if made.shape != wanted.shape:
        return f"wrong: shape {tuple(made.shape)}, not {tuple(wanted.shape)}"
    error = float((made - wanted).abs().max() / wanted.abs().max().clamp(min=1.0))
    return "right" if error <= TOLERANCE else f"wrong: {error:.2g}"


def planned(module: nn.Module, x: Array, machine: str) -> str:
    """How many kernels are planned."""
    plan = bb.jit(module, machine=machine).plan_for(x)
    return f"{plan.kernels} kernels"


def table(all_found: Sequence[Found]) -> str:
    """How many are right and planned, and a line for each that is not."""
    states = Counter(one.on_cpu.split(":")[0] for one in all_found)
    plans = Counter(one.for_gpu.split(":")[0].split(" ")[-1] for one in all_found)
    lines = [f"of {len(all_found)}: on the CPU {dict(states)}; for a GPU {dict(plans)}", ""]
    rows = [
        (one.name, one.layers, one.on_cpu.split("\n")[0], one.for_gpu.split("\n")[0],
         f"{one.seconds:.1f}")
        for one in all_found
        if one.on_cpu != "right" or not one.for_gpu.endswith("kernels")
    ]  # fmt: skip
    return "\n".join([*lines, markdown(("module", "layers", "CPU", "GPU", "seconds"), rows)])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", default="heather", help="a word")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", type=int, nargs="*", help="these modules, each printed")
    parser.add_argument("--machine", default="h100")
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for each way")
    options = parser.parse_args()
    numbers = options.only or range(options.first, options.first + options.count)
    made = []
    for number in numbers:
        if options.only:
            print(*drawn(options.seed, number))
        made.append(found(options.seed, number, options.machine, options.seconds))
        print(made[-1], flush=True)
    print(table(made))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
