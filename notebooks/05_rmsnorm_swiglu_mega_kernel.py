# %% [markdown]
# # The mega-kernel, and when not to use it
#
# The feed-forward part of a Llama-like transformer normalizes its input, multiplies it by two large
# matrices, combines the products elementwise (SwiGLU), and multiplies by a third matrix. Rules can
# fuse *all of it* into one loop nest without a single intermediate array. That is impressive, and
# for real sizes it is a bad idea. This notebook derives the mega-kernel and then finds out when it
# pays, with formulas instead of a GPU.

# %%
import matplotlib.pyplot as plt

import blockbuster as bb
from blockbuster.selection import closed_traffic
from blockbuster.selection.choice import Fused
from blockbuster.view.draw import draw

# %% [markdown]
# ## The program
#
# `silu(z)` is `z * sigmoid(z)`, a smooth version of `max(z, 0)`.


# %%
def rmsnorm_swiglu(x, w, v, u):
    n = bb.rms_norm(x)
    return (bb.silu(n @ w) * (n @ v)) @ u


graph = bb.lower(bb.trace(rmsnorm_swiglu, x="M D", w="D K", v="D K", u="K N"))
derivation = bb.fuse(graph)
print(derivation.show())

# %% [markdown]
# Thirteen buffered edges at first. Rule 8 (step 9) gives each of the two products its own copy of
# the scaling of rows, so that rule 4 can move both behind the products (steps 10 and 11), and the
# rest is merging. Three snapshots are taken, one before each *extension* (rule 6): a step that
# repeats work in order to merge more.

# %%
names = ["unfused", "snapshot 1", "snapshot 2", "snapshot 3"]
programs = dict(zip(names, (graph, *derivation.snapshots), strict=True))
assert [len(p.buffered_edges()) for p in programs.values()] == [13, 1, 0, 0]
for proof in (bb.prove_equal(graph, each) for each in derivation.snapshots):
    assert proof.equal and proof.false_accept_bound < 1e-9

# %% [markdown]
# **Snapshot 1** stores one intermediate array, `I1`: the combined products, which are then
# multiplied by `u`.

# %%
print(derivation.snapshots[0].listing())

# %% [markdown]
# **Snapshot 3** is the mega-kernel. There is nothing between loading the inputs and storing the
# result.

# %%
print(derivation.final.listing())
draw(derivation.final)

# %% [markdown]
# ## What it costs
#
# Read the last listing again. The loops over `K` and `D`, that is both large products, stand inside
# the loop over `N`. With several blocks of `N` they are computed several times. The formulas say so
# (`S` are sizes, `B` numbers of blocks).

# %%
forms = {name: closed_traffic(each) for name, each in programs.items()}
for name in names[1:]:
    print(f"{name}: flops in products = {forms[name].flops['matrix']}")

# %% [markdown]
# The first product costs `S_D*S_K*S_M` for each of `B_N` blocks, from snapshot 2 on. Only one block
# of `N` avoids this. But a block of the result is a running total in local memory, and so it has
# all columns of the result at once.
#
# Let us take the sizes of Llama 3 8B (`D` = `N` = 4096, `K` = 14336), 4096 tokens, blocks of 64,
# and as local memory the 227 KB of shared memory that one processor of an NVIDIA H100 has.

# %%
LLAMA = dict(M=4096, D=4096, K=14336, N=4096)
SMALL = dict(M=4096, D=512, K=1024, N=64)
LOCAL = 227 * 1024


def table(sizes, blocks_of_n):
    rows = []
    for count in blocks_of_n:
        steps = dict(M=64, D=64, K=64, N=sizes["N"] // count)
        for name in names:
            moved = forms[name].at(sizes, block_sizes=steps, item_bytes=2)
            work, held = sum(moved.flops.values()), moved.footprint * 4
            rows.append((count, name, moved.bytes / 2**30, work / 1e12, held))
    return rows


def show(rows):
    print("blocks of N  program     GiB moved    TFLOP   local KiB")
    for count, name, gib, tflop, held in rows:
        fits = "" if held <= LOCAL else "  does not fit"
        print(f"{count:11}  {name:10} {gib:10.2f} {tflop:8.2f} {held / 1024:11,.0f}{fits}")


llama = table(LLAMA, (64, 16, 4, 1))
show(llama)

# %% [markdown]
# For these sizes the mega-kernel is hopeless, one way or the other:
#
# - with many blocks of `N` it fits, and does 43 times the work and moves 16 times the bytes of the
#   unfused program;
# - with one block of `N` it moves least of all, and needs megabytes of local memory where there are
#   227 KB.
#
# So snapshot 1 is the one to take: it fits, repeats nothing, and moves less than half of what the
# unfused program does. The most fused program is not the best one, and a compiler that returned
# only that would be a bad compiler. Blockbuster returns the snapshots, and chooses when sizes are
# known.

# %%
by = {(count, name): (gib, tflop, held) for count, name, gib, tflop, held in llama}
assert by[64, "snapshot 3"][0] > by[64, "unfused"][0] > 2 * by[64, "snapshot 1"][0]
assert by[64, "snapshot 3"][1] > 40 * by[64, "snapshot 1"][1]
assert by[64, "snapshot 1"][2] <= LOCAL < by[1, "snapshot 3"][2]
assert by[1, "snapshot 3"][0] < by[1, "snapshot 1"][0]

# %% [markdown]
# ## When it pays
#
# With few columns in the result, one block of `N` is no problem. Here `N` is 64 (a router, say, or
# the projection to a small head).

# %%
small = table(SMALL, (1,))
show(small)
assert small[3][2] < small[1][2] < small[0][2] and small[3][4] <= LOCAL

# %% [markdown]
# Now snapshots 2 and 3 save what snapshot 1 stores, and they fit.
#
# Between these cases there is a border. For each size of `N` and each program, take the best number
# of blocks of `N` that fits, and see what moves (work counts too: a GPU does about 200 operations
# in the time it takes to move a byte, so we add the operations divided by 200 as bytes).

# %%
widths = [64, 128, 256, 512, 1024, 2048, 4096]


def best(form, width):
    """The least cost, in GiB, over numbers of blocks of N that fit into local memory."""
    sizes = {**SMALL, "N": width}
    costs = []
    for count in (1, 2, 4, 8, 16, 32, 64):
        steps = dict(M=64, D=64, K=64, N=width // count)
        moved = form.at(sizes, block_sizes=steps, item_bytes=2)
        if moved.footprint * 4 <= LOCAL:
            costs.append((moved.bytes + sum(moved.flops.values()) / 200) / 2**30)
    return min(costs)


curves = {name: [best(forms[name], width) for width in widths] for name in names}
fig, axes = plt.subplots(figsize=(6, 3.2))
for name, style in zip(names, ("k:", "o-", "s--", "^-"), strict=True):
    axes.loglog(widths, curves[name], style, base=2, label=name)
axes.set(xlabel="columns of the result (N)", ylabel="cost in GiB")
for axis in (axes.xaxis, axes.yaxis):
    axis.set_major_formatter("{x:g}")
axes.set_title("D = 512, K = 1024, 4096 rows, float16")
axes.legend(frameon=False)
fig.tight_layout()
plt.show()

winners = [min(names, key=lambda name: curves[name][at]) for at in range(len(widths))]
for width, winner in zip(widths, winners, strict=True):
    print(f"N = {width:4}: {winner}")
assert winners[0] == "snapshot 3" and winners[-1] == "snapshot 1"

# %% [markdown]
# `bb.jit` makes this choice too, when it sees the arrays. It asks a model of the GPU at hand what
# the kernels would take, in microseconds (notebook 07 is about that model), looks for the
# schedules that suit the best few, and also knows programs that no snapshot is: a snapshot with
# its statistics in a kernel apart, because sums of rows keep the loads of a loop of dots from
# running ahead; or the norm extended into the loops of what reads it, and the last product left
# alone. Of candidates that the model cannot tell apart the more fused one is taken. Here for an
# NVIDIA H100:

# %%
fused = Fused(graph)
for width in (64, 4096):
    considered = fused.consider({**SMALL, "N": width}, "float16", "sm_90")
    print(f"N = {width}: {considered.best.name}, tiles {considered.best.blocks}")
    for choice in sorted((considered.best, *considered.others), key=lambda c: c.snapshot):
        print(f"  {choice.name}: {choice.amount}")
    assert considered.best.price <= 1.1 * min(choice.price for choice in considered.others)
    assert considered.best.name != "snapshot 3"
