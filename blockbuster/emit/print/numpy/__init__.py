"""NumPy text."""
