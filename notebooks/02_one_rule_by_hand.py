# %% [markdown]
# # One rule by hand
#
# Fusing is rewriting: find a pattern in a block program, replace it by something that does the same
# with less traffic, repeat. Each pattern is a **rule**. This notebook applies one of them by hand,
# gets it wrong, lets the mistake be found, and then reads the rule's code. (What block programs are
# is the subject of [01](01_block_programs.ipynb); it is enough to know that `!` marks data that
# passes through slow, global memory.)

# %%
import inspect

import numpy as np

import blockbuster as bb
from blockbuster.rules import FuseMaps
from blockbuster.view.draw import draw

# %% [markdown]
# ## Two loops
#
# `T` is a list with one entry for each block of `M`. The first loop stores it, the second loads it
# again, and nobody else wants it.

# %%
before = bb.parse("""graph(X: M[M]) {
  T = map M (x in !X) {
    t = exp(x)
    yield t
  }
  Y = map M (t in !T) {
    y = t + 1
    yield y
  }
  return Y
}""")
draw(before)

# %% [markdown]
# ## By hand
#
# Entry number 5 of `Y` needs entry number 5 of `T` and nothing else. So one loop can do both: what
# was stored and loaded becomes a local value that is used at once.

# %%
by_hand = bb.parse("""graph(X: M[M]) {
  Y = map M (x in !X) {
    t = exp(x)
    y = t + 1
    yield y
  }
  return Y
}""")
draw(by_hand)

# %% [markdown]
# The red edge in the middle is gone. Is it still the same program? Trying numbers is a start.

# %%
x = np.linspace(0, 1, 12)
first, second = (bb.evaluate(graph, {"X": x}, {"M": 4})["out"] for graph in (before, by_hand))
assert np.array_equal(first, second)

# %% [markdown]
# Better than trying some numbers is `bb.prove_equal`. It computes both programs in arithmetic
# modulo a large random prime, where sums and products are exact, and takes `exp` to be an unknown
# function. Two different programs agree there only by a freak, and the chance of that is bounded.

# %%
proof = bb.prove_equal(before, by_hand)
print(proof.equal, "- false accept bound", f"{proof.false_accept_bound:.0e}")
assert proof.equal and proof.false_accept_bound < 1e-9

# %% [markdown]
# ## What it saves
#
# One store and one load for every block, all elements of `T` twice.


# %%
def moved(graph, **sizes):
    """Elements that pass between global and local memory, 8 blocks per dim."""
    return bb.traffic(graph, sizes, dict.fromkeys(sizes, 8)).elements


print(f"before: {moved(before, M=4096):,} elements, after: {moved(by_hand, M=4096):,}")
assert moved(before, M=4096) - moved(by_hand, M=4096) == 2 * 4096

# %% [markdown]
# ## When it goes wrong
#
# Softmax divides exponentials by their sum. In blocks: the first loop makes the list `E` of
# exponentials and adds up the total `s`, the second multiplies every entry by `1/s`.

# %%
softmax = bb.parse("""graph(X: M[]) {
  E, s = map M (x in !X) {
    e = exp(x)
    yield e
    yield +e
  }
  Y = map M (e in !E, total = s) {
    y = e / total
    yield y
  }
  return Y
}""")

# %% [markdown]
# The pattern is there: a loop over `M` that feeds a loop over `M`. So let us put the second body
# behind the first one, as before.

# %%
wrong = bb.parse("""graph(X: M[]) {
  Y = map M (x in !X) {
    e = exp(x)
    y = e / e
    yield y
  }
  return Y
}""")

# %% [markdown]
# We got stuck: inside the loop there is no total yet, only the exponential of the current entry.
# The proof says that this is a different program, and shows inputs where it is.

# %%
proof = bb.prove_equal(softmax, wrong)
print(proof)
assert proof.equal is False

# %% [markdown]
# ## The rule
#
# So a rule is a pattern *and* conditions. `FuseMaps` is rule 1 of the Blockbuster paper. Its
# `matches` finds the places where it applies.

# %%
rule = FuseMaps()
(match,) = rule.matches(before)
after = rule.apply(match)
print(after)
assert after == by_hand

# %% [markdown]
# `after == by_hand` compares whole programs: names do not matter, everything else does. And the
# program before is untouched. Programs never change; a rule returns a new one.
#
# For softmax it finds nothing, and says why.

# %%
assert rule.match(softmax) is None
print(*bb.reasons(rule, softmax), sep="\n")

# %% [markdown]
# Three more programs on which it does not apply, each for a reason of its own. In the first one a
# transpose stands between the two loops; in the others the pattern is there and a condition fails.

# %%
refused = {
    "another loop": """graph(X: M,K[M,K]) {
      T = map M (x in !X) { t = map K (b in !x) { e = exp(b) yield e } yield t }
      U = transpose K,M[M,K] (!T)
      Y = map K (u in !U) { y = map M (b in !u) { e = b + 1 yield e } yield y }
      return Y
    }""",
    "the whole list": """graph(X: M[M], Z: N[N]) {
      T = map M (x in !X) { t = exp(x) yield t }
      Y = map N (z in !Z, all = !T) {
        y = map M (t in !all, z = z) { o = outer(t, z) yield o }
        yield y
      }
      return Y
    }""",
    "a detour": """graph(X: M[]) {
      T = map M (x in !X) { t = exp(x) yield t }
      s = reduce max M (!T)
      Y = map M (t in !T, s = s) { y = t / s yield y }
      return Y
    }""",
}
for name, text in refused.items():
    graph = bb.parse(text)
    assert rule.match(graph) is None
    print(f"{name}: {'; '.join(bb.reasons(rule, graph)) or 'no pattern'}")

# %% [markdown]
# ## Its code
#
# A rule is one small file. `matches_at` looks at one node and yields the sites there, or notes why
# not; each condition is a function that returns its reason in words.

# %%
print(inspect.getsource(FuseMaps.matches_at))

# %% [markdown]
# `apply` asks no questions. It puts one body behind the other and lets the second read what the
# first one made.

# %%
print(inspect.getsource(FuseMaps.apply))

# %% [markdown]
# ## One rule, again and again
#
# A rule sees one level of a program: its loops, but not what is inside of them. The driver,
# `bb.fuse`, walks into the bodies and applies the rules there. With rule 1 alone, a product
# followed by two pointwise functions becomes one loop over `M` with one loop over `N` inside.

# %%
graph = bb.lower(bb.trace(lambda x, w: bb.tanh(x @ w) * 2, x="M K", w="K N"))
derivation = bb.fuse(graph, rules=(FuseMaps(),))
print(derivation.show())
print(derivation.final.listing())
assert len(graph.buffered_edges()) == 3 and len(derivation.final.buffered_edges()) == 1

# %% [markdown]
# One buffered list is left: the products over `K`, which are stored one by one and then added up.
# That is a job for another rule (rule 3, `fuse-reduction`), and `bb.explain` knows it.

# %%
for line in bb.explain(derivation.final):
    print(line)
assert bb.fuse(graph).final.buffered_edges() == ()

# %% [markdown]
# All rules together, on the program that made them famous:
# [03 Flash Attention step by step](03_flash_attention_step_by_step.ipynb).
# How to write a rule of your own: [06](06_proofs_and_your_own_rule.ipynb).
