"""Tile programs, the passes over them and the text printed from them: listing, NumPy, Triton."""
