"""The programs between the steps as data: texts, costs, and what changes from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from blockbuster.ir.graph import Graph
from blockbuster.view.explorer.costs import Table, costs
from blockbuster.view.explorer.texts import Text, changed, loop_form, text_form


@dataclass
class Strings:
    """Texts by number, each once."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, texts: Sequence[str]) -> list[int]:
        """The numbers of texts; new ones are added."""
        return [self.numbers.setdefault(text, len(self.numbers)) for text in texts]


def states_data(graphs: Sequence[Graph], strings: Strings, table: Table) -> list[dict[str, Any]]:
    """Each program: its two texts and what it costs."""
    forms = {"text": [text_form(g) for g in graphs], "loops": [loop_form(g) for g in graphs]}
    states: list[dict[str, Any]] = []
    for at, graph in enumerate(graphs):
        state = costs(graph, table, _printed_names(forms["text"][at]))
        for form, texts in forms.items():
            state[form] = text_data(texts[at], strings)
            if at:
                gone, come = changed(texts[at - 1].lines, texts[at].lines)
                states[-1][form]["gone"] = gone
                state[form]["come"] = come
        states.append(state)
    return states


def text_data(text: Text, strings: Strings) -> dict[str, Any]:
    """A text: the numbers of its lines and of the places behind them, or why there is none."""
    return {
        "lines": strings.of(text.lines),
        "places": strings.of(text.places),
        "missing": text.missing,
    }


def _printed_names(text: Text) -> dict[str, str]:
    """The names on the left of a node's equation, by place."""
    found: dict[str, str] = {}
    for line, place in zip(text.lines, text.places, strict=True):
        left, equals, _ = line.strip().partition(" = ")
        if place and equals:
            found.setdefault(place, left)
    return found
