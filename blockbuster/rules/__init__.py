"""Rewrite rules over block programs, the driver that applies them, and derivations."""
