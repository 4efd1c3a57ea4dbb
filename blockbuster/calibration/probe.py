"""A probe measures one constant of a device; probes take turns, round after round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Probe:
    """The procedure that measures one constant.

    ``path``: the place of the number in a machine's file; a number whose path is in no file is only
    recorded. ``what``: the program that runs, in words. ``seconds``: runs it and returns its time.
    ``amount``: the bytes, operations or steps of one run. ``rate``: the constant is the amount per
    second, else the seconds per unit of the amount.
    """

    path: str
    what: str
    amount: float
    seconds: Callable[[], float]
    rate: bool = True

    def value(self) -> float:
        """The constant, from one run."""
        seconds = self.seconds()
        return self.amount / seconds if self.rate else seconds / self.amount


@dataclass(frozen=True)
class Measured:
    """A constant that was measured: its value in each round."""

    path: str
    what: str
    rounds: tuple[float, ...]

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return median(self.rounds)


def measure(
    probes: Sequence[Probe], *, rounds: int, tell: Callable[[str], None]
) -> tuple[Measured, ...]:
    """Run all probes in turn, ``rounds`` times; ``tell`` is called with the name of the next one.

    A first round warms up and does not count. Probes take turns because a device slows down under
    load: each constant is measured early and late alike.
    """
    values: list[list[float]] = [[] for _ in probes]
    for turn in range(rounds + 1):
        when = f"round {turn} of {rounds}" if turn else "warming up"
        for probe, found in zip(probes, values, strict=True):
            tell(f"{when}: {probe.what}")
            found.append(probe.value())
    return tuple(
        Measured(probe.path, probe.what, tuple(found[1:]))
        for probe, found in zip(probes, values, strict=True)
    )
