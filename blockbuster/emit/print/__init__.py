"""Texts of tile programs; printers decide nothing."""
