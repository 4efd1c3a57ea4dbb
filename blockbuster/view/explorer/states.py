"""The programs between the steps as data: texts, costs, and the changes from one to the next."""

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


FORMS = {"text": text_form, "loops": loop_form}


def states_data(
    graphs: Sequence[Graph], starts: Sequence[int], strings: Strings, table: Table
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Each program, its two texts and what it costs; and for each step the lines that it changes.

    ``starts``: the state that each step starts from.
    """
    texts = {form: [of(graph) for graph in graphs] for form, of in FORMS.items()}
    states = []
    for at, graph in enumerate(graphs):
        state = costs(graph, table, _printed_names(texts["text"][at]))
        states.append(state | {form: text_data(texts[form][at], strings) for form in FORMS})
    changes = []
    for at, start in enumerate(starts, 1):
        found = {f: changed(texts[f][start].lines, texts[f][at].lines) for f in FORMS}
        changes.append({f: {"gone": gone, "come": come} for f, (gone, come) in found.items()})
    return states, changes


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
