"""Tile programs printed as Triton text."""
