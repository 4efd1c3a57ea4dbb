# %% [markdown]
# # Flash Attention, step by step
#
# Attention is two lines of array code. Flash Attention is the same function as one loop that never
# writes the large matrix of scores to memory; finding it made attention several times faster. Here
# it is *derived*: 17 rewrites lead from the two lines to the loop, and each of them keeps the
# meaning. This notebook lists all of them with the bytes that the program moves, and looks closely
# at the five that matter.
#
# Read it like this: everything that is loaded or stored passes through slow, global memory. What
# only has a name (`t1`, `t2`, ...) stays in fast, local memory. The arrays `I1`, `I2`, ... exist
# only to carry values from one loop to another. They are what has to go.

# %%
import difflib
import re
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
# (`recip0(x)` is `1/x`, and 0 where `x` is 0), the division, and the product with `v`. A product is
# two loops: blocks of products over `D` are stored, then added up. As a picture, with buffered
# values in red:

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


NAME = re.compile(r"\b[tI]\d+")


def unnumbered(lines):
    """Lines without the numbers of their names, which change with every step."""
    return [NAME.sub(lambda name: name[0][0], line) for line in lines]


def changes(number):
    """Step ``number``: the lines of the program that it took away (-) and put in (+).

    Numbers are those after the step; a name with a mark, as in t10', is gone after it.
    """
    step = derivation.steps[number - 1]
    before, after = (each.listing().splitlines() for each in (step.before, step.after))
    print(f"rule {step.number}, {step.rule}: {step.description}")
    print(f"bytes moved: {mib(step.before):.2f} -> {mib(step.after):.2f} MiB\n")
    matcher = difflib.SequenceMatcher(None, unnumbered(before), unnumbered(after), autojunk=False)
    blocks = matcher.get_opcodes()
    renamed = {}  # names of the lines that stay: the numbers before, and those after
    for kind, i, j, k, n in blocks:
        if kind == "equal":
            names = (NAME.findall("".join(lines)) for lines in (before[i:j], after[k:n]))
            for old, new in zip(*names, strict=True):
                if new not in renamed.values():
                    renamed.setdefault(old, new)
    before = [NAME.sub(lambda name: renamed.get(name[0], f"{name[0]}'"), line) for line in before]
    for kind, i, j, k, n in blocks:
        marked = [f"  {line}" for line in after[k:n]]
        if kind != "equal":
            marked = [f"- {line}" for line in before[i:j]] + [f"+ {line}" for line in after[k:n]]
        print("\n".join(marked))


print(f"unfused: {mib(graph):.2f} MiB, {len(graph.buffered_edges())} interior buffered edges")

# %% [markdown]
# ## All steps
#
# Each line is one rewrite: its rule, the bytes that the program moves afterwards, and the buffered
# values that it removes, by name and type. A value is named after the operator that made it: `p` is
# a product, `s` a scaled score or a sum, `e` an exponential, `r` a reciprocal, `y` the divided
# weights; listings call the same values `I1`, `I2`, ... in order. The type `M,N[M,N]` is a list
# over `M` and `N` of blocks with axes `M` and `N`; `N[M,N]` is a list over `N` only.

# %%
for number, step in enumerate(derivation.steps, start=1):
    gone = buffered(step.before) - buffered(step.after)
    print(f"{number:2} rule {step.number} {step.rule:15} {mib(step.after):7.2f} MiB  {words(gone)}")

# %% [markdown]
# Most steps are rule 1, fuse-maps: a loop that makes a list and a loop that reads it one by one
# become one loop.
#
# ## Steps 1 to 6: One loop over the rows
#
# Step 1 merges the loop that makes the scores with the loop that scales them. Nothing moves less
# yet, but look at the type of `p`: it was a list over `M` and `N`, the whole matrix of scores. Now
# it is a list over `N` only, the scores of one block of rows. In a picture, before and after:

# %%
draw_step(derivation.steps[0], depth=1)

# %% [markdown]
# Steps 2 to 6 take the exponential, the sums of rows, their reciprocals, the division and the
# product with `v` into the same loop over `M`. Step 4 is the first that makes a value local: the
# sums of a block of rows, `s: M[M]`, are complete at the end of the iteration. After step 6 one
# loop over `M` is left at the top, and the rules go on in its body, where values are still stored
# and loaded for each loop over `N`.
#
# ## Step 7: Divide later
#
# This is the key step of Flash Attention. The rows of the weights are divided by their sum, then
# multiplied by `v`. Dividing the rows of a matrix and then multiplying by another one is the same
# as multiplying first and dividing the rows of the product: `diag(r) @ E @ V`, with the brackets
# moved. After that the product no longer waits for the sums. Rule 4 fuses nothing itself, but makes
# fusing possible. It already pays, because it divides the small result instead of the large matrix
# of weights.

# %%
changes(7)

# %%
draw_step(derivation.steps[6], depth=1)

# %% [markdown]
# ## Steps 8 to 11: The scores stay on chip
#
# Rule 3 adds up at once what was stored only to be added up: `+=` in the listing is a running total
# that stays local (step 8; steps 14 and 15 do the same for the two products). Then rule 1 again,
# one level deeper: the loops over `N` merge. Steps 9 and 10 each save storing and loading a matrix
# as large as the scores, 64 MiB. Step 10, where the exponential joins:

# %%
changes(10)

# %% [markdown]
# The exponentials `e` stay buffered, since the product with `v` reads them too; but the sums of
# rows read them on the way (step 11), so they are loaded once less. Steps 12 and 13 take the
# division to the product with `v` and write two pointwise operators as one.
#
# ## Step 15: A snapshot
#
# Now no rule that only saves is left, and a **snapshot** is taken. Two loops over `N` remain. The
# first makes the exponentials of a block of rows and their sum; the second, inside a loop over `L`,
# multiplies them by `v`.

# %%
print(derivation.snapshots[0].listing())

# %% [markdown]
# ## Step 16: Take the first loop along
#
# One buffered value is left: `e` is made in a loop over `N` and read in a loop over `N`, but the
# second one stands inside a loop over `L`. Rule 6 pulls the first one in there too. That is a
# wager: if `L` has several blocks, the scores are computed again for each of them. It is why a
# snapshot was taken before.

# %%
draw_step(derivation.steps[15], depth=2)

# %% [markdown]
# ## Step 17: The last merge
#
# Side by side in the same loop, the two merge by rule 1. No interior buffered value is left: every
# block of `q`, `k` and `v` is loaded, used, and forgotten. This is Flash Attention.

# %%
changes(17)

# %%
print(derivation.final.listing())

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
# We check the numbers of the rules, how many buffered edges the snapshots have, and that the
# derivation replays. Then we draw the last program:

# %%
assert [step.number for step in derivation.steps] == [1] * 6 + [4, 3, 1, 1, 1, 1, 9, 3, 3, 6, 1]
assert [len(g.buffered_edges()) for g in derivation.snapshots] == [1, 0]
assert derivation.replay() == derivation.final
draw(derivation.final)

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
# Here `p` is the result. Snapshot 2 has no `e`, but loads `q` and `k` once for every block of `L`.

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
# [10 From graph to Triton to GPU timing](10_from_graph_to_triton_to_gpu.ipynb).
