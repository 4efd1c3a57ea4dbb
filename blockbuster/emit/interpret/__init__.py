"""Interpretation of tile programs under any semantics, and proofs by it."""
