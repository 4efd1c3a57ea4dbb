"""Kernels written by hand in Triton: what schedules are measured against, one file a family."""
