"""Concatenations in captured graphs: parts without elements are left out.

A cache of keys starts as ``torch.tensor([])``, in every layer of a model: it has one axis, which
torch allows, and no kernel would read it.
"""

from __future__ import annotations

from typing import Any

from blockbuster.torch_graphs.values import hint_of, is_node, tensors

Node = Any
Graph = Any


def leave_out_empty_parts(graph: Graph) -> None:
    """Change the graph's concatenations that have empty parts, and others, of one dtype."""
    import torch

    of_torch = (torch.cat, torch.concat, torch.concatenate, torch.ops.aten.cat.default)
    for node in graph.nodes:
        given = node.args[0] if node.target in of_torch and node.args else None
        if not isinstance(given, list | tuple):
            continue
        rest = [one for one in given if not _is_empty_like(one, node)]
        if 0 < len(rest) < len(given):
            node.update_arg(0, rest)
            for one in dict.fromkeys(given):
                if not one.users and one.op == "call_function":
                    graph.erase_node(one)


def _is_empty_like(one: Any, node: Node) -> bool:
    (made,) = tensors([node])
    return is_node(one) and any(
        [*map(hint_of, t.shape)] == [0] and t.dtype == made.dtype for t in tensors([one])
    )
