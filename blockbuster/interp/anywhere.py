"""The tiers with free comparisons, in which positions and sizes may be any numbers.

Index vectors, sizes and infinities are large random numbers here, so masks are compared as data
are: by uninterpreted comparisons. Programs that agree do so at positions of any size, however far
from the numbers to which masks compare them.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from blockbuster.interp.exact import Exact
from blockbuster.interp.free_order import FreeCharacters
from blockbuster.interp.layout import Array
from blockbuster.interp.residues import Residues
from blockbuster.ir.types import Dim, size_class

BYTES = 6  # of a number: far above those that are compared as numbers, and exact in a double


class Anywhere(Residues):
    """A mixin of tiers that makes positions, sizes and infinities random numbers."""

    def drawn(self, *words: object) -> float:
        """A random whole number, the same for the same words."""
        digest = hashlib.blake2b(f"{self.seed} {words}".encode(), digest_size=BYTES).digest()
        return float(int.from_bytes(digest, "little"))

    def positions(self, dim: Dim, numbers: Array) -> Array:
        return self.item(np.array([self.drawn("position", n) for n in numbers.tolist()]))

    def extent(self, dim: Dim, size: int) -> Any:
        return self.constant(self.drawn("size", size_class(dim)))

    def constant(self, value: float) -> Any:
        return super().constant(self.drawn("infinity", value) if math.isinf(value) else value)


class ExactAnywhere(Anywhere, Exact):
    """Tier A, anywhere."""


class CharactersAnywhere(Anywhere, FreeCharacters):
    """Tier B with free comparisons, anywhere."""
