"""Workarounds for faults of compilers: their names, with the reasons that comments state.

A statement with such a name in its field ``apart`` has the same value as without it, or one that is
rounded less. Closing passes of the schedule set the names; printers spell them.
"""

from __future__ import annotations

CANCELS = "cancels"
CARRIED = "carried"
FROM_ZERO = "from_zero"
ROUNDED = "rounded"
TWO_STEPS = "two_steps"
READ_ONCE = "read_once"

REASONS = {
    CANCELS: "rounded, so that equal values cancel",
    CARRIED: "in two steps: Triton 3.6 would take it out of the loop that reads it",
    FROM_ZERO: "the dot is summed from zero",
    ROUNDED: "rounded before lanes add it up",
    TWO_STEPS: "in two steps, else Triton 3.6 swaps rows",
    READ_ONCE: "Triton 3.6 wants a loop's sum read once",
}
