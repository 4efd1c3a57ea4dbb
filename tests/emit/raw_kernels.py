"""Kernels that double a matrix through raw addresses, as a GPU does: one right, others wrong.

Each takes ``x`` and may take ``out``; all are named, so that another process can import them.
"""

import ctypes
import os
import sys
import time

import numpy as np


def double(x):
    return x * 2


def store(array, at, value):
    """Write ``value`` at an element counted from the first one, wherever that is."""
    ctypes.c_float.from_address(array.ctypes.data + 4 * at).value = value


def load(array, at):
    return ctypes.c_float.from_address(array.ctypes.data + 4 * at).value


def result(x, out):
    return np.empty(x.shape, x.dtype) if out is None else out


def right(x, out=None):
    out = result(x, out)
    out[...] = x * 2
    return out


def stores_one_past_the_end(x, out=None):
    out = right(x, out)
    store(out, end(out), 0.0)
    return out


def stores_what_it_reads_past_the_end(x, out=None):
    out = right(x, out)
    store(out, end(out), load(x, end(x)) * 2)
    return out


def adds_past_the_end(x, out=None):
    """As an atomic addition does."""
    out = right(x, out)
    store(out, end(out), load(out, end(out)) + 1)
    return out


def stores_a_block_past_the_end(x, out=None):
    out = right(x, out)
    for lane in range(1024):
        store(out, end(out) + lane, 0.0)
    return out


def stores_before_the_start(x, out=None):
    out = right(x, out)
    store(out, -1, 0.0)
    return out


def stores_between_rows(x, out=None):
    """The last lane of a row is not masked."""
    out = right(x, out)
    if out.strides[0] > out.shape[1] * 4:
        store(out, out.shape[1], 0.0)
    return out


def stores_past_the_end_of_its_input(x, out=None):
    store(x, end(x), 0.0)
    return right(x, out)


def changes_its_input(x, out=None):
    x *= 2
    return right(x / 2, out)


def returns_its_input_changed(x):
    x *= 2
    return x


def reads_one_past_the_end(x, out=None):
    """A sum of the last element and the one behind it."""
    out = right(x, out)
    out[-1, -1] += load(x, end(x))
    return out


def takes_the_maximum_with_what_is_ahead(x, out=None):
    """A maximum that ignores NaN, as Triton's does."""
    out = right(x, out)
    out[0, 0] = 2 * np.fmax(x[0, 0], np.float32(load(x, -1)))
    return out


def takes_the_minimum_with_what_is_behind(x, out=None):
    out = right(x, out)
    out[0, 0] = 2 * np.fmin(x[0, 0], np.float32(load(x, end(x))))
    return out


def leaves_the_tail(x, out=None):
    out = np.zeros_like(x) if out is None else out
    out[:-1] = x[:-1] * 2
    return out


def adds_to_what_was_there(x, out=None):
    out = np.zeros_like(x) if out is None else out
    out += x * 2
    return out


def exits(x, out=None):
    os._exit(7)


def exits_politely(x, out=None):
    sys.exit("enough")


def raises(x, out=None):
    raise ValueError(f"no block for {x.shape}")


def crashes(x, out=None):
    ctypes.string_at(0)


def hangs(x, out=None):
    while True:
        time.sleep(1)


def prints(x, out=None):
    for _ in range(20):
        print("x" * 100_000)
    return right(x, out)


def prints_and_crashes(x, out=None):
    print("the last words")
    sys.stdout.flush()
    crashes(x)


def leaves_a_child(x, out=None):
    """It dies, and a process that it has started holds all that is open."""
    if os.fork():
        os._exit(9)
    time.sleep(1000)


def closes_its_files(x, out=None):
    os.closerange(3, 256)
    return right(x, out)


def end(array):
    """How far behind the first element the array ends."""
    steps = [step * (size - 1) for step, size in zip(array.strides, array.shape, strict=True)]
    return sum(steps) // 4 + 1
