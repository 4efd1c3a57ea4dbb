"""The moves behind the rules as data: the tile program after each, its gain and its conditions.

Tile state 0 is the lowered program, state i the result of move i. The last state is the printed
program, which ``emit/closing/order.py`` derives from the draft.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from blockbuster.emit.schedule.steps import Cost, KernelDerivation, cost_of
from blockbuster.emit.tile.program import TileProgram
from blockbuster.errors import shown_lines
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.explorer.states import Strings, text_data
from blockbuster.view.explorer.steps import proof_data
from blockbuster.view.explorer.texts import Text, changed
from blockbuster.view.why import lead, why

CLOSING = "close"
CLOSING_LEAD = "what follows moves by itself, before the program is printed."
CLOSING_WHY = (
    "Before printing, running maxima are folded before the sums that depend on them, lanes past "
    "the end of a dim get values that change nothing, workspaces take the dtype of the dots that "
    "read them, the outer loops of each nest go onto the launch grid, and factors that several "
    "sums share are computed once. Then it is noted how tiles lie in registers, which sums the "
    "matrix units add to, how exact functions are, and what a compiler needs to be told; last, "
    "where overlapping kernels wait for each other. No schedule can choose otherwise."
)

Data = dict[str, Any]


def moves_data(
    derivation: KernelDerivation | None,
    strings: Strings,
    setting: Setting,
    *,
    prove: bool,
    progress: Callable[[str], None],
) -> Data:
    """Tile states and moves, with proofs if asked for; none of any where there is no kernel.

    ``lowered`` is the proof that tile state 0 is the block program.
    """
    if derivation is None:
        return {"states": [], "steps": [], "lowered": None}
    programs = [derivation.start.draft, *(step.after.draft for step in derivation.steps)]
    costs = [cost_of(derivation.start), *(cost_of(step.after) for step in derivation.steps)]
    steps: list[Data] = [
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
        steps.append({"move": CLOSING, "line": "", "lead": CLOSING_LEAD, "why": CLOSING_WHY})
    proofs = _proofs(derivation, setting, progress) if prove else [None] * (len(steps) + 2)
    for step, proof in zip(steps, proofs[1:], strict=False):  # the last is of what follows, if any
        step["proof"] = proof
    return {"states": _states(programs, costs, strings), "steps": steps, "lowered": proofs[0]}


def _proofs(
    derivation: KernelDerivation, setting: Setting, progress: Callable[[str], None]
) -> Sequence[Data | None]:
    """What was shown of the lowering, of every move, and of what follows them."""
    made = replace(derivation, fused=None)  # the rules are proved apart
    report = made.prove(trials=setting.trials, seed=setting.seed, progress=progress)
    return [proof_data(entry.proof) for entry in report.entries]


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
