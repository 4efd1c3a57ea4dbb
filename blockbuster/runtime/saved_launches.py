"""Reads what a file's launcher does (LaunchSpec) from saved plans; ``json`` writes its tuples."""

from __future__ import annotations

from typing import Any

from blockbuster.emit.tile.launch_spec import (
    BLOCKS,
    LEAST,
    OVER,
    SIZE,
    STRIDE,
    TIMES,
    Array,
    Descriptor,
    Formula,
    LaunchSpec,
    Number,
    Section,
    Start,
)
from blockbuster.ir.reading import flag, items, maybe, number, one_of, row, text

WHOLE = number(0)
KIND = one_of((SIZE, STRIDE, TIMES, BLOCKS, OVER, LEAST))


def read_launches(data: Any) -> LaunchSpec:
    """What a launcher does."""
    arrays = items(_array)
    chunks = items(lambda given: row(given, text, number(1)))
    return LaunchSpec(
        *row(data, _section, arrays, items(text), maybe(_section), arrays, chunks, flag)
    )


def _number(data: Any) -> Number:
    if not isinstance(data, list):
        return WHOLE(data)
    kind = KIND(data[0] if data else None)
    if kind in (SIZE, STRIDE):
        return Formula(*row(data, KIND, text, WHOLE))
    return Formula(*row(data, KIND, _number, number(1) if kind in (BLOCKS, OVER) else _number))


def _array(data: Any) -> Array:
    return Array(*row(data, text, items(_number), text))


def _section(data: Any) -> Section:
    arrays, names = items(_array), items(text)
    return Section(*row(data, arrays, names, names, arrays, names, items(_start)))


def _start(data: Any) -> Start:
    def pairs(read: Any) -> Any:
        return items(lambda given: row(given, text, read))

    described = items(lambda given: Descriptor(*row(given, text, text, items(number(1)))))
    names, numbers = items(text), items(_number)
    return Start(
        *row(
            data, text, _number, names, names, pairs(WHOLE), described, pairs(number(1)),
            pairs(numbers), pairs(_number), flag, pairs(WHOLE), flag, flag,
        )
    )  # fmt: skip
