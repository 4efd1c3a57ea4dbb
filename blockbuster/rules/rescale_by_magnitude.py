"""rescale-by-magnitude: a sum of scaled values runs in the loop that finds their magnitude.

before   m = map N (x in !X) {               after   m, t = map N (x in !X) {
           a = abs(x)                                  a = abs(x)
           m = row_max(a)                              m = row_max(a)
           yield max m                                 q = reciprocal(maximum(m, 1e-30))
         }                                             y = row_scale(x, q)
         c = reciprocal(m)                             h = square(y)
         s = map N (x in !X, c = c) {                  t = row_sum(h)
           y = row_scale(x, c)                         yield max m
           h = square(y)                               yield +t by m: x * square(r / r2)
           s = row_sum(h)                            }
           yield +s                                  c = reciprocal(m)
         }                                           s = t * square(c * m)

So the length of a row that cannot overflow, max |x| sqrt(sum (x / max |x|)^2), takes one pass over
the row. Each block is scaled by one over its own magnitude r, the largest absolute value or the sum
of all absolute values. Before two partial sums are added, each is taken to the magnitude r2 of
both, as the law of a factor and a sum says (``laws.py``). Behind the loop the sum gets the scale
that the program gives it, in which it may be anything: 1 / m, 448 / m, 1 / maximum(m, eps).
In the factors above, r, r2 and m stand for maximum(r, 1e-30), and so on.

Conditions, for a sum of f(x, c):

- f is a product in which c has one power p, so that f(x, c) = f(x, q) (c / q)^p. ``where`` does not
  select between such products: c may be 0, and 0 * inf is NaN, where where(b, f, 0) is 0.
- What c scales is what the magnitude is of, so x q is at most 1; there may be more factors.
- A sum may be a dot of f(x, c) and something that does not wait for c: a dot is linear in each of
  its operands. So attention that is normalized by squares of scores, or by cubes, takes one pass.
- Only sums: a partial maximum is right if the factor keeps the order, but that of an empty block,
  -inf, times 0 is NaN.
- The sum waits for nothing else in the loop of the magnitude.

Blocks of zeros, or of values of which 1 / r is infinite, are divided by 1e-30, and their sums are
taken from that number to r2: no 0 / 0 comes of a block in a row with other values. In a row of
zeros c is infinite, and 0 * inf is what the program as written gives, too.
Saves a pass over x, and storing x if it is computed. Costs a power per row and block.
Termination: each application makes one sum fewer wait for a magnitude, and no rule makes a sum
wait.
Source: ours; the scaled sum of squares of BLAS (nrm2), by blocks, as a group with a running lead.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph
from blockbuster.rules.beside import RunBeside, Wait
from blockbuster.rules.magnitude_groups import scaled


class RescaleByMagnitude(RunBeside):
    """A map that folds a magnitude, and a sum of what is scaled by it."""

    name = "rescale-by-magnitude"
    in_place = True
    roles = ("magnitude", "sum")
    words = "the magnitude"

    def waiting(self, graph: Graph, position: int) -> Iterator[Wait]:
        return (((position,), found) for found in scaled(graph, position))
