"""The steps as data: what each did, what its rule is for, what was checked and proved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from blockbuster.interp import Proof, prove_equal
from blockbuster.interp.proof import WORDS
from blockbuster.ir.graph import Graph
from blockbuster.rules import Derivation, Explanation, Rule
from blockbuster.rules.derivation import path_in_words
from blockbuster.rules.safety import safe
from blockbuster.view.explorer.conditions import conditions
from blockbuster.view.explorer.costs import paired
from blockbuster.view.explorer.frames import Frame
from blockbuster.view.explorer.places import place_name
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.why import lead, why

SAFE = "safe"
SAFE_MEANING = "exponentials are carried with a running exponent, so that nothing overflows"

Data = dict[str, Any]


def steps_data(
    derivation: Derivation, found: Sequence[Frame], states: Sequence[Data], proofs: Sequence[Data]
) -> list[Data]:
    """Every step: its rule and place, the nodes it took and made, its tensors paired, its proof."""
    return [
        {
            **_what(derivation, frame),
            "roles": [[role, place_name(path)] for role, path in frame.roles],
            "made": [place_name(path) for path in frame.made],
            "tensors": paired(states[at]["tensors"], states[at + 1]["tensors"]),
            "proof": proofs[at] if at < len(proofs) else None,
        }
        for at, frame in enumerate(found)
    ]


def _what(derivation: Derivation, frame: Frame) -> Data:
    if frame.index is None:
        return {"rule": SAFE, "level": "/", "path": "", "description": SAFE_MEANING}
    step = derivation.applications[frame.index]
    return {
        "rule": step.rule.name,
        "level": path_in_words(frame.before, step.path),
        "path": place_name(step.path),
        "description": step.description,
    }


def rules_data(rules: Iterable[Rule]) -> dict[str, Data]:
    """What each rule is: its number in the paper, what it does, saves and costs, and checks."""
    found: dict[str, Data] = {
        rule.name: {
            "number": rule.number,
            "kind": rule.kind,
            "lead": lead(rule),
            "why": why(rule),
            "conditions": [list(condition) for condition in conditions(rule)],
        }
        for rule in rules
    }
    found[SAFE] = {
        "number": None,
        "kind": "numerical safety",
        "lead": "every exponential is carried as a significand and an exponent, one per row.",
        "why": "Sums of exponentials become groups that share a running maximum and are rescaled "
        "as it grows. The values are the same in exact arithmetic.",
        "conditions": [],
    }
    return found


def proofs_data(
    derivation: Derivation,
    found: Sequence[Frame],
    setting: Setting,
    progress: Callable[[str], None],
) -> tuple[list[Data], Data]:
    """What was shown of each step, the safe form included, and of the start and the last snapshot.

    Steps behind the last snapshot are not part of the page, and there are none.
    """
    report = derivation.prove(trials=setting.trials, seed=setting.seed, progress=progress)
    *steps, whole = (proof_data(entry.proof) for entry in report.entries)
    if found and found[-1].index is None:
        progress("start and numerically safe form")
        proof = prove_equal(derivation.final, safe(derivation.final), setting.trials, setting.seed)
        steps.append(proof_data(proof))
    return steps, whole


def proof_data(proof: Proof) -> Data:
    """What a proof says."""
    return {
        "equal": proof.equal,
        "word": WORDS[proof.equal],
        "tier": proof.tier,
        "bound": proof.false_accept_bound,
        "bound_in_words": proof.bound_in_words,
        "reason": proof.reason,
        "scope": proof.scope,
        "assumptions": list(proof.assumptions),
        "trials": proof.trials,
    }


def left_data(graph: Graph, explanations: Sequence[Explanation]) -> list[Data]:
    """Why each buffered edge that is left in ``graph`` is there; ``place`` is its reader's."""
    readers = [(*path, reader) for path, _, reader in graph.buffered_edges()]
    return [
        {
            "place": place_name(reader),
            "level": e.level,
            "producer": e.producer,
            "consumer": e.consumer,
            "type": e.type,
            "rule": e.rule.name if e.rule else "",
            "reason": e.reason,
        }
        for e, reader in zip(explanations, readers, strict=True)
    ]
