"""Substitution rules, their order of priority, and the algorithm that applies them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim
from blockbuster.rules.base import Match, Refusal, Rule, reasons
from blockbuster.rules.copy_producer import CopyProducer
from blockbuster.rules.derivation import Derivation, Step
from blockbuster.rules.driver import fuse as fuse_with
from blockbuster.rules.duplicate_scale import DuplicateScale
from blockbuster.rules.explain import Explanation, explain_with
from blockbuster.rules.extend_map import ExtendMap
from blockbuster.rules.extend_map_over_ancestors import ExtendMapOverAncestors
from blockbuster.rules.extend_map_over_copies import ExtendMapOverCopies
from blockbuster.rules.factor_out import FactorOut
from blockbuster.rules.factor_out_exp import FactorOutExp
from blockbuster.rules.faults import OnFault
from blockbuster.rules.fold_columns import FoldColumns
from blockbuster.rules.fuse_elementwise import FuseElementwise
from blockbuster.rules.fuse_maps import FuseMaps
from blockbuster.rules.fuse_reduction import FuseReduction
from blockbuster.rules.fuse_siblings import FuseSiblings
from blockbuster.rules.local_linearity import LocalLinearity
from blockbuster.rules.made_again import made_again
from blockbuster.rules.materialize import Materialize
from blockbuster.rules.monotone_out_of_extremum import MonotoneOutOfExtremum
from blockbuster.rules.overflow import overflowing
from blockbuster.rules.peel_first_iteration import PeelFirstIteration
from blockbuster.rules.remake import Remake
from blockbuster.rules.repair_by_law import RepairByLaw
from blockbuster.rules.rolling_update import RollingUpdate
from blockbuster.rules.safe_form import SafeForm, made_safe
from blockbuster.rules.safety import safe
from blockbuster.rules.swap_mean_dot import SwapMeanDot
from blockbuster.rules.swap_scale_dot import SwapScaleDot
from blockbuster.rules.swap_shift_dot import SwapShiftDot
from blockbuster.rules.transpose_producer import TransposeProducer
from blockbuster.rules.whole_dim import WholeDim, fuse_whole

# The paper's order (section 4.1): what exposes a pattern comes before what consumes it.
PAPER_RULES: tuple[Rule, ...] = (
    DuplicateScale(),  # 8: gives each matmul its own scale, so that 4 can move it
    SwapScaleDot(),  # 4: before fusion hides the scale in a larger body
    SwapShiftDot(),  # 5: likewise for shifts
    FuseElementwise(),  # 9: shortens bodies before they are copied around
    FuseReduction(),  # 3: a fold on the fly, before its map is fused with others
    FuseMaps(),  # 1: the rule that removes most buffered edges
    FuseSiblings(),  # 2: last, since a direct edge between two maps is better fused by 1
    ExtendMap(),  # 6: repeats work, so only at a fixpoint and after a snapshot
)

RULES: tuple[Rule, ...] = (
    DuplicateScale(),  # as in the paper, from here on
    SwapScaleDot(),
    SwapMeanDot(),  # 5 where no digits cancel
    FuseElementwise(),
    FuseReduction(),
    FuseMaps(),
    FuseSiblings(),
    Remake(),  # after fusion, when a value has the fewest readers: what is left reads it elsewhere
    FoldColumns(),  # after fusion: it looks inside one body, and makes way for the next rule
    LocalLinearity(),  # what rules 4 and 5 recognize before fusion is theirs
    FactorOut(),  # after fusion: it needs one body from the factor to the fold
    RepairByLaw(),  # behind what moves a factor out of a fold as it is
    FactorOutExp(),  # last: as an exponential is undone for its factor, others have left all folds
    ExtendMap(),  # the paper's extension, where it applies: then its derivations are the paper's
    ExtendMapOverAncestors(),  # where the entire graph cannot be taken in
)

ROLLING_RULES: tuple[Rule, ...] = (
    *RULES[:-2],
    MonotoneOutOfExtremum(),  # what needs no repair, and no order of rows
    RollingUpdate(),  # what is left to wait for another fold, behind all that need no repair
    *RULES[-2:],
)
"""For normalizers that no other rule knows. Not the default: in front of the safety pass they hide
exponentials of softmaxes that are written by hand from it."""

PEELING_RULES: tuple[Rule, ...] = (
    *PAPER_RULES[:-1],
    PeelFirstIteration(),  # 7: instead of 6, where no work may be repeated
)

WHOLE_RULES: tuple[Rule, ...] = (
    WholeDim(),  # for chosen dims and before the others: it holds where these are one block
)

SAFETY_RULES: tuple[Rule, ...] = (
    SafeForm(),  # after fusion, and before rules that rewrite a safe program
)

UNFUSING_RULES: tuple[Rule, ...] = (
    Materialize(),  # for programs that are fused: rules 1 to 3 and 6 undo what it does
)

REPEATING_RULES: tuple[Rule, ...] = (
    CopyProducer(),  # before fusion: the copies are fused, each into its reader
    TransposeProducer(),  # then, for a copy whose reader wants another order
    ExtendMapOverCopies(),  # behind the other extensions, where they refuse to copy
)
"""These repeat work that is not free, which ``made_again`` does; no other rule set holds them."""


def fuse(
    graph: Graph,
    rules: Sequence[Rule] = RULES,
    *,
    whole: Sequence[Dim] = (),
    on_fault: OnFault | None = None,
) -> Derivation:
    """Fuse a block program: returns a derivation with its steps, snapshots and final program.

    The dims ``whole`` are one block each: values that loops over them would store and read again
    stay local, and the snapshots need schedules that give these dims one block. ``"D"`` means all
    dims of its size class, also those that are relabeled D', D''; ``"D'"`` means that one only.
    Raises RuleError, with the reason, for a dim that no loop runs over, or that cannot be whole.

    A rule that raises, or makes an ill-formed graph, has a bug: RuleError names it. ``on_fault``
    takes that error instead, and the program is fused without the rule: ``on_fault=print`` shows
    the errors and goes on.

    Source: Blockbuster Part 1, section 4.
    """
    if whole:
        return fuse_whole(graph, rules, whole, on_fault)
    return fuse_with(graph, rules, on_fault)


def explain(
    graph: Graph,
    sizes: Mapping[Dim, int] | None = None,
    *,
    on_fault: OnFault | None = None,
) -> tuple[Explanation, ...]:
    """The reason for each interior buffered edge: the nearest rule and the precondition it failed.

    It also says what would unlock the edge and, given ``sizes`` (of every dim of such an edge), how
    many bytes are at stake. A rule that fails raises RuleError or, if there is an ``on_fault``, has
    no say.
    """
    return explain_with(graph, RULES, sizes, on_fault)


__all__ = [
    "PAPER_RULES",
    "PEELING_RULES",
    "REPEATING_RULES",
    "ROLLING_RULES",
    "RULES",
    "SAFETY_RULES",
    "UNFUSING_RULES",
    "WHOLE_RULES",
    "CopyProducer",
    "Derivation",
    "DuplicateScale",
    "Explanation",
    "ExtendMap",
    "ExtendMapOverAncestors",
    "FactorOut",
    "FactorOutExp",
    "ExtendMapOverCopies",
    "FoldColumns",
    "FuseElementwise",
    "FuseMaps",
    "FuseReduction",
    "FuseSiblings",
    "LocalLinearity",
    "Match",
    "Materialize",
    "MonotoneOutOfExtremum",
    "PeelFirstIteration",
    "Refusal",
    "Remake",
    "RepairByLaw",
    "RollingUpdate",
    "Rule",
    "SafeForm",
    "Step",
    "SwapMeanDot",
    "SwapScaleDot",
    "SwapShiftDot",
    "WholeDim",
    "TransposeProducer",
    "explain",
    "fuse",
    "made_again",
    "made_safe",
    "overflowing",
    "reasons",
    "safe",
]
