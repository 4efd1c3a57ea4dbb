"""Schedules near the default one: other blocks, warps, stages, and kernels jammed."""
