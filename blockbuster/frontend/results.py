"""The results of a traced function: its arrays, and the names of the program's outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blockbuster.errors import a_kind
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.sizes import Extents, KnownSize, SizeExpr
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.trees import Constant, Tree, container_of, distinct, result_apart

_ARRAYS = "return traced arrays: one, a tuple of them, or a dict of them"
_BESIDE = "beside arrays, return None, a bool or a number of Python's; results show their own sizes"
_TEXT = "return the text outside: sizes in it have no value while tracing"
_NAMED = "a traced program has names for arrays alone: leave the others out, or call bb.jit"


def named_results(result: Any, *, alone: bool = False) -> list[tuple[str, TracedArray]]:
    """The arrays a function returned, under the names of the outputs.

    ``alone``: constants beside them are refused.
    """
    held, tree = result_apart(result)
    if not held or (tree.container is None and container_of(result) is not None):
        raise trace_error("the function returned no array")
    named = list(zip(result_names(tree), (leaf.value for leaf in held), strict=True))
    for name, value in named:
        if not isinstance(value, TracedArray):
            is_size = isinstance(value, SizeExpr | KnownSize | Extents)
            shown = "a size" if is_size else a_kind(value)
            hint = _BESIDE if is_size else _TEXT if isinstance(value, str) else _ARRAYS
            raise trace_error(f"the function returned {shown} for {name}", hint=hint)
    constants = [*tree.constants()] if alone else []
    if constants:
        raise trace_error(f"the function returned {constants[0]} beside arrays", hint=_NAMED)
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
