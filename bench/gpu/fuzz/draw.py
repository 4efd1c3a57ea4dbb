"""A draw: from a seed to a program as text, its inputs, and how it is compiled."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.gpu.fuzz.attention import attention
from bench.gpu.fuzz.broad import broad
from bench.gpu.fuzz.decode import decode
from bench.gpu.fuzz.dots import dots
from bench.gpu.fuzz.everyday import everyday
from bench.gpu.fuzz.found import found
from bench.gpu.fuzz.operators import columns, operators
from bench.gpu.fuzz.pen import Given, Pen

HALF = (("float16", 45), ("bfloat16", 35), ("float32", 20))
ANY = (("float16", 1), ("bfloat16", 1), ("float32", 1))
LONG = (("float16", 15), ("bfloat16", 15), ("float32", 70))


@dataclass(frozen=True)
class Family:
    """A kind of programs: what writes them, how often it is drawn, how often in which dtype.

    ``retiled``: how often, of those with something forced, it gets other tiles.
    """

    write: Callable[[Pen], str]
    share: int
    dtypes: tuple[tuple[str, int], ...]
    retiled: float = 0.3


FAMILIES: Mapping[str, Family] = {
    "operators": Family(operators, 25, ANY),
    "columns": Family(columns, 10, LONG, retiled=0.6),
    "dots": Family(dots, 28, HALF),
    "attention": Family(attention, 10, HALF),
    "decode": Family(decode, 8, HALF),
    "broad": Family(broad, 20, ANY),
    "found": Family(found, 7, HALF),
    "everyday": Family(everyday, 25, HALF),
}


@dataclass(frozen=True)
class Forced:
    """What is taken out of the compiler's hands.

    ``snapshot`` counts the snapshots that may be chosen, from the least fused and round again;
    ``retiled``: 0, or a seed for another tile along one dim.
    """

    snapshot: int
    warps: int
    retiled: int

    def __str__(self) -> str:
        tiles = f", other tiles ({self.retiled})" if self.retiled else ""
        return f"snapshot {self.snapshot}, {self.warps} warps{tiles}"


class OnTensors:
    """Blockbuster's array functions, with index vectors that are tensors."""

    def __init__(self, device: str) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        import blockbuster

        return getattr(blockbuster, name)

    def arange(self, count: int) -> Any:
        """0, 1, ..., count - 1."""
        import torch

        return torch.arange(count, device=self._device)


@dataclass(frozen=True)
class Draw:
    """A program, its inputs, its dtype, and what is forced (None: all as ``bb.jit`` chooses)."""

    seed: int
    family: str
    body: str
    inputs: Mapping[str, Given]
    dtype: str
    forced: Forced | None

    @property
    def source(self) -> str:
        """The function as text."""
        return f"lambda {', '.join(self.inputs)}: {self.body}"

    @property
    def elements(self) -> int:
        """Of all inputs together."""
        return sum(math.prod(given.shape) for given in self.inputs.values())

    def function(self) -> Any:
        """The function. Errors show its line, though it stands in no file."""
        import blockbuster as bb

        return self._with(bb)

    def eager(self, device: str) -> Any:
        """The function for tensors on ``device``, where index vectors are made, too."""
        return self._with(OnTensors(device))

    def _with(self, functions: Any) -> Any:
        name = f"<seed {self.seed}>"
        linecache.cache[name] = (len(self.source), None, [self.source + "\n"], name)
        return eval(compile(self.source, name, "eval"), {"bb": functions})

    def tensors(self, device: str) -> list[Any]:
        """The inputs in order, in the layouts that were drawn."""
        import torch

        random = torch.Generator(device=device).manual_seed(self.seed)
        return [given.tensor(random, self.dtype) for given in self.inputs.values()]

    def described(self, *, source: bool = False) -> dict[str, Any]:
        """What it is, as plain data; with its ``source`` and inputs if asked."""
        found: dict[str, Any] = {"seed": self.seed, "family": self.family, "dtype": self.dtype}
        found["forced"] = str(self.forced) if self.forced else ""
        if source:
            found["source"] = self.source
            found["inputs"] = {name: str(given) for name, given in self.inputs.items()}
        return found

    def __str__(self) -> str:
        """A script that a person can paste."""
        how = f"forced: {self.forced}" if self.forced else "as bb.jit chooses"
        names = ", ".join(self.inputs)
        shapes = [f"#   {name}: {given}" for name, given in self.inputs.items()]
        makes = [f"    {given.expression()}," for given in self.inputs.values()]
        return "\n".join(
            [
                f"# seed {self.seed}: {self.family}, {self.dtype}, {how}",
                *shapes,
                "import torch",
                "import blockbuster as bb",
                "",
                f"f = {self.source}",
                f'random = torch.Generator(device="cuda").manual_seed({self.seed})',
                "",
                "def normal(*shape, scale=1.0, shift=0.0):",
                '    x = torch.randn(shape, generator=random, device="cuda") * scale + shift',
                f"    return x.to(torch.{self.dtype})",
                "",
                "def whole(below, *shape, rising):",
                '    x = torch.randint(below, shape, generator=random, device="cuda")',
                f"    return (x.sort(-1).values if rising else x).to(torch.{self.dtype})",
                "",
                f"{names}, = given = (",
                *makes,
                ")",
                "ours, index = bb.jit(f)(*given), bb.arange",
                'bb.arange = lambda n: torch.arange(n, device="cuda")',
                "right, bb.arange = f(*(x.double() for x in given)), index",
                "listed = lambda y: y if isinstance(y, tuple) else (y,)",
                "for y, z in zip(listed(ours), listed(right)):",
                "    print((y.double() - z).abs().max() / z.abs().max())",
            ]
        )


def draw(seed: int) -> Draw:
    """The program of a seed."""
    random = Random(seed)
    names = list(FAMILIES)
    (name,) = random.choices(names, [FAMILIES[n].share for n in names])
    family = FAMILIES[name]
    kinds, weights = zip(*family.dtypes, strict=True)
    (dtype,) = random.choices(kinds, weights)
    forced = None
    if random.random() < 0.5:
        retiled = random.randrange(1, 1000) if random.random() < family.retiled else 0
        forced = Forced(random.randrange(6), random.choice((4, 8)), retiled)
    pen = Pen(random)
    body = family.write(pen)
    return Draw(seed, name, body, pen.inputs, dtype, forced)
