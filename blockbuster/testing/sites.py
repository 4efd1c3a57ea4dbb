"""Checks of everything that a rule owes at one site of a program; the first failure is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from blockbuster.errors import BlockbusterError, VerifyError, a_kind
from blockbuster.interp import equal
from blockbuster.interp.equal import prove_equal
from blockbuster.interp.trials import Trials, Unsettled
from blockbuster.ir.graph import Graph
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.rules.base import Match, Note, Rule, unheard
from blockbuster.rules.derivation import Path, path_in_words, splice

TRIALS = 2
MOST_STEPS = 100  # at one level of a random program, by one rule
UNSETTLED = "unsettled"


@dataclass(frozen=True)
class Flaw:
    """A flaw at a site: its kind in two or three words, and the full description."""

    kind: str
    story: str


@dataclass(frozen=True)
class Site:
    """A match at a level of a program."""

    graph: Graph
    path: Path
    match: Match

    @property
    def level(self) -> Graph:
        """The graph that the rule saw."""
        return self.graph.at(self.path)

    @cached_property
    def rewritten(self) -> Graph:
        """The level after the rule."""
        return self.match.rule.apply(self.match)

    @cached_property
    def after(self) -> Graph:
        """The whole program after the step."""
        return splice(self.graph, self.path, self.rewritten)[0]

    def __str__(self) -> str:
        roles = ", ".join(f"{role} = node {at}" for role, at in self.match.nodes.items())
        return f"{self.match.rule.name} at {path_in_words(self.graph, self.path)} ({roles})"


def sites(graph: Graph, rules: Sequence[Rule], note: Note = unheard) -> Iterator[Site]:
    """Every site of the rules at every level."""
    for path, level in graph.walk():
        for rule in rules:
            for match in rule.matches(level, note):
                yield Site(graph, path, match)


def flaw(site: Site, trials: Trials | None = None) -> Flaw | None:
    """The first thing that the rule owes at this site and does not give.

    Sites of one program, or of a chain of steps, are checked faster in the same ``trials``.
    """
    text = site.graph.show()
    wrong = ill_made(site)
    if wrong:
        return wrong
    if site.graph.show() != text:
        return Flaw("changes its input", "apply changed the graph that it was given")
    return difference(site.graph, site.after, trials)


def endless(site: Site) -> Flaw | None:
    """Whether the rule, applied to its own results at one level, goes on and on.

    An extension is applied once between other rules, so nothing is asked of it alone.
    """
    rule, level, seen = site.match.rule, site.rewritten, {site.level}
    if rule.kind == "extension":
        return None
    for _ in range(MOST_STEPS):
        if level in seen:
            return Flaw("does not end", f"{rule.name} comes back to a program that it has changed")
        seen.add(level)
        try:
            found = rule.match(level)
            if found is None:
                return None
            level = rule.apply(found)
        except Exception as error:
            story = f"{rule.name} raised {raised(error)} on\n\n{level}\nwhich it had made"
            return Flaw("fails on its results", story)
    return Flaw("does not end", f"{rule.name} still applies after {MOST_STEPS} steps of its own")


def ill_made(site: Site) -> Flaw | None:
    """The first debt that shows without running a program."""
    for debt in DEBTS:
        story = debt(site)
        if story:
            return Flaw(KINDS[debt], story)
    return None


def difference(before: Graph, after: Graph, trials: Trials | None = None) -> Flaw | None:
    """The difference between two programs, if any; ``UNSETTLED`` if the trials cannot tell."""
    trials, unknown = trials or Trials(TRIALS), "not proven equal"
    try:
        if equal.difference(before, after, trials) is None:
            return None
    except Unsettled:  # an infinity beside a comparison, say, which cases settle
        unknown = UNSETTLED
    except ValueError as error:
        return Flaw("cannot be compared", f"the programs cannot be compared: {error}")
    proof = prove_equal(before, after, trials=trials.count + 2, seed=trials.seed)
    if proof.equal:
        return None
    return Flaw("other results" if proof.equal is False else unknown, str(proof))


def raised(error: Exception) -> str:
    """An error as its class and words."""
    return f"{type(error).__name__}: {error}"


# What a rule owes before its meaning is looked at: each returns "" or the reason in words ------


def does_not_apply(site: Site) -> str:
    """``apply`` gives a graph, the same each time; its error is a finding, whatever it is."""
    try:
        rewritten, again = site.rewritten, site.match.rule.apply(site.match)
    except Exception as error:
        return f"apply raised {raised(error)}"
    if not isinstance(rewritten, Graph):
        return f"apply returned {a_kind(rewritten)}, not a Graph"
    return "" if rewritten == again else "apply gives two different graphs when called twice"


def does_not_fit(site: Site) -> str:
    """The level keeps its inputs, and its results keep number, names and types."""
    level, rewritten = site.level, site.rewritten
    if rewritten.inputs != level.inputs:
        return "the inputs of the graph changed: apply must keep them, also those not read"
    before = [str(level.type_of(o.value)) for o in level.outputs]
    after = [str(rewritten.type_of(o.value)) for o in rewritten.outputs]
    if before != after:
        return f"the results had types {', '.join(before)} and have {', '.join(after)}"
    if level.output_names != rewritten.output_names:
        return f"the results were named {level.output_names} and are {rewritten.output_names}"
    return ""


def is_ill_formed(site: Site) -> str:
    """The level stays well formed."""
    try:
        verify(site.rewritten)
    except VerifyError as error:
        return f"the rewritten graph is ill-formed: {error}"
    return ""


def breaks_the_program(site: Site) -> str:
    """So does the program around it."""
    try:
        verify(site.after)
    except VerifyError as error:
        return f"the rewritten program is ill-formed: {error}"
    return ""


def does_not_print(site: Site) -> str:
    """The text form of the result parses to it again."""
    try:
        same = parse(site.after.show()) == site.after
    except BlockbusterError as error:
        return f"the text of the rewritten program does not parse: {error}"
    return "" if same else "the rewritten program prints as the text of another one"


def changes_nothing(site: Site) -> str:
    """A step makes another program: else the driver would loop."""
    same = site.rewritten == site.level
    return "apply gives the graph that it was given: it would be applied forever" if same else ""


def has_no_origin(site: Site) -> str:
    """If the rule makes a new operator, some node names the rule as its origin."""
    old = [node.op for node in site.level.nodes]
    new = any(node.op not in old for node in site.rewritten.nodes)
    name = site.match.rule.name
    if not new or name in [node.origin.rule for node in site.rewritten.nodes]:
        return ""
    return f"no node names {name} as its origin: pass origin=match.origin() to Builder.add"


def says_nothing(site: Site) -> str:
    """A step is described in one line."""
    words = site.match.rule.describe(site.match)
    return "" if words and "\n" not in words else f"describe gives {words!r}, not one line"


KINDS: dict[Callable[[Site], str], str] = {
    does_not_apply: "apply fails",
    is_ill_formed: "ill-formed",
    does_not_fit: "other interface",
    breaks_the_program: "ill-formed",
    does_not_print: "does not print",
    changes_nothing: "changes nothing",
    has_no_origin: "no origin",
    says_nothing: "no description",
}
DEBTS = tuple(KINDS)
