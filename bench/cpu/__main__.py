"""The time of ``bb.jit`` on NumPy arrays, beside the same program written in NumPy.

    python -m bench.cpu                                all twelve: a table
    python -m bench.cpu --only softmax --rounds 5
    python -m bench.cpu --everyday                     26 programs of reshapes and everyday NumPy
    python -m bench.cpu --json bench/results/2026-11-22-cpu/twelve.json

One process, one thread. In each round both take turns, so other work on the machine slows both; a
ratio is the median over all rounds. Times are processor times, without waits; "wall" is the ratio
of wall times. The same run compares both results with float64 and reports the largest errors,
NumPy's and ours.
"""

import os

for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

from bench.cpu.comparison import main  # noqa: E402  NumPy reads this when it is imported

main()
