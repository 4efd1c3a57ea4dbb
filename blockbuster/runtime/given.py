"""What a call or a compilation is given: arrays, sizes, names, and the family of its plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from blockbuster.emit.tile.constants import known_names
from blockbuster.emit.tile.dtypes import dtype_of
from blockbuster.errors import message
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.arguments import Leaf, key_of, kind_key
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.program import check_program, own_dtypes_of
from blockbuster.ir.lengths import completed
from blockbuster.ir.sizes import example_of_sizes, whole
from blockbuster.ir.types import Dim
from blockbuster.machines import Machine
from blockbuster.runtime.launch import from_host
from blockbuster.runtime.machines import device_for
from blockbuster.runtime.tensors import Arrays, described, in_common, is_tensor, kind_of
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.decision import Memory
from blockbuster.selection.plans.asked import Known
from blockbuster.selection.plans.effort import USUAL
from blockbuster.selection.plans.family import Family
from blockbuster.selection.plans.fusers import Fuser


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


def sizes_given(program: ArrayProgram, sizes: Mapping[str, int]) -> dict[str, int]:
    """The size of every dim. Raises ValueError for unknown or missing dims, and for sizes that are
    no whole numbers.
    """
    bound = completed({**program.sizes, **whole(sizes)}, program.rules)
    wrong = _wrong_sizes(program, bound)
    if wrong:
        derived = {rule.dim for rule in program.definitions}
        hint = example_of_sizes([d for d in program.dims if d not in derived], bound)
        raise ValueError(message(wrong, value=dict(sizes), hint=hint))
    return bound


def _wrong_sizes(program: ArrayProgram, sizes: Mapping[Dim, int]) -> str:
    """What is wrong with sizes, in words; empty if they are those of the program's dims."""
    unknown = [dim for dim in sizes if dim not in program.dims]
    if unknown:
        return f"unknown dim {unknown[0]!r} in sizes"
    missing = [dim for dim in program.dims if dim not in sizes]
    derived = {rule.dim for rule in program.definitions}
    if missing:
        asked = [dim for dim in missing if dim not in derived] or missing
        return f"no size given for {', '.join(asked)}"
    for dim, fixed in program.sizes.items():
        if sizes[dim] != fixed:
            return f"{dim} is {sizes[dim]}, but the program was traced for {fixed}"
    return ""


def asked_for(
    program: ArrayProgram, sizes: Mapping[str, int], dtype: str, machine: str
) -> tuple[str | Machine, dict[str, int]]:
    """The target and all sizes of what is compiled ahead of time.

    Raises TypeError for what is no array program, ValueError for unknown or missing dims, dtypes
    and machines, LaunchError for a GPU that is older than all targets.
    """
    check_program(program)
    device = device_for(machine)
    if device != CPU or dtype != "float64":
        dtype_of(dtype)
    return device, sizes_given(program, sizes)


def constants_of(names: Sequence[str], arrays: Sequence[Leaf]) -> tuple[str, ...]:
    """The inputs of a program that are constant: arrays of these names, and all that parameters of
    these names hold. Raises ValueError for a name that is none.
    """
    meant = [(leaf, {leaf.name, leaf.shown, leaf.parameter}) for leaf in arrays]
    known_names(names, list(dict.fromkeys(word for _, words in meant for word in sorted(words))))
    return tuple(leaf.name for leaf, words in meant if not words.isdisjoint(names))


def family_of(
    program: ArrayProgram,
    dtype: str,
    target: str | Machine,
    known: Known | None = None,
    others: Mapping[str, str] | None = None,
    constants: tuple[str, ...] = (),
    *,
    library: bool = True,
    effort: str = USUAL,
    fusers: Sequence[Fuser] = (),
    memory: Memory | None = None,
) -> Family:
    """The family of a program's plans; see Family for what is given."""
    return Family(
        program,
        dtype=dtype,
        target=target,
        input_dtypes={**own_dtypes_of(program), **(others or {})},
        known=known,
        constants=constants,
        library=library,
        effort=effort,
        fusers=fusers,
        memory=memory,
    )
