"""Blockbuster: array programs become fused kernels, step by step, each step proved and costed."""

__version__ = "0.1.0.dev0"

__all__: list[str] = []
