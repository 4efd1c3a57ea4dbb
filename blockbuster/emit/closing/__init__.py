"""Passes that follow moves without being asked for: a normal form, and what closes a program."""
