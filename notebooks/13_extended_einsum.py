# %% [markdown]
# # Convolutions as contractions
#
# An einsum names the axes of its operands by letters. Triton once had one that went further
# ("extended tensor contractions"): an axis could be read at a *sum* of letters, or at an entry of a
# table. That makes a convolution, and much that looks like one, a matrix product. It is gone from
# Triton, and it stood alone: nothing fused with it.
#
# Here it is an ordinary operator of an array program. This notebook goes through the source's
# examples, shows what a sum of letters becomes, and fuses a convolution with its neighbours.

# %%
import matplotlib.pyplot as plt
import numpy as np

import blockbuster as bb

rng = np.random.default_rng(0)
x = rng.normal(size=(2, 3, 8, 8))  # images, channels, rows, columns
w = rng.normal(size=(4, 3, 3, 3))  # filters, channels, rows and columns of taps

# %% [markdown]
# ## Sums of letters
#
# Each place `h, v` of the result is a sum over the taps `r, s` around it. In plain NumPy, one
# product for each tap:

# %%
by_taps = sum(
    np.einsum("nchv,kc->nkhv", x[:, :, r : r + 6, s : s + 6], w[:, :, r, s])
    for r in range(3)
    for s in range(3)
)
convolved = bb.einsum("nc(h+r)(v+s), kcrs -> nkhv", x, w)
assert np.allclose(convolved, by_taps)
print(convolved.shape)

# %% [markdown]
# Steps and gaps are factors, and zeros around an axis are asked for by its letter:

# %%
strided = bb.einsum("nc(2*h+r)(2*v+s), kcrs -> nkhv", x, w)
dilated = bb.einsum("nc(h+2*r)(v+2*s), kcrs -> nkhv", x, w)
padded = bb.einsum("nc(h+r)(v+s), kcrs -> nkhv", x, w, pad={"h": (1, 1), "v": (1, 1)})
depthwise = bb.einsum("nc(h+r)(v+s), crs -> nchv", x, w[0])
print([each.shape for each in (strided, dilated, padded, depthwise)])

# %% [markdown]
# ## Tables
#
# Not every index function is a sum of letters. A *shift convolution* moves each channel by an
# offset of its own and then needs no taps at all; a *sparse* filter has a few taps at any places.
# Both are tables of offsets:

# %%
shift = {"up": np.array([0, 1, 2]), "left": np.array([2, 1, 0])}
shifted = bb.einsum("nc(h+up[c])(v+left[c]), kc -> nkhv", x, w[:, :, 0, 0], **shift)
by_channels = sum(
    np.einsum("nhv,k->nkhv", x[:, c, up : up + 6, left : left + 6], w[:, c, 0, 0])
    for c, (up, left) in enumerate(zip(*shift.values(), strict=True))
)
assert np.allclose(shifted, by_channels)

taps = {"down": np.array([0, 0, 2, 2, 1]), "right": np.array([0, 2, 0, 2, 1])}
cross = rng.normal(size=(4, 3, 5))  # five taps: the corners and the middle
sparse = bb.einsum("nc(h+down[x])(v+right[x]), kcx -> nkhv", x, cross, **taps)
dense = np.zeros((4, 3, 3, 3))
dense[:, :, taps["down"], taps["right"]] = cross
assert np.allclose(sparse, bb.einsum("nc(h+r)(v+s), kcrs -> nkhv", x, dense))

# %% [markdown]
# A product of letters is no sum: then the address of an element would not be a part for the rows of
# the product plus a part for what it sums over, and it could not be looked up.

# %%
try:
    bb.einsum("nc(h*r)v, kcr -> nkhv", x, w[..., 0])
except bb.TraceError as error:
    print("\n".join(str(error).splitlines()[:3]))

# %% [markdown]
# ## What a sum becomes
#
# Nothing is copied. In the block program, the axis `H` of the input is read under two dims: `A`
# counts the places of the result, `R` the taps. Each element of `x` occurs up to nine times in the
# value `xT`, and once in memory.


# %%
def layer(x, w, b):
    y = bb.einsum("nc(h+r)(v+s), kcrs -> nkhv", x, w, pad={"h": (1, 1), "v": (1, 1)})
    return bb.maximum(y + b[:, None, None], 0)


program = bb.trace(layer, x="N C H V", w="K C R S", b="K")
graph = bb.lower(program)
print(str(graph).splitlines()[0])

# %% [markdown]
# `padded` says that places outside of the axis read zeros. Only inputs have such axes: windows of a
# computed value choose between the value and zero.
#
# ## Fused with its neighbours
#
# From here on, a convolution is a product in loops over taps. The rules that fuse products with
# what follows them do not know that it is one.

# %%
derivation = bb.fuse(graph)
print(derivation.final)
assert not derivation.final.nodes[1:], "one loop nest: one kernel"
assert bb.prove_equal(graph, derivation.final)

# %% [markdown]
# The same as a tile program for a GPU: the loops over taps stand outside, the channels inside, and
# all products are added to one sum in registers.

# %%
sizes = dict(N=32, C=128, H=56, V=56, K=128, R=3, S=3)
kernel = bb.emit(derivation, {**sizes, "A": 56, "B": 56}, target="h200")
print(kernel.tile_program)

# %% [markdown]
# ## Which kernels
#
# Filters have their taps last in memory, so the product would load each of their elements by
# itself. The plan turns them once:

# %%
plan = bb.select(program, sizes, machine="h200")
print(plan.explain())

# %% [markdown]
# How much that matters depends on how often the filters are read: once for each block of rows. The
# predicted time of both ways, from small images to large ones:

# %%
sides = (14, 28, 56, 112)
fused, divided = [], []
for side in sides:
    own = {**sizes, "H": side, "V": side}
    divided.append(bb.select(program, own, machine="h200").total_us)
    one = bb.emit(derivation, {**own, "A": side, "B": side}, target="h200")
    fused.append(one.cost("h200").time_us)

plt.figure(figsize=(5, 3))
plt.loglog(sides, fused, "o-", label="filters read as they lie")
plt.loglog(sides, divided, "o-", label="the plan that is chosen")
plt.xlabel("rows and columns of an image")
plt.ylabel("predicted µs")
plt.xticks(sides, sides)
plt.minorticks_off()
plt.legend()
plt.tight_layout()

# %% [markdown]
# These are predictions of the closed form for an H200; nothing here was measured.
#
# Exercise: write the gradient of the convolution with respect to its filters as one spec. Which
# letters are summed now, and over what do the loops run?
