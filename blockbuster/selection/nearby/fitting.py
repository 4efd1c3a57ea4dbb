"""What a schedule near the default one costs, if its programs fit.

Some decisions are taken once a schedule is chosen. Two of them are priced here. One makes large
tiles faster than small ones: a product with one program to a processor, or two, takes its grid in
turns, and waits for no first loads then, nor for the stores of the other. On an H200 a product of
8192 x 1024 x 4096 behind LayerNorm took 112 microseconds with 128 x 256 results by 132 programs,
and 118 with two programs of 128 x 128 to a processor; without turns the closed form says 144 and
134. The other copies arrays whose rows no wide copy takes, for their loads do not run ahead.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.schedule.jam import Jam
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.split_float import SplitFloat
from blockbuster.emit.schedule.walk import Walk
from blockbuster.selection.cost import Cost
from blockbuster.selection.decisions.by_descriptors import by_descriptors
from blockbuster.selection.decisions.packed import packed
from blockbuster.selection.decisions.persistent import may_take_turns, persistent
from blockbuster.selection.nearby.settings import is_held
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS


def fitting(scheduled: Scheduled, before: Scheduled) -> Cost | None:
    """What a schedule costs as it will be laid out; None if a program does not fit, or no rate is
    known for it. ``before``: the same before its first stages.
    """
    if not is_held(scheduled):
        return None
    try:
        laid, cost = scheduled, priced(scheduled)
        if any(may_take_turns(work, cost.machine) for work in cost.works):
            laid = persistent(by_descriptors(scheduled, cost, before=before))
            cost = priced(laid)
        if cost.spills_beside(rooms(laid)):
            return None
        copied = packed(laid)
        return cost if copied is laid else replace(cost, report=priced(copied).report)
    except ValueError:
        return None


def rooms(scheduled: Scheduled) -> dict[int, float]:
    """The part of the registers that an estimate of each nest may want, where it is not usual."""
    known = {
        Walk.name: PRIORS.walking_room,
        Jam.name: PRIORS.jammed_room,
        SplitFloat.name: PRIORS.split_room,
    }
    lines = (line for line in scheduled.moves if line.move in known)
    return {line.site.nest: known[line.move] for line in lines}
