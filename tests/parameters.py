"""Parameters of a test: some run in every `make test`, the rest in `make slow`."""

from collections.abc import Collection, Iterable

import pytest


def rest_slow(values: Iterable[object], quick: Collection[object]) -> list[object]:
    """``values`` as parameters; those that are not ``quick`` are marked slow.

    Raises ValueError if a quick one is no value: it would run nowhere.
    """
    values = list(values)
    if lost := [value for value in quick if value not in values]:
        raise ValueError(f"{lost} are quick and no parameters")
    return [v if v in quick else pytest.param(v, marks=pytest.mark.slow) for v in values]
