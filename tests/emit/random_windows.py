"""Random block programs that fold the taps of windows one by one."""

import numpy as np

import blockbuster as bb
from blockbuster.frontend.functions.windows import windowed


def windows_graph(random):
    """Windows along one axis or two, weighted, and folded along their taps; a result beside."""
    axes, taps = random.choice(((1,), (0,), (0, 1))), random.randint(2, 3)
    step, gap, pad = (random.randint(low, 2) for low in (1, 1, 0))
    fold, squares = random.choice((np.sum, np.max)), random.random() < 0.5

    def fn(x, w):
        rows = x
        for axis in axes:
            rows = windowed(rows, axis, taps, step, gap, (pad, pad))
        order = (*range(2, 2 + len(axes)), 0, 1)
        made = np.transpose(rows, order) * w[:, None, None]
        for _ in axes:
            made = fold(made, axis=0)
        return made * made if squares else made

    return bb.lower(bb.trace(fn, x="A C", w=f"{taps}"))
