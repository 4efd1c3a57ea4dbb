"""Mutants of the rules: the property suite and the golden cases must kill each."""
