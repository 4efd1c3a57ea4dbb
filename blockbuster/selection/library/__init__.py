"""Calls of a library as implementations of products: matched by structure, priced by tables."""
