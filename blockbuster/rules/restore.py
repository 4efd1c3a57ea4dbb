"""Derivations read from JSON: every step is matched and applied again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blockbuster.errors import RuleError, message
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.ir.parse import Functions, parse
from blockbuster.ir.reading import Wrong, items, mapping, maybe, number, parse_json, record
from blockbuster.ir.reading import text as read_text
from blockbuster.rules.base import Rule
from blockbuster.rules.derivation import SCHEMA, Application, Derivation, apply_at
from blockbuster.rules.faults import check_rules

CHECKPOINT_EVERY = 16


def restore(
    text: str | bytes, rules: Sequence[Rule], functions: Functions | None = None
) -> Derivation:
    """The derivation that ``Derivation.to_json`` wrote, replayed with ``rules``.

    ``functions`` gives the meaning of misc operators by name. A step counts only where its rule
    matches: what is read was not necessarily written by us, so it is read as data, by type, and
    nothing that it names is called. Raises ValueError for another schema, damaged data and unknown
    rules, RuleError for a step that does not apply or another final program, ParseError for a text
    that is no program, TypeError unless ``rules`` is a sequence of rules.
    """
    check_rules(rules)
    data = _checked(text)
    known = {rule.name: rule for rule in rules}
    graph = start = parse(data["start"], functions)
    checkpoints, applications = {0: start}, []
    for index, step in enumerate(data["steps"]):
        application = _application(graph, index, step, known)
        graph = apply_at(graph, application)[0]
        applications.append(application)
        if len(applications) % CHECKPOINT_EVERY == 0:
            checkpoints[len(applications)] = graph
    counts = data["snapshots_after"]
    if not counts or sorted(set(counts)) != list(counts) or counts[-1] > len(applications):
        raise ValueError(message("snapshots_after does not fit the steps", value=counts))
    derivation = Derivation(start, tuple(applications), counts, checkpoints)
    if derivation.final != parse(data["final"], functions):
        raise RuleError("replaying the steps does not give the final program that stands there")
    return derivation


def _checked(text: str | bytes) -> dict[str, Any]:
    """The data, if its schema is ours and its parts have the types they should."""
    try:
        data = parse_json(text.encode("utf-8", "replace") if isinstance(text, str) else text)
    except Wrong as error:
        raise ValueError(f"a derivation is JSON, and this is not: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        hint = "write one with `blockbuster fuse FILE.py:FUNCTION --json steps.json`"
        raise ValueError(message(f"expected the schema {SCHEMA}", value=schema, hint=hint))
    try:
        return record(
            data, schema=read_text, start=read_text, final=read_text,
            snapshots_after=items(number(0)), steps=items(lambda step: step),
        )  # fmt: skip
    except Wrong as error:
        raise ValueError(f"the derivation is damaged: {error}") from error


def _step(data: Any) -> dict[str, Any]:
    return record(
        data, rule=read_text, number=maybe(number(0)), path=items(number(0)),
        match=mapping(number(0)), description=read_text,
    )  # fmt: skip


def _application(graph: Graph, index: int, step: Any, known: Mapping[str, Rule]) -> Application:
    """The step as an application, if its rule matches there."""
    try:
        found = _step(step)
    except Wrong as error:
        raise ValueError(message(f"step {index + 1} is damaged: {error}")) from error
    name, path, nodes = found["rule"], found["path"], found["match"]
    if name not in known:
        hint = f"known: {', '.join(known)}"
        raise ValueError(message(f"step {index + 1}: unknown rule", value=name, hint=hint))
    rule = known[name]
    level = _level(graph, path)
    if level is None or not _found(rule, level, nodes):
        raise RuleError(
            message(f"step {index + 1}: {name} does not apply there", value=f"{path}: {nodes}")
        )
    return Application(rule, path, nodes, found["description"])


def _level(graph: Graph, path: tuple[int, ...]) -> Graph | None:
    for position in path:
        if not 0 <= position < len(graph.nodes):
            return None
        op = graph.nodes[position].op
        if not isinstance(op, Map):
            return None
        graph = op.body
    return graph


def _found(rule: Rule, level: Graph, nodes: Mapping[str, int]) -> bool:
    return any(dict(match.nodes) == dict(nodes) for match in rule.matches(level))
