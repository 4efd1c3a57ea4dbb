"""The sequence of programs on a page, and the place of each step in them.

State 0 is the start, state i the result of frame i. The shown derivation comes first. If the
kernel's program is none of its snapshots, the steps that lead to it follow; the numerically safe
form comes last, if it differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blockbuster.ir.graph import Graph
from blockbuster.rules import Derivation, SafeForm, safe
from blockbuster.rules.derivation import Application, Path, apply_at


@dataclass(frozen=True)
class Frame:
    """One step from state ``start``: the nodes it took in ``before``, those it made in ``after``.

    ``roles`` says what each node that was taken is to the rule. A step without ``application`` is
    no rule's: it is the numerically safe form. ``beside``: it leads to the kernel's program alone.
    """

    start: int
    before: Graph
    after: Graph
    application: Application | None
    roles: tuple[tuple[str, Path], ...]
    made: tuple[Path, ...]
    beside: bool = False


def frames(derivation: Derivation, kernels: Derivation | None = None) -> tuple[Frame, ...]:
    """Every step up to the last snapshot, then those to the end of ``kernels`` and its safe form.

    ``kernels`` ends with the program that becomes kernels; by default it is ``derivation``.
    """
    found = [*_applied(derivation.start, _steps(derivation), 0, 0)]
    graphs = [derivation.start, *(frame.after for frame in found)]
    wanted = kernels or derivation
    place, rest = _parting(derivation, wanted)
    for frame in _applied(graphs[place], rest, place, len(found), beside=True):
        found.append(frame)
        place = len(found)
    final = found[place - 1].after if place else derivation.start
    stable = _made_safe(place, final, safe(final))
    return (*found, stable) if stable.after != final else tuple(found)


def final_state(kernels: Derivation, found: Sequence[Frame]) -> int:
    """The state that is the kernels' program, before its safe form."""
    last = found[-1] if found else None
    if last is not None and last.application is None:
        return last.start
    if last is not None and not last.beside:
        return len(_steps(kernels))
    return len(found)


def _steps(derivation: Derivation) -> tuple[Application, ...]:
    return derivation.applications[: derivation.snapshots_after[-1]]


def _parting(derivation: Derivation, wanted: Derivation) -> tuple[int, tuple[Application, ...]]:
    """The last state that both have, and what ``wanted`` does from there."""
    own, other = _steps(derivation), _steps(wanted)
    same = 0
    while same < min(len(own), len(other)) and own[same] == other[same]:
        same += 1
    return same, other[same:]


def _applied(
    before: Graph,
    steps: Sequence[Application],
    start: int,
    count: int,
    *,
    beside: bool = False,
) -> list[Frame]:
    """The frames of ``steps`` from state ``start``, where ``count`` frames are there already."""
    found = []
    for at, step in enumerate(steps):
        after, level = apply_at(before, step)
        number = count + at if at else start
        if step.rule == SafeForm():
            found.append(_made_safe(number, before, after))
            before = after
            continue
        roles = tuple((role, (*step.path, node)) for role, node in step.nodes.items())
        made = _new_nodes(before.at(step.path), after.at(level), level)
        found.append(Frame(number, before, after, step, roles, made, beside))
        before = after
    return found


def _made_safe(start: int, before: Graph, stable: Graph) -> Frame:
    return Frame(start, before, stable, None, (), tuple(_by_the_pass(stable)))


def _new_nodes(before: Graph, after: Graph, level: Path) -> tuple[Path, ...]:
    """The nodes of a level with an origin that none had before: each rule application makes one."""
    old = {id(node.origin) for node in before.nodes}
    return tuple((*level, at) for at, node in enumerate(after.nodes) if id(node.origin) not in old)


def _by_the_pass(graph: Graph) -> list[Path]:
    """The nodes that the numerical-safety pass wrote, at any depth."""
    return [
        (*at, position)
        for at, level in graph.walk()
        for position, node in enumerate(level.nodes)
        if node.origin.rule == "safe"
    ]
