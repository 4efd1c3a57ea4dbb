"""A case: a program at one size, its exact result, and its contestants.

A ``Contestant`` is made for inputs and is then a call without arguments. Its ``kind`` states the
meaning of its time: ours; a peer, of which the fastest counts; a bound, which computes only a part
of the program; or a form written by hand in Triton.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Array = Any
Inputs = Mapping[str, Array]
Run = Callable[[], Any]
Draw = Callable[[Any, tuple[int, ...]], Array]

OURS, PEER, BOUND, HAND = "ours", "peer", "bound", "hand"
EAGER = "eager"
"""The name of the peer that runs torch's operators one by one."""
LARGEST = {"float16": 2e-3, "bfloat16": 1.5e-2, "float32": 2e-5}
"""The error that a right result of ours has at most, relative to its norm: a few roundings."""
PEERS_LARGEST = 10  # times that: a peer that rounds after every operator is still a peer


@dataclass(frozen=True)
class Contestant:
    """One who computes a case.

    ``searched``: it measures variants of its own, which takes long. ``alone``: the same without
    calls of a library.
    """

    name: str
    make: Callable[[Inputs], Run]
    kind: str = PEER
    searched: bool = False
    alone: Callable[[Inputs], Run] | None = None


@dataclass(frozen=True)
class Case:
    """A program at one size.

    ``fn`` is array code of ours, ``plain`` the same by torch's functions (also the reference, in
    float64, if ``exact`` is not given), ``inputs`` the dims of each array. ``few`` are sizes of a
    dry run. ``graph``: launches are what it is about, so it is timed by CUDA graph at any size.
    ``quick``: it is in the short selection. ``matrices``: inputs that are drawn smaller, so that
    products stay near one; ``special``: inputs that are drawn otherwise, by a function of a random
    generator and the shape; ``own``: the dtypes of inputs that do not have the case's;
    ``constant``: the positions of inputs that are constant for ours. ``quantizes``: rounding to
    integers can turn the last bit of what is rounded into a whole step.
    """

    suite: str
    family: str
    name: str
    fn: Callable[..., Any]
    plain: Callable[..., Any]
    inputs: Mapping[str, str]
    sizes: Mapping[str, int]
    few: Mapping[str, int]
    contestants: tuple[Contestant, ...] = ()
    dtype: str = "float16"
    exact: Callable[..., Any] | None = None
    graph: bool = False
    quick: bool = False
    matrices: tuple[str, ...] = ("w", "v", "y", "u")
    special: Mapping[str, Draw] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    constant: tuple[int, ...] = ()
    quantizes: bool = False

    @property
    def key(self) -> str:
        """Its name among all cases."""
        return f"{self.suite}/{self.name}"

    @property
    def largest(self) -> float:
        """The error of a right result of ours, relative to its norm."""
        return LARGEST[self.dtype]

    def shape(self, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of an input; a dim may be a number."""
        dims = self.inputs[name].split()
        return tuple(int(dim) if dim.isdigit() else sizes[dim] for dim in dims)

    def drawn(self, sizes: Mapping[str, int], device: str, seed: int) -> dict[str, Array]:
        """Normally distributed tensors, but for the special ones."""
        import torch

        random = torch.Generator(device=device).manual_seed(seed)
        made = {}
        for name in self.inputs:
            dtype = getattr(torch, self.own.get(name, self.dtype))
            shape = self.shape(name, sizes)
            if name in self.special:
                made[name] = self.special[name](random, shape).to(dtype)
                continue
            x = torch.randn(shape, generator=random, device=device)
            scale = shape[-2] ** -0.5 if name in self.matrices and len(shape) > 1 else 1.0
            made[name] = (x * scale).to(dtype)
        return made

    def reference(self, inputs: Inputs) -> tuple[Array, ...]:
        """The results in float64."""
        wide = [x.double() if x.is_floating_point() else x for x in inputs.values()]
        return as_tuple((self.exact or self.plain)(*wide))


def as_tuple(result: Any) -> tuple[Array, ...]:
    """The results of a call, of which there may be one."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def error_of(found: tuple[Array, ...], exact: tuple[Array, ...]) -> float:
    """The largest error of a result, relative to its norm; infinite for a shape or NaN amiss.

    Of whole numbers, such as positions of maxima, the share that differs.
    """
    worst = 0.0
    for y, right in zip(found, exact, strict=True):
        if y.numel() != right.numel():
            return math.inf
        if not right.is_floating_point():
            worst = max(worst, float((y.reshape(right.shape) != right).double().mean()))
            continue
        error = float((y.double().reshape(right.shape) - right).norm() / right.norm())
        worst = max(worst, error if error == error else math.inf)
    return worst
