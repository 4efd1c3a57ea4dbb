"""Tile programs: loops over tiles, what is well formed, what they move."""
