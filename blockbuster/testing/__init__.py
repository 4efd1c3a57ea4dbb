"""Hypothesis strategies and the property suite that checks rules, ours and users' own."""
