"""What is known of the values of a captured graph before it runs: shapes, memory, and changes.

The capture leaves a fake tensor at each node: it has a shape, a dtype and a memory of its own, and
views share theirs. Captured graphs are dynamo's, of torch's functions, or of internal operators.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from blockbuster.errors import NOT_TAKEN
from blockbuster.frontend.torch import is_tensor

Node = Any
Graph = Any

_CLASSES = ("FakeTensor", "Tensor", "Parameter", "Buffer")


def value_of(node: Node) -> Any:
    """The value that the capture saw: a fake tensor, a size, or several in a list or a tuple."""
    return node.meta.get("example_value", node.meta.get("val"))


def parts(value: Any) -> Iterator[Any]:
    """The values in nested lists and tuples."""
    if issubclass(type(value), list | tuple):  # a stand-in's __class__ takes long
        for one in value:
            yield from parts(one)
    else:
        yield value


def tensors(nodes: Iterable[Node]) -> list[Any]:
    """The fake tensors at nodes."""
    return [one for node in nodes for one in parts(value_of(node)) if is_tensor(one)]


def is_size(value: Any) -> bool:
    """True for a number, also one that is not known before the graph runs; and for None."""
    return value is None or isinstance(value, int | float) or hasattr(value, "node")


def is_node(value: Any) -> bool:
    """True for nodes of torch's graphs."""
    return hasattr(value, "all_input_nodes")


def hint_of(size: Any) -> Any:
    """The number at the capture; None for one that depends on elements."""
    if not hasattr(size, "node"):
        return size
    return size.node.hint if size.node.has_hint() else None


def layout_of(fake: Any) -> tuple[int, ...]:
    """The axes from the longest stride to the shortest; empty if that is their order."""
    strides = [hint_of(stride) or 0 for stride in fake.stride()]
    order = tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
    return () if order == tuple(range(len(strides))) else order


def is_view(node: Node) -> bool:
    """True if the node's result has the memory of an argument: no kernel runs for it.

    An item of a tuple is one if the whole tuple is.
    """
    given = node.all_input_nodes
    if of_tuple(node):
        return is_view(given[0])
    return not memories([node]).isdisjoint(memories(given))


def of_tuple(node: Node) -> bool:
    """True for an item of a list or a tuple."""
    if node.target is not operator.getitem or not is_node(node.args[0]):
        return False
    return isinstance(value_of(node.args[0]), list | tuple)


def is_made_of_sizes(node: Node) -> bool:
    """True for a size that is known before the graph runs, so that it may be made at any time."""
    return all(is_size(one) and hint_of(one) is not None for one in parts(value_of(node)))


def is_free(node: Node) -> bool:
    """True if the node may as well be computed once more: a view, or made of no tensor."""
    return is_view(node) or not _reads_tensors(node)


def _reads_tensors(node: Node) -> bool:
    """True if the node depends on a tensor that the graph is given, or holds."""
    seen, left = set[Node](), [node]
    while left:
        one = left.pop()
        if one.op in ("placeholder", "get_attr") and tensors([one]):
            return True
        if one not in seen:
            seen.add(one)
            left += one.all_input_nodes
    return False


def is_plain(graph: Graph) -> bool:
    """True if the graph can be run piece by piece as dynamo captured it.

    Not so: modules, gradients, autocast, changes of tensors and of torch's modes, other classes of
    tensors. ``aot_autograd`` turns those into graphs of internal operators that only compute.
    """
    return all(_only_computes(node) for node in graph.nodes if node.op != "output")


def is_idle(node: Node) -> bool:
    """True for a call that changes nothing: it logs, or turns autocast off where it is off.

    Slices of module lists log, and models in float32 turn autocast off, on whatever device.
    """
    if node.op != "call_function" or value_of(node) is not None:
        return False
    name: str = node.target.__name__
    if name == "_exit_autocast":
        return is_idle(node.args[0])
    if name == "_enter_autocast":
        import torch

        device, _, enabled, *_ = node.args
        return not (enabled or torch.is_autocast_enabled(device))
    return name == "_log_api_usage_once"


def _only_computes(node: Node) -> bool:
    import torch

    if is_idle(node):
        return True
    values = [*parts(value_of(node))]
    found = tensors([node])
    calls = node.op not in ("placeholder", "get_attr")
    if node.op == "call_module" or (not found and (node.op == "get_attr" or values == [None])):
        return False
    if not all(is_tensor(one) or is_size(one) for one in values):
        return False
    if any(type(t).__name__ not in _CLASSES or t.layout != torch.strided for t in found):
        return False
    if any(torch.is_autocast_enabled(t.device.type) for t in found):
        return False
    if not calls:
        return True
    graded = any(t.requires_grad for t in found) and not is_view(node)  # no kernel makes a view
    return not (graded or _writes(node))


def _writes(node: Node) -> bool:
    """True if the node changes an argument, and if torch cannot tell."""
    try:
        return on_copies(node, node.target, node.args, node.kwargs)[0]
    except NOT_TAKEN:
        return True


def on_copies(
    node: Node, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[bool, Any]:
    """Whether such a call in place of the node changes an argument, and its result, which is None
    if it has the memory of one: it is run on fake copies, and its internal operators say what they
    write. (Versions of fake tensors do not count what ``torch._foreach_add_`` changes.)

    Raises what the call raises, TypeError for tensors that are not fake.
    """
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    given = node.all_input_nodes
    if not tensors(given):
        return False, None
    with _faked(tensors(given)):
        copies = {one: tree_map(_copy, value_of(one)) for one in given}
        args, kwargs = torch.fx.node.map_arg((args, kwargs), copies.__getitem__)
        watch = _watch()
        with watch:
            if node.op == "call_method":
                made = getattr(args[0], target)(*args[1:], **kwargs)
            else:
                made = target(*args, **kwargs)
    found = [t for t in tree_leaves(copies) if is_tensor(t)]
    held = _memories_of(found)
    shared = not _memories_of(filter(is_tensor, parts(made))).isdisjoint(held)
    changed = not held.isdisjoint(watch.written) or any(t.requires_grad for t in found)
    return changed, None if shared else made


def _watch() -> Any:
    """A mode of torch in which ``written`` are the memories that operators write."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.written: set[Any] = set()

        def __torch_dispatch__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            known = func._schema.arguments
            named = dict(zip((one.name for one in known), args, strict=False)) | (kwargs or {})
            for one in known:
                if one.alias_info is not None and one.alias_info.is_write:
                    leaves = tree_leaves(named.get(one.name))
                    self.written |= _memories_of(filter(is_tensor, leaves))
            return func(*args, **(kwargs or {}))

    return Watch()


@contextmanager
def _faked(fakes: Sequence[Any]) -> Iterator[None]:
    """New fake tensors of the kind of these, without guards and gradients."""
    import torch

    mode = next((t.fake_mode for t in fakes if hasattr(t, "fake_mode")), None)
    if mode is None:
        raise TypeError("the tensors are not fake")
    env = mode.shape_env
    guards = env.suppress_guards() if env else nullcontext()
    sizes = env.ignore_fresh_unbacked_symbols() if env else nullcontext()  # they are in no graph
    with mode, guards, sizes, torch.inference_mode(False), torch.no_grad():
        yield


def with_own_memory(node: Node) -> None:
    """From now on the node's tensor has a memory that no other node has."""
    key = "example_value" if "example_value" in node.meta else "val"
    with _faked(tensors([node])):
        node.meta[key] = _copy(value_of(node))


def _copy(value: Any) -> Any:
    """A fake tensor like a given one, in new memory; sizes as they are."""
    import torch

    if not is_tensor(value):
        return value
    form = dict(dtype=value.dtype, device=value.device)
    return torch.empty_strided(value.shape, value.stride(), **form)


def memories(nodes: Iterable[Node]) -> set[Any]:
    """The memories of the tensors at nodes, by what torch's C++ calls them."""
    return _memories_of(tensors(nodes))


def have_memories(nodes: Iterable[Node]) -> bool:
    """False if some tensor at the nodes has no memory of its own: sparse ones, and vmap's."""
    try:
        memories(nodes)
    except NOT_TAKEN:
        return False
    return True


def _memories_of(fakes: Iterable[Any]) -> set[Any]:
    return {fake.untyped_storage()._cdata for fake in fakes}
