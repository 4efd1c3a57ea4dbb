"""What is no test here: a script that needs torch and Triton, which a test runs."""

collect_ignore = ["triton_kernels.py"]
