"""`blockbuster draw`: draws the fused program, or one step, as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster.view.draw import draw, draw_step
from blockbuster.view.emitting import add_program, add_rules, derived
from blockbuster.view.terminal import say

EXAMPLES = """examples:
  blockbuster draw model.py:attention --dims q="M D" k="N D" v="N L" -o fused.svg
  blockbuster draw model.py:mlp --dims x="B M D" w="D K" --step 3 -o step3.png
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    add_rules(command)
    command.add_argument(
        "--step", type=int, metavar="N", help="before and after step N; 0 is the program unfused"
    )
    command.add_argument(
        "--depth", type=int, metavar="N", help="how many maps deep (default: all; 0: an overview)"
    )
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help=".svg, .png or .dot"
    )


def run(arguments: argparse.Namespace) -> int:
    """Draw it."""
    _, derivation = derived(arguments)
    steps, number = derivation.steps, arguments.step
    if number is not None and not 0 <= number <= len(steps):
        raise ValueError(f"--step {number}: the derivation has steps 1 to {len(steps)}")
    if number:
        drawing = draw_step(steps[number - 1], depth=arguments.depth)
    else:
        graph = derivation.final if number is None else derivation.start
        drawing = draw(graph, depth=arguments.depth)
    say(f"wrote {drawing.save(arguments.output)}")
    return 0
