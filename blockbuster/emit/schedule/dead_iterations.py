"""Dead iterations: may a loop leave out an iteration in which a mask is false everywhere?

The body is run over a small lattice: a tile has one known number everywhere, or some finite
numbers, or nothing is known of it. So -inf passes through the maximum of a row, exp turns it into
0, and a dot of 0 with finite rows is 0. The iteration changes nothing if every value that it folds
is the identity of its fold: -inf for a maximum, which also leaves the scale of its group as it was,
and 0 for a sum.

Values in memory, and values computed before the loop, are assumed to be finite: 0 times an infinite
key is NaN in the full loop, but the narrowed loop leaves it out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blockbuster.emit.schedule.conditions import LONGEST, Formulas
from blockbuster.emit.tile.dataflow import defined, folded, makes
from blockbuster.emit.tile.monoids import kept_empty
from blockbuster.emit.tile.padding import DATA, UNKNOWN, Lane, applied, is_exact, is_finite
from blockbuster.emit.tile.program import Fold, For, Guard, Init, Let, Stmt, Store, Tile, statements
from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, calls, is_predicate, show_number
from blockbuster.ir.ops import IDENTITY, Cast, Functional, Pointwise
from blockbuster.rules.safety import RESCALED

Assumed = Mapping[Expr, float]
"""Truth values that conditions are taken to have everywhere, by formula."""


def changes_something(loop: For, formulas: Formulas, assumed: Assumed) -> str:
    """The change that an iteration of ``loop`` makes if conditions are as ``assumed``, or ""."""
    run = _Run(formulas, assumed, loop)
    return run.reason if run.until_the_loop(formulas.nest.body) else "it is in no nest"


def stored_when(loop: For, formulas: Formulas, assumed: Assumed) -> tuple[dict[Store, float], str]:
    """The stores of an iteration of ``loop`` if conditions are as ``assumed``.

    Those of one known number each; and the reason why an iteration does more than that, or "".
    """
    run = _Run(formulas, assumed, loop)
    run.until_the_loop(formulas.nest.body)
    known = {stmt: value for stmt, value in run.stored.items() if isinstance(value, float)}
    open_ = (s.view.buffer.name for s in run.stored if s not in known)
    unknown = (f"{name} is stored, of which the mask leaves more than one number" for name in open_)
    return known, next(unknown, run.changed)


@dataclass
class _Run:
    """Statements run over the lattice. ``reason``: what the loop changes, the first such thing.

    ``changed``: what its folds change. ``stored``: what an iteration stores.
    """

    formulas: Formulas
    assumed: Assumed
    loop: For
    values: dict[Tile, Lane] = field(default_factory=dict)
    reason: str = ""
    changed: str = ""
    stored: dict[Store, Lane] = field(default_factory=dict)

    def until_the_loop(self, body: Sequence[Stmt]) -> bool:
        """Run what stands before the loop, then the loop; True if it is found in ``body``."""
        for stmt in body:
            if stmt is self.loop:
                self._iteration()
                return True
            if isinstance(stmt, For) and self.until_the_loop(stmt.body):
                return True
            self._before(stmt)
        return False

    def _before(self, stmt: Stmt) -> None:
        """A statement that stands before the loop, or has run in one before it."""
        if isinstance(stmt, Let | Guard):
            self._step(stmt, own=())
        for tile in makes(stmt):
            if not isinstance(self.values.get(tile), float):
                self.values[tile] = DATA

    def _iteration(self) -> None:
        inside = tuple(statements(self.loop.body))
        own = tuple(stmt.target for stmt in inside if isinstance(stmt, Init))
        for tile in (tile for stmt in inside for tile in folded(stmt)):
            self.values[tile] = UNKNOWN
        for stmt in inside:
            if isinstance(stmt, For):
                self._forget(stmt)
            else:
                self._step(stmt, own)
                if isinstance(stmt, Store):
                    self._note(f"it stores {stmt.view.buffer.name}")
                    self.stored[stmt] = self.values[stmt.value]

    def _forget(self, loop: For) -> None:
        """What an inner loop reads of what it folds may be of any iteration."""
        for stmt in statements(loop.body):
            for tile in folded(stmt):
                self.values[tile] = UNKNOWN

    def _note(self, reason: str) -> None:
        self.reason = self.reason or reason

    def _step(self, stmt: Stmt, own: Sequence[Tile]) -> None:
        match stmt:
            case Init():
                self.values[stmt.target] = UNKNOWN
            case Fold():
                self._fold(stmt, own)
            case Guard():
                value = self.values[stmt.value]
                kept = value == stmt.fill or (value == DATA and math.isfinite(stmt.fill))
                self.values[stmt.target] = value if kept else UNKNOWN
            case Let():
                self.values[stmt.target] = self._let(stmt)
            case _:
                if (target := defined(stmt)) is not None:
                    self.values[target] = DATA

    # folds ---------------------------------------------------------------------------

    def _fold(self, stmt: Fold, own: Sequence[Tile]) -> None:
        for tile in folded(stmt):
            if tile in own:
                self.values[tile] = self._total(stmt, tile)
        if any(tile not in own for tile in folded(stmt)):
            self.changed = self.changed or self._changed(stmt)
            self._note(self._changed(stmt))

    def _total(self, stmt: Fold, tile: Tile) -> Lane:
        """A sum of finite values is finite; of other totals nothing is known."""
        plain = tile == stmt.target and stmt.monoid == "+" and stmt.onto is None and not stmt.ahead
        value = self.values[stmt.value]
        return DATA if plain and (value == DATA or is_finite(value)) else UNKNOWN

    def _changed(self, stmt: Fold) -> str:
        """How ``stmt`` changes what it folds into, or ""."""
        if stmt.ahead or stmt.onto is not None:
            return f"{stmt.target.name} is folded ahead of its group"
        value = self.values[stmt.value]
        if value != IDENTITY[stmt.monoid]:
            return _taken(stmt.target, stmt.monoid, value)
        for member in stmt.members:
            by_exponent = member.factor == kept_empty(RESCALED, member.monoid)
            if stmt.monoid != "max" or not by_exponent or member.leads != (0,):
                return f"what {stmt.target.name} rescales is not known to stay as it is"
            parts = [self.values[member.value], value, DATA]
            lane = self._expr(member.factor, parts, None)
            if lane != IDENTITY[member.monoid]:
                return _taken(member.target, member.monoid, lane)
        return ""

    # operators -----------------------------------------------------------------------

    def _let(self, stmt: Let) -> Lane:
        args = [self.values[arg] for arg in stmt.args]
        match stmt.op:
            case Pointwise(expr):
                return self._expr(expr, args, stmt)
            case Functional(name):
                return _reduced(name, args)
            case Cast():
                return args[0] if args[0] == DATA or is_exact(args[0]) else UNKNOWN
        return args[0]

    def _expr(self, expr: Expr, args: Sequence[Lane], stmt: Let | None) -> Lane:
        if stmt is not None and isinstance(expr, Arg | Call):
            held = self._assumption(expr, stmt)
            if held is not None:
                return held
        match expr:
            case Arg(index):
                return args[index]
            case Const(value):
                return value
            case Call(fn, parts):
                return law(fn, [self._expr(part, args, stmt) for part in parts])
        return DATA

    def _assumption(self, expr: Expr, stmt: Let) -> float | None:
        """The truth value that ``expr`` is taken to have, if any."""
        if not arguments(expr) or calls(expr) > LONGEST:
            return None
        formula = self.formulas.inside(expr, stmt.args)
        return self.assumed.get(formula) if is_predicate(formula) else None


def _taken(tile: Tile, monoid: str, value: Lane) -> str:
    """Why ``tile`` changes where ``value`` is folded into it."""
    if not isinstance(value, float):
        return f"{tile.name} takes in values that the mask does not replace"
    if monoid == "max" and value != math.inf:
        return f"{tile.name} takes in {show_number(value)}, a finite fill: write -inf"
    return f"{tile.name} takes in {show_number(value)} where the mask is false"


def law(fn: str, args: Sequence[Lane]) -> Lane:
    """A scalar function of what tiles hold; beside ``padding.applied``, laws of whole tiles."""
    match fn, args:
        case "where", (condition, a, b) if not isinstance(condition, float):
            finite = condition == DATA and all(x == DATA or is_finite(x) for x in (a, b))
            return a if a == b else DATA if finite else UNKNOWN
        case "sub0", (float(x), _) if math.isinf(x):
            return x
        case ("and", (0.0, _) | (_, 0.0)) | ("or", (1.0, _) | (_, 1.0)):
            return 0.0 if fn == "and" else 1.0
        case ("maximum", (float(x), other) | (other, float(x))) if x == -math.inf:
            return other
        case ("minimum", (float(x), other) | (other, float(x))) if x == math.inf:
            return other
    return applied(fn, args)


def _reduced(name: str, args: Sequence[Lane]) -> Lane:
    """What a dot or a reduction gives, of at least one element along the axis that goes."""
    if name in ("row_max", "row_min"):
        return args[0]
    if name == "row_prod" and args[0] in (0.0, 1.0):
        return args[0]
    if name == "row_sum" and args[0] in (0.0, math.inf, -math.inf):
        return args[0]
    if not all(arg == DATA or is_finite(arg) for arg in args):
        return UNKNOWN
    return 0.0 if name == "dot" and 0.0 in args else DATA
