"""Moves: rewrites of tile programs that change order, place and time."""
