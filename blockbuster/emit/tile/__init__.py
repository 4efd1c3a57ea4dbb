"""Tile programs: their data, well-formedness, dtypes, and the traffic and arithmetic they cause."""
