"""`blockbuster select`: which kernels a program becomes on a machine, and why."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from blockbuster.choosing import select
from blockbuster.machines import NAMES
from blockbuster.selection.plans.effort import EFFORTS, USUAL
from blockbuster.selection.plans.explanation import explanation
from blockbuster.selection.plans.plan import Plan
from blockbuster.view.emitting import add_program, add_sizes
from blockbuster.view.load import parse_sizes, trace_named
from blockbuster.view.terminal import Screen, say, warn

SCHEMA = "blockbuster.plan/1"
EXAMPLES = """No GPU is needed. A program is divided into parts, each of which is fused by itself,
so that the sum of their predicted times is least.

examples:
  blockbuster select model.py:attention --dims q="M D" k="N D" v="N L" \\
      --sizes M=4096,N=4096,D=128,L=128 -o plan.svg
  blockbuster select model.py:block --dims x="M D" w="D K" --machine a100 \\
      --sizes M=2048,D=4096,K=4096 --dtype bfloat16 --json > plan.json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    add_sizes(command)
    command.add_argument(
        "--machine", default="h200", metavar="NAME",
        help=f"an architecture, {', '.join(NAMES)}, or auto (default h200)",
    )  # fmt: skip
    command.add_argument(
        "--no-library", action="store_true", help="no calls of torch's library, kernels only"
    )
    command.add_argument(
        "--effort", default=USUAL, choices=EFFORTS,
        help="; ".join(f"{name}: {meaning.split('; ')[0]}" for name, meaning in EFFORTS.items()),
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="draw the plan: .svg, .png or .dot"
    )


def run(arguments: argparse.Namespace) -> int:
    """Choose the kernels and print why they are these."""
    program = trace_named(arguments.program, arguments.dims)
    with Screen(stderr=True).working("choosing kernels"):
        plan = select(
            program, parse_sizes(arguments.sizes), arguments.machine, arguments.dtype,
            library=not arguments.no_library, effort=arguments.effort,
        )  # fmt: skip
    for note in plan.notes:
        warn(f"note: {note}")
    say(_json(plan) if arguments.json else plan.explain().rstrip("\n"))
    if arguments.output:
        written = plan.draw().save(arguments.output)
        if not arguments.json:
            say(f"wrote {written}")
    return 0


def _json(plan: Plan) -> str:
    told = explanation(plan)
    times = ("total_us", "lower_bound_us", "gap")
    data = {
        "schema": SCHEMA,
        **{name: getattr(plan, name) for name in ("name", "target", "dtype", "sizes", "kernels")},
        "machine": told.machine,
        **{name: getattr(plan, name) for name in times},
        "parts": [asdict(part) for part in told.parts],
        "stored": told.stored,
        "search": told.search,
    }
    return json.dumps(data, indent=1)
