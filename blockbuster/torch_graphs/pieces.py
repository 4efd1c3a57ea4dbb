"""Division of a captured graph: pieces that Blockbuster compiles, and nodes that run eagerly.

A piece is a run of nodes in the graph's order, each of which can be traced after those before it.
A node that is refused ends it, unless it reads nothing that the piece makes: then it runs in front.
So the nodes that run eagerly keep their order, as random numbers need it. Random numbers that need
no tensor are drawn first of all, so that they part no piece.

A node that takes windows of windows, a convolution of a convolution, begins a piece: it reads an
array. In one program the first would be made anew for all windows behind it, and a model's branches
multiply their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blockbuster.errors import NOT_TAKEN, BlockbusterError, TraceError
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.table import SPELLINGS
from blockbuster.frontend.program import Equation
from blockbuster.frontend.trace import trace_reader
from blockbuster.torch_graphs.aten import is_aten, translated
from blockbuster.torch_graphs.part import Part, mapped
from blockbuster.torch_graphs.values import (
    hint_of,
    is_free,
    is_idle,
    is_made_of_sizes,
    of_tuple,
    parts,
    tensors,
    value_of,
)

Node = Any
Graph = Any


@dataclass(frozen=True)
class Piece:
    """Nodes that are compiled together; or, if ``reason`` is not None, one that runs eagerly.

    An empty reason is not worth telling: no kernel would run for the node.
    """

    nodes: tuple[Node, ...]
    reason: str | None = None


def divided(graph: Graph) -> list[Piece]:
    """The pieces of a graph, in its order. Sizes are no part of any: they are made when needed."""
    left = _drawn_first([*_calls(graph)])
    found: list[Piece] = []
    while left:
        count, reason = _longest(left)
        run = tuple(left[:count])
        if reason is not None and not _reads_results(left[count], set(run)):
            found.append(Piece((left.pop(count),), reason))
            continue
        if all(map(is_free, run)) or not _takes_tensors(run):
            found += [Piece((node,), "") for node in run]
        else:
            found.append(Piece(run))
        left = left[count:]
        if reason is not None:
            found.append(Piece((left.pop(0),), reason))
    return found


def _reads_results(node: Node, run: set[Node]) -> bool:
    """True if the node needs what kernels of the run make: views and sizes are made anew."""
    seen, left = set[Node](), [*node.all_input_nodes]
    while left:
        one = left.pop()
        if one in seen or not (one in run or is_made_of_sizes(one)):
            continue
        if one in run and not is_free(one):
            return True
        seen.add(one)
        left += one.all_input_nodes
    return False


def _calls(graph: Graph) -> Iterator[Node]:
    """What is called, except for sizes and calls without effect; a tuple's items follow it."""
    for node in graph.nodes:
        left_out = is_made_of_sizes(node) or is_idle(node) or of_tuple(node)
        if node.op.startswith("call_") and not left_out:
            yield from _with_items(node)


def _drawn_first(calls: Sequence[Node]) -> list[Node]:
    """The nodes with random numbers of no tensor's in front, so that they part no piece.

    Random numbers keep their order: those of a tensor, or of something unknown, end this.
    """
    early: dict[Node, None] = {}
    for node in filter(_may_draw, calls):
        if not is_aten(node.target) or not is_free(node):
            break
        early[node] = None
    return [*early, *(node for node in calls if node not in early)]


def _may_draw(node: Node) -> bool:
    import torch

    if not is_aten(node.target):
        return not of_tuple(node)
    return torch.Tag.nondeterministic_seeded in node.target.tags


def _with_items(node: Node) -> Iterator[Node]:
    yield node
    for user in filter(of_tuple, node.users):
        yield from _with_items(user)


def _takes_tensors(run: Sequence[Node]) -> bool:
    return any(tensors([one]) and one not in run for node in run for one in node.all_input_nodes)


def _longest(nodes: Sequence[Node]) -> tuple[int, str | None]:
    """How many of the first nodes can be traced one after the other, and why the next one cannot;
    None if there is no next one, or if it begins a piece.
    """
    count, reason = len(nodes), None
    before: set[Node] = set()
    for at, node in enumerate(nodes):
        obstacle = _obstacle(node, before, tensors(nodes[:1])[:1])
        if obstacle is not None:
            count, reason = at, obstacle
            break
        before.add(node)
    numbers = Part(nodes[:count]).numbers
    for at, node in enumerate(nodes[:count]):
        if not numbers.isdisjoint(node.all_input_nodes):
            count, reason = at, "a number that it takes would be fixed in its kernel"
            break
    reached, refused = _traced(nodes[:count]) if count else (0, None)
    return (reached, refused) if reached < count else (count, reason)


def _obstacle(node: Node, before: set[Node], first: Sequence[Any]) -> str | None:
    """Why no piece can have a node, before it is traced; None if nothing is known against it."""
    if of_tuple(node) and node.args[0] not in before:
        return ""
    try:
        target = translated(node)[0] if is_aten(node.target) else node.target
    except ValueError as error:
        return "" if is_free(node) else str(error)
    found = tensors([node])
    if not found or len(found) != len([*parts(value_of(node))]):
        return "its result is no tensor"
    given = tensors(node.all_input_nodes)
    if any(t.device != first[0].device for t in (*found, *given)):
        return "its tensors are on several devices"
    extents = [hint_of(extent) for t in (*found, *given) for extent in t.shape]
    if None in extents:
        return "the shape of its tensors depends on elements"
    if 0 in extents:
        return ""
    if any(one.op == "get_attr" and not tensors([one]) for one in node.all_input_nodes):
        return "it calls graphs of its own"
    makes_the_same = given or is_aten(node.target) or SPELLINGS.torch_row(target)
    return None if makes_the_same else ""  # it may draw random numbers


def _traced(nodes: Sequence[Node]) -> tuple[int, str | None]:
    """How many of the nodes are traced before one is refused, and why it is; None if all are, or if
    the next one begins a piece.
    """
    import torch

    part = Part(nodes)
    reached = 0

    def run(**arrays: Any) -> Any:
        nonlocal reached
        known: dict[Node, Any] = {}
        for at, one in enumerate(part.inputs):
            known[part.inside[one]] = arrays.get(f"x{at}", hint_of(value_of(one)))
        numbers = {part.inside[node]: at for at, node in enumerate(nodes)}
        checked = _Checked()
        for node in part.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            reached = numbers.get(node, reached)
            known[node] = _called(node, known)
            if node in numbers:
                checked.next(known[node], value_of(nodes[reached]))
        return [*arrays.values()]  # what else is computed is not asked for

    examples = {
        f"x{at}": torch.empty((), dtype=t.dtype, device=t.device).expand([*map(hint_of, t.shape)])
        for at, one in enumerate(part.inputs)
        for t in tensors([one])
    }
    if not examples:
        return len(nodes), None
    for_cpu = all(t.device.type == "cpu" for t in examples.values())
    try:
        trace_reader(run, examples, {"": run}, one_class=True, for_cpu=for_cpu)
    except _BeginsAnother:
        return reached, None
    except (BlockbusterError, *NOT_TAKEN) as error:
        return reached, str(error).split("\n")[0]
    return len(nodes), None


def _called(node: Node, known: Mapping[Node, Any]) -> Any:
    args, kwargs = mapped((node.args, node.kwargs), known.__getitem__)
    if node.op == "call_method":
        return getattr(args[0], node.target)(*args[1:], **kwargs)
    return node.target(*args, **kwargs)


class _BeginsAnother(Exception):
    """The node begins another piece."""


class _Checked:
    """What was traced, node by node: ``next`` checks the equations that a node has added."""

    def __init__(self) -> None:
        self._count = 0
        self._of_windows = set[int]()
        """The equations that are computed from windows: those that are side by side are none."""

    def next(self, made: Any, fake: Any) -> None:
        """Check the value of the next node, of which ``fake`` was captured.

        Raises TraceError if the value has other axes than at the capture, or if a function of whole
        arrays makes it: eager torch has such functions on every device. Raises _BeginsAnother if it
        takes windows of what is computed from windows.
        """
        for one, wanted in zip(parts(made), parts(fake), strict=True):
            if len(one.shape) != len(wanted.shape):
                what = f"it is traced with {len(one.shape)} axes, not {len(wanted.shape)}"
                raise TraceError(what)
            if isinstance(one, TracedArray):
                self._equations(one.trace.recorded[1])

    def _equations(self, recorded: Sequence[Equation]) -> None:
        new = range(self._count, len(recorded))
        if any(recorded[at].op == "custom" for at in new):
            raise TraceError("it runs on whole arrays, and is not fused")
        before = set(self._of_windows)  # not those of the node itself: of rows, then of columns
        for at in new:
            read = {getattr(operand, "node", -1) for operand in recorded[at].operands}
            if recorded[at].op == "windows":
                if not read.isdisjoint(before):
                    raise _BeginsAnother
                self._of_windows.add(at)
            if not read.isdisjoint(before):
                before.add(at)
            if not read.isdisjoint(self._of_windows):
                self._of_windows.add(at)
        self._count = len(recorded)
