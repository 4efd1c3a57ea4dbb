"""`blockbuster explain`: gives the reason for each buffered edge of the fused program."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from blockbuster.emission import emit
from blockbuster.emit.kernel import Kernel
from blockbuster.frontend import ArrayProgram
from blockbuster.rules import Derivation, explain, overflowing, safe
from blockbuster.rules.explain import APPLIES, Explanation
from blockbuster.rules.faults import FaultNotes
from blockbuster.selection.plans.stored import LEFT_OUT
from blockbuster.view.emitting import (
    add_details,
    add_program,
    add_rules,
    add_sizes,
    add_target,
    derived,
    sizes_read,
    told,
)
from blockbuster.view.load import parse_sizes
from blockbuster.view.terminal import Screen, say

ALONE = "the program is one kernel: it stores nothing in memory but its outputs"
EXAMPLES = """Without --sizes the most fused program is explained; with sizes, what `emit` writes.

examples:
  blockbuster explain model.py:block --dims x="M D" w="D K"
  blockbuster explain model.py:block --dims x="M D" w="D K" --sizes M=4096,D=512,K=512
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    add_rules(command)
    add_sizes(command)
    add_target(command)
    add_details(command)
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the kernels, if there are sizes, and a reason for each edge."""
    program, derivation = derived(arguments)
    sizes = parse_sizes(arguments.sizes)
    kernel = _written(arguments, program, derivation, sizes) if sizes else None
    graph = derivation.final
    if kernel is not None and kernel.derivation and kernel.derivation.fused:
        graph = kernel.derivation.fused.final
    known = {**program.sizes, **sizes} if sizes else None
    found = explain(graph, known, on_fault=FaultNotes().keep)
    if arguments.json:
        say(_json(found))
    elif kernel is not None:
        say(told(kernel, arguments))
        for one in found:
            say(f"  {_left_out(one)}")
    else:
        say("\n".join(map(str, found)) or ALONE)
        for note in overflowing(safe(graph)):
            say(note)
    return 0


def _written(
    arguments: argparse.Namespace,
    program: ArrayProgram,
    derivation: Derivation,
    sizes: Mapping[str, int],
) -> Kernel:
    """What `emit` writes at these sizes."""
    known = sizes_read(derivation.start, program, sizes)
    with Screen(stderr=True).working("fusing, and choosing what costs least"):
        return emit(derivation, known, arguments.dtype, arguments.target)


def _left_out(one: Explanation) -> str:
    """An edge of what is written; a rule that applies to it was left out, as no faster."""
    return str(replace(one, rule=None, reason=LEFT_OUT) if one.reason == APPLIES else one)


def _json(found: Sequence[Explanation]) -> str:
    keys = ("level", "producer", "consumer", "type", "reason", "unlock", "elements")
    rows = [{k: getattr(e, k) for k in keys} | {"rule": e.rule and e.rule.name} for e in found]
    return json.dumps(rows, indent=1)
