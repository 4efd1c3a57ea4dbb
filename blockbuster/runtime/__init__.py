"""The runtime: runs plans and kernels."""
