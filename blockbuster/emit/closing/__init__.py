"""Passes that the compiler applies by itself: a normal form after every move, and final passes."""
