"""Chains and a small machine that the tests of tiling share."""

from blockbuster.machines import Launch, Limits, Machine, Tier
from blockbuster.tiling import Chain, Operator, Tensor


def three_products(**sizes):
    """G = ((A B) D) F, with loops m, n, k, h, p."""
    c, e, g = Tensor("C", ("m", "n")), Tensor("E", ("m", "h")), Tensor("G", ("m", "p"))
    return Chain(
        (
            Operator(c, (Tensor("A", ("m", "k")), Tensor("B", ("k", "n")))),
            Operator(e, (c, Tensor("D", ("n", "h")))),
            Operator(g, (e, Tensor("F", ("h", "p")))),
        ),
        sizes,
        dims={loop: loop.upper() for loop in "mnkhp"},
    )


SMALL = Machine(
    name="small",
    kind="gpu",
    target="sm_90",
    processors=4,
    clock=1e9,
    tiers=(Tier("hbm", 1 << 30, 1e9, 1e-6), Tier("shared", 1 << 16, 1e11, 1e-8)),
    compute={"matrix": {"float16": 1e12}},
    special=1e9,
    issue=1e9,
    launch=Launch(4e-6, 1e-6, 5e-7),
    limits=Limits(1 << 16, 1 << 16, 65536, 255, 2048, 32, 32, 4, 256),
)
"""A machine with round numbers: 1 GB/s, 1 Tflop/s, 4 processors, 64 KiB of shared memory."""
