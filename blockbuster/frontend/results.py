"""The results of a traced function: its arrays, and the names of the program's outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blockbuster.errors import a_kind
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.trees import Constant, Tree, container_of, distinct, result_apart


def named_results(result: Any) -> list[tuple[str, TracedArray]]:
    """The arrays a function returned, under the names of the outputs."""
    held, tree = result_apart(result)
    if not held or (tree.container is None and container_of(result) is not None):
        raise trace_error("the function returned no array")
    named = list(zip(result_names(tree), (leaf.value for leaf in held), strict=True))
    for name, value in named:
        if not isinstance(value, TracedArray):
            raise trace_error(
                f"the function returned {a_kind(value)} for {name}",
                hint="return traced arrays: one, a tuple of them, or a dict of them",
            )
    return named


def result_names(tree: Tree) -> list[str]:
    """The names of outputs: ``out``; ``out0``, ``out1``; the keys of a dict; ``out0_mean``."""
    container = tree.container
    if container is None:
        return ["out"]
    word = "" if container.kind in ("dict", "fields") else "out"
    return distinct(_names_below(tree, word))


def _names_below(tree: Tree, word: str) -> Iterator[str]:
    container = tree.container
    if isinstance(tree, Constant):
        return
    if container is None:
        yield word
        return
    named = container.kind in ("dict", "fields")
    between = "" if word in ("", "out") else "_"
    for key, part in zip(container.keys, tree.parts, strict=True):
        yield from _names_below(part, word + between + (_result_name(key) if named else str(key)))


def _result_name(key: object) -> str:
    if isinstance(key, str) and key.isascii() and key.isidentifier():
        return key
    hint = 'the keys of a returned dict are names of letters, digits and _: {"mean": m}'
    raise trace_error(f"the function returned an array under the key {key!r}", hint=hint)
