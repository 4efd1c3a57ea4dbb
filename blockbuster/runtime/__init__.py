"""Running plans and kernels."""
