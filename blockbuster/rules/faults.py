"""Errors of rules, reported with the rule's name: the driver runs any rules, also a user's.

A rule that fails is a bug in the rule, never in the program. ``fuse`` raises its error, so that
whoever works on rules sees it. Calls that only want a kernel (``jit``, ``emit``, the command line)
pass an ``on_fault``: they leave the rule out, and their report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from blockbuster.errors import RuleError, VerifyError, a_kind, message, shown_lines
from blockbuster.ir.graph import Graph
from blockbuster.ir.level import Level
from blockbuster.ir.types import Type
from blockbuster.ir.verify import Known, verify
from blockbuster.rules.base import Match, Note, Rule

Found = TypeVar("Found")
OnFault = Callable[[RuleError], None]
"""What to do with a rule's error instead of raising it; fusion then goes on without the rule."""


def fault_of(rule: Rule, text: str) -> RuleError:
    """The error of one rule, which can be left out."""
    fault = RuleError(text)
    fault.rule = rule
    return fault


def hear(on_fault: OnFault | None, fault: RuleError) -> None:
    """Tell ``on_fault`` of a fault; raise it if nobody listens, or it is not that of one rule."""
    if on_fault is None or fault.rule is None:
        raise fault
    on_fault(fault)


@dataclass
class FaultNotes:
    """Notes for a report on the rules that failed on a program, by the rules' names."""

    said: dict[str, str] = field(default_factory=dict)

    def keep(self, fault: RuleError) -> None:
        """Note a fault; of one rule the first counts."""
        self.said.setdefault(getattr(fault.rule, "name", ""), note_of(fault))

    def tried(self, find: Callable[[], Found]) -> Found | None:
        """What ``find`` gives; None where a rule fails that it applies, which is noted."""
        try:
            return find()
        except RuleError as fault:
            hear(self.keep, fault)
            return None

    def __iter__(self) -> Iterator[str]:
        return iter(self.said.values())


def note_of(fault: RuleError) -> str:
    """What a report says of a rule that failed, and how to report it."""
    return (
        f"{shown_lines(str(fault))[0]}. The program was fused without this rule. That is a bug in "
        "the rule: please report the whole message that bb.fuse(bb.lower(program)) raises"
    )


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
    return fault_of(rule, message(what, listing=shown(graph)))


def first_site(rule: Rule, graph: Graph) -> Match | None:
    """The first site of a rule. Raises RuleError if looking for it fails."""
    try:
        found = rule.match(graph)
    except Exception as error:
        raise raised(rule, "matches", error, graph) from error
    if found is not None:
        check_match(rule, found, graph)
    return found


def all_sites(rule: Rule, graph: Graph, note: Note, on_fault: OnFault | None = None) -> list[Match]:
    """The sites of a rule. If looking for them fails, ``on_fault`` is told, and there are none."""
    try:
        return [*rule.matches(graph, note)]
    except Exception as error:
        hear(on_fault, raised(rule, "matches", error, graph))
        return []


def applied(found: Match) -> Graph:
    """What the rule makes there, not checked yet. Raises RuleError if the rule raises."""
    try:
        return found.rule.apply(found)
    except Exception as error:
        raise raised(found.rule, "apply", error, found.graph) from error


def described(found: Match, graph: Graph) -> str:
    """The rewrite in one line. Raises RuleError if the rule raises."""
    try:
        return found.rule.describe(found)
    except Exception as error:
        raise raised(found.rule, "describe", error, graph) from error


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
    raise fault_of(rule, message(f"{rule.name} found {wrong}", listing=shown(whole)))


def check_rewritten(graph: Graph, found: Match, known: Known | None = None) -> None:
    """A rule must give a well-formed graph whose results have the types they had."""
    check_well_formed(graph, found, known)
    before, after = result_types(found.graph), result_types(graph)
    if before != after:
        wrong = f"the results had types {before} and have {after}"
        raise ill_formed(graph, found, wrong)


def check_well_formed(graph: Graph, found: Match, known: Known | None = None) -> None:
    """A rule must give a well-formed graph."""
    if not isinstance(graph, Graph):
        raise no_graph(found.rule, graph, found.graph)
    try:
        verify(graph, known)
    except (VerifyError, AttributeError, IndexError, KeyError, TypeError) as error:
        raise ill_formed(graph, found, str(error)) from error


def ill_formed(graph: Graph, found: Match, wrong: str) -> RuleError:
    """The error where the rewritten graph is ``wrong``, with the listings before and after."""
    listing = f"{shown(found.graph)}---\n{shown(graph)}"
    what = f"{found.rule.name} made an ill-formed graph: {wrong}"
    return fault_of(found.rule, message(what, listing=listing))


def no_graph(rule: Rule, made: object, graph: Graph) -> RuleError:
    """The error where ``apply`` gave something else than the rewritten graph."""
    what = f"{rule.name}.apply returned {a_kind(made)}, not the rewritten graph"
    hint = "return edit.finish(), of edit = match.edit()"
    return fault_of(rule, message(what, listing=shown(graph), hint=hint))


def result_types(graph: Graph | Level) -> tuple[Type, ...]:
    """The types of what leaves a graph."""
    return graph.types_of(output.value for output in graph.outputs)


def shown(graph: Graph) -> str:
    """The listing of a graph, which may be too broken for one."""
    try:
        return graph.show()
    except (AttributeError, IndexError, KeyError, ValueError):
        return f"a graph of {len(graph.nodes)} nodes, too broken to be printed\n"
