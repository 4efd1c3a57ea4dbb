"""``torch.compile(model, backend="blockbuster")``: captured graphs with kernels of ours.

Dynamo captures a graph of torch's functions. If it only computes, its pieces are compiled as they
are. Otherwise (gradients, changes in place, autocast, modules) ``aot_autograd`` first writes it as
graphs of internal operators, forwards and backwards, and these are divided in the same way.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from blockbuster.errors import TraceError, message, shown
from blockbuster.frontend.functions.spelling import torch_name
from blockbuster.torch_graphs.aten import is_aten
from blockbuster.torch_graphs.attention import keep_attention
from blockbuster.torch_graphs.compiled_piece import compiled_piece
from blockbuster.torch_graphs.decompositions import decompositions
from blockbuster.torch_graphs.in_place import out_of_place
from blockbuster.torch_graphs.joins import leave_out_empty_parts
from blockbuster.torch_graphs.options import Options, options_of
from blockbuster.torch_graphs.part import Part
from blockbuster.torch_graphs.pieces import Piece, divided
from blockbuster.torch_graphs.values import is_free, is_plain, layout_of, value_of

Node = Any
Module = Any


def torch_backend(
    module: Module, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Any:
    """The backend for ``torch.compile``, also by its name "blockbuster" after an installation.

    ``module`` is the captured graph, ``inputs`` are examples of its inputs. Operators that cannot
    be traced run eagerly, in their place; one warning for each graph names them, with the line and
    the reason. ``options``: ``check``, ``effort``, ``fusers``, ``library``, ``machine`` and
    ``tune`` of ``jit``; ``strict=True`` raises TraceError instead of running anything eagerly;
    ``report`` is called with a text about each graph and each compiled piece.
    """
    known = options_of(options)
    module = out_of_place(module)
    if is_plain(module.graph):
        return _compiled(module, known)
    keep_attention(module)
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    def compiled(module: Module, _: Sequence[Any]) -> Any:
        return make_boxed_func(_compiled(module, known))

    whole = aot_autograd(
        fw_compiler=compiled, decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )  # fmt: skip
    return whole(module, inputs)


def _compiled(module: Module, options: Options) -> Any:
    """A captured graph that only computes, as pieces and nodes that run eagerly."""
    import torch

    leave_out_empty_parts(module.graph)
    with torch.utils._python_dispatch._disable_current_modes():
        pieces = divided(module.graph)
    _tell(pieces, options)
    return torch.fx.GraphModule(module, _Rewriting(module.graph, pieces, options).graph).forward


class _Rewriting:
    """The graph that calls the pieces of a captured one; ``graph`` is the result.

    Results of pieces are contiguous. So a piece gives those that lie otherwise in eager torch with
    their axes in the order of memory, and the graph turns them back.
    """

    def __init__(self, captured: Any, pieces: Sequence[Piece], options: Options) -> None:
        import torch

        self.graph = torch.fx.Graph()
        self._made: dict[Node, Node] = {}
        self._compiled: dict[Any, list[tuple[dict[str, Any], Any]]] = {}
        self._pieces = {node: piece for piece in pieces for node in piece.nodes}
        self._needed: dict[Node, None] = {}
        (output,) = captured.find_nodes(op="output")
        for node in chain(output.all_input_nodes, *map(_taken, pieces)):
            self._need(node)
        for node in captured.nodes:
            if node.op in ("placeholder", "get_attr"):
                self._made[node] = self.graph.node_copy(node)
        for number, piece in enumerate(pieces):
            if piece.reason is None:
                self._call(piece, options, f"piece{number}")
            else:
                self._at_top(*piece.nodes)
        self.graph.node_copy(output, self._at_top)

    def _need(self, node: Node) -> None:
        """A node is read outside of its piece: it is an output, unless it is made there anew."""
        if node in self._needed:
            return
        self._needed[node] = None
        if self._is_made_anew(node):
            for one in node.all_input_nodes:
                self._need(one)

    def _is_made_anew(self, node: Node) -> bool:
        """True for sizes, and for views: they have the memory of what is outside, as in torch."""
        piece = self._pieces.get(node)
        return piece is None or (piece.reason is None and is_free(node))

    def _at_top(self, node: Node) -> Node:
        """The node of the new graph for one of the captured graph's."""
        if node not in self._made:
            self._made[node] = self.graph.node_copy(node, self._at_top)
        return self._made[node]

    def _run_of(self, graph: Any, dtypes: Sequence[Any], options: Options, name: str) -> Any:
        """What runs a piece: one for equal graphs, as of equal blocks of a model."""
        code = graph.python_code("self")
        known = self._compiled.setdefault((code.src, *dtypes), [])
        for names, run in known:
            if names == code.globals:
                return run
        run = compiled_piece(graph, dtypes, options, name)
        known.append((code.globals, run))
        return run

    def _call(self, piece: Piece, options: Options, name: str) -> None:
        wanted = [one for one in piece.nodes if one in self._needed and not is_free(one)]
        if not wanted:
            return
        part = Part(piece.nodes, wanted)
        fakes = [value_of(node) for node in wanted]
        run = self._run_of(part.graph, [fake.dtype for fake in fakes], options, name)
        results = self.graph.call_function(run, tuple(map(self._at_top, part.inputs)))
        for at, (node, fake) in enumerate(zip(wanted, fakes, strict=True)):
            made = self.graph.call_function(operator.getitem, (results, at))
            order = layout_of(fake)
            if order:
                back = tuple(map(order.index, range(len(order))))
                made = self.graph.call_method("permute", (made, back))
            self._made[node] = made


def _taken(piece: Piece) -> Sequence[Node]:
    """The nodes outside that a piece reads."""
    if piece.reason is not None:
        return list(piece.nodes[0].all_input_nodes)
    return Part(piece.nodes).inputs


def _tell(pieces: Sequence[Piece], options: Options) -> None:
    """Report the pieces; warn of the nodes that were refused, or raise TraceError."""
    refused = [f"{_shown(p.nodes[0])}{_where(p)}: {p.reason}" for p in pieces if p.reason]
    eager = [f"{line}{_times(refused.count(line))}" for line in dict.fromkeys(refused)]
    if eager:
        eager.insert(0, "operators that run eagerly")
    if options.report:
        compiled = {number: p for number, p in enumerate(pieces) if p.reason is None}
        inside, count = (sum(len(p.nodes) for p in of) for of in (compiled.values(), pieces))
        first = f"captured graph: {inside} of {_many(count, 'operator')}"
        first += f" in {_many(len(compiled), 'compiled piece')}"
        told = [
            f"piece{number}: {_many(len(p.nodes), 'operator')}{_where(p)}"
            for number, p in compiled.items()
        ]
        options.report("\n  ".join([first, *told, *eager]))
    if eager and options.strict:
        hint = "leave out strict=True: these operators then run eagerly"
        raise TraceError(message("\n".join(eager), hint=hint))
    if eager:
        options.warn("\n  ".join(eager))


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def _shown(node: Node) -> str:
    """The name of an operator as users know it."""
    if node.op == "call_method" or is_aten(node.target):
        return str(node.target).removesuffix(".default")
    return f"torch.{torch_name(node.target)}"


def _where(piece: Piece) -> str:
    """The user's lines, of the first node and of the last."""
    traces = [node.meta.get("stack_trace") or "" for node in piece.nodes]
    found = [re.findall(r'File "([^"]+)", line (\d+)', trace)[-1:] for trace in traces]
    lines = [f"{Path(file).name}:{line}" for one in found for file, line in one]
    return f" ({shown(' to '.join(dict.fromkeys([lines[0], lines[-1]])))})" if lines else ""
