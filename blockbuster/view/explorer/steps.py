"""The steps as data: the change each made, the purpose of its rule, its checks and proofs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from blockbuster.interp.proof import WORDS, Proof
from blockbuster.interp.report import prove_pairs
from blockbuster.ir.graph import Graph
from blockbuster.rules import Explanation, Rule
from blockbuster.rules.derivation import path_in_words
from blockbuster.rules.explain import APPLIES
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
    found: Sequence[Frame],
    states: Sequence[Data],
    changes: Sequence[Data],
    proofs: Sequence[Data],
    born: Sequence[str],
) -> list[Data]:
    """Every step: its rule and place, the nodes it took and made, its tensors paired, its proof.

    ``born``: what makes it a step that matters. ``from`` is the state that it starts from: not
    the one before where kernels part ways.
    """
    return [
        {
            **_what(frame),
            "from": frame.start,
            "beside": frame.beside,
            "roles": [[role, place_name(path)] for role, path in frame.roles],
            "made": [place_name(path) for path in frame.made],
            "tensors": paired(states[frame.start]["tensors"], states[at + 1]["tensors"]),
            "changes": changes[at],
            "born": born[at],
            "proof": proofs[at] if at < len(proofs) else None,
        }
        for at, frame in enumerate(found)
    ]


def _what(frame: Frame) -> Data:
    step = frame.application
    if step is None:
        return {"rule": SAFE, "level": "/", "path": "", "description": SAFE_MEANING}
    return {
        "rule": step.rule.name,
        "level": path_in_words(frame.before, step.path),
        "path": place_name(step.path),
        "description": step.description,
    }


def rules_data(rules: Iterable[Rule]) -> dict[str, Data]:
    """The data of each rule: its number in the paper, effect, savings, costs, and conditions."""
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
    found: Sequence[Frame],
    start: Graph,
    final: Graph,
    setting: Setting,
    progress: Callable[[str], None],
) -> tuple[list[Data], Data]:
    """The proof of each step, the safe form included, and of the start and the kernels' program."""
    pairs = [(_named(at, frame), frame.before, frame.after) for at, frame in enumerate(found, 1)]
    pairs.append(("start and final program", start, final))
    report = prove_pairs(pairs, trials=setting.trials, seed=setting.seed, progress=progress)
    *steps, whole = (proof_data(entry.proof) for entry in report.entries)
    return steps, whole


def _named(at: int, frame: Frame) -> str:
    what = _what(frame)
    return f"step {at} {what['rule']} at {what['level']}"


def proof_data(proof: Proof) -> Data:
    """The data of a proof."""
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


def left_data(graph: Graph, explanations: Sequence[Explanation], words: str) -> list[Data]:
    """Why each buffered edge that is left in ``graph`` is there; ``place`` is its reader's.

    ``words``: why a rule that applies was not applied.
    """
    readers = [(*path, reader) for path, _, reader in graph.buffered_edges()]
    return [
        {
            "place": place_name(reader),
            "level": e.level,
            "producer": e.producer,
            "consumer": e.consumer,
            "type": e.type,
            "rule": e.rule.name if e.rule else "",
            "reason": words if e.reason == APPLIES else e.reason,
        }
        for e, reader in zip(explanations, readers, strict=True)
    ]
