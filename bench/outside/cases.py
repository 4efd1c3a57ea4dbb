"""All cases of this folder, in the order in which they are measured."""

from __future__ import annotations

from bench.outside import (
    attention,
    convolutions,
    folds,
    linear,
    losses,
    modules,
    networks,
    papers,
    products,
    tasks,
)
from bench.peers.case import Case

CASES: tuple[Case, ...] = (
    *linear.CASES, *products.CASES, *folds.CASES, *losses.CASES, *attention.CASES, *networks.CASES,
    *modules.CASES, *convolutions.CASES, *papers.CASES, *tasks.CASES,
)  # fmt: skip
