"""What a kernel costs before it runs."""

from blockbuster.costs.report import Event, Report
from blockbuster.costs.work import Work, work, work_of

__all__ = ["Event", "Report", "Work", "work", "work_of"]
