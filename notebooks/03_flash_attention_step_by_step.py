# %% [markdown]
# # Flash Attention, step by step
#
# Attention is three lines of NumPy. Flash Attention is the same function as one loop that never
# writes the large matrix of scores to memory; finding it made attention several times faster. Here
# it is *derived*: 17 small rewrites, each of which keeps the meaning, lead from the three lines to
# the loop. After each step this notebook shows the program, which intermediate array went away, and
# how many bytes the program moves.
#
# Read it like this: everything that is loaded or stored passes through slow, global memory. What
# only has a name (`t1`, `t2`, ...) stays in fast, local memory. The arrays `I1`, `I2`, ... exist
# only to carry values from one loop to another. They are what has to go.

# %%
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

import blockbuster as bb
from blockbuster.selection import closed_traffic
from blockbuster.view.draw import draw, draw_step

# %% [markdown]
# ## The program
#
# Every row of `q` is compared with every row of `k` (`M` times `N` scores). Softmax makes each row
# of scores positive with sum 1. These are the weights of the rows of `v`.


# %%
def attention(q, k, v):
    s = (q @ k.T) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


program = bb.trace(attention, q="M D", k="N D", v="N L")
graph = bb.lower(program)
print(graph.listing())

# %% [markdown]
# Each operator has its own loops: the scores, their scale, `exp`, the row sums, their reciprocals
# (`recip0(x)` is `1/x`), the division, and the product with `v`. A product is two loops: blocks of
# products over `D` are stored, then added up. As a picture, buffered values in red:

# %%
draw(graph)

# %% [markdown]
# We look at sequences of 4096 with heads of 64 numbers in float16, cut into 64 blocks along the two
# sequences. The scores alone have 16 million elements, 32 MiB, while `q`, `k`, `v` and the result
# have half a MiB each.

# %%
sizes, blocks = dict(M=4096, N=4096, D=64, L=64), dict(M=64, N=64)
derivation = bb.fuse(graph)


def traffic(graph, **more):
    return bb.traffic(graph, sizes, blocks | more, item_bytes=2)


def mib(graph):
    return traffic(graph).bytes / 2**20


def buffered(graph):
    """The interior buffered values, as name and type."""
    return Counter(f"{edge.producer}: {edge.type}" for edge in bb.explain(graph))


def words(values):
    return ", ".join(values.elements()) or "nothing"


def show(number):
    """What step ``number`` did, and the program after it."""
    step = derivation.steps[number - 1]
    before, after = step.before, step.after
    gone, new = buffered(before) - buffered(after), buffered(after) - buffered(before)
    print(f"rule {step.number}, {step.rule}: {step.description}")
    print(f"buffered values gone: {words(gone)}; new: {words(new)}")
    print(f"bytes moved: {mib(before):.2f} -> {mib(after):.2f} MiB\n")
    print(after.listing())


print(f"unfused: {mib(graph):.2f} MiB, {len(graph.buffered_edges())} interior buffered edges")

# %% [markdown]
# ## Step 1: One loop over the rows
#
# Rule 1 merges a loop with a loop that reads its results one by one. The scores and their scale
# both run over the blocks of `M`, so they become one loop. Nothing moves less yet, but look at
# the type of `p`: it was a list over `M` and `N`, the whole matrix of scores. Now it is a list over
# `N` only: the scores of one block of rows.

# %%
show(1)

# %% [markdown]
# ## Step 2: The exponential joins
#
# The same again. A type such as `N[M,N]` says: a list over `N` of blocks with axes `M` and `N`.

# %%
show(2)

# %% [markdown]
# ## Step 3: The row sums join
#
# The sum of a row needs the whole row, and the whole row is made in the same iteration over `M`:
# no obstacle.

# %%
show(3)

# %% [markdown]
# ## Step 4: The reciprocals join
#
# The first value that disappears. The sums of a block of rows, `s: M[M]`, are complete when the
# iteration is: they become local.

# %%
show(4)

# %% [markdown]
# ## Step 5: The division joins
#
# Two lists went in between: the exponentials `e` and the reciprocals `r`.

# %%
show(5)

# %% [markdown]
# ## Step 6: The product with v joins
#
# One loop over `M` is left at the top. From now on the rules work in its body, where things are
# still stored and loaded for each loop over `N`.

# %%
show(6)

# %% [markdown]
# ## Step 7: Divide later
#
# The key step of Flash Attention. The rows of the weights are divided by their sum, then
# multiplied by `v`. But dividing the rows of a matrix and then multiplying by another one is the
# same as multiplying first and dividing the rows of the product: `diag(r) @ E @ V`, with the
# brackets moved. After that the product no longer waits for the sums. Rule 4 fuses nothing by
# itself, but makes fusing possible. It already pays, because
# what is divided is the small result instead of the large matrix of weights.

# %%
show(7)

# %% [markdown]
# ## Step 8: Add up on the fly
#
# Rule 3: what is stored only to be added up is added up at once. `+=` in the listing is a running
# total that stays local.

# %%
show(8)

# %% [markdown]
# ## Step 9: Scores and scale
#
# Rule 1 again, one level deeper: the loops over `N` merge. Each merge saves storing and loading a
# matrix as large as the scores: 64 MiB.

# %%
show(9)

# %% [markdown]
# ## Step 10: Scores, scale, exponential
#
# And again.

# %%
show(10)

# %% [markdown]
# ## Step 11: And the row sums
#
# The exponentials `e` stay buffered, since the product with `v` reads them too; but the row sums
# read them on the way, so they are loaded once less.

# %%
show(11)

# %% [markdown]
# ## Step 12: The division, after the product
#
# In the second loop, over `L`, the division of the result joins the product.

# %%
show(12)

# %% [markdown]
# ## Step 13: One expression
#
# Rule 9 merges two pointwise operators on local values. No traffic; the listing gets shorter.

# %%
show(13)

# %% [markdown]
# ## Step 14: Products over D are added up
#
# Rule 3 on the inner dim: a matrix product keeps a running total. This is how everyone computes
# matrix products.

# %%
show(14)

# %% [markdown]
# ## Step 15: Products over N are added up
#
# The same for the product with `v`. Now no rule that only saves is left: a **snapshot** is taken.
# Two loops over `N` remain. The first makes the exponentials of a block of rows and their sum, the
# second, inside a loop over `L`, multiplies them by `v`.

# %%
show(15)

# %% [markdown]
# ## Step 16: Take the first loop along
#
# One buffered value is left: `e` is made in a loop over `N` and read in a loop over `N`, but the
# second one stands inside a loop over `L`. Rule 6 pulls the first one in there too. That is a
# wager: if `L` has several blocks, the scores are computed again for each of them. It is why a
# snapshot was taken before.

# %%
show(16)

# %% [markdown]
# ## Step 17: The last merge
#
# Side by side in the same loop, the two merge by rule 1. No interior buffered value is left: every
# block of `q`, `k` and `v` is loaded, used, and forgotten. This is Flash Attention.

# %%
show(17)

# %% [markdown]
# ## The whole way in one picture

# %%
graphs = [graph, *(step.after for step in derivation.steps)]
ends = {"q", "k", "v"}


def parts(graph, **more):
    """MiB moved for inputs and result, and for intermediate values."""
    moved = traffic(graph, **more)
    tensors = moved.tensors.items()
    inside = sum(
        m.loaded_elements + m.stored_elements for t, m in tensors if t.name not in ends and m.loads
    )
    return np.array([moved.elements - inside, inside]) * 2 / 2**20


outer, inside = np.array([parts(g) for g in graphs]).T
labels = ["start", *(f"{n} {s.rule}" for n, s in enumerate(derivation.steps, start=1))]
fig, axes = plt.subplots(figsize=(8, 4.2))
axes.bar(labels, outer, color="tab:gray", label="inputs and result")
axes.bar(labels, inside, bottom=outer, color="tab:red", label="intermediate values")
for at, total in enumerate(outer + inside):
    axes.text(at, total + 6, f"{total:.0f}", ha="center", fontsize=8)
axes.set(ylabel="MiB moved", ylim=(0, 560))
axes.set_title("4096 x 4096 scores, D = L = 64, float16, 64 x 64 blocks")
axes.tick_params(axis="x", rotation=60, labelsize=8)
for label in axes.get_xticklabels():
    label.set(ha="right", rotation_mode="anchor")
axes.legend(frameon=False)
fig.tight_layout()
plt.show()

assert inside[-1] == 0 and outer[-1] + inside[-1] < (outer[0] + inside[0]) / 5

# %% [markdown]
# What is left is the inputs, some of them many times: every block of rows of `q` meets all of `k`
# and `v`.
#
# The rules in numbers (this is also a test that the derivation has not changed):

# %%
assert [step.number for step in derivation.steps] == [1] * 6 + [4, 3, 1, 1, 1, 1, 9, 3, 3, 6, 1]
assert [len(g.buffered_edges()) for g in derivation.snapshots] == [1, 0]
assert derivation.replay() == derivation.final
draw(derivation.final)

# %% [markdown]
# Two steps as pictures, before and after, with the place where the rule applies marked. (Boxes
# with words are loops that are not drawn in full.) Step 7, where the division moves behind the
# product, so that the product no longer waits for the sums:

# %%
draw_step(derivation.steps[6], depth=1)

# %% [markdown]
# And step 16, where the first loop is taken into the loop over `L`:

# %%
draw_step(derivation.steps[15], depth=2)

# %% [markdown]
# ## Is the last program always the best one?
#
# No. Step 16 repeats work for each block of `L`. With one block of `L` it costs nothing, with many
# it costs more than the last merge saves. The traffic of a program is a polynomial in sizes (`S`)
# and numbers of blocks (`B`), so we can look at it instead of trying.

# %%
snapshot, final = derivation.snapshots
for name, each in (("snapshot 1", snapshot), ("snapshot 2", final)):
    for tensor, m in closed_traffic(each).tensors.items():
        print(f"{name}  {tensor.name}: loaded {m.loaded_elements!s:16} stored {m.stored_elements}")

# %% [markdown]
# Snapshot 2 has no `e`, but loads `q` and `k` once for every block of `L`.

# %%
for count in (1, 2, 4, 8):
    one, two = (traffic(each, L=count) for each in (snapshot, final))
    print(
        f"{count} blocks of L: {one.bytes / 2**20:6.1f} or {two.bytes / 2**20:6.1f} MiB,"
        f" {one.flops['matrix'] / 1e9:.1f} or {two.flops['matrix'] / 1e9:.1f} GFLOP in products"
    )

assert traffic(final, L=1).bytes < traffic(snapshot, L=1).bytes
assert traffic(final, L=4).bytes > traffic(snapshot, L=4).bytes

# %% [markdown]
# Heads are small (64 or 128 numbers), so one block of `L` is the rule, and the last program wins.
# For other programs it does not; see [05](05_rmsnorm_swiglu_mega_kernel.ipynb). That is why all
# snapshots are kept and a choice is made when sizes are known.
#
# ## Proof
#
# Every step keeps the meaning, or it would not be a rule. To be sure, we have each one proved:
# programs before and after are compared in exact arithmetic on random inputs.

# %%
report = derivation.prove()
print(report)
assert report.equal

# %% [markdown]
# ## Safe exponentials
#
# One thing is missing. `exp` of a large score overflows: in float32 anything above 88 becomes
# infinite. So softmax is usually computed after subtracting the largest score of the row, which
# changes nothing mathematically. Where is the largest score, if we see a row block by block? Flash
# Attention's answer is a running maximum, and a correction of the totals whenever it grows.
# `bb.safe` finds that by itself: it carries every exponential as a number times `exp` of something,
# and lets the somethings travel through the program.

# %%
stable = bb.safe(derivation.final)
print(stable.listing())

# %% [markdown]
# `(+)=` is a total that is rescaled when the running exponent `t1` moves. Scores of a few hundred
# show the difference:

# %%
rng = np.random.default_rng(0)
arrays = {name: rng.normal(size=(64, 16)) * 12 for name in "qkv"}
few = {"M": 4, "N": 4}
expected = program.numpy({"q": arrays["q"], "k": arrays["k"], "v": arrays["v"]})["out"]
for name, each in (("as derived", derivation.final), ("safe", stable)):
    out = bb.evaluate(each, arrays, few, semantics=bb.Float32)["out"]
    error = np.abs(out - expected).max() / np.abs(expected).max()
    print(f"{name:10} in float32: {np.isfinite(out).mean():.0%} of the results are finite")
    assert (error < 1e-5) == (name == "safe")

# %% [markdown]
# This program becomes a Triton kernel with one call of `bb.emit`:
# [11 From graph to Triton to GPU timing](11_from_graph_to_triton_to_gpu.ipynb).
