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


def one_in(turns: int, values: Iterable[object], first: int = 0) -> list[object]:
    """``values`` as parameters; one in ``turns`` of them is quick, the others are marked slow.

    Tests of one family begin at different places, so that together they meet every value.
    """
    return [
        value if at % turns == first % turns else pytest.param(value, marks=pytest.mark.slow)
        for at, value in enumerate(values)
    ]
