"""Triton text."""
