"""The moves behind the rules as data: the tile program after each, what it gives, what it asks.

Tile state 0 is the program as it was lowered, state i what move i made. The last is what is
printed: what follows moves by itself (closing.py) makes it of the draft that they rewrite.
"""

from __future__ import annotations

from typing import Any

from blockbuster.emit.schedule import closing
from blockbuster.emit.schedule.steps import Cost, KernelDerivation, cost_of
from blockbuster.emit.tile.program import TileProgram
from blockbuster.errors import shown_lines
from blockbuster.view.explorer.states import Strings, text_data
from blockbuster.view.explorer.texts import Text, changed
from blockbuster.view.why import lead, why

CLOSING = "close"
CLOSING_LEAD = "what follows moves by itself, before the program is printed."

Data = dict[str, Any]


def moves_data(derivation: KernelDerivation | None, strings: Strings) -> Data:
    """Tile states and moves; none of either where there is no kernel."""
    if derivation is None:
        return {"states": [], "steps": []}
    programs = [derivation.start.draft, *(step.after.draft for step in derivation.steps)]
    costs = [cost_of(derivation.start), *(step.costs[1] for step in derivation.steps)]
    steps = [
        {
            "move": step.move.name,
            "line": step.line,
            "lead": lead(step.move),
            "why": why(step.move),
        }
        for step in derivation.steps
    ]
    final = derivation.final.program
    if final != programs[-1]:
        programs.append(final)
        costs.append(costs[-1])
        told = " ".join((closing.__doc__ or "").split("\n\n")[1].split())
        steps.append({"move": CLOSING, "line": "", "lead": CLOSING_LEAD, "why": told})
    return {"states": _states(programs, costs, strings), "steps": steps}


def _states(programs: list[TileProgram], costs: list[Cost | None], strings: Strings) -> list[Data]:
    states: list[Data] = []
    before: list[str] = []
    for program, cost in zip(programs, costs, strict=True):
        lines = shown_lines(program.show())
        state = {**text_data(Text(tuple(lines), ("",) * len(lines)), strings), "cost": _cost(cost)}
        if states:
            states[-1]["gone"], state["come"] = changed(before, lines)
        states.append(state)
        before = lines
    return states


def _cost(cost: Cost | None) -> Data | None:
    if cost is None:
        return None
    return {
        "elements": cost.elements,
        "programs": list(cost.programs),
        "shared": list(cost.shared),
    }
