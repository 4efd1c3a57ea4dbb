"""Compilers and devices: what they offer, and their known faults."""
