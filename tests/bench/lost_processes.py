"""What stands where the processes of bench/gpu/fuzz try seeds: it loads little, and is lost."""

import os
import time

from bench.gpu.fuzz.pool import READY


def careless(pipe, setting):
    """Some seeds kill it, some take too long, after some it has lost its device."""
    pipe.send(READY)
    while True:
        try:
            seed = pipe.recv()
        except EOFError:
            return
        if seed % 5 == 3:
            os._exit(7)
        if seed % 5 == 4:
            time.sleep(60)
        verdict = "device error" if seed % 5 == 2 else "right"
        pipe.send({"seed": seed, "verdict": verdict, "family": "dots", "seconds": 0.1})
        if verdict != "right":
            os._exit(1)


def dying(pipe, setting):
    os._exit(3)
