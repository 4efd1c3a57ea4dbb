"""Checks of the kernels of seeded_kernels.py, in Triton's interpreter.

Run with TRITON_INTERPRET=1: prints the reports as JSON. It is no test by itself.
"""

import json
import sys
import warnings

import torch

import blockbuster as bb
from tests.emit.seeded_kernels import (
    averages,
    blocks,
    by_rows,
    by_tiles,
    chained,
    double_blocks,
    double_by_steps,
    product,
    reduce_rows,
    reversed_in_place,
    running,
    smooth,
    softmax_rows,
    stale,
    summed,
    summed_by_last,
)


def times(x, y):
    return x @ y


def softmax(x):
    return torch.softmax(x, -1)


def position(x):
    return x.argmax(-1).to(x.dtype)


def highest(x):
    return x.amax(-1)


def lowest(x):
    return x.amin(-1)


def mean(x):
    return x.mean(-1)


def smoothed(x):
    return torch.cat([x[:1], x[1:] + x[:-1]])


def one_sum(x):
    return x.sum(0, keepdim=True)


def doubled(x):
    return x * 2


MINUS, PLUS = float("-inf"), float("inf")
ROWS, LINE = torch.Size((5, 21)), torch.Size((37,))
RIGHT = {
    "maximum": (by_rows(reduce_rows, KIND="max", OTHER=MINUS), highest, ROWS, ["out"]),
    "minimum": (by_rows(reduce_rows, KIND="min", OTHER=PLUS), lowest, ROWS, ["out"]),
    "position": (by_rows(reduce_rows, KIND="at", OTHER=MINUS), position, ROWS, ["out"]),
    "softmax": (by_rows(softmax_rows, whole=True, OTHER=MINUS, SHIFT=True), softmax, ROWS, ["out"]),
    "mean": (averages(), mean, ROWS, ["out"]),
    "tiles": (by_tiles(), lambda x: x + 1, ROWS, ["out"]),
    "tiles, not named": (by_tiles(), lambda x: x + 1, ROWS, []),
    "product": (product(), times, ((13, 21), (21, 11)), ["out"]),
    "blocks": (blocks(double_blocks, SPILL=False), doubled, LINE, ["out"]),
    "neighbours of inputs": (blocks(smooth), smoothed, LINE, ["out"]),
    "atomics": (summed(), one_sum, LINE, []),
    "the last adds up": (summed_by_last(), one_sum, LINE, []),
    "a chain of flags": (chained, one_sum, LINE, []),
}
WRONG = {
    "maximum beside 0": (by_rows(reduce_rows, KIND="max", OTHER=0.0), highest, ROWS, ["out"]),
    "minimum beside 0": (by_rows(reduce_rows, KIND="min", OTHER=0.0), lowest, ROWS, ["out"]),
    "position beside 0": (by_rows(reduce_rows, KIND="at", OTHER=0.0), position, ROWS, ["out"]),
    "softmax beside 0": (
        by_rows(softmax_rows, whole=True, OTHER=0.0, SHIFT=True), softmax, ROWS, ["out"],
    ),
    "softmax without shift": (
        by_rows(softmax_rows, whole=True, OTHER=0.0, SHIFT=False), softmax, ROWS, ["out"],
    ),
    "mean without other": (averages(other=False), mean, ROWS, ["out"]),
    "mean over the block": (averages(whole=True), mean, ROWS, ["out"]),
    "mean in halves": (averages(half=True), mean, ROWS, ["out"]),
    "product without other": (product(other=False), times, ((13, 21), (21, 11)), ["out"]),
    "product without a tail": (product(tail=False), times, ((13, 21), (21, 11)), ["out"]),
    "tiles guarded in rows": (by_tiles(guard="rows"), lambda x: x + 1, ROWS, ["out"]),
    "tiles guarded in rows, not named": (by_tiles(guard="rows"), lambda x: x + 1, ROWS, []),
    "tiles one too wide": (by_tiles(guard="one more"), lambda x: x + 1, ROWS, ["out"]),
    "tiles in a swapped grid": (by_tiles(swap=True), lambda x: x + 1, ROWS, ["out"]),
    "tiles of contiguous rows": (by_tiles(contiguous=True), lambda x: x + 1, ROWS, ["out"]),
    "a store into the next block": (blocks(double_blocks, SPILL=True), doubled, LINE, ["out"]),
    "reads of a neighbour's result": (blocks(double_by_steps), doubled, LINE, ["out"]),
    "a running sum": (blocks(running), lambda x: x.cumsum(0), LINE, ["out"]),
    "reversal in place": (reversed_in_place, lambda x: x.flip(0), LINE, []),
    "a sum without atomics": (summed(atomic=False), one_sum, LINE, []),
    "a sum on unwritten memory": (summed(zeroed=False), one_sum, LINE, []),
    "a stale workspace": (stale, one_sum, LINE, []),
    "a count without atomics": (summed_by_last(atomic=False), one_sum, LINE, []),
    "a count that is kept": (summed_by_last(kept=True), one_sum, LINE, []),
}  # fmt: skip


def arrays(shapes):
    if isinstance(shapes, torch.Size):
        return {"x": torch.randn(shapes)}
    return {name: torch.randn(shape) for name, shape in zip("xy", shapes, strict=True)}


def checked(kernels):
    found = {}
    for name, (kernel, reference, shapes, outputs) in kernels.items():
        torch.manual_seed(0)
        report = bb.check_kernel(kernel, reference, arrays(shapes), outputs=outputs)
        found[name] = str(report)
    return found


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    json.dump({"right": checked(RIGHT), "wrong": checked(WRONG)}, sys.stdout)


if __name__ == "__main__":
    main()
