# %% [markdown]
# # From graph to Triton to GPU timing
#
# A fused block program says what moves and what is computed, but not on which threads. This
# notebook follows attention from there to a kernel: tiles, Triton text, machine code for GPUs that
# need not be here, a run in Triton's interpreter, and times measured on an NVIDIA H200. Everything
# but the last part runs on any Linux machine; if there is a GPU, the last cell times it.

# %%
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import blockbuster as bb
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.targets import TARGETS
from blockbuster.runtime.launch import run_interpreted

# %% [markdown]
# ## Fuse, and make exponentials safe
#
# How 17 rewrites lead from these lines to one loop is the subject of
# [03](03_flash_attention_step_by_step.ipynb). Here we start at the end of it.


# %%
def attention(q, k, v):
    s = (q @ k.T) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


program = bb.trace(attention, q="M D", k="N D", v="N L")
graph = bb.lower(program)
derivation = bb.fuse(graph)
stable = bb.safe(derivation.final)
print(stable.listing())

# %% [markdown]
# ## Tiles and moves
#
# The *tile program* is the last form before text. A tile is a block of definite size, a power of
# two, in registers or shared memory. *Moves* rewrite it, as rules rewrote the block program: dims
# are cut into blocks, loops with one iteration vanish, loads run ahead of the iterations that need
# them. The list of moves is the kernel's *schedule*. You can [write one](../docs/schedules.md) and
# replay it.

# %%
SIZES = dict(M=16384, N=4096, D=64, L=64)
kernel = bb.emit(derivation, sizes=SIZES, dtype="float16", target="sm_90")
print(kernel.schedule)

# %% [markdown]
# After the last move the program is closed: loads have moved out of loops that do not change them,
# and the loops that are independent of each other (`forall`) have become the *grid*: many instances
# of the kernel that run side by side. Here that is 256 for the 132 processors of an H100; with a
# quarter of the queries it would be 64, and a move would run the loop over `n` in chunks to keep
# the others busy.

# %%
print(kernel.tile_program)

# %% [markdown]
# Compare it with the listing above. The loops over `d` and `l` are gone, because 64 columns are
# one tile, and `q` is loaded once, before the loop over `n`. While a step computes, the next tiles
# of `k` and `v` are on their way. And the running maximum comes first: exponentials are taken
# under it, so that only what was accumulated before is rescaled.
#
# Each of these steps is proved like a rule, by running the program before and after it:

# %%
report = kernel.derivation.prove()
print("\n".join(str(report).split("\n")[-12:]))
assert report.equal

# %% [markdown]
# ## Triton
#
# The tile program is printed as Triton. The result is a file that needs no Blockbuster: it holds
# the kernel, a launcher, a check against a NumPy reference and a benchmark. Each line of the kernel
# says from which rule and which line of yours it comes.

# %%
lines = kernel.source.splitlines()
first = lines.index("def out_kernel(")
last = next(at for at in range(first, len(lines)) if lines[at].startswith("# for compiling"))
print("\n".join(line.split("  #")[0] for line in lines[first - 1 : last]).rstrip())

# %% [markdown]
# (The comments are cut off here, to save space.)
#
# ## Machine code without a GPU
#
# Triton brings the assemblers of both vendors, so a kernel can be compiled for GPUs that are not
# here. What comes out says whether it fits: shared memory, registers per thread, and spills
# (values that did not fit into registers and went to slow memory, which one wants to be zero).

# %%
for target in ("sm_90", "gfx942"):
    emitted = bb.emit(derivation.final, sizes=SIZES, dtype="float16", target=target)
    for report in compile_kernel(emitted):
        print(f"{target:7} {report.shared:6} bytes of shared memory, {report.spills} bytes spilled")
        assert report.spills == 0
        assert report.shared <= TARGETS[target].shared

# %% [markdown]
# ## Does it compute the right thing?
#
# Triton has an interpreter that runs kernels on the CPU. It is slow, but it is the same text. The
# oracle is the function itself, on NumPy arrays in float64; with inputs rounded to float16 first,
# because that is what the kernel sees.

# %%
small = bb.emit(derivation.final, sizes=dict(M=128, N=128, D=32, L=32), dtype="float16")
rng = np.random.default_rng(0)
shapes = {"q": (128, 32), "k": (128, 32), "v": (128, 32)}
inputs = {name: rng.normal(size=shape).astype("float16") for name, shape in shapes.items()}
out = run_interpreted(small, inputs)["out"]
exact = program.numpy({name: array.astype(float) for name, array in inputs.items()})["out"]
error = np.abs(out - exact).max() / np.abs(exact).max()
print("within float16's rounding:", error < 2e-3)
assert error < 2e-3

# %% [markdown]
# The file checks itself too. Without a GPU it does so in the interpreter.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = small.write(Path(folder) / "attention.py")
    command = [sys.executable, path.name, "--check"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
assert finished.returncode == 0
print("the file's own check passed")

# %% [markdown]
# ## Times
#
# [bench/results](../bench/results/2026-11-21-h200/README.md) holds what was measured on an NVIDIA
# H200: 33 programs, three dtypes, beside eager PyTorch, with the commands that did it. Here are the
# float16 times of some of them. Launching a kernel from Python takes longer than running a small
# one, so where a replay of a recorded graph was timed on both sides, those times are compared.

# %%
record = json.loads(Path("../bench/results/2026-11-21-h200/programs.json").read_text())
print(record["machine"])

rows = {}
for entry in record["times"]:
    if entry["dtype"] == "float16":
        graphed = "ours_graph_us" in entry and "eager_graph_us" in entry
        key = "graph_us" if graphed else "us"
        rows[entry["program"]] = (entry[f"ours_{key}"], entry[f"eager_{key}"])

shown = sorted(rows, key=lambda name: rows[name][1] / rows[name][0])
speedup = [rows[name][1] / rows[name][0] for name in shown]
fig, axes = plt.subplots(figsize=(7, 6))
colors = ["tab:blue" if ratio >= 1 else "tab:red" for ratio in speedup]
axes.barh(shown, np.array(speedup) - 1, left=1, color=colors)
axes.axvline(1, color="black", linewidth=0.8)
axes.set_xscale("log", base=2)
axes.set_xlim(1 / 9, 9)
ticks = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8]
axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
axes.tick_params(axis="y", labelsize=7)
axes.set_xlabel("eager PyTorch's time over ours: right of 1 we are faster")
axes.set_title("H200, float16, default tiles, nothing tuned")
fig.tight_layout()
plt.show()

assert len(rows) == 33
wins = sum(ratio >= 1 for ratio in speedup)
print(f"faster than eager PyTorch in {wins} of {len(rows)}")

# %% [markdown]
# Attention wins, several others lose, some by far. Eager PyTorch calls libraries whose matrix
# products and reductions were tuned by their vendor, and these kernels take default tiles and the
# most fused form that moves least. Which form to take, with which tiles, or whether to call the
# library, has to be decided by a model of time; that is the next part of this project. The point of
# this plot is that it is drawn from a file with its losses in it.
#
# ## On your GPU
#
# If there is one here, this times attention on it, beside PyTorch.

# %%
try:
    import torch

    found = torch.cuda.is_available()
except ImportError:
    found = False

if found:
    from triton.testing import do_bench

    def eager(q, k, v):
        return torch.softmax((q @ k.T) * q.shape[-1] ** -0.5, dim=-1) @ v

    tensors = [torch.randn(4096, 64, device="cuda", dtype=torch.float16) for _ in "qkv"]
    fast = bb.jit(attention)
    torch.testing.assert_close(fast(*tensors), eager(*tensors), rtol=1e-2, atol=1e-2)
    print(f"ours  {do_bench(lambda: fast(*tensors)) * 1e3:.0f} us")
    print(f"eager {do_bench(lambda: eager(*tensors)) * 1e3:.0f} us")
else:
    print("no GPU here: the times above are what there is")
