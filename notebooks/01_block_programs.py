# %% [markdown]
# # Block programs
#
# Before a program can be fused it has to say which data moves when. A line of NumPy does not:
# `x @ w` says what comes out, not how it is computed. A **block program** does. It cuts arrays into
# blocks, has explicit loops over them, and shows for each value whether it lives in fast, local
# memory (the registers and shared memory of a GPU, the cache of a CPU) or in slow, global memory.
#
# This notebook builds two such programs, runs them, and counts what they move.

# %%
import matplotlib.pyplot as plt
import numpy as np

import blockbuster as bb
from blockbuster.view.draw import draw

rng = np.random.default_rng(0)

# %% [markdown]
# ## Blocks
#
# Take a matrix of 6 rows and 4 columns. Its rows are a *dim* that we call `M`, its columns `K`. Cut
# into 3 blocks along `M` and 2 along `K` it becomes a list of 3 lists of 2 blocks, each 2 x 2.

# %%
x = np.arange(24.0).reshape(6, 4)
blocks = [[x[i : i + 2, j : j + 2] for j in (0, 2)] for i in (0, 2, 4)]
blocks[1][0]

# %% [markdown]
# The type of such a value is written `M,K[M,K]`: a list over `M` of lists over `K` (before the
# bracket) of blocks with axes `M` and `K` (inside). A vector cut into pieces is `M[M]`, one piece
# of it `[M]`, a scalar `[]`.
#
# - A value with something before the bracket is a list. Lists are too large for local memory, so
#   they live in global memory. We say that they are **buffered** and mark them with `!`.
# - A value with nothing before the bracket is an *item*. It is small, and lives in local memory.
#
# Dims have no sizes yet. They are bound when the program runs, and so is the number of blocks.
#
# ## A first program
#
# Block programs have a text form. This one takes the exponential of every element, and then the sum
# of every row.

# %%
two_loops = bb.parse("""graph(X: M,K[M,K]) {
  E = map M (x in !X) {
    e = map K (b in !x) {
      t = exp(b)
      yield t
    }
    yield e
  }
  S = map M (e in !E) {
    s = map K (b in !e) {
      t = row_sum(b)
      yield +t
    }
    yield s
  }
  return S
}""")

# %% [markdown]
# How to read it:
#
# - `map M (x in !X) { ... }` is a loop over the blocks of `M`. In each iteration `x` is the next
#   entry of the list `X`: here a list over `K` of blocks, so it is still buffered.
# - The loop inside takes blocks out of that list. `b in !x` is where data comes from global memory:
#   we count one **load** per iteration.
# - `yield t` collects one result per iteration into a list: one **store** per iteration.
# - `yield +t` adds up the results instead. The sum of one row of blocks stays local.
#
# The picture says the same. Dotted boxes are loops with their dim in the corner, and red arrows are
# buffered values: what we want to get rid of.

# %%
draw(two_loops)

# %% [markdown]
# ## Running it
#
# `bb.evaluate` runs a program on whole arrays, for any number of blocks. The last block may be
# smaller than the others. The answer never depends on how arrays are cut.

# %%
x = rng.normal(size=(6, 4))
expected = np.exp(x).sum(axis=1)
for count in ({}, {"M": 3, "K": 2}, {"M": 6, "K": 4}, {"M": 2}):
    result = bb.evaluate(two_loops, {"X": x}, count)["out"]
    assert np.allclose(result, expected)
    print(count or "one block each", result.round(3)[:3], "...")

# %% [markdown]
# ## Counting
#
# As loops, with loads and stores written out, it looks like this. `I1` is `E`: an array that exists
# only between the two loops.

# %%
print(two_loops.listing())

# %% [markdown]
# So how much moves? Every element of `X` is loaded, every element of `E` stored and loaded again,
# every sum stored. `bb.traffic` says so for sizes and numbers of blocks. (It calls the array `e`,
# after the item that is stored.)

# %%
sizes = {"M": 512, "K": 1024}
moved = bb.traffic(two_loops, sizes, {"M": 8, "K": 8})
for tensor, m in moved.tensors.items():
    print(f"{tensor.name:3} loaded {m.loaded_elements:8,} elements, stored {m.stored_elements:8,}")

assert moved.elements == 3 * 512 * 1024 + 512

# %% [markdown]
# One loop is better: a block that was just computed is added up while it is at hand, and `E` is
# gone. (How a rule finds this is the subject of [02](02_one_rule_by_hand.ipynb).)

# %%
one_loop = bb.parse("""graph(X: M,K[M,K]) {
  S = map M (x in !X) {
    s = map K (b in !x) {
      t = exp(b)
      u = row_sum(t)
      yield +u
    }
    yield s
  }
  return S
}""")
assert one_loop.buffered_edges() == ()
assert np.allclose(bb.evaluate(one_loop, {"X": x}, {"M": 3, "K": 2})["out"], expected)

moved = bb.traffic(one_loop, sizes, {"M": 8, "K": 8})
print(f"{moved.elements:,} elements, a third of what it was")
assert moved.elements == 512 * 1024 + 512

# %% [markdown]
# ## Traffic is a formula
#
# Nothing was run to get these numbers. `closed_traffic` walks over the program once and gives
# polynomials: `S_M` is the size of `M`, `B_M` the number of its blocks, `F_M` the size of one.
# Take a matrix product, as it comes out of plain array code and after fusing.

# %%
from blockbuster.selection import closed_traffic

product = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final
print(product.listing())
form = closed_traffic(product)
for tensor, m in form.tensors.items():
    print(f"{tensor.name:3} loaded {m.loaded_elements!s:12} stored {m.stored_elements}")
print("flops on matrix units:", form.flops["matrix"])
print("elements in local memory at once:", *form.footprint)

# %% [markdown]
# This is why matrix products are computed in blocks. Each operand is loaded once for every block of
# the *other* dim, so large blocks (small `B_M`, `B_N`) mean little traffic; but a large block needs
# much local memory, which a processor has little of (about 227 KB on an NVIDIA H100).

# %%
size = 4096
steps = [16, 32, 64, 128, 256, 512, 1024]
points = [form.at(dict.fromkeys("MNK", size), block_sizes=dict(M=b, N=b, K=32)) for b in steps]
gigabytes = [2 * p.elements / 1e9 for p in points]
kilobytes = [4 * p.footprint / 1024 for p in points]

fig, left = plt.subplots(figsize=(6, 3))
left.loglog(steps, gigabytes, "o-", color="tab:red", base=2)
left.set_xlabel("rows and columns of a block")
left.set_ylabel("traffic in GB (float16)", color="tab:red")
right = left.twinx()
right.loglog(steps, kilobytes, "s--", color="tab:blue", base=2)
right.axhline(227, color="tab:blue", linewidth=0.8)
right.text(16, 260, "227 KB", color="tab:blue")
right.set_ylabel("local memory in KB (float32)", color="tab:blue")
left.set_title("x @ w of 4096 x 4096 matrices, 32 columns of K at a time")
for axis in (left.xaxis, left.yaxis, right.yaxis):
    axis.set_major_formatter("{x:g}")
fig.tight_layout()
plt.show()

assert gigabytes == sorted(gigabytes, reverse=True) and kilobytes == sorted(kilobytes)

# %% [markdown]
# The formulas are exact, also where the last block is smaller. The check: an observer that sits in
# the interpreter and counts every load and store while the program really runs.

# %%
counter = bb.GraphTraffic()
a, b = rng.normal(size=(50, 30)), rng.normal(size=(30, 20))
bb.evaluate(product, {"x": a, "w": b}, {"M": 4, "N": 3, "K": 4}, observer=counter)
closed = form.at({"M": 50, "N": 20, "K": 30}, {"M": 4, "N": 3, "K": 4})
assert closed.tensors == counter.tensors and closed.flops == counter.flops
print("counted", counter.loads, "loads; the formula says", closed.loads)

# %% [markdown]
# ## Where programs come from
#
# Nobody writes block programs by hand. `bb.trace` and `bb.lower` make them from array code, every
# operator a loop of its own. The operators inside bodies are few (`dot(a, b)` is `a @ b.T`,
# `row_sum`, `row_scale`, pointwise functions and some more), because the rules have to know them
# all.

# %%
graph = bb.lower(bb.trace(lambda x, w: bb.relu(x @ w), x="M K", w="K N"))
print(graph)
assert len(graph.buffered_edges()) == 2

# %% [markdown]
# Two loops over `M`, and two buffered lists inside the program, `p` and `p_2`: something to fuse.
# Next: [02 One rule by hand](02_one_rule_by_hand.ipynb).
