"""Random block programs that fold pieces of a product's columns: maxima, sums, norms of groups."""

import blockbuster as bb


def pieces_graph(random):
    """A product, some functions of its elements, and one or two folds over pieces of its rows."""
    length = random.choice((2, 4, 8))
    before = random.choice((lambda y: y, bb.relu, lambda y: y * 0.5, bb.exp))
    folds = random.sample((bb.max, bb.sum, bb.mean), random.choice((1, 2)))
    normed = random.random() < 0.3

    def fn(x, w):
        y = x @ w
        y = before(y.reshape(y.shape[0], y.shape[1] // length, length))
        found = [fold(y, axis=-1, keepdims=normed) for fold in folds]
        return (y - found[0]) if normed else tuple(found)

    return bb.fuse(bb.lower(bb.trace(fn, x="M K", w="K N"))).final
