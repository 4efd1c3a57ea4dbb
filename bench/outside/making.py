"""Cases of this folder: functions of torch tensors, which all contestants get as they are.

A case needs its function and the dims of its parameters. How an input is drawn follows from the
beginning of its parameter's name:

- ``w``: a weight as ``torch.nn.Linear`` has it, (outputs, inputs); ``u``: a matrix, (inputs,
  outputs). Both are scaled by the root of the number of inputs.
- ``var``: variances, between 1/2 and 3/2; ``share``: a distribution along the last axis.
- ``sign``: -1 or 1.
- all others: normally distributed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

from bench.peers.case import Array, Case, Contestant, Draw, Inputs, Run
from bench.peers.contestants import ours, usual

SUITE = "outside"
SMALL = 40  # a size of a dry run is below this


class OfModule:
    """A function that calls a module of torch, made for the dtype and device of its arguments.

    ``build`` makes the module from the arguments; its weights are numbers of float16.
    """

    def __init__(self, build: Callable[..., Any]) -> None:
        self._build, self.__signature__ = build, signature(build)
        self.__name__ = build.__name__

    def __call__(self, *arrays: Array) -> Any:
        return self.made_for(*arrays)(*arrays)

    def made_for(self, *arrays: Array) -> Any:
        """The module; equal for equal shapes."""
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(1)
            module = self._build(*arrays)
        return module.half().to(arrays[0]).eval().requires_grad_(False)


def contestants(fn: Callable[..., Any]) -> tuple[Contestant, ...]:
    """Who computes every case: ours as ``bb.jit`` chooses, eager torch, and torch.compile."""
    if not isinstance(fn, OfModule):
        return (ours(fn), *usual(fn))

    def of_module(at: int, way: str, inputs: Inputs) -> Run:
        run: Run = getattr(contestants(fn.made_for(*inputs.values()))[at], way)(inputs)
        return run

    named = contestants(fn.__call__)
    return tuple(
        replace(
            one, make=partial(of_module, at, "make"),
            alone=one.alone and partial(of_module, at, "alone"),
        )
        for at, one in enumerate(named)
    )  # fmt: skip


def callable_for(fn: Callable[..., Any], arrays: Sequence[Array]) -> Callable[..., Any]:
    """What is compiled: the function itself, or the module that it would call."""
    return fn.made_for(*arrays) if isinstance(fn, OfModule) else fn


def case(
    family: str,
    fn: Callable[..., Any],
    dims: str,
    sizes: Mapping[str, int],
    *,
    name: str = "",
    few: Mapping[str, int] | None = None,
    dtype: str = "float16",
    special: Mapping[str, Draw] | None = None,
    own: Mapping[str, str] | None = None,
    quantizes: bool = False,
) -> Case:
    """A case of ``fn``, whose parameters have these ``dims``: "M K, N K, N".

    ``name``: instead of the function's; the sizes follow. ``few``: small sizes of a dry run, where
    halving does not give any that fit.
    """
    inputs = dict(zip(signature(fn).parameters, map(str.strip, dims.split(",")), strict=True))
    named = (name or fn.__name__.strip("_").replace("_", "-"), "x".join(map(str, sizes.values())))
    kind = () if dtype == "float16" else (dtype,)
    by_name = {n: draw for n in inputs for start, draw in DRAWS.items() if n.startswith(start)}
    return Case(
        SUITE, family, "-".join((*named, *kind)), fn, fn, inputs, dict(sizes),
        {dim: 2 if dim == "B" else shrunk(n) for dim, n in sizes.items()} | dict(few or {}),
        contestants(fn), dtype=dtype, matrices=tuple(n for n in inputs if n.startswith("u")),
        special=by_name | dict(special or {}), own=own or {}, quantizes=quantizes,
    )  # fmt: skip


def shrunk(size: int) -> int:
    """A size, halved until it is small: odd sizes often stay odd."""
    while size >= SMALL:
        size //= 2
    return size


# what is drawn otherwise ----------------------------------------------------------


def weight(random: Any, shape: tuple[int, ...]) -> Array:
    """A weight of a linear layer: the last axis is summed over."""
    import torch

    return torch.randn(shape, generator=random, device=random.device) * shape[-1] ** -0.5


def variance(random: Any, shape: tuple[int, ...]) -> Array:
    import torch

    return torch.rand(shape, generator=random, device=random.device) + 0.5


def share(random: Any, shape: tuple[int, ...]) -> Array:
    import torch

    return torch.softmax(2 * torch.randn(shape, generator=random, device=random.device), -1)


def sign(random: Any, shape: tuple[int, ...]) -> Array:
    import torch

    return 2.0 * torch.randint(2, shape, generator=random, device=random.device) - 1


def below(count: int) -> Draw:
    """Whole numbers below ``count``, such as classes."""

    def draw(random: Any, shape: tuple[int, ...]) -> Array:
        import torch

        return torch.randint(count, shape, generator=random, device=random.device)

    return draw


DRAWS: Mapping[str, Draw] = {"w": weight, "var": variance, "share": share, "sign": sign}
