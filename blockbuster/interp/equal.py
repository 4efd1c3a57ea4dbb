"""Are two programs equal? A randomized exact test, and the statement that its result supports.

The programs are run on random residues with uninterpreted functions (tier A), at random small sizes
and blocks. If they agree in every trial, they are equal as terms, but for luck, which is bounded.
If they do not, they may still be equal, by a law of some function or of order. So a difference is
reported as one only if it shows in floating point, too, or in fractions where both programs compute
these. Otherwise tier B (exp is a homomorphism) and all cases of the comparisons decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from blockbuster.interp.apart import at_points, float_difference
from blockbuster.interp.binding import source_names, sources
from blockbuster.interp.cases import Cases, compare
from blockbuster.interp.constants import beyond, constants_of
from blockbuster.interp.domains import dtypes_of
from blockbuster.interp.evidence import evidence
from blockbuster.interp.ordered import is_literal
from blockbuster.interp.positions import mentions_positions, read_positions, read_sizes, unseen
from blockbuster.interp.powers import power
from blockbuster.interp.proof import Counterexample, Proof
from blockbuster.interp.setting import Setting, enlarged, settings
from blockbuster.interp.terms import TooLarge
from blockbuster.interp.tiers import (
    ANYWHERE,
    CASES,
    FREE,
    FREE_CHARACTERS,
    ORDERED,
    Tier,
)
from blockbuster.interp.trials import Outcome, Trials, Unsettled
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Misc
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.verify import check_graph
from blockbuster.ir.whole_dims import whole_dims

EXACTLY = "no integer overflows: programs are compared on whole numbers of any size"
HIGHEST = 40
"""The highest power of positions and sizes for which as many sizes are tried."""

__all__ = ["Counterexample", "Proof", "Setting", "check_equal_exactly", "prove_equal", "settings"]


def check_equal_exactly(
    a: Graph, b: Graph, *, trials: int = 2, seed: int = 0
) -> Counterexample | None:
    """The place where two programs differ as terms, or None if they agree in every trial.

    Raises Unsettled where the trials cannot tell, ValueError if the interfaces differ.
    """
    return difference(a, b, Trials(trials, seed))


def difference(a: Graph, b: Graph, trials: Trials) -> Counterexample | None:
    """``check_equal_exactly`` in trials that other programs have been through."""
    _same_interface(a, b)
    return trials.outcome(a, b).difference


def prove_equal(a: Graph, b: Graph, trials: int = 8, seed: int = 0) -> Proof:
    """Compare two programs of one interface exactly, on random inputs, sizes and blocks.

    ``equal`` is True if they agree in every trial of some tier, False if they differ in floating
    point, too, and None if neither shows. Raises ValueError if the interfaces differ, or trials is
    below 1, TypeError for arguments that are not programs.
    """
    check_graph(a)
    check_graph(b)
    return proof(a, b, Trials(trials, seed))


def proof(a: Graph, b: Graph, trials: Trials) -> Proof:
    """``prove_equal`` in trials of tier A that other programs have been through."""
    _same_interface(a, b)
    found = _proof(a, b, trials)
    more = (*_in_one_block(a, b), *(EXACTLY,) * any(_integers(a, b)))
    return replace(found, assumptions=(*found.assumptions, *more))


def _integers(*graphs: Graph) -> list[str]:
    """The dtypes of the arrays of integers that programs read."""
    return [dtype for dtype in dtypes_of(*graphs).values() if dtype in INTEGERS]


def _in_one_block(a: Graph, b: Graph) -> tuple[str, ...]:
    """What is said of dims that are whole in one program and looped over in one."""
    whole = dict.fromkeys(whole_dims(a) + whole_dims(b))
    looped = {size_class(dim) for graph in (a, b) for dim in graph.loops}
    dims = [dim for dim in whole if dim in looped]
    return (f"{' and '.join(dims)} in one block: other numbers of blocks are not shown",) * bool(
        dims
    )


def _proof(a: Graph, b: Graph, trials: Trials) -> Proof:
    if a == b and source_names(a) == source_names(b):
        return _found(True, FREE, "the programs are the same", trials, false_accept_bound=0.0)
    why = "the programs differ as terms, but no difference shows in floating point"
    try:
        outcome = trials.outcome(a, b)
        if outcome.difference is None:
            bound = trials.false_accept_bound(a, b, outcome)
            return _agreed(a, b, FREE, trials, outcome, false_accept_bound=bound)
    except Unsettled as unsettled:
        why = str(unsettled)
    visible = float_difference(a, b, trials.count, trials.seed)
    if visible is not None:
        reason = "the programs differ as terms, and in floating point"
        return _found(False, FREE, reason, trials, counterexample=visible)
    by_laws = _outcome(a, b, FREE_CHARACTERS, trials)
    if by_laws is not None and by_laws.difference is None:
        return _agreed(a, b, FREE_CHARACTERS, trials, by_laws)
    return _case_by_case(a, b, trials, why)


def _case_by_case(a: Graph, b: Graph, trials: Trials, why: str) -> Proof:
    """What holds however comparisons turn out; a difference also if random fractions show it."""
    literal = is_literal(a) and is_literal(b)
    fractions = _outcome(a, b, ORDERED, trials) if literal else None
    if fractions is not None and fractions.difference is not None:
        shown = _in_fractions(a, b, fractions.difference)
        if shown is not None:
            reason = "the programs differ in exact arithmetic"
            return _found(False, ORDERED, reason, trials, counterexample=shown)
    search = at_points(a, b)
    for laws, tier in CASES.items():
        found = compare(a, b, laws=laws, search=search)
        if found.equal is False:
            return _found(False, FREE, found.reason, trials, counterexample=found.counterexample)
        if found.equal:
            return _agreed_in_cases(a, b, tier, trials, found)
        why = f"{why}; {found.reason}" if laws else why
    return _found(None, FREE, why, trials)


def _in_fractions(a: Graph, b: Graph, found: Counterexample) -> Counterexample | None:
    """The evidence of a difference that fractions show, if it counts."""
    setting = Setting(found.sizes, found.block_sizes)
    inputs = setting.domain(a, b).nearest(found.inputs)
    return evidence((a, b), setting, inputs, (found.left, found.right), found.semantics)


def _outcome(a: Graph, b: Graph, tier: Tier, trials: Trials) -> Outcome | None:
    try:
        return Trials(trials.count, trials.seed, tier, constants_of(a, b)).outcome(a, b)
    except Unsettled:
        return None


def _agreed(a: Graph, b: Graph, tier: Tier, trials: Trials, outcome: Outcome, **more: Any) -> Proof:
    """A yes, unless comparisons of positions or sizes have outcomes that no size tried shows."""
    if not _anywhere(a, b, tier, trials):
        tried = _grown(a, b, tier, trials, outcome).settings
        hidden = _hidden(a, b, [setting.sizes for setting in tried])
        if hidden:
            return _found(None, tier, _out_of_reach(a, b, hidden), trials)
    reason = "the programs agree in every trial"
    return _found(True, tier, reason, trials, redraws=outcome.redraws, **more)


def _agreed_in_cases(a: Graph, b: Graph, tier: Tier, trials: Trials, cases: Cases) -> Proof:
    """The same where all cases of the comparisons were gone through."""
    sizes = [setting.sizes for setting in cases.settings]
    hidden = _hidden(a, b, sizes, any_size=cases.any_size)
    if hidden:
        return _found(None, tier, _out_of_reach(a, b, hidden), trials)
    *others, last = sorted({n for held in sizes for n in held.values()})
    said = f"{', '.join(map(str, others))} and {last}" if others else f"{last}"
    reason = f"the programs agree in every case of their comparisons at sizes {said}"
    return _found(True, tier, reason, trials)


def _grown(a: Graph, b: Graph, tier: Tier, trials: Trials, outcome: Outcome) -> Outcome:
    """``outcome`` with as many sizes more as powers of positions and sizes take, if these agree."""
    try:
        degree = power(a, b)
    except TooLarge:
        return outcome
    if degree > HIGHEST:
        return outcome
    more: list[Setting] = []
    for dim in read_positions(a, b):
        more += enlarged(a, b, outcome.settings[0], dim, [degree + 1])
    for dim in read_sizes(a, b):
        more += enlarged(a, b, outcome.settings[0], dim, range(1, degree + 2))
    tried = Trials(trials.count, trials.seed, tier, constants_of(a, b))
    try:
        agree = tried.agree_at(a, b, more)
    except Unsettled:
        return outcome
    return replace(outcome, settings=(*outcome.settings, *more)) if agree else outcome


def _hidden(
    a: Graph, b: Graph, tried: Sequence[Mapping[Dim, int]], *, any_size: bool = False
) -> str:
    """What programs may do at positions or sizes that were not tried; "" for nothing."""
    try:
        found = unseen(a, b, tried)
        degree = power(a, b)
    except TooLarge:
        return "the programs are too large to tell which positions they compare"
    if found:
        return found
    for dim in read_positions(a, b):
        if max(held.get(dim, 0) for held in tried) <= degree:
            return f"positions along {dim} enter with powers up to {degree}, and fewer were tried"
    for dim in () if any_size else read_sizes(a, b):
        if len({held.get(dim, 0) for held in tried}) <= degree:
            return f"the size of {dim} enters with powers up to {degree}, and fewer were tried"
    return ""


def _anywhere(a: Graph, b: Graph, tier: Tier, trials: Trials) -> bool:
    """Whether two programs agree whatever positions, sizes and lengths of rows are."""
    tried = trials
    if tier is not FREE or mentions_positions(a, b):
        tried = trials.of(ANYWHERE[tier])
        try:
            if tried.outcome(a, b).difference is not None:
                return False
        except Unsettled:
            return False
    return not tried.sizes_matter


def _found(equal: bool | None, tier: Tier, reason: str, trials: Trials, **more: Any) -> Proof:
    facts = {"false_accept_bound": None, "counterexample": None, "redraws": 0, **more}
    return Proof(
        equal, tier.name, tier.scope, tier.assumptions, reason=reason, trials=trials.count, **facts
    )


def _out_of_reach(a: Graph, b: Graph, hidden: str) -> str:
    numbers = ", ".join(f"{number:g}" for number in sorted(beyond(a) ^ beyond(b)))
    said = f": only one mentions {numbers}" if numbers else ""
    return f"the programs agree in every trial, but {hidden}{said}"


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
    for name in left:
        dtypes = [dtypes_of(graph).get(name, "floats") for graph in (a, b)]
        if name in right and dtypes[0] != dtypes[1]:
            raise ValueError(
                f"the programs read {name} as {dtypes[0]} and as {dtypes[1]}: give it one dtype"
            )
    if left.keys() != right.keys():
        raise ValueError(f"the programs read different arrays: {sorted(left)} and {sorted(right)}")
    for name, axes in left.items():
        one, two = ([d and size_class(d) for d in dims] for dims in (axes, right[name]))
        if one != two:
            raise ValueError(
                f"the programs read {name} with different dims, {one} and {two}: name them alike"
            )
