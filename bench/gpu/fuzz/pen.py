"""What the families write with: chance, sizes, and inputs that exist once they are named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

Shape = tuple[int, ...]

NAMES = tuple("xyzuvwabcdefghkpqrst")
TINY = (1, 2, 3, 4, 5, 8)
SMALL = (8, 13, 16, 17, 32, 33)
USUAL = (40, 64, 88, 100, 128, 130, 176)
LARGE = (200, 256, 257, 300, 512)
MOST = 1 << 20  # elements of an input
ACTIVATIONS = ("tanh", "silu", "gelu", "relu", "sigmoid", "erf")
LAYOUTS = ("turned", "gapped", "offset")


@dataclass(frozen=True)
class Given:
    """An input: normal numbers times ``scale``, plus ``shift``; or whole numbers.

    ``below``: whole numbers from 0, less than that; ``rising`` along the last axis.
    ``layout``: "plain"; "turned" (the last two axes exchanged in memory), "gapped" (rows farther
    apart than they are long), "offset" (its memory begins behind an aligned address).
    """

    shape: Shape
    scale: float = 1.0
    layout: str = "plain"
    shift: float = 0.0
    below: int = 0
    rising: bool = False

    def __str__(self) -> str:
        if self.below:
            return f"{self.shape}, whole below {self.below}{', rising' * self.rising}"
        shift = f", shifted by {self.shift}" if self.shift else ""
        return f"{self.shape}" + ("" if self.layout == "plain" else f", {self.layout}") + shift

    def expression(self) -> str:
        """What makes it, in the text of a script."""
        if self.below:
            return f"whole({self.below}, {', '.join(map(str, self.shape))}, rising={self.rising})"
        scale = f", scale={self.scale:.4g}" if self.scale != 1 else ""
        scale += f", shift={self.shift:.4g}" if self.shift else ""
        shape = list(self.shape)
        if self.layout == "turned":
            shape[-2:] = shape[:-3:-1]
        elif self.layout == "gapped":
            shape[-1] += 3
        elif self.layout == "offset":
            shape = [math.prod(shape) + 1]
        made = f"normal({', '.join(map(str, shape))}{scale})"
        after = {
            "plain": "", "turned": ".mT", "gapped": f"[..., :{self.shape[-1]}]",
            "offset": f"[1:].view({self.shape})",
        }  # fmt: skip
        return made + after[self.layout]

    def tensor(self, random: Any, dtype: str) -> Any:
        """The input, drawn from ``random``, on its device."""
        import torch

        def normal(*shape: int, scale: float = 1.0, shift: float = 0.0) -> Any:
            made = torch.randn(shape, generator=random, device=random.device) * scale + shift
            return made.to(getattr(torch, dtype))

        def whole(below: int, *shape: int, rising: bool) -> Any:
            made = torch.randint(below, shape, generator=random, device=random.device)
            return (made.sort(-1).values if rising else made).to(getattr(torch, dtype))

        return eval(self.expression(), {"normal": normal, "whole": whole})


class Pen:
    """One program being written. ``inputs`` grows with what is named."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.inputs: dict[str, Given] = {}
        self._locals = 0

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, *options: Any) -> Any:
        """One of the options."""
        return self.random.choice(options)

    def size(self, *pools: Sequence[int]) -> int:
        """A size from one of the pools (default: all), each as likely."""
        return self.random.choice(self.random.choice(pools or (TINY, SMALL, USUAL, LARGE)))

    def activation(self) -> str:
        return f"bb.{self.random.choice(ACTIVATIONS)}"

    def shifted(self, *shape: int) -> str:
        """A new input, at times far from mean zero."""
        return self.fresh(*shape, shift=self.pick(4.0, -30.0) if self.chance(0.1) else 0.0)

    def fresh(self, *shape: int, scale: float = 1.0, shift: float = 0.0) -> str:
        """A new input of this shape."""
        layout = self._layout(shape)
        name = self._name()
        self.inputs[name] = Given(shape, scale, layout, shift)
        return name

    def _name(self) -> str:
        taken = len(self.inputs)
        return NAMES[taken] if taken < len(NAMES) else f"x{taken}"

    def below(self, bound: int, *shape: int, rising: bool = False) -> str:
        """A new input of whole numbers from 0, less than ``bound``."""
        name = self._name()
        self.inputs[name] = Given(shape, below=bound, rising=rising)
        return name

    def input(self, *shape: int, scale: float = 1.0) -> str:
        """An input of this shape: one that is there already, or a new one."""
        given = Given(shape, scale)
        alike = [n for n, g in self.inputs.items() if replace(g, layout="plain") == given]
        if alike and self.chance(0.4):
            return str(self.random.choice(alike))
        return self.fresh(*shape, scale=scale)

    def weight(self, rows: int, columns: int, *lead: int) -> str:
        """A matrix that keeps the size of what it is multiplied with."""
        return self.input(*lead, rows, columns, scale=round(rows**-0.5, 4))

    def local(self) -> str:
        """A name for a value that is used several times: (lambda NAME: ...)(value)."""
        self._locals += 1
        return f"t{self._locals}"

    def _layout(self, shape: Shape) -> str:
        if len(shape) < 2 or not self.chance(0.12):
            return "plain"
        return str(self.random.choice(LAYOUTS))
