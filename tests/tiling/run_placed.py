"""Runs placed statements over tiles of one element, in integers: what a thread block would do."""

import itertools

import numpy as np

from blockbuster.tiling.placement import COMPUTE, LOAD, Loop, kept_along, nested, placed


class Run:
    """One run of an expression. Local tiles live under the coordinates that are kept, no others.

    `loaded` counts the tiles that were loaded, by tensor; `stored` those that were stored.
    """

    def __init__(self, chain, expression, grid, arrays):
        self.chain, self.arrays = chain, arrays
        self.extents = dict(chain.sizes)
        gone = [loop for loop, extent in self.extents.items() if extent == 1]
        self.inner = expression.without((*grid, *gone))
        self.out = np.full([chain.sizes[a] for a in chain.output.axes], -(10**9))
        self.counts = {tensor.name: 0 for tensor in (*chain.inputs, chain.output)}
        statements = placed(chain, expression, grid=grid, gone=gone)
        outer = [loop for loop in grid if loop not in gone]
        body = nested(statements, depth=len(outer))
        for at in itertools.product(*(range(self.extents[loop]) for loop in outer)):
            self.local = {}
            self.body(body, dict(zip(outer, at, strict=True)))

    def body(self, body, at):
        for item in body:
            if isinstance(item, Loop):
                for number in range(self.extents[item.loop]):
                    self.body(item.body, {**at, item.loop: number})
            else:
                self.statement(item, at)

    def statement(self, statement, at):
        if statement.kind == LOAD:
            where = self.where(statement.tensor, at)
            self.write(statement.tensor, at, self.arrays[statement.tensor.name][where])
            self.counts[statement.tensor.name] += 1
        elif statement.kind == COMPUTE:
            op = statement.operator
            value = 1
            for tensor in op.operands:
                value *= self.read(tensor, at)
            fresh = all(at.get(loop, 0) == 0 for loop in op.reduced)
            self.write(op.result, at, value if fresh else self.read(op.result, at) + value)
        else:
            self.out[self.where(statement.tensor, at)] = self.read(statement.tensor, at)
            self.counts[statement.tensor.name] += 1

    def where(self, tensor, at):
        return tuple(at.get(axis, 0) for axis in tensor.axes)

    def key(self, tensor, at):
        for op in self.chain.operators:
            if op.result == tensor:
                kept = kept_along(self.chain, op, self.inner)
                return tensor.name, tuple(at.get(loop, 0) for loop in kept)
        return tensor.name, ()

    def write(self, tensor, at, value):
        self.local[self.key(tensor, at)] = (self.where(tensor, at), value)

    def read(self, tensor, at):
        where, value = self.local[self.key(tensor, at)]
        assert where == self.where(tensor, at), f"another tile of {tensor} lies there"
        return value
