# %% [markdown]
# # Proofs, and a rule of your own
#
# A compiler that rewrites programs has to be right, or it is worse than none. This notebook shows
# how Blockbuster decides whether two programs are the same, what such an answer is worth, and how
# you can write a rule and have it checked, with a wrong one first.

# %%
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import blockbuster as bb
from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Functional
from blockbuster.rules import Match, Refusal, Rule

# %% [markdown]
# ## Why not just compare numbers?
#
# Because rounding makes right programs differ, and a tolerance that forgives this forgives mistakes
# too. Take a softmax with a mistake: a tiny number in the denominator "against division by zero".


# %%
def softmax(x):
    e = bb.exp(x)
    return e / bb.sum(e, axis=-1, keepdims=True)


def with_epsilon(x):
    e = bb.exp(x)
    return e / (bb.sum(e, axis=-1, keepdims=True) + 1e-6)


x = np.random.default_rng(0).normal(size=(8, 32))
print("close, says NumPy:", np.allclose(softmax(x), with_epsilon(x)))
assert np.allclose(softmax(x), with_epsilon(x))

# %% [markdown]
# `bb.prove_equal` is not fooled. It computes modulo a random prime of 50 bits, where sums, products
# and quotients are exact. Any other function, such as `exp`, is replaced by a random function: the
# same argument gives the same result, and nothing else is known about it. If two programs are equal
# there at random inputs, they compute the same term; a difference would survive with a chance that
# can be bounded, because a polynomial has few zeros.


# %%
def lowered(function, **inputs):
    return bb.lower(bb.trace(function, **inputs))


proof = bb.prove_equal(lowered(softmax, x="M N"), lowered(with_epsilon, x="M N"))
print(proof.equal, "-", proof.reason)
assert proof.equal is False
print(proof.counterexample.inputs)

# %% [markdown]
# The answer is `False`, with inputs on which the results differ by a few millionths: far below any
# tolerance for float32, far above the rounding of float64. Where no such inputs are found, the
# answer is `None`: whoever needs a yes does not get one.
#
# Here is a mistake that is larger. A test with inputs that happen to be positive would miss it.


# %%
def root_of_square(x):
    return bb.sqrt(x * x)


def itself(x):
    return x * 1.0


x = np.random.default_rng(0).random(100)
assert np.allclose(root_of_square(x), itself(x))

proof = bb.prove_equal(lowered(root_of_square, x="M"), lowered(itself, x="M"))
print(proof)
assert proof.equal is False

# %% [markdown]
# A *different* comes with a counterexample: inputs and both results, as text that you can paste.
#
# ## What stands beside an answer
#
# Softmax is the same if the largest element of a row is subtracted first. That is not true for
# random functions in place of `exp`; it rests on the law exp(a + b) = exp(a) exp(b). So there is a
# second tier, in which `exp` is a random function that has this law.


# %%
def safe_softmax(x):
    e = bb.exp(x - bb.max(x, axis=-1, keepdims=True))
    return e / bb.sum(e, axis=-1, keepdims=True)


proof = bb.prove_equal(lowered(softmax, x="M N"), lowered(safe_softmax, x="M N"))
print(proof)
assert proof.equal and proof.tier == "B"

# %% [markdown]
# Read the small print: what was shown and what was not, what was assumed. In tier A there is a
# bound on a false "equal"; in tier B there is none, and it says so.
#
# The proof speaks about programs over exact numbers. Whether float32 is good enough is another
# question; see the end of [04](04_layernorm_matmul.ipynb).
#
# ## A rule, wrongly
#
# Many networks scale the rows of a matrix and multiply by another one. Inside a loop body that is
# `dot(row_scale(a, c), b)`. The scale can move behind the product, `row_scale(dot(a, b), c)`, which
# is less work when the product is smaller than `a`. Somebody thinks that what works for scales
# works for shifts, and writes this:


# %%
@dataclass(frozen=True)
class ShiftAfterDot(Rule):
    """dot(row_shift(a, c), b) becomes row_shift(dot(a, b), c)."""

    name: ClassVar[str] = "shift-after-dot"
    kind = "companion"
    moved = "row_shift"

    def matches(self, graph: Graph, note=lambda _: None) -> Iterator[Match]:
        for dot, op in graph.of_type(Functional):
            left = graph.nodes[dot].operands[0].node
            if op.name == "dot" and left >= 0 and graph.nodes[left].op == Functional(self.moved):
                yield Match(self, graph, {"row": left, "dot": dot})

    def apply(self, match: Match) -> Graph:
        block, vector = match.node("row").operands
        _, right = match.node("dot").operands
        edit = Builder(match.graph)
        (product,) = edit.add(Functional("dot"), block, right)
        (result,) = edit.add(Functional(self.moved), product, vector)
        edit.redirect(match.value("dot"), result)
        return edit.finish()


# %% [markdown]
# Every rule has these two methods. `matches` yields the places where the rule applies, `apply`
# returns a new graph. A rule sees one level of a program; the driver walks into loops.
#
# `bb.check_rule` puts the pattern into random programs, applies the rule wherever it matches, and
# compares before and after by proof. When it finds a mistake it makes the program as small as it
# can.

# %%
SHIFTED = """graph(X: M,K[M,K], Y: N,K[N,K], V: M[M]) {
  Z = map M (x in !X, v in !V, y = !Y) {
    z = map N (w in !y, x = !x, v = v) {
      p = map K (a in !x, b in !w, c = v) { s = row_shift(a, c) d = dot(s, b) yield +d }
      yield p
    }
    yield z
  }
  return Z
}"""

report = bb.check_rule(ShiftAfterDot(), programs=60, examples=[SHIFTED])
assert not report.passed
failure = report.failures[0]
print(failure.flaw.kind)
print(failure.program)

# %% [markdown]
# The smallest program that shows it is the pattern alone: the product of shifted rows is not the
# shifted product. (It would need the sums of the rows of `b`: that is rule 5 of the paper.)
#
# ## The same rule, rightly

# %%
SCALED = SHIFTED.replace("row_shift", "row_scale")


@dataclass(frozen=True)
class ScaleAfterDot(ShiftAfterDot):
    """dot(row_scale(a, c), b) becomes row_scale(dot(a, b), c), if the scaled block is not needed.

    Otherwise the scaling would be done twice.
    """

    name: ClassVar[str] = "scale-after-dot"
    moved = "row_scale"

    def matches(self, graph: Graph, note=lambda _: None) -> Iterator[Match]:
        for match in super().matches(graph):
            scaled = match.value("row")
            if len(graph.uses_of(scaled)) > 1 or scaled in graph.output_values:
                reason = "the scaled block has another reader, so it is computed anyway"
                note(Refusal(self, tuple(match.nodes.values()), reason))
            else:
                yield match


report = bb.check_rule(ScaleAfterDot(), programs=60, examples=[SCALED])
print("passed:", report.passed, "- in", report.fired, "programs, at", report.checked_sites, "sites")
assert report.passed and report.fired >= 20

# %% [markdown]
# A condition that fails says so in words, and whoever wonders why nothing happened can ask.

# %%
twice = bb.parse("""graph(a: [M,K], b: [N,K], c: [M]) {
  s = row_scale(a, c)
  d = dot(s, b)
  return d, s
}""")
print(*bb.reasons(ScaleAfterDot(), twice), sep="\n")
assert ScaleAfterDot().match(twice) is None

# %% [markdown]
# ## Using it
#
# A rule set is a tuple; earlier rules have priority. To the rules of the paper we add ours, and it
# finds its pattern in the example. The same bytes move, but there is less arithmetic: for wide `K`
# and narrow `N`, scaling the product is cheaper than scaling its operand.

# %%
graph = bb.parse(SCALED)
derivation = bb.fuse(graph, rules=(*bb.PAPER_RULES, ScaleAfterDot()))
print(derivation.show())
assert [step.rule for step in derivation.steps] == ["scale-after-dot"]
assert bb.prove_equal(graph, derivation.final).equal


def operations(graph):
    """Operations on vector units: everything but the products."""
    sizes, blocks = dict(M=1024, K=4096, N=64), dict(M=16, K=4, N=1)
    return bb.traffic(graph, sizes, blocks).flops["vector"]


print(f"before {operations(graph):,} operations, after {operations(derivation.final):,}")
assert operations(derivation.final) < operations(graph) / 5

# %% [markdown]
# The default set, `bb.RULES`, has a rule that does even more: `local-linearity` takes the scale out
# of the loop over `K` altogether, so that it is done once and not once per block.

# %%
ours = bb.fuse(graph)
print(ours.show())
print(f"{operations(ours.final):,} operations")
assert operations(ours.final) < operations(derivation.final)

# %% [markdown]
# [Write your own rule](../docs/write_your_own_rule.md) goes on from here: golden cases, the command
# line, and what a rule needs to become one of ours.
