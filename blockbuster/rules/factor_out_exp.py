"""factor-out-exp: in a sum, exp(x - m) becomes exp(x), and exp(-m) waits until after the sum.

before   s = map N (x in !X, r = r) {       after   s = map N (x in !X) {
           t = row_shift(x, r)                        e = exp(x)
           e = exp(t)                                 q = row_sum(e)
           q = row_sum(e)                             yield +q
           yield +q                                 }
         }                                          f = exp(r)
                                                    z = mul(s, f)

A softmax written with its own maximum (or with that of an attention sink) becomes one pass: it no
longer waits for m. exp(x) alone can overflow; ``safe`` carries it under a running maximum, and
there m cancels. As in factor-out, linear functions may stand between exp and the sum, and the rule
applies only if a node makes m and another map over the dim shares a list.
Termination: each application leaves a map with fewer exponentials of values that all its iterations
share.
Source: ours; exp(a + b) = exp(a) exp(b), as in online softmax.
"""

from __future__ import annotations

from blockbuster.rules.factor_out import FactorOut
from blockbuster.rules.laws import EXPONENTIALS


class FactorOutExp(FactorOut):
    """Sums of what is linear in the exponential of a value."""

    name = "factor-out-exp"
    rows = EXPONENTIALS
