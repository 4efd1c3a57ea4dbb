"""A row of the table of functions: the function, its spellings in libraries, and its examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

Array = Any
"""A traced array, a NumPy array, a torch tensor, or a number."""


@dataclass(frozen=True)
class Text:
    """An argument of an example that is a string, where other strings describe arrays."""

    value: str


@dataclass(frozen=True)
class Example:
    """Arguments of a function.

    A string is an array: its dims, with a kind before them unless it holds any floats:
    ``"M N"``, ``"positive: M N"`` (greater than 0), ``"from 1: M N"`` (1 and more), ``"unit: M"``
    (between -1 and 1), ``"nan: M N"`` (some of them NaN),
    ``"bool: M N"``, ``"int: M"``, ``"positive int: M"``. A tuple of strings is a sequence of
    arrays. Other arguments are given as they are.
    """

    arguments: tuple[Any, ...]
    parameters: tuple[tuple[str, Any], ...] = ()


def example(*arguments: Any, **parameters: Any) -> Example:
    """The example of a call with these arguments."""
    return Example(arguments, tuple(parameters.items()))


@dataclass(frozen=True)
class Row:
    """A function of arrays: its tracer, documentation and tests follow from its row.

    ``numpy``, ``methods`` and ``torch`` are the spellings that mean it: NumPy's functions
    (``"linalg.norm"``), methods of arrays (``"clip"``), torch's functions and methods
    (``"clamp"``, ``"nn.functional.relu"``, ``"Tensor.clamp"``). The first line of the function's
    docstring is the documentation's. ``reference``: what tests compare with; the first of
    ``numpy`` if none is given. ``note``: what the function costs, and where it differs.
    A function that is not ``public`` is written as an operator or in NumPy's or torch's name.
    """

    function: Callable[..., Array]
    group: str
    numpy: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    torch: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    reference: Callable[..., Any] | None = None
    note: str = ""
    public: bool = True

    @property
    def name(self) -> str:
        """The name under which ``blockbuster`` has the function."""
        return self.function.__name__


def alike(
    function: Callable[..., Array], group: str, *examples: Example, torch: tuple[str, ...] = (),
    **more: Any,
) -> Row:  # fmt: skip
    """The row of a function that NumPy and torch have under its name, torch also as a method of
    tensors; ``torch``: other names there.
    """
    own = function.__name__
    names = (own, f"Tensor.{own}", *torch)
    return Row(function, group, (own,), torch=names, examples=examples, **more)


TORCH_GROUP = "torch: functions and methods"
"""The group of most of torch's functions."""


def torch_row(function: Callable[..., Any], *names: str, group: str = TORCH_GROUP) -> Row:
    """The row of a function that takes torch's own arguments, with torch's names of it."""
    return Row(function, group, torch=names, public=False)


def with_method(function: Callable[..., Any], *names: str) -> Row:
    """The same for a function of torch's that is a method of tensors, too."""
    return torch_row(function, *names, *(f"Tensor.{name}" for name in names))


def torch_rows(
    group: str, *functions: Callable[..., Any], modules: tuple[str, ...] = ("nn.functional.",)
) -> tuple[Row, ...]:
    """A row for each function, which torch has under the same name in these modules."""
    return tuple(
        torch_row(function, *(f"{module}{function.__name__}" for module in modules), group=group)
        for function in functions
    )


def named(function: Callable[..., Array], name: str, meaning: str = "") -> Callable[..., Array]:
    """``function`` of a family under its own name, such as ``conv2d``, with what it means."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning or function.__doc__
    return function


def of_images(
    name: str, function: Callable[..., Array], group: str, *modules: str
) -> Iterator[Row]:
    """A row for images of 1, 2 and 3 axes: ``function``, given a name (``"conv{}d"``) and the count
    of axes first.
    """
    for count in (1, 2, 3):
        own = name.format(count)
        made = named(partial(function, own, count), own, function.__doc__ or "")
        yield torch_row(made, *(f"{module}{own}" for module in modules), group=group)
