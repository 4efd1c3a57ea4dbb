"""Validation of ``check_kernel``'s arguments, by name: inputs, results, text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from blockbuster.check.lint import Finding, lint
from blockbuster.errors import message
from blockbuster.runtime.tensors import is_tensor

Array = Any  # a NumPy array or a torch tensor
Arrays = Mapping[str, Array]


class NoArrays(TypeError):
    """A function returned values that cannot be compared: not arrays of real numbers or truth
    values.
    """


def check_numbers(runs: int, draws: int, tolerance: float | None, time_limit: float) -> None:
    """ValueError unless something is run, in some time, with a tolerance from 0 or None."""
    if runs < 1 or draws < 1:
        raise ValueError(message(f"{runs} runs, {draws} draws", hint="take at least one of each"))
    if tolerance is not None and not 0 <= tolerance < math.inf:
        hint = "an error over the largest result, as 1e-3; None: by dtype"
        raise ValueError(message(f"tolerance is {tolerance!r}", hint=hint))
    if not 0 < time_limit < math.inf:
        hint = "the seconds that one call of the kernel may take, as 60"
        raise ValueError(message(f"time_limit is {time_limit!r}", hint=hint))


def input_sets(inputs: Arrays | Iterable[Arrays]) -> tuple[Arrays, ...]:
    """The sets of inputs: at least one, each of arrays by name; TypeError, ValueError otherwise."""
    if is_array(inputs) or not isinstance(inputs, Iterable):
        raise TypeError(message(f"inputs is {_kind(inputs)}", hint=_BY_NAME))
    sets = (inputs,) if isinstance(inputs, Mapping) else tuple(inputs)
    if not sets:
        what = "inputs is empty: nothing would be checked"
        raise ValueError(message(what, hint="give at least one set of inputs"))
    for at, arrays in enumerate(sets):
        if not isinstance(arrays, Mapping):
            raise TypeError(message(f"inputs {at} is {_kind(arrays)}", hint=_BY_NAME))
        for name, array in arrays.items():
            if not is_array(array):
                hint = f"bind other arguments beforehand: functools.partial(kernel, {name}=value)"
                what = f"the input {name} is {_kind(array)}, expected a NumPy array or a tensor"
                raise TypeError(message(what, hint=hint))
            if isinstance(array, np.ndarray) and array.dtype.hasobject:
                what = f"the input {name} holds Python objects (dtype {array.dtype})"
                raise TypeError(message(what, hint=f"pass {name}.astype(np.float32)"))
    return sets


_BY_NAME = 'inputs are arrays by name, {"x": array}, or a list of such dicts'


def findings_of(sources: Sequence[str], source: str) -> list[Finding]:
    """The lint's findings in our texts, and in the user's ``source``, which may not be Python."""
    if not isinstance(source, str):
        hint = "read the file: source=path.read_text()" if isinstance(source, PurePath) else None
        raise TypeError(message(f"source is {_kind(source)}, expected a text", hint=hint))
    try:
        return [finding for text in dict.fromkeys((*sources, source)) for finding in lint(text)]
    except (SyntaxError, ValueError) as error:
        hint = "source is the text of the kernel's file, not its path"
        raise ValueError(message(f"source is not valid Python: {error}", hint=hint)) from None


def call_reference(reference: Callable[..., Any], given: Arrays) -> Any:
    """The results of the reference; TypeError if tensors do not suit it."""
    try:
        return reference(**given)
    except (TypeError, AttributeError) as error:
        if all(isinstance(array, np.ndarray) for array in given.values()):
            raise
        what = f"the reference fails on torch tensors: {type(error).__name__}: {error}"
        hint = "with tensors as inputs it gets float64 tensors: write it in torch, or give arrays"
        raise TypeError(message(what, hint=hint)) from error


def results_of(who: str, returned: Any) -> tuple[Array, ...]:
    """The arrays that ``who`` returned: one, a tuple, a list or a dict of them; or NoArrays."""
    if isinstance(returned, Mapping):
        returned = tuple(returned.values())
    found = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    for array in found:
        if not is_array(array) and not isinstance(array, np.generic):
            what = f"the {who} returned {_kind(array)}, expected an array or several"
            hint = "called with its inputs alone, it has to return new arrays"
            raise NoArrays(message(what, hint=hint if array is None else None))
    return tuple(np.asarray(a) if isinstance(a, np.generic) else a for a in found)


def check_alike(who: str, results: Sequence[Array], exact: Sequence[Array]) -> None:
    """ValueError unless there are as many results as the reference has."""
    if len(results) != len(exact):
        raise ValueError(
            message(
                f"the {who} gives {_counted(results)}, the reference {_counted(exact)}",
                hint="both return the same arrays in the same order",
            )
        )


def check_named(outputs: Sequence[str], results: Sequence[Array]) -> None:
    """ValueError unless ``outputs`` names all results, or none."""
    if outputs and len(outputs) != len(results):
        what = f"outputs names {', '.join(outputs)}, but the kernel gives {_counted(results)}"
        raise ValueError(message(what, hint="name the arguments of all results, in order"))


def is_array(value: object) -> bool:
    """True for NumPy arrays and torch tensors."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _counted(results: Sequence[Array]) -> str:
    return f"{len(results)} result{'' if len(results) == 1 else 's'}"
