"""Proofs of several pairs of programs at once: every step of a derivation, each snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from blockbuster.errors import shown
from blockbuster.interp.equal import proof
from blockbuster.interp.proof import NOT_SHOWN, WORDS, Proof
from blockbuster.interp.trials import Trials
from blockbuster.ir.graph import Graph

SCHEMA = "blockbuster.proofs/1"

Progress = Callable[[str], None]
Pair = tuple[str, Graph, Graph]


@dataclass(frozen=True)
class Entry:
    """A named proof."""

    name: str
    proof: Proof


@dataclass(frozen=True)
class ProofReport:
    """One proof per pair of programs; its text has a line for each."""

    entries: tuple[Entry, ...]

    @property
    def equal(self) -> bool | None:
        """True if every pair is equal, False if one differs, else None."""
        verdicts = [entry.proof.equal for entry in self.entries]
        return False if False in verdicts else None if None in verdicts else True

    @property
    def first_not_equal(self) -> Entry | None:
        """The first pair that is not shown equal."""
        return next((e for e in self.entries if not e.proof.equal), None)

    def __repr__(self) -> str:
        return f"ProofReport({WORDS[self.equal]}, {len(self.entries)} comparisons)"

    def _repr_html_(self) -> str:
        from blockbuster.view.notebook import proofs_html

        return proofs_html(self)

    def __str__(self) -> str:
        width = max((len(entry.name) for entry in self.entries), default=0)
        lines = []
        for entry in self.entries:
            proof = entry.proof
            told = proof.bound_in_words if proof.equal else proof.reason
            lines.append(f"{WORDS[proof.equal]:9} {entry.name:{width}}  tier {proof.tier}; {told}")
        proofs = [entry.proof for entry in self.entries if entry.proof.equal]
        lines += [f"shown: {scope}" for scope in dict.fromkeys(p.scope for p in proofs)]
        assumed = dict.fromkeys(a for p in proofs for a in p.assumptions)
        lines += [NOT_SHOWN, *(f"assumed: {text}" for text in assumed)] if proofs else []
        for entry in self.entries:
            if entry.proof.counterexample:
                lines += ["", f"# {shown(entry.name)}", str(entry.proof.counterexample)]
        return "\n".join(lines) + "\n"

    def to_data(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "schema": SCHEMA,
            "equal": self.equal,
            "proofs": [{"name": e.name, **e.proof.to_data()} for e in self.entries],
        }

    def to_json(self) -> str:
        """The report as JSON; the schema is named in it."""
        return json.dumps(self.to_data(), indent=1) + "\n"


def prove_pairs(
    pairs: Iterable[Pair] | Sequence[Pair],
    *,
    trials: int = 8,
    seed: int = 0,
    progress: Progress | None = None,
) -> ProofReport:
    """``prove_equal`` of each (name, program, program); ``progress`` is called with each name
    first.

    A program of several pairs is run once.
    """
    entries, tried = [], Trials(trials, seed)
    for name, a, b in pairs:
        if progress is not None:
            progress(name)
        entries.append(Entry(name, proof(a, b, tried)))
    return ProofReport(tuple(entries))
