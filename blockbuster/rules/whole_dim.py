"""whole-dim: if a dim is one block, a loop over it becomes its body, and a list over it one item.

before   Y = map M (x in !X) {                    after   Y = map M (x in X) {
           Q, s = map D (a in !x) {                         q = square(x)
             q = square(a)                                  s = row_sum(q)
             t = row_sum(q)                                 y = row_scale(q, s)
             yield q                                        yield y
             yield +t                                     }
           }
           y = map D (q in !Q, s = s) {
             z = row_scale(q, s)
             yield z
           }
           yield y
         }

A loop that needs all of a list before it begins reads a local item instead, so the list is not
stored. Saves every buffered edge over the dim.
Costs registers, and holds for few sizes: items carry the dim as an axis that no loop runs over, so
a schedule can only give it one block (``block D 128 whole``), and is refused for larger dims.
Equal to the program before if that has one block along the dim, and proved there. For programs
that are not fused yet: no rule set holds it, ``fuse(graph, whole=("D",))`` begins with it.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.errors import RuleError, message
from blockbuster.ir.graph import Graph
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Map, Misc
from blockbuster.ir.types import Dim, Type, size_class
from blockbuster.ir.verify import verify
from blockbuster.rules.base import Match, Note, Rule, unheard
from blockbuster.rules.derivation import Derivation
from blockbuster.rules.driver import fuse
from blockbuster.rules.faults import OnFault
from blockbuster.rules.one_block import called, tied, with_one_block


class WholeDim(Rule):
    """One block along a dim. A site is a dim: the role of the first node that loops over it.

    The rule takes whole programs, not the bodies of their maps: all loops over a dim, and over
    dims that relabels make of it, go together, and inputs and outputs have other types, but the
    arrays that they had.
    """

    name = "whole-dim"
    kind = "companion"
    needs = (Map,)

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        for dim, position in sites(graph).items():
            reason = why_not(graph, dim)
            yield from self.judged(graph, {dim: position}, reason, note)

    def apply(self, match: Match) -> Graph:
        return with_one_block(match.graph, match.nodes, made_by=self.name)

    def describe(self, match: Match) -> str:
        (dim,) = match.nodes
        dims = sorted(tied(match.graph, (dim,)) & match.graph.loops)
        return f"{' and '.join(dims)} {'is' if len(dims) == 1 else 'are'} one block"


def fuse_whole(
    graph: Graph, rules: Sequence[Rule], words: Sequence[Dim], on_fault: OnFault | None = None
) -> Derivation:
    """``graph`` with the dims that ``words`` mean whole, then fused.

    D means all dims of its size, D' and D'' too, a word with primes that dim alone. Raises
    RuleError for dims that cannot be whole.
    """
    if isinstance(words, str):
        raise TypeError(message("whole is a sequence of dims", value=words, hint=f"({words!r},)"))
    verify(graph)
    loops = looped(graph)
    found = [[dim for dim in called(graph, word) if dim in loops] or [word] for word in words]
    return fuse_with_dims(graph, rules, [dim for dims in found for dim in dims], on_fault)


def fuse_with_dims(
    graph: Graph, rules: Sequence[Rule], dims: Sequence[Dim], on_fault: OnFault | None = None
) -> Derivation:
    """``graph`` with each of ``dims`` whole, and what is tied to it, then fused.

    Raises RuleError if a dim cannot be made whole: ``on_fault`` hears of the other rules only.
    """
    made = Derivation(graph, (), (0,), {0: graph})
    done: frozenset[Dim] = frozenset()
    for dim in dims:
        if dim not in done:
            done |= tied(graph, (dim,))
            made = made.then(site_of(made.final, dim))
    return made.followed_by(fuse(made.final, rules, on_fault))


def site_of(graph: Graph, dim: Dim) -> Match:
    """The site at which ``dim`` becomes one block. Raises RuleError, with the reason, for none."""
    position = looped(graph).get(dim)
    if position is None:
        known = ", ".join(d for match in WholeDim().matches(graph) for d in match.nodes)
        hint = f"these can: {known}" if known else "no dim of the program can"
        raise RuleError(message(f"{dim} cannot be whole: no loop runs over it", hint=hint))
    if reason := why_not(graph, dim):
        raise RuleError(message(f"{dim} cannot be whole: {reason}"))
    return Match(WholeDim(), graph, {dim: position})


def looped(graph: Graph) -> dict[Dim, int]:
    """The dims that maps run over, each with the first node here that does or holds one."""
    found: dict[Dim, int] = {}
    for position, op in graph.of_type(Map):
        for dim in sorted({op.dim, *op.body.loops}):
            found.setdefault(dim, position)
    return found


def sites(graph: Graph) -> dict[Dim, int]:
    """The same, of dims that are tied only the first."""
    found, seen = dict[Dim, int](), set[Dim]()
    for dim, position in looped(graph).items():
        if dim not in seen:
            found[dim] = position
            seen |= tied(graph, (dim,))
    return found


# predicates ------------------------------------------------------------------------


def why_not(graph: Graph, dim: Dim) -> str:
    """Why ``dim``, and what is tied to it, cannot be whole in ``graph``, or ""."""
    dims = tied(graph, (dim,))
    return (
        not_in_blocks(graph, dim)
        or not_an_array(graph, dim, dims)
        or seen_by_nothing(graph, dim, dims)
        or opaque(graph, dim, dims)
    )


def not_in_blocks(graph: Graph, dim: Dim) -> str:
    """Blocks of a list-only dim have one element each, however many there are."""
    if size_class(dim) in list_only(graph):
        return f"{dim} is a list-only dim (batch, heads): its blocks have one element each"
    return ""


def not_an_array(graph: Graph, dim: Dim, dims: frozenset[Dim]) -> str:
    """Lists that enter a body of a map are made outside it, block by block."""
    for position, given in enumerate(graph.inputs):
        if given.view is None and _listed((given.type,), dims):
            name = given.hint or f"input {position}"
            return f"{name} is a list over {dim} and no array: only whole programs have whole dims"
    return ""


def seen_by_nothing(graph: Graph, dim: Dim, dims: frozenset[Dim]) -> str:
    """Some array must show the dim as an axis of its items: that holds schedules to one block."""
    read = (graph.inputs[port].type for port in graph.inputs_by_first_use)
    ends = (*read, *(graph.type_of(o.value) for o in graph.outputs))
    if any(axis in dims for type in ends for axis in type.axes):
        return ""
    return f"no input or output has items along {dim}: nothing would say that it is one block"


def opaque(graph: Graph, dim: Dim, dims: frozenset[Dim]) -> str:
    """A function of whole arrays takes and gives lists, in the order of their dims."""
    for _, level in graph.walk():
        for position, op in level.of_type(Misc):
            node = level.nodes[position]
            if _listed((*level.types_of(node.operands), *node.types), dims):
                return f"{op.name} is a function of whole arrays, which takes lists over {dim}"
    return ""


def _listed(types: Sequence[Type], dims: frozenset[Dim]) -> bool:
    return any(dim in dims for type in types for dim in type.lists)
