"""Triton 3.6.0 exchanges rows where a loop reduces what it loads: a column maximum is wrong.

Its pass OptimizeThreadLocality reduces each thread's own elements in the loop and the rest behind
it. For that it reshapes a tile of 256 columns and 8 rows, 256x8, to 256x1x8 with allow_reorder, so
every thread keeps its registers in order. The two layouts count registers in different orders:
where a thread holds more than one block of columns (256 columns over 128 threads), column k gets
values of column k + 128. Folding whole tiles and reducing behind the loop is right, as are 128
columns and columns that are loaded as vectors. Triton 3.9.0 reshapes in another way and is right.

    python bench/repro/thread_locality.py            on a GPU: compare with torch
    python bench/repro/thread_locality.py --text     without: the reshape and its two layouts
"""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def inside(X, OUT, M, K, BK: tl.constexpr, BM: tl.constexpr):
    k = tl.arange(0, BK)
    best = tl.full((BK,), float("-inf"), tl.float32)
    for start in range(0, M, BM):
        m = start + tl.arange(0, BM)
        mask = (k < K)[:, None] & (m < M)[None, :]
        x = tl.load(X + m[None, :] * K + k[:, None], mask=mask, other=float("-inf"))
        best = tl.maximum(best, tl.max(x, 1))
    tl.store(OUT + k, best, mask=k < K)


@triton.jit
def behind(X, OUT, M, K, BK: tl.constexpr, BM: tl.constexpr):
    k = tl.arange(0, BK)
    best = tl.full((BK, BM), float("-inf"), tl.float32)
    for start in range(0, M, BM):
        m = start + tl.arange(0, BM)
        mask = (k < K)[:, None] & (m < M)[None, :]
        x = tl.load(X + m[None, :] * K + k[:, None], mask=mask, other=float("-inf"))
        best = tl.maximum(best, x)
    tl.store(OUT + k, tl.max(best, 1), mask=k < K)


def show():
    """Print the layouts and reshapes of the kernel for a Hopper GPU that need not be there."""
    types = ["*fp32", "*fp32", "i32", "i32", "constexpr", "constexpr"]
    source = ASTSource(
        fn=inside,
        signature=dict(zip(inside.arg_names, types, strict=True)),
        constexprs={(4,): 256, (5,): 8},
        attrs={(place,): [["tt.divisibility", 16]] for place in range(2)},
    )
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    for line in made.asm["ttgir"].splitlines():
        if "blocked<" in line.partition("=")[2][:20] or "tt.reshape" in line:
            print(line.strip())


def compare():
    """Print for which sizes the two kernels give torch's maximum."""
    import torch

    for rows, columns, block in ((8, 100, 128), (8, 128, 128), (8, 130, 256), (40, 200, 512)):
        x = torch.randn(rows, columns, device="cuda")
        right = []
        for kernel in (inside, behind):
            out = torch.empty(columns, device="cuda")
            kernel[(1,)](x, out, rows, columns, BK=block, BM=8)
            right.append(bool(torch.equal(out, x.max(0).values)))
        print(f"{rows} x {columns}, {block} lanes: in the loop {right[0]}, behind it {right[1]}")


if __name__ == "__main__":
    print(f"triton {triton.__version__}")
    show() if "--text" in sys.argv else compare()
