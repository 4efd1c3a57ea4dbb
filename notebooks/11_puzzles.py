# %% [markdown]
# # Puzzles
#
# You are the compiler. Apply rules yourself and watch the bytes fall. There are five puzzles, from
# warm-up to tricky; a cell checks your answer, and a collapsed cell below it holds a solution (in
# Jupyter, click on the blue bar or the three dots to open it). If `!`, loads and stores mean
# nothing to you yet, read [01](01_block_programs.ipynb) and [02](02_one_rule_by_hand.ipynb) first.

# %%
from dataclasses import dataclass

import matplotlib.pyplot as plt

import blockbuster as bb
from blockbuster.rules import FuseMaps, SwapScaleDot
from blockbuster.rules.derivation import path_in_words, splice

# %% [markdown]
# ## The board
#
# A `Game` is a program, sizes, and the moves that are possible: every place where a rule of the
# paper matches, at every depth. `play` makes some moves and returns a new game; the old one stays
# as it was, so you can try things.


# %%
@dataclass(frozen=True)
class Game:
    graph: bb.Graph
    sizes: dict[str, int]
    blocks: dict[str, int]
    past: tuple[float, ...] = ()

    @property
    def moves(self):
        return [
            (path, match)
            for path, level in self.graph.walk()
            for rule in bb.PAPER_RULES
            for match in rule.matches(level)
        ]

    @property
    def mib(self):
        """What the program moves, in MiB of float16."""
        return bb.traffic(self.graph, self.sizes, self.blocks, item_bytes=2).bytes / 2**20

    @property
    def edges(self):
        """How many interior buffered edges are left."""
        return len(self.graph.buffered_edges())

    def play(self, *numbers):
        game = self
        for number in numbers:
            if not 0 <= number < len(game.moves):
                raise ValueError(f"there is no move {number}, only {len(game.moves)} moves")
            path, match = game.moves[number]
            graph, _ = splice(game.graph, path, match.rule.apply(match))
            game = Game(graph, self.sizes, self.blocks, (*game.past, game.mib))
        return game

    def show(self):
        print(self.graph.listing())
        word = "Moves:" if self.moves else "No moves are left."
        print(f"{self.mib:.1f} MiB moved, {self.edges} interior buffered edges. {word}")
        for number, (path, match) in enumerate(self.moves):
            where = path_in_words(self.graph, path)
            print(f"  {number}: {match.rule.name} at {where}: {match.rule.describe(match)}")


def check(answer, right):
    """Whether an answer is right, in words and as a result."""
    if answer is None:
        print("no answer yet")
        return False
    good = right(answer)
    print("right!" if good else "not yet, try again")
    return good


# %% [markdown]
# ## 1. Warm-up
#
# A product and a `relu`. Find moves after which nothing is buffered.

# %%
layer = Game(
    bb.lower(bb.trace(lambda x, w: bb.relu(x @ w), x="M K", w="K N")),
    sizes=dict(M=1024, K=1024, N=1024),
    blocks=dict(M=16, K=16, N=16),
)
layer.show()

# %%
answer = None  # numbers of moves, such as [1, 0]; look at the new numbers with layer.play(1).show()


def nothing_buffered(numbers):
    return layer.play(*numbers).edges == 0


_ = check(answer, nothing_buffered)

# %% jupyter={"source_hidden": true, "outputs_hidden": true} tags=["solution", "hide-cell"]
# Merge the loops over M, then those over N, then add up on the fly. The numbers change after every
# move, because moves appear and disappear. Any order works here.
solution = [0, 0, 0]
assert check(solution, nothing_buffered)
assert nothing_buffered([1, 0, 0])
layer.play(*solution).show()

# %% [markdown]
# ## 2. The move that saves nothing
#
# Attention. The rules below fuse it completely, in 17 moves. One of them fuses nothing, and is
# needed all the same: without it one gets stuck with a large matrix going back and forth. Which?


# %%
def attention(q, k, v):
    s = (q @ k.T) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


start = Game(
    bb.lower(bb.trace(attention, q="M D", k="N D", v="N L")),
    sizes=dict(M=4096, N=4096, D=64, L=64),
    blocks=dict(M=64, N=64),
)
for rule in bb.PAPER_RULES:
    print(f"rule {rule.number}: {rule.name}")

# %%
answer = None  # the name of a rule


def indispensable(name):
    without = bb.fuse(start.graph, [rule for rule in bb.PAPER_RULES if rule.name != name])
    stuck = Game(without.final, start.sizes, start.blocks)
    complete = Game(bb.fuse(start.graph, bb.PAPER_RULES).final, start.sizes, start.blocks)
    print(f"without {name}: {stuck.mib:.1f} MiB, with it {complete.mib:.1f} MiB")
    return stuck.mib > 1.5 * complete.mib and not name.startswith("fuse") and name != "extend-map"


_ = check(answer, indispensable)

# %% jupyter={"source_hidden": true, "outputs_hidden": true} tags=["solution", "hide-cell"]
# Rule 4. As written, the product with v waits for the row sums: every weight is divided first. Rule
# 4 divides the result instead, and then both need the exponentials in the same loop.
solution = SwapScaleDot.name
assert check(solution, indispensable)
assert not indispensable("duplicate-scale")

# %% [markdown]
# ## 3. Watch the bytes fall
#
# Now play attention to the end: nothing buffered, fewer than 100 MiB. Start by looking at
# `start.show()`, then play a few moves and look again. To always take the first move leads there in
# 17 moves, which is too easy. Do it in 16.

# %%
answer = None  # numbers of moves


def flash(numbers):
    game = start.play(*numbers)
    print(f"{game.mib:.1f} MiB, {game.edges} interior buffered edges")
    return game.edges == 0 and game.mib < 100 and len(numbers) <= 16


_ = check(answer, flash)

# %% jupyter={"source_hidden": true, "outputs_hidden": true} tags=["solution", "hide-cell"]
# Rule 9, fuse-elementwise, joins operators on values that are local anyway: pass it by.
solution = [0] * 12 + [2, 2, 0, 0]
assert check(solution, flash)
assert not flash([0] * 17)

game = start.play(*solution)
curve = [*game.past, game.mib]
fig, axes = plt.subplots(figsize=(6, 2.6))
axes.step(range(len(curve)), curve, where="mid", color="tab:red")
axes.set(xlabel="moves", ylabel="MiB moved", ylim=(0, None))
fig.tight_layout()
plt.show()
assert curve == sorted(curve, reverse=True)

# %% [markdown]
# ## 4. Stop in time
#
# The same program for wide values: `L` has 512 columns in 8 blocks. Find moves that lead to as few
# bytes as possible. (All moves of puzzle 3 are not the answer. How far should one go?)

# %%
wide = Game(
    start.graph,
    sizes=dict(M=4096, N=4096, D=64, L=512),
    blocks=dict(M=64, N=64, L=8),
)
answer = None  # numbers of moves


def fewest_bytes(numbers):
    game = wide.play(*numbers)
    print(f"{game.mib:.1f} MiB")
    return game.mib < 613


_ = check(answer, fewest_bytes)

# %% jupyter={"source_hidden": true, "outputs_hidden": true} tags=["solution", "hide-cell"]
# Stop before rule 6, extend-map: it would compute the scores once for each of the 8 blocks of L.
# This is what snapshots are for: the derivation keeps the program before every such step.
solution = [0] * 12 + [1, 1, 1]
assert check(solution, fewest_bytes)
assert not fewest_bytes([*solution, 0, 0])

# %% [markdown]
# ## 5. Write it yourself
#
# Cosine similarity of the rows of two matrices needs three sums per row: of `x * y`, of `x * x` and
# of `y * y`. Written as array code it makes many loops; the program below is what comes out of
# lowering, and it moves a lot. Write a block program with the same result that loads every element
# of `X` and `Y` once. (Operators you need: `mul(a, b)`, `row_sum(a)`, `square(a)`, and expressions
# such as `a * rsqrt(b)`.)

# %%
unfused = bb.parse("""graph(X: M,K[M,K], Y: M,K[M,K]) {
  P = map M (x in !X, y in !Y) {
    p = map K (a in !x, b in !y) { t = mul(a, b) yield t }
    yield p
  }
  S = map M (p in !P) { s = map K (t in !p) { r = row_sum(t) yield +r } yield s }
  A = map M (x in !X) { s = map K (a in !x) { t = square(a) r = row_sum(t) yield +r } yield s }
  B = map M (y in !Y) { s = map K (b in !y) { t = square(b) r = row_sum(t) yield +r } yield s }
  C = map M (s in !S, a in !A, b in !B) { c = s * rsqrt(a * b) yield c }
  return C
}""")
sizes, blocks = dict(M=1024, K=1024), dict(M=16, K=16)
print(f"{bb.traffic(unfused, sizes, blocks).elements:,} elements")

# %%
answer = None  # the text of a program, in triple quotes


def one_pass(text):
    graph = bb.parse(text)
    elements = bb.traffic(graph, sizes, blocks).elements
    print(f"{elements:,} elements")
    same = bb.prove_equal(unfused, graph)
    if not same.equal:
        print(same)
    return bool(same.equal) and elements == 2 * 1024 * 1024 + 1024


_ = check(answer, one_pass)

# %% jupyter={"source_hidden": true, "outputs_hidden": true} tags=["solution", "hide-cell"]
# One loop over M, one over K in it, three running totals.
solution = """graph(X: M,K[M,K], Y: M,K[M,K]) {
  C = map M (x in !X, y in !Y) {
    s, a, b = map K (x in !x, y in !y) {
      p = mul(x, y)
      r = row_sum(p)
      q = square(x)
      t = row_sum(q)
      u = square(y)
      v = row_sum(u)
      yield +r
      yield +t
      yield +v
    }
    c = s * rsqrt(a * b)
    yield c
  }
  return C
}"""
assert check(solution, one_pass)

# The rules find it too:
assert one_pass(bb.fuse(unfused).final.show())

# %% [markdown]
# One more, without a solution: `FuseMaps` alone (`bb.fuse(unfused, rules=(FuseMaps(),))`) does not
# get there. Which loops does it leave apart, and why? `bb.reasons` and `bb.explain` help.

# %%
alone = bb.fuse(unfused, rules=(FuseMaps(),)).final
print(f"{bb.traffic(alone, sizes, blocks).elements:,} elements with rule 1 alone")
assert bb.traffic(alone, sizes, blocks).elements > 2 * 1024 * 1024 + 1024
