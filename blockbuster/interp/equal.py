"""Are two programs equal? A randomized exact answer, and what exactly it says.

The programs are run on random residues with uninterpreted functions (tier A), at random small
sizes and blocks. Where they agree in every trial they are equal as terms, but for luck, and that
is bounded. Where they do not they may still be equal, by a law of some function or of order, so a
difference is only reported as one where it shows in floating point too; else tier B (exp is a
homomorphism) and ordered arithmetic are asked, which may say equal; different only where exact
fractions are what both programs compute.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any

from blockbuster.interp.apart import float_difference
from blockbuster.interp.binding import source_names, sources
from blockbuster.interp.constants import beyond, compares, constants_of
from blockbuster.interp.ordered import is_literal
from blockbuster.interp.proof import Counterexample, Proof
from blockbuster.interp.recheck import check_counterexample
from blockbuster.interp.setting import Setting, settings
from blockbuster.interp.tiers import CHARACTERS, DRAWN, FREE, ORDERED, Tier
from blockbuster.interp.trials import Trials, Unsettled
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Misc
from blockbuster.ir.types import size_class
from blockbuster.ir.verify import check_graph

__all__ = ["Counterexample", "Proof", "Setting", "check_equal_exactly", "prove_equal", "settings"]


def check_equal_exactly(
    a: Graph, b: Graph, *, trials: int = 2, seed: int = 0
) -> Counterexample | None:
    """Where two programs differ as terms, or None where they agree in every trial.

    Raises Unsettled where the trials cannot tell, ValueError where the interfaces differ.
    """
    return difference(a, b, Trials(trials, seed))


def difference(a: Graph, b: Graph, trials: Trials) -> Counterexample | None:
    """``check_equal_exactly`` in trials that other programs have been through."""
    _same_interface(a, b)
    return trials.outcome(a, b).difference


def prove_equal(a: Graph, b: Graph, trials: int = 8, seed: int = 0) -> Proof:
    """Compare two programs of one interface exactly, on random inputs, sizes and blocks.

    ``equal`` is True where they agree in every trial of some tier, False where they differ in
    floating point too, None where neither shows. Raises ValueError where the interfaces differ, or
    trials is below 1, TypeError for what is no program.
    """
    check_graph(a)
    check_graph(b)
    return proof(a, b, Trials(trials, seed))


def proof(a: Graph, b: Graph, trials: Trials) -> Proof:
    """``prove_equal`` in trials of tier A that other programs have been through."""
    _same_interface(a, b)
    count, seed = trials.count, trials.seed

    def found(equal: bool | None, tier: Tier, reason: str, **more: Any) -> Proof:
        if (shown := more.get("counterexample")) is not None:
            check_counterexample(shown)
        facts = {"false_accept_bound": None, "counterexample": None, "redraws": 0, **more}
        return Proof(
            equal, tier.name, tier.scope, tier.assumptions, reason=reason, trials=count, **facts
        )

    if a == b and source_names(a) == source_names(b):
        return found(True, FREE, "the programs are the same", false_accept_bound=0.0)
    why = "the programs differ as terms, but no difference shows in floating point"
    constants, literal = constants_of(a, b), is_literal(a) and is_literal(b)
    for tier in (FREE, DRAWN, CHARACTERS, ORDERED):
        if tier is DRAWN:
            visible = float_difference(a, b, count, seed)
            if visible is not None:
                reason = "the programs differ as terms, and in floating point"
                return found(False, FREE, reason, counterexample=visible)
        if tier is ORDERED and not literal and compares(a, b):
            continue  # which way exp(x) < 3 goes is not what 2**x says
        tried = trials if tier is FREE else Trials(count, seed, tier, constants)
        try:
            outcome = tried.outcome(a, b)
        except Unsettled as unsettled:
            why = str(unsettled) if tier is FREE else why
            continue
        if outcome.difference is None:
            if hidden := beyond(a) ^ beyond(b):
                return found(None, tier, _out_of_reach(hidden))
            bound = tried.false_accept_bound(a, b, outcome) if tier is FREE else None
            reason = "the programs agree in every trial"
            return found(True, tier, reason, false_accept_bound=bound, redraws=outcome.redraws)
        if tier is ORDERED and literal:
            reason = "the programs differ in exact arithmetic"
            return found(False, tier, reason, counterexample=outcome.difference)
    return found(None, FREE, why)


def _out_of_reach(numbers: Iterable[float]) -> str:
    said = ", ".join(f"{number:g}" for number in sorted(numbers))
    return f"the programs agree in every trial, but only one mentions {said}: no position got there"


def _same_interface(a: Graph, b: Graph) -> None:
    same = len(a.inputs) == len(b.inputs) and all(map(is_, a.inputs, b.inputs))
    if not same and (a.inputs != b.inputs or source_names(a) != source_names(b)):
        _same_sources(a, b)
    # an array may be written in parts, each an output of its own
    left, right = (list(dict.fromkeys(graph.output_names)) for graph in (a, b))
    if left != right:
        raise ValueError(f"the programs return different arrays: {left} and {right}")
    functions: dict[str, Misc] = {}
    for op in (*a.mentions.miscs, *b.mentions.miscs):
        if functions.setdefault(op.name, op).fn != op.fn:
            raise ValueError(
                f"the programs call two functions by the name {op.name}: a name stands for one"
            )


def _same_sources(a: Graph, b: Graph) -> None:
    left, right = sources(a), sources(b)
    if left.keys() != right.keys():
        raise ValueError(f"the programs read different arrays: {sorted(left)} and {sorted(right)}")
    for name, axes in left.items():
        one, two = ([d and size_class(d) for d in dims] for dims in (axes, right[name]))
        if one != two:
            raise ValueError(
                f"the programs read {name} with different dims, {one} and {two}: name them alike"
            )
