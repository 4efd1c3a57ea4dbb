"""Changes in place of values that a graph makes itself, as operators that change nothing.

``relu(x, inplace=True)``, ``x += y`` and ``x.mul_(2)`` give the elements of ``relu(x)``, ``x + y``
and ``x.mul(2)``. Where nobody reads the old memory under another name, the new value may as well
have a memory of its own, so that the graph only computes.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from blockbuster.errors import NOT_TAKEN
from blockbuster.frontend.torch import is_tensor
from blockbuster.torch_graphs.values import (
    have_memories,
    is_node,
    memories,
    on_copies,
    value_of,
    with_own_memory,
)

Node = Any
Module = Any
Form = tuple[Any, tuple[Any, ...], dict[str, Any]]

_OTHERWISE = ("bernoulli_",)
"""Methods that mean something else without the underscore: ``x.bernoulli()`` takes x for the
probabilities.
"""


def out_of_place(module: Module) -> Module:
    """The module without changes of values that it makes itself; other changes stay, and so does a
    module with tensors that have no memory to compare.
    """
    import torch

    if not have_memories(module.graph.nodes):
        return module
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    nodes = [*graph.nodes]
    places = {node: at for at, node in enumerate(nodes)}
    names: dict[Any, list[Node]] = {}  # the nodes so far that have a memory
    for node in nodes:
        form = _without_change(node)
        if form and _may_differ(names.get(_memory(node.args[0]), ()), node, places):
            new = _replaced(node, form, places)
            for one in names.pop(_memory(new), ()):
                with_own_memory(one)  # the memory is that of ``new``: later views are views of it
            node = new
        for memory in memories([node]):
            names.setdefault(memory, []).append(node)
    made = torch.fx.GraphModule(module, graph)
    made.meta.update(module.meta)
    return made


def _memory(node: Node) -> Any:
    """The memory of the only tensor at a node."""
    (memory,) = memories([node])
    return memory


def _without_change(node: Node) -> Form | None:
    """A target and arguments that give the result of a node that changes its first argument, which
    is one tensor; None for other nodes.
    """
    first = node.args[0] if node.args else None
    if not is_node(first) or not is_tensor(value_of(first)):
        return None
    form = _renamed(node)
    return form if form and _changes_only_memory(node, form) else None


def _renamed(node: Node) -> Form | None:
    """A node's call under the name, or with the argument, that should change nothing."""
    import torch

    target, args, kwargs = node.target, node.args, dict(node.kwargs)
    name = target if node.op == "call_method" else getattr(target, "__name__", "")
    plain: Any = None
    if node.op == "call_method":
        known = name.endswith("_") and name not in _OTHERWISE
        plain = name[:-1] if known and callable(getattr(torch.Tensor, name[:-1], None)) else None
    elif node.op == "call_function" and target.__module__ == "_operator":
        plain = getattr(operator, f"__{name[1:]}__", None) if name.startswith("i") else None
    elif node.op == "call_function" and name.endswith("_"):
        plain = getattr(torch, name[:-1], None) or getattr(torch.nn.functional, name[:-1], None)
    elif isinstance(target, FunctionType) and "inplace" in inspect.signature(target).parameters:
        call = inspect.signature(target).bind(*args, **kwargs)
        call.arguments["inplace"] = False
        plain, args, kwargs = target, call.args, call.kwargs
    return None if plain is None else (plain, args, kwargs)


def _changes_only_memory(node: Node, form: Form) -> bool:
    """True if a node changes an argument, and ``form`` gives a tensor of the same kind without."""
    try:
        changed, made = on_copies(node, *form)
        if changed or not on_copies(node, node.target, node.args, node.kwargs)[0]:
            return False
    except NOT_TAKEN:
        return False
    return is_tensor(made) and _kind(made) == _kind(value_of(node))


def _kind(fake: Any) -> tuple[Any, ...]:
    return *map(str, fake.shape), *map(str, fake.stride()), fake.dtype, fake.device


def _may_differ(names: Sequence[Node], node: Node, places: Mapping[Node, int]) -> bool:
    """True if nobody can tell whether ``node`` writes to the memory that ``names`` have: it is made
    in the graph, and behind the node only its first argument is read.
    """
    return all(
        one.op.startswith("call_")
        and is_tensor(value_of(one))
        and (one is node.args[0] or all(places[user] <= places[node] for user in one.users))
        for one in names
    )


def _replaced(node: Node, form: Form, places: dict[Node, int]) -> Node:
    """The node of ``form`` in the place of ``node``; it is read wherever the changed value was."""
    old, graph = node.args[0], node.graph
    with graph.inserting_before(node):
        new = graph.create_node(node.op, *form, node.name)
    new.meta = dict(node.meta)
    places[new] = places[node]
    node.replace_all_uses_with(new)
    graph.erase_node(node)
    old.replace_all_uses_with(new, lambda user: places[user] > places[new])
    return new
