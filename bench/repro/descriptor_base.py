"""ptxas 12.8 loses the base of a wgmma descriptor: (x @ a) @ w is garbage on a Hopper GPU.

Both right factors lie at one place in shared memory, one after the other. The first is swizzled in
rows of 128 bytes, the second (8 columns, padded to 16) in rows of 32, so their descriptors have one
base and two high words. LLVM shares the base in a register; ptxas 12.8.93, which Triton 3.6.0
brings, drops a copy of it, and the second dot's later steps read a uniform register that nothing
has written. TTGIR and PTX are right. With 8 warps, with a second result of 64 columns, or with
ptxas 12.9.86, 13.0.88, 13.3.73 and 13.5.37 the kernel is right; -O1 and -O2 change nothing.

    python bench/repro/descriptor_base.py                        on a GPU: compare with torch
    python bench/repro/descriptor_base.py --code [NVDISASM]      without: show the lost register
    TRITON_PTXAS_PATH=... python bench/repro/descriptor_base.py  with another assembler

descriptor_base.ptx is what Triton 3.6.0 gives ptxas, the cubins what some versions make of it.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def two_dots(X, A, W, OUT, N, P, B: tl.constexpr, C: tl.constexpr):
    rows, inner, columns = tl.arange(0, B), tl.arange(0, B), tl.arange(0, C)
    x = tl.load(X + rows[:, None] * B + inner[None, :])
    total = tl.full((B, C), 0.0, tl.float32)
    for start in range(0, N, B):
        n = start + tl.arange(0, B)
        a = tl.load(A + inner[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        w = tl.load(
            W + n[:, None] * P + columns[None, :],
            mask=(n < N)[:, None] & (columns < P)[None, :],
            other=0.0,
        )
        total = tl.dot(tl.dot(x, a).to(tl.float16), w, total)
    tl.store(OUT + rows[:, None] * P + columns[None, :], total, mask=(columns < P)[None, :])


def compiled():
    """The kernel for a Hopper GPU that need not be there."""
    types = ["*fp16"] * 3 + ["*fp32", "i32", "i32", "constexpr", "constexpr"]
    source = ASTSource(
        fn=two_dots,
        signature=dict(zip(two_dots.arg_names, types, strict=True)),
        constexprs={(6,): 64, (7,): 16},
        attrs={(place,): [["tt.divisibility", 16]] for place in range(4)},
    )
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})


def show(cubin, tool):
    """Print the instructions that read a uniform register which no line before them writes."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        code = subprocess.run([tool, "-c", file.name], capture_output=True, text=True).stdout
    written, lost = set(), 0
    for line in code.splitlines():
        found = re.match(r"\s+/\*(\w+)\*/\s+(?:@\S+\s+)?(\S+)\s+(.*);", line)
        if not found:
            continue
        _, name, operands = found.groups()
        registers = [int(number) for number in re.findall(r"\bUR(\d+)", operands)]
        writes = name.startswith("U") or "UR" in name
        width = 2 if ".64" in name else 1
        reads = registers[1:] if writes and registers else registers
        if "GMMA" in name:  # a descriptor is a pair; two stand in a row, the second one is w's
            reads = [r + step for r in reads for step in (2, 3)]
        if any(register not in written for register in reads):
            lost += 1
            print(line.strip())
        if writes and registers:
            written.update(range(registers[0], registers[0] + width))
    print(f"{lost} instructions read a uniform register that nothing has written")


def compare():
    """Print how far the kernel is from torch, for a few draws."""
    import torch

    for seed in range(5):
        torch.manual_seed(seed)
        x, a, w = (torch.randn(s, device="cuda").half() for s in ((64, 64), (64, 33), (33, 8)))
        out = torch.empty(64, 8, device="cuda")
        two_dots[(1,)](x, a, w, out, 33, 8, 64, 16, num_warps=4)
        right = (x @ a).float() @ w.float()
        print(f"largest error {(out - right).abs().max():.3g} of {right.abs().max():.3g}")


if __name__ == "__main__":
    if "--code" in sys.argv:
        own = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
        show(compiled().asm["cubin"], sys.argv[2] if len(sys.argv) > 2 else str(own))
    else:
        compare()
