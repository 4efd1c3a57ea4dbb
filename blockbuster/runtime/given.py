"""The arrays of a call as they are run: their kind as a key, and their common properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from blockbuster.frontend.arguments import Leaf, key_of, kind_key
from blockbuster.frontend.array import TracedArray
from blockbuster.ir.types import Dim
from blockbuster.runtime.launch import from_host
from blockbuster.runtime.tensors import Arrays, described, in_common, is_tensor, kind_of
from blockbuster.selection.family import Family


def call_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The key of a call: what its arrays are and what its fixed values are, keywords with names."""
    key: list[Any] = [
        (value.shape, value.dtype)  # as `described`: a call of it for each array is seen
        if type(value) is np.ndarray
        else described(value) or key_of(value, described)
        for value in args
    ]
    for name, value in kwargs.items() if kwargs else ():
        key += name, described(value) or key_of(value, described)
    return tuple(key)


def kind_of_call(args: tuple[Any, ...], kwargs: dict[str, Any], key: Any) -> Any:
    """The key of a call without sizes."""
    kind = tuple(kind_key(value, own, kind_of) for value, own in zip(args, key, strict=False))
    layouts = key[len(args) + 1 :: 2]
    return kind + tuple(
        (name, kind_key(value, own, kind_of))
        for (name, value), own in zip(kwargs.items(), layouts, strict=True)
    )


def is_traced(value: object) -> bool:
    """True for an array of a trace: the call is a part of it."""
    return isinstance(value, TracedArray)


def in_common_of(found: Sequence[Leaf]) -> Arrays:
    """The common properties of arrays; errors name an array as the user does."""
    common = in_common({leaf.shown: leaf.value for leaf in found})
    others = {leaf.name: common.others[leaf.shown] for leaf in found if leaf.shown in common.others}
    return replace(common, others=others)


def beside(leaf: Leaf, given: Any) -> Leaf:
    """An array that a function holds, where the arrays are that it is given."""
    if not is_tensor(given) or is_tensor(leaf.value):
        return leaf
    return replace(leaf, value=from_host(leaf.value, None, given.device))


def sizes_of(family: Family, arrays: Sequence[Any]) -> dict[Dim, int]:
    """The size of every dim for the arrays of a call, in the order of the program's inputs."""
    return family.bind({n: array.shape for n, array in zip(family.inputs, arrays, strict=True)})
