"""Cost models: the predicted time of a kernel, before it runs."""

from blockbuster.costs.cost import cost, known_time
from blockbuster.costs.report import Event, Report
from blockbuster.costs.tiered import NestTime, time_of
from blockbuster.costs.work import Work, work, work_of

__all__ = [
    "Event", "NestTime", "Report", "Work", "cost", "known_time", "time_of", "work", "work_of",
]  # fmt: skip
