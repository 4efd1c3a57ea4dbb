"""`blockbuster prove`: proves every step, snapshot and safe form of a derivation equal."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from blockbuster.interp.report import Pair, ProofReport, prove_pairs
from blockbuster.rules import Derivation, safe
from blockbuster.view.emitting import add_program, add_rules, derived
from blockbuster.view.terminal import Screen, say

EXAMPLES = """examples:
  blockbuster prove model.py:attention --dims q="M D" k="N D" v="N L"
  blockbuster prove model.py:mlp --dims x="M D" w="D K" --trials 32 --json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    add_rules(command)
    command.add_argument("--trials", type=int, default=8, help="random trials of each (default 8)")
    command.add_argument("--seed", type=int, default=0, help="of the random inputs (default 0)")
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """The exit code is 1 where a pair is not equal."""
    _, derivation = derived(arguments)
    report = prove(derivation, trials=arguments.trials, seed=arguments.seed)
    say(report.to_json() if arguments.json else report)
    return 0 if report.equal else 1


def pairs(derivation: Derivation) -> Iterator[Pair]:
    """The steps; the start and each snapshot; each snapshot and its numerically safe form."""
    yield from derivation.pairs()
    snapshots = derivation.snapshots
    for number, snapshot in enumerate(snapshots[:-1], start=1):
        yield f"start and snapshot {number}", derivation.start, snapshot
    for number, snapshot in enumerate(snapshots, start=1):
        made = safe(snapshot)
        if made != snapshot:
            yield f"snapshot {number} and its safe form", snapshot, made


def prove(derivation: Derivation, *, trials: int, seed: int) -> ProofReport:
    """Prove all pairs, with a spinner on the terminal that names the one at hand."""
    with Screen(stderr=True).working("proving") as update:
        return prove_pairs(
            pairs(derivation),
            trials=trials,
            seed=seed,
            progress=lambda name: update(f"proving {name}"),
        )
