"""What is done in another way than it reads, and why: names, with reasons for comments.

A statement that says such a name in its field ``apart`` has the value that it has without it, or
one that is rounded less. Closing passes of the schedule put the names; printers spell them.
"""

from __future__ import annotations

FROM_ZERO = "from_zero"
ROUNDED = "rounded"
TWO_STEPS = "two_steps"
READ_ONCE = "read_once"

REASONS = {
    FROM_ZERO: "the dot is summed from zero",
    ROUNDED: "rounded before lanes add it up",
    TWO_STEPS: "in two steps, else Triton 3.6 swaps rows",
    READ_ONCE: "Triton 3.6 wants a loop's sum read once",
}
