# %% [markdown]
# # Which kernels?
#
# One kernel for a whole program is often possible, and often slow. So after fusing there is a
# second question: into which kernels should a program be divided? `bb.select` answers it without a
# GPU. This notebook asks it about a decoder block, looks at each cut, finds the size at which a
# fused network stops paying, asks again for other machines, and checks an answer against all
# possible ones.

# %%
import matplotlib.pyplot as plt
import numpy as np

import blockbuster as bb

# %% [markdown]
# ## A decoder block
#
# A norm, attention, a second norm and a gated network, with two residual sums: about thirty
# operators, written as one writes them.


# %%
def rms_norm(x, g):
    return x * bb.rsqrt(bb.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g


def heads(x, count):
    return x.reshape(x.shape[0], count, x.shape[1] // count).swapaxes(0, 1)


def gated(x, g, w_gate, w_up, w_down):
    n = rms_norm(x, g)
    return (bb.silu(n @ w_gate) * (n @ w_up)) @ w_down


def block(x, g1, w_q, w_k, w_v, w_out, g2, w_gate, w_up, w_down):
    n = rms_norm(x, g1)
    q, k, v = (heads(n @ w, 16) for w in (w_q, w_k, w_v))
    s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    y = (bb.softmax(s, axis=-1) @ v).swapaxes(0, 1).reshape(x.shape)
    x = x + y @ w_out
    return x + gated(x, g2, w_gate, w_up, w_down)


WEIGHTS = dict(w_q="D D", w_k="D D", w_v="D D", w_out="D D")
NETWORK = dict(w_gate="D F", w_up="D F", w_down="F D")
program = bb.trace(block, x="M D", g1="D", **WEIGHTS, g2="D", **NETWORK)
sizes = dict(M=512, D=2048, F=5632)
plan = bb.select(program, sizes, machine="h200", library=False)
print(plan.explain())

# %% [markdown]
# Each numbered line is a *part*: operators that are lowered, fused and scheduled together. Below
# stands each array that is stored between parts, and what it would cost to do without. As a
# picture:

# %%
plan.draw()

# %% [markdown]
# ## One cut, by hand
#
# The first norm is a kernel of its own, although a rule could move its factor behind the products.
# The plan says why: three products read the normed rows. Each of them would read, square and sum
# the rows again. Here is one of the three, fused and in two kernels:


# %%
def normed_product(x, g, w):
    return rms_norm(x, g) @ w


half = bb.trace(normed_product, x="M D", g="D", w="D N")
chosen = bb.select(half, dict(M=512, D=2048, N=2048), machine="h200", library=False)
forms = bb.fuse(bb.lower(half)).snapshots
for at, form in enumerate(forms):
    kernel = bb.emit(form, dict(M=512, D=2048, N=2048))
    count = len(kernel.tile_program.nests)
    print(f"snapshot {at}: {count} kernel(s), {kernel.cost('h200').time_us:.1f} us")
print(f"chosen: {chosen.kernels} kernel(s), {chosen.total_us:.1f} us")
assert chosen.total_us < 1.1 * min(
    bb.emit(form, dict(M=512, D=2048, N=2048)).cost("h200").time_us for form in forms
)

# %% [markdown]
# ## Where fusing the gated network stops paying
#
# The rules fuse all of the gated network into one kernel. Its intermediate values then never leave
# a processor. But each program must hold a row of the result, and two programs that work on
# different columns of the hidden layer cannot share what they computed. For narrow networks that
# is a good bargain, for wide ones it is not:

# %%
network = bb.trace(gated, x="M D", g="D", **NETWORK)
one_kernel = bb.fuse(bb.lower(network)).snapshots[-1]
widths = [64, 128, 256, 512, 1024]
fused, divided, counts = [], [], []
for width in widths:
    at = dict(M=1024, D=width, F=4 * width)
    fused.append(bb.emit(one_kernel, at).cost("h200").time_us)
    best = bb.select(network, at, machine="h200", library=False)
    divided.append(best.cost("h200").time_us)
    counts.append(best.kernels)
    print(f"width {width:4}: one kernel {fused[-1]:7.1f} us, chosen {divided[-1]:6.1f} us")

# %%
plt.figure(figsize=(6, 3.5))
plt.loglog(widths, fused, "o-", label="fused as far as rules go")
plt.loglog(widths, divided, "s--", label="chosen")
for width, us, count in zip(widths, divided, counts, strict=True):
    plt.annotate(f"{count}", (width, us), textcoords="offset points", xytext=(0, -14), ha="center")
plt.xlabel("width of the network (rows: 1024, hidden layer: 4 times as wide)")
plt.ylabel("predicted microseconds, H200")
plt.title("Numbers: kernels of the chosen plan")
plt.ylim(bottom=4)
plt.legend()
plt.tight_layout()
plt.show()

assert all(best <= 1.1 * one for best, one in zip(divided, fused, strict=True))
assert fused[-1] > 3 * divided[-1], "a wide network is no kernel"

# %% [markdown]
# At a tenth more, the plan prefers fewer kernels: the price tells no smaller difference apart.
#
# ## Another machine
#
# What a plan costs depends on the machine, and so does the best one. The same network on three of
# them, 256 wide:

# %%
at = dict(M=1024, D=256, F=1024)
for machine in ("h200", "a100", "rtx3080"):
    best = bb.select(network, at, machine=machine, library=False)
    print(f"{machine:8} {best.kernels} kernel(s), {best.total_us:6.1f} us, gap {best.gap:.0%}")

# %% [markdown]
# `gap` says how far the plan may be above the best one: the search prices few parts, and stands on
# estimates and lower bounds for the others ([how](../docs/choosing.md)).
#
# ## All plans of a small program
#
# For a small program, all parts can be priced. Then the gap is 0, and the plan of the usual search
# can be held against the best one.


# %%
def grouped(x, w):
    y = (x @ w).reshape(x.shape[0], 16, w.shape[1] // 16)
    centred = y - bb.mean(y, axis=-1, keepdims=True)
    spread = bb.mean(centred * centred, axis=-1, keepdims=True)
    return bb.relu(centred * bb.rsqrt(spread + 1e-5)).reshape(x.shape[0], w.shape[1])


small = bb.trace(grouped, x="M K", w="K N")
sizes = dict(M=1024, K=1024, N=4096)
usual = bb.select(small, sizes, machine="h200", library=False)
best = bb.select(small, sizes, machine="h200", library=False, effort="exhaustive")
print(f"usual: {usual.total_us:.1f} us; of all plans the best: {best.total_us:.1f} us")
assert best.gap == 0 and best.total_us <= usual.total_us <= 1.1 * best.total_us

# %% [markdown]
# And the plan computes what the program does. On this computer without a GPU, its parts are NumPy
# text:

# %%
rng = np.random.default_rng(0)
x, w = rng.normal(size=(8, 32)), rng.normal(size=(32, 64))
assert np.allclose(bb.jit(grouped)(x, w), grouped(x, w))

# %% [markdown]
# `bb.jit`, `bb.compile` and `torch.compile(model, backend="blockbuster")` choose in this way. On
# the command line, `blockbuster select` says the same, and `-o plan.svg` draws it.
