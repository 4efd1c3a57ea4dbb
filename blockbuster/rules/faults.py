"""Errors of rules, reported with the rule's name: the driver runs any rules, also a user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.errors import RuleError, VerifyError, a_kind, message
from blockbuster.ir.graph import Graph
from blockbuster.ir.level import Level
from blockbuster.ir.types import Type
from blockbuster.ir.verify import Known, verify
from blockbuster.rules.base import Match, Rule


def check_rules(rules: object) -> None:
    """Raise TypeError where ``rules`` is no sequence of rules, with what to pass instead."""
    if isinstance(rules, Rule):
        raise TypeError(f"rules is one rule, {rules!r}: pass a sequence, rules=[{rules!r}]")
    if not isinstance(rules, Sequence) or isinstance(rules, str):
        hint = "bb.RULES and bb.PAPER_RULES are sequences of rules"
        raise TypeError(message(f"expected a sequence of rules, got {a_kind(rules)}", hint=hint))
    for rule in rules:
        if not isinstance(rule, Rule):
            hint = "a rule is an instance of a subclass of bb.Rule, as bb.RULES[0] is"
            if isinstance(rule, type):
                hint = f"pass an instance, {rule.__name__}()"
            what = f"among the rules is {a_kind(rule)}"
            raise TypeError(message(what, value=rule, hint=hint))
        if not getattr(rule, "name", ""):
            kind = type(rule).__name__
            raise TypeError(f'{kind} has no name: write name: ClassVar[str] = "..." in its class')


def raised(rule: Rule, method: str, error: Exception, graph: Graph) -> RuleError:
    """The error to raise from ``error``, which ``method`` of the rule raised on ``graph``."""
    what = f"{rule.name} failed: {method} raised {type(error).__name__}: {error}".rstrip(": ")
    return RuleError(message(what, listing=shown(graph)))


def check_match(rule: Rule, found: object, graph: Graph | Level) -> None:
    """A rule must find matches, of nodes that are there."""
    if not isinstance(found, Match):
        wrong = f"{a_kind(found)} instead of a Match"
    elif not isinstance(found.nodes, Mapping):
        wrong = f"nodes without roles ({found.nodes!r})"
    elif absent := [f"{role}: {at}" for role, at in found.nodes.items() if at not in graph.rank]:
        wrong = f"nodes that the graph does not have ({', '.join(absent)})"
    else:
        return
    whole = graph.graph() if isinstance(graph, Level) else graph
    raise RuleError(message(f"{rule.name} found {wrong}", listing=shown(whole)))


def check_rewritten(graph: Graph, found: Match, known: Known | None = None) -> None:
    """A rule must give a well-formed graph that makes the same results."""
    if not isinstance(graph, Graph):
        raise no_graph(found.rule, graph, found.graph)
    try:
        verify(graph, known)
        before, after = result_types(found.graph), result_types(graph)
        if before != after:
            raise VerifyError(f"the results had types {before} and have {after}")
    except (VerifyError, AttributeError, IndexError, KeyError, TypeError) as error:
        listing = f"{shown(found.graph)}---\n{shown(graph)}"
        what = f"{found.rule.name} made an ill-formed graph: {error}"
        raise RuleError(message(what, listing=listing)) from error


def no_graph(rule: Rule, made: object, graph: Graph) -> RuleError:
    """The error where ``apply`` gave something else than the rewritten graph."""
    what = f"{rule.name}.apply returned {a_kind(made)}, not the rewritten graph"
    hint = "return edit.finish(), of edit = match.edit()"
    return RuleError(message(what, listing=shown(graph), hint=hint))


def result_types(graph: Graph | Level) -> tuple[Type, ...]:
    """The types of what leaves a graph."""
    return graph.types_of(output.value for output in graph.outputs)


def shown(graph: Graph) -> str:
    """The listing of a graph, which may be too broken for one."""
    try:
        return graph.show()
    except (AttributeError, IndexError, KeyError, ValueError):
        return f"a graph of {len(graph.nodes)} nodes, too broken to be printed\n"
