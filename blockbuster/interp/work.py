"""A budget of work, counted in steps, so that a search ends at the same place on every machine."""

from __future__ import annotations

from blockbuster.interp.terms import TooLarge


class Work:
    """Steps that are left; a step is an operation on a fraction or two."""

    def __init__(self, most: float) -> None:
        self.left = most

    def spend(self, steps: float) -> None:
        """Take steps away. Raises TooLarge where none are left."""
        self.left -= steps
        if self.left < 0:
            raise TooLarge("the ways in which comparisons may go together take too much work")
