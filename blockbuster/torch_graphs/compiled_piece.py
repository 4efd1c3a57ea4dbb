"""A piece of a captured graph that runs: our kernels, or eager torch where they are refused."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from blockbuster.compile import jit
from blockbuster.errors import BlockbusterError
from blockbuster.frontend.torch import is_tensor
from blockbuster.torch_graphs.options import Options

Tensor = Any


MOST = 16
"""A piece that was compiled for none of so many kinds of arguments is not tried again."""


def compiled_piece(
    graph: Any, dtypes: Sequence[Any], options: Options, name: str
) -> Callable[..., tuple[Tensor, ...]]:
    """A function of the graph's inputs that gives its outputs, which have these dtypes.

    It compiles when it is called. A call that ``jit`` refuses runs eagerly, as do later ones of its
    kind, and a warning says why; with ``strict`` the error is raised. Results have no gradients:
    where these are needed, other pieces compute them.
    """
    import torch

    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    function = functools.partial(type(module).forward, None)  # the graph holds nothing
    function.__name__ = name  # type: ignore[attr-defined]
    ours = jit(function, **options.of_jit)
    told = options.report is None
    compiles = False
    refused: dict[Any, None] = {}

    def eager(*given: Any) -> tuple[Tensor, ...]:
        return tuple([t.contiguous() for t in function(*given)])  # as ours: views are made of them

    def piece(*given: Any) -> tuple[Tensor, ...]:
        nonlocal compiles, told
        if refused and (_kind(given) in refused or (not compiles and len(refused) >= MOST)):
            return eager(*given)
        try:
            with torch.no_grad():
                made = ours(*given)
        except (BlockbusterError, TypeError) as error:
            if options.strict:
                raise
            refused[_kind(given)] = None
            options.warn(f"{name} runs eagerly: {error}")
            return eager(*given)
        compiles = True
        if not told and options.report:
            told = True
            with torch.no_grad():
                options.report(str(ours.report_for(*given)))
        return tuple([t if t.dtype is d else t.to(d) for t, d in zip(made, dtypes, strict=True)])

    piece.__name__ = piece.__qualname__ = name
    return piece


def _kind(given: Sequence[Any]) -> tuple[Any, ...]:
    """What a refusal may depend on: the numbers, and the shapes, strides and dtypes of tensors."""
    return tuple((x.shape, x.stride(), x.dtype) if is_tensor(x) else x for x in given)
