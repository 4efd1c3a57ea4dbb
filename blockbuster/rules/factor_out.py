"""factor-out: a factor that all iterations of a sum share waits until after the sum.

before   p = map N (e in !E, r = r, k in !K, v in !V) {   after   p = map N (e in !E, ...) {
           s = row_scale(e, r)                                      t = mul(e, k)
           t = mul(s, k)                                            d = dot(t, v)
           d = dot(t, v)                                            yield +d
           yield +d                                               }
         }                                                        z = row_scale(p, r)

Linear functions may stand between the factor and the sum: products, quotients, where, row sums and
dots (dropout after a softmax). Nothing may be added: digits would cancel behind the sum. Applies
only if a node makes the factor and another map over the dim shares a list: the two maps can then
become one.
Termination: the factor moves one level out. Only extensions move a factor in, and they terminate.
Source: ours; local-linearity with more than dots between the factor and the sum.
"""

from __future__ import annotations

from blockbuster.rules.shared_factor import LeavingFactor


class FactorOut(LeavingFactor):
    """Sums of what is linear in a value."""

    name = "factor-out"
    in_place = True
