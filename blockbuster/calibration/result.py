"""The machine made of measured and reported numbers; missing numbers come from another machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from blockbuster.calibration.probe import Measured
from blockbuster.errors import shown
from blockbuster.machines.data_file import machine_text, numbers_of, with_numbers
from blockbuster.machines.machine import Machine

Numbers = Mapping[str, int | float]
Scale = Callable[[Machine], float]

RECORD = "record."
"""What the paths of numbers begin with that no machine's file has."""


@dataclass(frozen=True)
class Calibration:
    """A device that was measured. ``base``: the machine that it is compared with.

    ``about``: the date and versions, for the record. ``measured`` holds the value of every round.
    """

    device: str
    machine: Machine
    base: Machine
    measured: tuple[Measured, ...]
    about: Mapping[str, str] = field(hash=False)

    def to_toml(self) -> str:
        """The machine's file, with a comment at the top on how it was made."""
        words = ", ".join(f"{key} {value}" for key, value in self.about.items())
        return f"# {shown(self.device)}, measured: {shown(words)}\n\n{machine_text(self.machine)}"

    def to_json(self) -> str:
        """Everything, with the values of all rounds."""
        built_in = numbers_of(self.base)
        rows = [
            {
                "path": one.path,
                "what": one.what,
                "value": one.value,
                "built_in": built_in.get(one.path),
                "rounds": list(one.rounds),
            }
            for one in self.measured
        ]
        data = {
            "device": self.device,
            "about": dict(self.about),
            "base": self.base.name,
            "measured": rows,
            "numbers": numbers_of(self.machine),
        }
        return json.dumps(data, indent=1) + "\n"


def calibrated(
    base: Machine,
    reported: Numbers,
    measured: Sequence[Measured],
    derived: Mapping[str, tuple[Scale, str]],
) -> Machine:
    """``base``, updated with reported numbers, then measured ones, and ``derived`` from both.

    ``derived``: how a number follows from the machine so far, and its source in words.
    """
    kept = [one for one in measured if not one.path.startswith(RECORD)]
    sources = dict.fromkeys(numbers_of(base), f"as of {base.name}, not measured")
    sources |= dict.fromkeys(reported, "reported by the driver or the operating system")
    sources |= {
        one.path: f"measured by `blockbuster calibrate`: {one.what}; the median of "
        f"{len(one.rounds)} rounds"
        for one in kept
    }
    values = {one.path: rounded(one.value) for one in kept}
    machine = with_numbers(base, {**reported, **values}, sources)
    numbers = {path: rounded(scale(machine)) for path, (scale, _) in derived.items()}
    return with_numbers(machine, numbers, {path: why for path, (_, why) in derived.items()})


def rounded(number: float) -> float:
    """Four digits: more were never measured. Whole numbers, which are sizes, stay as they are.

    >>> rounded(4312345678901.0), rounded(232448)
    (4312000000000.0, 232448)
    """
    return number if isinstance(number, int) else float(f"{number:.4g}")
