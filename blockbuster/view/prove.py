"""`blockbuster prove`: every step, snapshot and safe form of a derivation proved equal."""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.interp.report import Pair, ProofReport, prove_pairs
from blockbuster.rules import Derivation, safe
from blockbuster.view.terminal import Screen


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
