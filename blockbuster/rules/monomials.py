"""Scalar functions that are products of powers, and the power of one leaf c in them.

    square(x * c) * w      x^2 w, c^2
    abs(x / c)             x, |c|^-1

If q takes the place of c in such a function, it becomes (q / c)^p times what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite

from blockbuster.ir.expr import Call, Const, Expr, Size

POWERS = {"square": 2.0, "reciprocal": -1.0, "sqrt": 0.5, "rsqrt": -0.5}


class NotProductError(ValueError):
    """Why a function is no product of powers, as the rest of a sentence about it."""


@dataclass(frozen=True)
class Monomial:
    """Powers of the absolute values of atoms, and of a leaf c: c ** signed * |c| ** unsigned.

    Numbers and sizes are left out, and so are signs.
    """

    atoms: Mapping[Expr, float] = field(default_factory=dict)
    signed: float = 0
    unsigned: float = 0

    def times(self, other: Monomial) -> Monomial:
        """The product."""
        atoms = dict(self.atoms)
        for atom, power in other.atoms.items():
            atoms[atom] = atoms.get(atom, 0) + power
        signed, unsigned = self.signed + other.signed, self.unsigned + other.unsigned
        return Monomial({a: p for a, p in atoms.items() if p}, signed, unsigned)

    def to(self, power: float) -> Monomial:
        """The power.

        Raises NotProductError for a root of what changes its sign with c: with |c| it may be NaN.
        """
        whole = power == int(power)
        if not whole and self.signed % 2:
            raise NotProductError("takes a root of what has its sign")
        base = self if whole else self.unsigned_only()
        atoms = {atom: power * own for atom, own in base.atoms.items()}
        return Monomial(atoms, power * base.signed, power * base.unsigned)

    def unsigned_only(self) -> Monomial:
        """The absolute value."""
        return Monomial(self.atoms, 0, self.signed + self.unsigned)

    def covers(self, other: Monomial, power: float) -> bool:
        """Whether the atoms of ``other``, some, are factors of these to the power ``power``."""
        powers = [self.atoms.get(atom, 0) / own for atom, own in other.atoms.items()]
        return bool(powers) and min(powers) >= power


@dataclass(frozen=True)
class Products:
    """Functions as products of powers, in which ``leaf`` is c.

    ``reads(f, leaf)`` tells whether f depends on it.
    """

    leaf: Expr
    reads: Callable[[Expr, Expr], bool]

    def of(self, expr: Expr) -> Monomial:
        """``expr`` as such a product. What does not depend on the leaf is an atom otherwise.

        Raises NotProductError for a function that depends on it in another way.
        """
        if expr == self.leaf:
            return Monomial(signed=1)
        match expr:
            case Const() | Size():
                return Monomial()
            case Call("mul", (left, right)):
                return self.of(left).times(self.of(right))
            case Call("div", (left, right)):
                return self.of(left).times(self.of(right).to(-1))
            case Call("neg", (base,)):
                return self.of(base)
            case Call("abs", (base,)):
                return self.of(base).unsigned_only()
            case Call("square" | "reciprocal" | "sqrt" | "rsqrt" as name, (base,)):
                return self.of(base).to(POWERS[name])
            case Call("pow", (base, Const(power))) if isfinite(power):
                return self.of(base).to(power)
        return self._other(expr)

    def _other(self, expr: Expr) -> Monomial:
        """A function that is no product: free of the leaf, or a sum of terms with equal powers."""
        if not self.reads(expr, self.leaf):
            return Monomial({expr: 1})
        if isinstance(expr, Call) and expr.fn in ("add", "sub"):
            first, second = map(self.of, expr.args)
            if first == second:
                return first
            raise NotProductError("adds terms that do not grow with it alike")
        if not isinstance(expr, Call):
            raise NotProductError("combines elements that are multiplied by it")
        if expr.fn == "where":
            raise NotProductError("hides it in where, and it may be infinite")
        raise NotProductError(f"takes {expr.fn} of it")
