"""The simulator's coefficients of kernels, where they differ from those of the closed form.

They are fitted to the schedules in bench/results/2026-11-22-h200-costs that fits may use (part
"fit" of bench/costs/workloads.py), with the built-in numbers of the H200;
bench/costs/simulate_check.py reports the errors on the others.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.costs.coefficients import FITTED

REACHED = replace(
    FITTED, matrix=1.0, apart=0.45, memory=0.96, cache=1.6, issue=0.8, queue=1.76, request=1.9,
    begin=1000.0, alone=1.5, dot=120.0, fold=18.0, exchange=200.0, unrolled=3.5, start=5e-7,
)  # fmt: skip
"""How near kernels come to a machine's rates, and how long they wait. Where programs contend is
simulated, so that fewer waits have to stand for it than in the closed form.
"""

UNWRITTEN = 0.7
"""Of what a flush stored in the cache, the part that memory has not when the next kernel starts: on
an H200, kernels that read 67 MB after a flush take as long as reading and writing 111 MB.
"""

SLOW = 2.0
"""How many times longer memory takes to answer after a flush: its pages have to be found again."""
