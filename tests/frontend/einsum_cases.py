"""Extended einsums for tests: the source's examples and others, their oracle, how they run."""

import numpy as np

import blockbuster as bb
from blockbuster.frontend.functions.einsum_spec import parse_spec
from blockbuster.interp.evaluate import evaluate

RNG = np.random.default_rng(0)


def gathered(text, operands, extents, pad, tables):
    """The oracle: every operand at every place of all letters, multiplied and summed."""
    spec = parse_spec(text, {}, tuple(tables))
    letters = sorted(extents)
    grid = dict(zip(letters, np.indices([extents[x] for x in letters]), strict=True))
    total = 1.0
    for term, x in zip(spec.terms, operands, strict=True):
        places, inside = [], True
        for place, extent in zip(term, x.shape, strict=True):
            at = place.offset + sum(grid[letter] * factor for letter, factor in place.letters)
            for entry in place.entries:
                at = at + tables[entry.name][tuple(grid[letter] for letter in entry.letters)]
            at = at - next((pad[letter][0] for letter, _ in place.letters if letter in pad), 0)
            inside = inside & (at >= 0) & (at < extent)
            places.append(np.clip(at, 0, extent - 1))
        total = total * np.where(inside, x[tuple(places)], 0.0)
    total = np.broadcast_to(total, [extents[x] for x in letters])
    summed = total.sum(tuple(n for n, x in enumerate(letters) if x not in spec.output))
    left = [letter for letter in letters if letter in spec.output]
    return summed.transpose([left.index(letter) for letter in spec.output])


def paths(text, operands, **options):
    """What the spec gives of NumPy arrays, of a traced program, of its kernels on the CPU."""
    named = {f"x{n}": x for n, x in enumerate(operands)}
    program = bb.trace(lambda **given: bb.einsum(text, *given.values(), **options), **named)
    yield bb.einsum(text, *operands, **options)
    yield program.numpy(named)["out"]
    yield evaluate(bb.fuse(bb.lower(program)).final, {**program.held, **named})["out"]


N, C, H, W, K, R, S = 2, 3, 7, 6, 4, 3, 2
X, FILTERS = RNG.uniform(-1, 1, (N, C, H, W)), RNG.uniform(-1, 1, (K, C, R, S))
SHIFTS = {"sh": RNG.integers(0, 3, C), "sw": RNG.integers(0, 3, C)}
TAPS = {"off_h": RNG.integers(0, 4, (C, 5)), "off_w": RNG.integers(0, 3, (C, 5))}
EXAMPLES = {
    "convolution": ("nc(h+r)(w+s), kcrs -> nkhw", (X, FILTERS), {}),
    "dilated": ("nc(h+2*r)(w+2*s), kcrs -> nkhw", (X, FILTERS), {}),
    "strided": ("nc(2*h+r)(w*2+s), kcrs -> nkhw", (X, FILTERS), {}),
    "depthwise": ("nc(h+r)(w+s), crs -> nchw", (X, FILTERS[0]), {}),
    "pointwise": ("nchw, kc -> nkhw", (X, FILTERS[..., 0, 0]), {}),
    "shift": ("nc(h+sh[c])(w+sw[c]), kc -> nkhw", (X, FILTERS[..., 0, 0]), SHIFTS),
    "sparse": ("nc(h+off_h[c,x])(w+off_w[c,x]), kcx -> nkhw",
               (X, RNG.uniform(-1, 1, (K, C, 5))), TAPS),
    "one tap for all channels": ("nc(h+t[x])w, kcx -> nkhw",
                                 (X, RNG.uniform(-1, 1, (K, C, 3))), {"t": np.array([0, 3, 1])}),
    "taps that are a sum": ("nc(h+t[x])(w+1), kcx -> nkhw",
                            (X, RNG.uniform(-1, 1, (K, C, 3))), {"t": np.array([1, 3, 5])}),
    "one shift for all": ("nc(h+t[c])w, kc -> nkhw", (X, FILTERS[..., 0, 0]),
                          {"t": np.full(C, 2, np.uint8)}),
    "a sum over a letter that is there": ("nc(h+t[c])w, kc -> nkhw", (X, FILTERS[..., 0, 0]),
                                          {"t": np.arange(C)}),
    "one element of an axis": ("nc(2)w, kc -> nkw", (X, FILTERS[..., 0, 0]), {}),
    "one element that a table names": ("nc(t[c])(w+s), kcs -> nkw", (X, FILTERS[:, :, 0]),
                                       {"t": np.full(C, 6)}),
    "taps in windows": ("nc(h+r)(w+t[r]), kcr -> nkhw", (X, FILTERS[..., 0]),
                        {"t": np.array([2, 0, 1])}),
    "windows behind taps": ("nc(h+t[r])(w+r), kcr -> nkhw", (X, FILTERS[..., 0]),
                            {"t": np.array([2, 0, 1])}),
    "windows beside a shift": ("nc(h+t[c])(w+s), kcs -> nkhw", (X, FILTERS[:, :, 0]),
                               {"t": np.array([2, 0, 1])}),
    "channels last": ("nhcw, (h+t[c])kc -> nkw", (X.transpose(0, 2, 1, 3)[:, :4],
                      RNG.uniform(-1, 1, (6, K, C))), {"t": np.array([2, 0, 1])}),
    "attention": ("nths, hes -> nhte", (X, RNG.uniform(-1, 1, (H, 5, W))), {}),
    "gradient of filters": ("nkhw, nc(h+r)(w+s) -> kcrs", (RNG.uniform(-1, 1, (N, K, 5, 5)), X),
                            {}),
    "three letters": ("(a+2*b+c), abc -> a", (RNG.uniform(-1, 1, 9), RNG.uniform(-1, 1, (5, 2, 3))),
                      {}),
    "from an offset": ("n(h+r+2), r -> nh", (X[0, 0], FILTERS[0, 0, :, 0]), {}),
    "implicit result": ("c(h+r), cr", (X[0, 0], RNG.uniform(-1, 1, (H, R))), {}),
}  # fmt: skip


def extents_of(text, operands, tables, result):
    """The sizes of all letters, by those that stand alone, and by the result."""
    spec = parse_spec(text, {}, tuple(tables))
    found = dict(zip(spec.output, result.shape, strict=True))
    for term, x in zip(spec.terms, operands, strict=True):
        found |= {p.plain: n for p, n in zip(term, x.shape, strict=True) if p.plain}
        for entry in (entry for place in term for entry in place.entries):
            found |= dict(zip(entry.letters, tables[entry.name].shape, strict=True))
    return found
