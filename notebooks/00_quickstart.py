# %% [markdown]
# # Quickstart
#
# Blockbuster takes array code that you could run with NumPy, rewrites it step by step until as
# little as possible passes through slow memory, proves that the result is the same, and writes a
# GPU kernel. This notebook is the whole path in a few cells. It needs no GPU.
#
# Why should anyone rewrite array code? On a GPU, arithmetic is cheap and memory is slow. Each of
# NumPy's operators reads its operands from memory and writes its result back, so a program of ten
# operators moves its data ten times. **Fusing** operators means doing several of them while the
# data is at hand.

# %%
import numpy as np

import blockbuster as bb

# %% [markdown]
# ## Write array code
#
# Attention, the heart of today's language models: every row of `q` asks which rows of `k` it is
# similar to, and gets a weighted mean of the rows of `v`.


# %%
def attention(q, k, v):
    s = (q @ k.T) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


# %% [markdown]
# On NumPy arrays this is plain NumPy.

# %%
rng = np.random.default_rng(0)
q, k, v = rng.normal(size=(6, 4)), rng.normal(size=(8, 4)), rng.normal(size=(8, 3))
expected = attention(q, k, v)
expected.round(3)

# %% [markdown]
# ## Trace and lower
#
# `bb.trace` runs the function on stand-ins and records what it does. Axes have names, which we
# call *dims*; sizes come later.

# %%
program = bb.trace(attention, q="M D", k="N D", v="N L")
print(program.listing())

# %% [markdown]
# `bb.lower` makes a **block program** of it: loops over blocks of the arrays, with the arithmetic
# of one block inside. Printed as loops, every `load` and `store` is a trip to slow memory, and
# `I1`, `I2`, ... are arrays that exist only to carry values from one loop to the next.

# %%
graph = bb.lower(program)
print(graph.listing())

# %% [markdown]
# ## Fuse
#
# `bb.fuse` applies rewrite rules until none matches, and records every step.

# %%
derivation = bb.fuse(graph)
print(derivation.show())

# %% [markdown]
# Ten buffered edges became none: no intermediate array is left. The result is Flash Attention,
# which was found by people first; here 17 rewrites by four rules found it.

# %%
print(derivation.final.listing())
assert derivation.final.buffered_edges() == ()

# %% [markdown]
# As a picture, before and after. A box is a loop; a thick coloured arrow is an array that passes
# through slow memory.

# %%
from blockbuster.view.draw import draw

draw(graph)

# %%
draw(derivation.final)

# %% [markdown]
# ## Is it still the same program?
#
# Every rule keeps the meaning, but you need not take our word for it. `bb.prove_equal` runs both
# programs on random inputs in exact arithmetic (not in floating point, so there is no tolerance),
# and says how likely a wrong "equal" would be.

# %%
proof = bb.prove_equal(derivation.start, derivation.final)
print(proof)
assert proof.equal and proof.false_accept_bound < 1e-9

# %% [markdown]
# ## What did it save?
#
# `bb.traffic` counts what passes between slow and fast memory. Here for sequences of 4096 and heads
# of 64 numbers, cut into blocks of 128 rows, in float16.

# %%
sizes, blocks = dict(M=4096, N=4096, D=64, L=64), dict(M=32, N=32)
before = bb.traffic(graph, sizes, blocks, item_bytes=2)
after = bb.traffic(derivation.final, sizes, blocks, item_bytes=2)
print(f"before {before.bytes / 2**20:8.1f} MiB")
print(f"after  {after.bytes / 2**20:8.1f} MiB")
assert after.bytes < before.bytes / 8

# %% [markdown]
# ## A kernel
#
# `bb.emit` writes a Triton file that needs no Blockbuster. Before that it makes exponentials safe:
# written as above, `exp` of a large score would overflow, so the kernel keeps a running maximum of
# every row. Here are the lines of the kernel itself. (Comments name the rule, and the line of your
# code, that a line comes from; a file with a long number is a cell of this notebook.)

# %%
kernel = bb.emit(derivation.final, sizes=dict(M=512, N=512, D=64, L=64), dtype="float16")
lines = kernel.source.splitlines()
first = next(at for at, line in enumerate(lines) if line.startswith("def out_kernel"))
last = next(at for at in range(first, len(lines)) if lines[at].startswith("# for compiling"))
print("\n".join(lines[first - 1 : last]).rstrip())

# %% [markdown]
# ## Or none of this
#
# `bb.jit` is the whole path behind a decorator: NumPy arrays run on the CPU, CUDA tensors of torch
# as Triton kernels.

# %%
fast = bb.jit(attention)
out = fast(q, k, v)
assert np.allclose(out, expected)
print(fast.report_for(q, k, v))

# %% [markdown]
# Next: [01 block programs](01_block_programs.ipynb) shows what these programs are made of, and
# [03 Flash Attention step by step](03_flash_attention_step_by_step.ipynb) the 17 rewrites one by
# one.
