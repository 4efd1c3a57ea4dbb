"""A piece of a captured graph that runs: our kernels, or eager torch where they are refused."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from blockbuster.compile import jit
from blockbuster.errors import BlockbusterError
from blockbuster.torch_graphs.options import Options

Tensor = Any


def compiled_piece(
    graph: Any, dtypes: Sequence[Any], options: Options, name: str
) -> Callable[..., tuple[Tensor, ...]]:
    """A function of the graph's inputs that gives its outputs, which have these dtypes.

    It compiles when it is called. If ``jit`` refuses the piece, it runs eagerly from then on, and a
    warning says why; with ``strict`` the error is raised.
    """
    import torch

    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    function = functools.partial(type(module).forward, None)  # the graph holds nothing
    function.__name__ = name  # type: ignore[attr-defined]
    ours = jit(function, **options.of_jit)
    told = options.report is None
    refused = False

    def eager(*given: Any) -> tuple[Tensor, ...]:
        return tuple([t.contiguous() for t in function(*given)])  # as ours: views are made of them

    def piece(*given: Any) -> tuple[Tensor, ...]:
        nonlocal refused, told
        if refused:
            return eager(*given)
        try:
            made = ours(*given)
        except (BlockbusterError, TypeError) as error:
            if options.strict:
                raise
            refused = True
            options.warn(f"{name} runs eagerly: {error}")
            return eager(*given)
        if not told and options.report:
            told = True
            options.report(str(ours.report_for(*given)))
        return tuple([t if t.dtype is d else t.to(d) for t, d in zip(made, dtypes, strict=True)])

    piece.__name__ = piece.__qualname__ = name
    return piece
