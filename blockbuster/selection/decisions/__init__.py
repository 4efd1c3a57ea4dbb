"""The default schedule, a file for each decision: which moves, where, and with which arguments."""
