"""Tile programs printed as NumPy text."""
