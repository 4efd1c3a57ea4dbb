# %% [markdown]
# # Repairing a reduction
#
# A normalized reduction seems to need two passes over a row: one to find the normalizer, one to
# use it. One pass is enough if the second reduction starts with the normalizer so far, and is
# *repaired* when that changes. Online softmax does this for exponentials. This notebook does it for
# a normalizer of our own, from the formula to the kernel.

# %%
import numpy as np
import sympy as sp
from IPython.display import display

import blockbuster as bb

# %% [markdown]
# ## A norm that does not overflow
#
# The 3-norm of a row is the cube root of the sum of |c|³. Cubes of large numbers overflow, so the
# row is divided by its largest absolute value r first: we sum g(r, c) = (|c| / r)³, and r is a
# reduction of the same row.

# %%
c = sp.Symbol("c", real=True)
r = sp.Symbol("r", positive=True)

repair = bb.repair((sp.Abs(c) / r) ** 3, producers=[r], elements=[c], f="+")
assert repair.ok
display(repair)

# %% [markdown]
# When the largest absolute value goes from r to r', the sum t becomes h(t, r, r'). This is right
# for one element, and because h multiplies, it is right for a sum of elements:

# %%
x, y = sp.symbols("x y", positive=True)
h = sp.Lambda((repair.t, *repair.producers, *repair.changed), repair.h)
changed = repair.changed[0]

assert sp.simplify(h((x / r) ** 3, r, changed) - (x / changed) ** 3) == 0
assert sp.simplify(h(x + y, r, changed) - h(x, r, changed) - h(y, r, changed)) == 0

# %% [markdown]
# ## One pass, by hand
#
# A row arrives in blocks, and no block is read twice. In float32 the cubes of these numbers would
# be infinite. So would r³ be: SymPy writes powers apart, and in floats the quotient has to come
# first.


# %%
def rescaled(t, r, r2):
    return t * (r / r2) ** 3


assert sp.simplify(rescaled(repair.t, r, changed) - repair.h) == 0

row = np.float32(1e20) * np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
largest, total = np.float32(1e-30), np.float32(0)
for block in row:
    now = max(largest, np.abs(block).max())
    total = rescaled(total, largest, now) + ((np.abs(block) / now) ** 3).sum()
    largest = now

expected = np.linalg.norm(row.astype(float).ravel(), ord=3)
assert np.isclose(largest * total ** (1 / 3), expected, rtol=1e-5)
print(largest * total ** (1 / 3), "expected:", expected)

# %% [markdown]
# ## One pass, by fusion
#
# Now the same norm as array code, with its two reductions. Nothing in it says that it should be
# one loop:


# %%
def norm(x):
    largest = bb.max(bb.abs(x), axis=-1, keepdims=True)
    scaled = bb.sum((bb.abs(x) / largest) ** 3, axis=-1, keepdims=True)
    return (largest * scaled ** (1 / 3))[:, 0]


derivation = bb.fuse(bb.lower(bb.trace(norm, x="M N")))
print(derivation.final)
assert "repair-by-law" in [step.rule for step in derivation.steps]
assert bb.prove_equal(derivation.start, derivation.final).equal is not False

# %% [markdown]
# Both reductions share the loop over N. The line that begins with `yield +` says how partial sums
# are folded: before that, each is taken from its own magnitude r to the larger one r2. This is
# h, with a floor below the magnitudes, so that a block of zeros does not divide by zero.
#
# The kernel has one loop over the row:

# %%
kernel = bb.emit(derivation, dict(M=4096, N=131072), dtype="float32", target="sm_90")
print(kernel.tile_program)

# %% [markdown]
# It computes what the loop above computes:

# %%
rows = np.stack([row.ravel(), np.zeros(128, np.float32), np.ones(128, np.float32)])
result = bb.evaluate(derivation.final, dict(x=rows), block_sizes=dict(N=16), semantics=bb.Float32)
assert np.allclose(result["out"][[0, 2]], [expected, 128 ** (1 / 3)], rtol=1e-5)
print(result["out"])

# %% [markdown]
# The row of zeros gives NaN, as the program does in NumPy: 0 / 0.
#
# ## Attention with weights of your own
#
# Softmax makes weights of scores by exponentials. Here they are cubes, scaled so that they cannot
# overflow. Both the sum of the weights and their product with v wait for the largest score:


# %%
def attention(q, k, v):
    scores = q @ k.T
    weights = bb.abs(scores / bb.max(bb.abs(scores), axis=-1, keepdims=True)) ** 3
    return (weights @ v) / bb.sum(weights, axis=-1, keepdims=True)


program = bb.trace(attention, q="M D", k="N D", v="N L")
derivation = bb.fuse(bb.lower(program))
print(derivation.final.listing())
assert derivation.final.buffered_edges() == ()
assert derivation.prove().equal

# %% [markdown]
# One loop over the keys, and no score is stored: this is FlashAttention for a normalizer that no
# rule mentions. In blocks, in float32, it gives what whole arrays give in float64:

# %%
rng = np.random.default_rng(0)
inputs = dict(q=rng.normal(size=(40, 16)), k=rng.normal(size=(64, 16)), v=rng.normal(size=(64, 16)))
blocks = dict(M=8, N=8, D=16, L=16)
result = bb.evaluate(derivation.final, inputs, block_sizes=blocks, semantics=bb.Float32)["out"]
error = abs(result - program.numpy(inputs)["out"]).max()
assert error < 1e-6
print(f"largest error: {error:.0e}")

# %% [markdown]
# ## What cannot be repaired
#
# Here r is inside of the power, where each element has another share of it:

# %%
refused = bb.repair((c - r) ** 2, producers=[r], elements=[c], f="+")
assert refused.answer == "no"
print(refused.reason)
for point in refused.points:
    print(point)

# %% [markdown]
# Two elements that prove it: their contributions change by different factors, and a sum of both
# does not know how much of it came from which.
#
# A count is missing here: each element changes by the same number, but how many were there?

# %%
print(bb.repair(c + r, producers=[r], elements=[c], f="+").reason)
assert bb.repair(c + r, producers=[r], elements=[c], f="max").ok

# %% [markdown]
# Exercise: attention divides by the sum of exponentials. Ask for the repair of
# v · exp(c − m) / l with the producers m and l. Which of them does h divide by?
