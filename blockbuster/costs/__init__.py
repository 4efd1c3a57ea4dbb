"""What a kernel costs before it runs."""

from blockbuster.costs.report import Event, Report

__all__ = ["Event", "Report"]
