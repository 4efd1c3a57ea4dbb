"""materialize: the computation of a value becomes a map of its own, and its result a list.

before   Y = map M (x in !X, W = !W) {           after   S = map M (x in !X) {
           z = map N (x2 = !x, w in !W) {                  s = map K (a in !x) {
             p, s = map K (a in !x2, b in !w) {              t = row_sum(a)
               d = dot(a, b)                                 yield +t
               t = row_sum(a)                              }
               yield +d                                    yield s
               yield +t                                  }
             }                                           Y = map M (x in !X, W = !W, s in !S) {
             u = row_scale(p, s)                           z = map N (x2 = !x, w in !W, s2 = s) {
             yield u                                         p = map K (a in !x2, b in !w) {
           }                                                   d = dot(a, b)
           yield z                                             yield +d
         }                                                   }
                                                             u = row_scale(p, s2)
                                                             yield u
                                                           }
                                                           yield z
                                                         }

and      Y = map M (x in !X, c in !C, W = !W) {    after   S = map M (x in !X, c in !C) {
           y = map N (x2 = !x, c2 = c, w in !W) {            s = map K (a in !x, c2 = c) {
             p = map K (a in !x2, c3 = c2, b in !w) {          t = row_scale(a, c2)
               t = row_scale(a, c3)                            yield t }
               d = dot(t, b)                                 yield s }
               yield +d                                    Y = map M (s in !S, W = !W) {
             }                                               y = map N (s2 = !s, w in !W) {
             yield p                                           p = map K (t in !s2, b in !w) {
           }                                                     d = dot(t, b)
           yield y                                               yield +d }
         }                                                     yield p }  yield y }

The inverse of fusion, for two kinds of values. *Statistics* are small: sums, and values made of
sums; a loop of dots then no longer adds up the tiles that its dots read. *Operands* are computed
again in each iteration of a loop that they do not depend on, here over N; a loop of dots then reads
them as it reads inputs. In both cases the dims of the new maps are those over which the values
differ, so that they are computed once; the statistics in an operand come with it.
Costs a buffered edge, a kernel, and one more load of the values' inputs. Rules of fusion undo it,
so no rule set holds it: it is for programs that are fused already.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.errors import RuleError, message
from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Type
from blockbuster.rules.base import Match, Note, Rule, hint_of, label, unheard
from blockbuster.rules.legality import map_at
from blockbuster.rules.operands import operands
from blockbuster.rules.statistics import Path, Values, added, name_of, slice_of, statistics

KINDS = ("value", "operand")


class Materialize(Rule):
    """Fusion undone for statistics and for operands that a loop computes again.

    A site is named by the map at this level and, in its roles, the places of the values inside:
    ``value 0.2:1`` is result 1 of node 2 in the map that is node 0 of the body. The role begins
    with ``operand`` for operands.
    """

    name = "materialize"
    kind = "companion"
    needs = (Map,)

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        for position, _ in graph.of_type(Map):
            for kind in KINDS:
                yield from self._at(graph, position, kind, note)

    def of_kind(self, graph: Graph, kind: str) -> Iterator[Match]:
        """The sites whose values are of one kind: statistics ("value") or operands ("operand")."""
        for position, _ in graph.of_type(Map):
            yield from self._at(graph, position, kind, unheard)

    def apply(self, match: Match) -> Graph:
        path, values = site_of(match)
        graph, node = match.graph, match.graph.nodes[path[0]]
        origin = Origin(self.name, (node.origin,))
        part = slice_of(graph, path, values, origin)
        edit = Builder(graph)
        made = added(edit, node, part.body, origin)
        types = [edit.type_of(value) for value in made]
        op = _reading(graph, path, values, part.walks, types)
        edit.replace_op(path[0], op, (*op.entering(node.operands), *made))
        return edit.finish()

    def _at(self, graph: Graph, position: int, kind: str, note: Note) -> Iterator[Match]:
        finder = statistics if kind == "value" else operands
        for found in finder(self, graph, position, note):
            roles = [f"{kind} {_place(found.path, value)}" for value in found.values]
            yield Match(self, graph, dict.fromkeys(roles, found.path[0]), _words(graph, found))

    def describe(self, match: Match) -> str:
        (position,) = set(match.nodes.values())
        return f"{match.detail} leave {label(match.graph.nodes[position])}"


def materialize(graph: Graph, value: str) -> Graph:
    """``graph`` with the values of this name, as ``Materialize`` finds them, computed in their own
    map.

    Raises RuleError, with the possible names, if no site has this one.
    """
    rule, found = Materialize(), []
    for match in rule.matches(graph):
        if match.detail == value:
            return rule.apply(match)
        found.append(match.detail)
    hint = f"there are: {'; '.join(found)}" if found else "the program has none"
    raise RuleError(message("no values have this name", value=value, hint=hint))


def _reading(
    graph: Graph, path: Path, values: Sequence[Value], walks: Sequence[bool], types: Sequence[Type]
) -> Map:
    """The outermost map around ``values``, which reads them, of these ``types``, instead."""
    op = map_at(graph, path[0])
    edit = Builder(op.body)
    items = [type.element() if walks[0] else type for type in types]
    level = graph.at(path)
    hints = [hint_of(level, value) for value in values]
    given = [edit.input(type, hint=hint) for type, hint in zip(items, hints, strict=True)]
    if len(path) == 1:
        edit.redirect_all(values, given)
    else:
        inner = _reading(op.body, path[1:], values, walks[1:], items)
        read = op.body.nodes[path[1]].operands
        edit.replace_op(path[1], inner, (*inner.entering(read), *given))
    iterated = (*op.iterated, *(walks[0] for _ in values))
    return Map(op.dim, edit.finish(), iterated, op.results)


def _place(path: Path, value: Value) -> str:
    place = ".".join(map(str, (*path[1:], value.node)))
    return f"{place}:{value.port}" if value.port else place


def site_of(match: Match) -> tuple[Path, tuple[Value, ...]]:
    """The path of the level that has the values of a site, and the values."""
    values: list[Value] = []
    path: Path = ()
    for role, position in match.nodes.items():
        place, _, port = role.partition(" ")[2].partition(":")
        *inner, node = map(int, place.split("."))
        path = (position, *inner)
        values.append(Value(node, int(port or 0)))
    return path, tuple(values)


def _words(graph: Graph, found: Values) -> str:
    level = graph.at(found.path)
    names = ", ".join(name_of(level, value) for value in found.values)
    return f"{names} per {', '.join(found.rate)}" if found.rate else f"{names} once"
