"""Plans: kernels and calls in order, for classes of sizes, and what became of a program."""
