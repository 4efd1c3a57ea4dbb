"""An entry: the measurements of a kernel, all configurations with their times, as one JSON object.

An entry is data: reading it makes texts and numbers, and runs nothing. A schedule from it is
replayed move by move, and each move checks that it applies.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from dataclasses import asdict, dataclass
from typing import Any

from blockbuster.errors import shown
from blockbuster.ir.reading import Wrong, expected, flag, items, maybe, number, record, text

LONGEST = 400
"""Characters of a reason that are kept."""

GRAIN = 16, 256
"""A size counts as a multiple of at least 16 and at most 256: the lanes of blocks are, too."""


@dataclass(frozen=True)
class Key:
    """The key of a measurement: a program without its names, sizes, a device, and versions.

    ``sizes``: for each dim the class of its size, "1024/64". ``assembler``: "" if Triton does not
    use one. ``version`` is that of Blockbuster.
    """

    program: str
    sizes: tuple[str, ...]
    device: str
    triton: str
    assembler: str
    version: str

    @property
    def question(self) -> str:
        """A hash of all parts but the versions, by which results are looked up."""
        return _hash(self.program, *self.sizes, self.device)[:24]

    @property
    def name(self) -> str:
        """The name of the entry's file."""
        return f"{self.question}-{_hash(self.triton, self.assembler, self.version)[:12]}.json"


LATE = "no time was left for it"
"""The reason of a configuration that was not measured in time."""


@dataclass(frozen=True)
class Config:
    """A schedule, and its time in microseconds or why it has none.

    ``program``: which form of the program it schedules; ``schedule`` has numbers for dims
    (fingerprint.py). ``rounds``: the times of all rounds, of which ``us`` is the median.
    """

    program: str
    schedule: str
    us: float | None
    reason: str = ""
    rounds: tuple[float, ...] = ()
    default: bool = False


@dataclass(frozen=True)
class Entry:
    """The measurements for a key. ``kernel``: the kernel's name; ``seconds``: the time they took.

    ``skipped``: configurations that the budget had no time for.
    """

    key: Key
    kernel: str
    found: tuple[Config, ...]
    seconds: float
    skipped: int = 0

    @property
    def ranked(self) -> tuple[Config, ...]:
        """The configurations that have a time, the fastest first."""
        timed = [(one.us, at) for at, one in enumerate(self.found) if one.us is not None]
        return tuple(self.found[at] for _, at in sorted(timed))

    @property
    def usual(self) -> Config | None:
        """The configuration that the model would have taken."""
        return next((one for one in self.found if one.default), None)

    @property
    def is_fair(self) -> bool:
        """False if there was no time for what the model would have taken: it may be the fastest."""
        return self.usual is None or self.usual.reason != LATE

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON data."""
        return {
            "key": asdict(self.key),
            "kernel": self.kernel,
            "found": [asdict(one) for one in self.found],
            "seconds": self.seconds,
            "skipped": self.skipped,
        }


def size_class_of(size: int, rounded: int) -> str:
    """The class of a size that rounds up to ``rounded``: which blocks divide it counts as well.

    >>> size_class_of(1000, 1024), size_class_of(1023, 1024), size_class_of(960, 1024)
    ('1024/1', '1024/1', '1024/64')
    """
    least, most = GRAIN
    grain = math.gcd(size, most)
    return f"{rounded}/{grain if grain >= least else 1}"


def read_entry(data: Any) -> Entry:
    """The entry that JSON data holds. Raises Wrong, with the place in it."""
    found = record(
        data, key=_key, kernel=text, found=items(_config), seconds=_real, skipped=number(0)
    )
    return Entry(**found)


def _key(data: Any) -> Key:
    words = dict.fromkeys(("program", "device", "triton", "assembler", "version"), text)
    return Key(**record(data, sizes=items(text), **words))


def _config(data: Any) -> Config:
    found = record(
        data, program=text, schedule=text, us=maybe(_time), reason=text, rounds=items(_time),
        default=flag,
    )  # fmt: skip
    return Config(**found | {"reason": shown(found["reason"], LONGEST)})


def _real(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= sys.float_info.max:
        raise expected("a number that is not negative", value)
    return float(value)


def _time(value: Any) -> float:
    if _real(value) == 0:
        raise Wrong("is 0, which is no time")
    return float(value)


def _hash(*words: str) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()
