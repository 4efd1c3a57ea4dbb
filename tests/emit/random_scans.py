"""Random array programs with scans, and their block programs."""

import numpy as np

import blockbuster as bb

SCANS = (bb.cumsum, bb.cumsum, bb.cumprod, bb.cummax, bb.cummin)
FUSED = (lambda y: y, lambda y: y, lambda y: bb.sum(y, 1), lambda y: bb.max(y, 0),
         lambda y: y - bb.sum(y, 1, keepdims=True), lambda y: y.T)  # fmt: skip
ENDS = (*FUSED, lambda y: y[:, :-1])
"""What may follow; of some scans the last one is a copy."""


def function(random, ends=ENDS):
    """One or two scans, with functions of elements before, between and behind; of matrices."""
    chosen = [(random.choice(SCANS), random.choice((0, 1, 1)), random.random() < 0.3)
              for _ in range(random.choice((1, 1, 2)))]  # fmt: skip
    end, before, behind = random.choice(ends), random.randrange(4), random.randrange(4)

    def of(x, g, w):
        y = changed(x, g, w, before)
        for scan, axis, back in chosen:
            y = np.flip(scan(np.flip(y, axis), axis), axis) if back else scan(y, axis)
            y = changed(y, g, w, behind)
        return end(y)

    return of


def changed(x, g, w, how):
    """A function of each element."""
    return (x, x * g, x * w + 1, x - g)[how]


def program(random, ends=ENDS):
    """The array program."""
    return bb.trace(function(random, ends), x="M N", g="M N", w="N")


def graph(random):
    """Its block program, fused two times out of three."""
    lowered = bb.lower(program(random))
    return bb.fuse(lowered).final if random.random() < 0.67 else lowered
