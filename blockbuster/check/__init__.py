"""Checks of kernels: ``bb.check_kernel``, and the first result of a compiled one."""
