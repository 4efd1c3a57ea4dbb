"""The workloads of the sources, each a few lines of array code."""
