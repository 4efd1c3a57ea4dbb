"""Attention in graphs that ``aot_autograd`` rewrites: it stays one operator.

Torch would write it as an internal operator of one device (flash, efficient, cudnn), after copies
of grouped heads and padded masks. So where it needs no gradient, an operator of ours takes its
place until the graph is divided.
"""

from __future__ import annotations

import functools
from typing import Any

from blockbuster.torch_graphs.values import tensors

Tensor = Any
Node = Any
Module = Any

NAME = "blockbuster::attention"


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, causal: bool, scale: Any, grouped: bool
) -> Tensor:
    """Torch's function without dropout: ``mask`` and ``scale`` may be None."""
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(
        q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=grouped
    )


def keep_attention(module: Module) -> None:
    """Put our operator into a graph of dynamo's, wherever attention needs no gradient."""
    from torch.nn.functional import scaled_dot_product_attention

    for node in module.graph.find_nodes(op="call_function", target=scaled_dot_product_attention):
        fakes = tensors([node, *node.all_input_nodes])
        ours = _arguments(*node.args, **node.kwargs)
        plain = all(type(t).__name__ in ("FakeTensor", "Parameter") for t in fakes)  # not by vmap
        if plain and ours is not None and not fakes[0].requires_grad:
            _cast(node, ours, fakes[0].dtype)
    module.recompile()


def _arguments(
    query: Node, key: Node, value: Node, attn_mask: Node = None, dropout_p: Any = 0.0,
    is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False,
) -> tuple[Any, ...] | None:  # fmt: skip
    """Our operator's arguments for those of torch's function; None if it drops elements."""
    return None if dropout_p != 0 else (query, key, value, attn_mask, is_causal, scale, enable_gqa)


def _cast(node: Node, arguments: tuple[Any, ...], dtype: Any) -> None:
    """Make a node call our operator, with the casts of autocast: torch knows none for it."""

    def cast(one: Any) -> Any:
        found = tensors([one]) if hasattr(one, "all_input_nodes") else []
        if not found or found[0].dtype == dtype or not found[0].is_floating_point():
            return one
        return node.graph.call_method("to", (one, dtype))

    with node.graph.inserting_before(node):
        node.args, node.kwargs = tuple(map(cast, arguments)), {}
    node.target = operator()


@functools.cache
def operator() -> Any:
    """Our operator for torch: it has a name and fake results, as rewriting needs."""
    import torch

    schema = "(Tensor q, Tensor k, Tensor v, Tensor? mask, bool causal, float? scale, bool grouped)"
    made = torch.library.custom_op(NAME, attention, mutates_args=(), schema=f"{schema} -> Tensor")
    made.register_fake(attention)
    return torch.ops.blockbuster.attention.default
