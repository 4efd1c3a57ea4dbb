"""Printers: the NumPy and Triton texts of tile programs. Printers take no decisions."""
