"""Every equation of a fused program comes from a line of the user or from a rule (invariant 13)."""

import pytest

from blockbuster import fuse, lower, safe, trace
from blockbuster.ir.graph import Graph
from blockbuster.ir.origin import Origin
from blockbuster.rules import PAPER_RULES, PEELING_RULES, RULES
from tests.frontend.programs import PROGRAMS
from tests.parameters import one_in


def orphans(graph: Graph) -> list[str]:
    return [
        f"{node.op} at {(*path, position)}"
        for path, level in graph.walk()
        for position, node in enumerate(level.nodes)
        if node.origin == Origin() or not node.origin.lines()
    ]


@pytest.mark.parametrize("name", one_in(4, PROGRAMS))
def test_every_equation_has_an_origin(name):
    function, dims = PROGRAMS[name]
    graph = lower(trace(function, **dims))
    assert orphans(graph) == []
    for rules in (RULES, PAPER_RULES, PEELING_RULES):
        final = fuse(graph, rules).final
        assert orphans(final) == [], rules
        assert orphans(safe(final)) == [], rules
