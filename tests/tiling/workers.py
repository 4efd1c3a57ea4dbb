"""What workers of the tests run: measurements that succeed, fail, die and hang."""

import os
import time


def seconds(number):
    """Its number in seconds; 3 dies, 5 hangs, 7 raises."""
    if number == 3:
        os._exit(9)
    if number == 5:
        time.sleep(600)
    if number == 7:
        raise ValueError("seven is refused")
    return number / 10


def visible(number):
    """The number of the GPU that the worker sees."""
    return float(os.environ["CUDA_VISIBLE_DEVICES"]) + 10 * number
