# %% [markdown]
# # LayerNorm and a matrix product in one pass
#
# LayerNorm subtracts from each row its mean and divides it by its standard deviation. In a
# transformer it is almost always followed by a matrix product. It seems that the product has to
# wait: nothing can be normalized before the mean and the deviation of the whole row are known, so a
# row has to be read once for them and once more for the product.
#
# It does not have to wait. This notebook shows how rules find a program that reads each row once,
# why it is right, and when it loses digits.

# %%
import matplotlib.pyplot as plt
import numpy as np

import blockbuster as bb
from blockbuster.view.draw import draw

rng = np.random.default_rng(0)

# %% [markdown]
# ## The program


# %%
def layernorm_matmul(x, y):
    return bb.layer_norm(x) @ y


program = bb.trace(layernorm_matmul, x="M K", y="K N")
graph = bb.lower(program)
print(graph.listing())

# %% [markdown]
# The variance is computed as the mean of squares minus the square of the mean, so the row sums of
# `x` and of `x * x` can be found independently. `-mean` and `1/deviation` are vectors with one
# number per row; `row_shift` and `row_scale` add and multiply them to rows.
#
# ## Two identities
#
# Let $\mu$ be the vector of means, $\sigma$ that of deviations, $\mathbf 1$ a vector of ones. Then
#
# $$\mathrm{LayerNorm}(X)\,Y = \mathrm{diag}(1/\sigma)\,(X - \mu \mathbf 1^T)\,Y
#   = \mathrm{diag}(1/\sigma)\,\bigl(X Y - \mu\,(\mathbf 1^T Y)\bigr).$$
#
# - Scaling the rows of a matrix before a product is scaling the rows of the product: rule 4,
#   `swap-scale-dot`.
# - Shifting the rows before a product is adding an outer product after it, of the shift and the
#   column sums of `Y`: rule 5, `swap-shift-dot`. For most shifts the two large terms after it
#   would cancel; the default rules have `swap-mean-dot` in its place, which takes out the mean of
#   a row alone.
#
# In plain NumPy:

# %%
x, y = rng.normal(size=(5, 8)), rng.normal(size=(8, 3))
mean, deviation = x.mean(1, keepdims=True), x.std(1, keepdims=True)
before = ((x - mean) / deviation) @ y
after = (x @ y - mean * y.sum(0)) / deviation
assert np.allclose(before, after)

# %% [markdown]
# On the right nothing waits: `x @ y`, the sums of `y` and the statistics of `x` need one pass over
# the same data, and the correction comes at the end.
#
# ## The derivation

# %%
derivation = bb.fuse(graph)
print(derivation.show())
assert [step.number for step in derivation.steps].count(4) == 1
assert [step.number for step in derivation.steps].count(5) == 1

# %% [markdown]
# First the loops over `M` become one (rule 1). Then, in its body, steps 8 and 9 are the two
# identities. Look at step 9: the number of buffered values grows from 6 to 9, because the outer
# product and the column sums are new loops. It is a detour that pays: what blocked the way is gone,
# and rules 1, 2 and 3 merge everything that is left.
#
# There are two snapshots. The first has two loops over `K` in the body: one for the statistics, one
# for the product.

# %%
first, last = derivation.snapshots
print(first.listing())
assert first.buffered_edges() == last.buffered_edges() == ()

# %% [markdown]
# The last one has everything in a single loop. Nothing is stored but the result. (Each is one
# kernel: the difference is only how often `x` is read.)

# %%
print(last.listing())
draw(last)

# %%
proof = bb.prove_equal(graph, last)
print(proof)
assert proof.equal

# %% [markdown]
# ## What it saves


# %%
def mib(graph, blocks):
    sizes = dict.fromkeys("MNK", 4096)
    return bb.traffic(graph, sizes, blocks, item_bytes=2).bytes / 2**20


names = ("unfused", "snapshot 1", "snapshot 2")
programs = (graph, first, last)
settings = {"N in 32 blocks": 32, "N in 4 blocks": 4, "N in 1 block": 1}
table = {
    label: [mib(each, dict(M=32, K=64, N=count)) for each in programs]
    for label, count in settings.items()
}
fig, axes = plt.subplots(figsize=(6, 3))
for at, (label, values) in enumerate(table.items()):
    axes.bar(np.arange(3) + 0.27 * (at - 1), values, width=0.25, label=label)
    for place, value in enumerate(values):
        axes.text(place + 0.27 * (at - 1), value, f"{value:.0f}", ha="center", va="bottom", size=7)
axes.set_xticks(range(3), names)
axes.set(ylabel="MiB moved", ylim=(0, 7000))
axes.set_title("4096 x 4096 matrices, float16, 32 blocks of M")
axes.legend(frameon=False)
fig.tight_layout()
plt.show()

for values in table.values():
    assert values[2] < values[1] < values[0]

# %% [markdown]
# Most of the saving comes before the last step: `x` is read once less, which is little beside the
# product's own traffic where `y` is large. The paper calls such steps extensions: they repeat work
# (here: the statistics, once per block of `N`) and should be weighed.
#
# ## A warning about digits
#
# Equal in exact arithmetic is not equal in floating point. The mean of squares minus the square of
# the mean is the difference of two large numbers if the mean is large. A program that has to
# survive such inputs can compute the variance from the shifted values; that takes another pass
# over `x`.


# %%
def two_passes(x, y):
    shifted = x - bb.mean(x, axis=-1, keepdims=True)
    variance = bb.mean(shifted * shifted, axis=-1, keepdims=True)
    return (shifted * bb.rsqrt(variance + 1e-5)) @ y


careful = bb.fuse(bb.lower(bb.trace(two_passes, x="M K", y="K N"))).snapshots[0]
print(careful.listing())

# %% [markdown]
# Let us add a constant to every element. LayerNorm should not care. Both programs in float32,
# against NumPy in float64:

# %%
shifts = [0, 1, 10, 100, 1000]
candidates = {"one pass (snapshot 2)": last, "shifted first": careful}
errors = {name: [] for name in candidates}
for shift in shifts:
    arrays = {"x": rng.normal(size=(32, 64)) + shift, "y": rng.normal(size=(64, 16))}
    expected = program.numpy(arrays)["out"]
    for name, each in candidates.items():
        out = bb.evaluate(each, arrays, {"M": 2, "K": 4}, semantics=bb.Float32)["out"]
        errors[name].append(np.abs(out - expected).max() / np.abs(expected).max())

fig, axes = plt.subplots(figsize=(6, 3))
for name, values in errors.items():
    axes.semilogy([str(shift) for shift in shifts], values, "o-", label=name)
axes.set(xlabel="mean of a row, in standard deviations", ylabel="largest error, relative")
axes.legend(frameon=False)
fig.tight_layout()
plt.show()

one_pass, shifted_first = errors.values()
assert one_pass[0] < 1e-5 and one_pass[-1] > 1e-2
assert shifted_first[-1] < one_pass[-1] / 10

# %% [markdown]
# With a mean of 1000 deviations the fast program has about one digit left. The careful one loses
# no digits: no rule took its shift out of the product. The price is the list `I1` of shifted rows.
#
# You need not choose. `bb.emit` and `bb.jit` make a program safe before they print it: `bb.safe`
# takes the variance from shifted values, and the shift back into the product.

# %%
made_safe = bb.safe(last)
arrays = {"x": rng.normal(size=(32, 64)) + 1000, "y": rng.normal(size=(64, 16))}
expected = program.numpy(arrays)["out"]
out = bb.evaluate(made_safe, arrays, {"M": 2, "K": 4}, semantics=bb.Float32)["out"]
print(f"largest error, relative: {np.abs(out - expected).max() / np.abs(expected).max():.1e}")
print(made_safe.listing())

# %% [markdown]
# This is the last snapshot made safe: it reads the row three times.
#
# Next: [05](05_rmsnorm_swiglu_mega_kernel.ipynb), where the most fused program is the wrong choice.
