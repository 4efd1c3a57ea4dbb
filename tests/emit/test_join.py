"""The move join: rows of tiles over several axes of an image, its refusals, and where it pays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.print.numpy.run import run_numpy
from blockbuster.emit.schedule.join import Join
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import loops_of
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.parse import parse_tiles
from blockbuster.errors import EmitError, VerifyError
from blockbuster.runtime.launch import run_batch

JOIN = Join()


def traced(spec, pad=None, shapes=None, **numbers):
    """The program of an einsum of two arrays, x and w, of these shapes."""

    def product(x, w):
        return bb.einsum(spec, x, w, pad=pad or {}, **numbers)

    return bb.trace(product, **shapes)


def fused(program):
    return bb.fuse(bb.lower(program)).final


IMAGE = "nc(t*h+d*r)(v+s), kcrs -> nkhv"
SHAPES = dict(x=(2, 16, 9, 7), w=(20, 16, 3, 3))


def image(step=1, gap=1, pad=1, shapes=SHAPES):
    pads = {"h": (pad, pad), "v": (pad, 0)}
    return traced(IMAGE, pads, shapes, t=step, d=gap)


def drawn(program, seed=0):
    random = np.random.default_rng(seed)
    return {
        given.name: random.integers(-4, 5, [program.sizes[axis] for axis in given.shape])
        .astype("float32")
        for given in program.inputs
    }  # fmt: skip


def joined_text(graph, sizes, *, all_rows=True):
    """A schedule with every pair of loops joined that can be, or the innermost pair alone."""
    made = bare(graph, sizes)
    while (site := next(iter([*JOIN.sites(made)][::-1]), None)) is not None:
        made = JOIN.apply(made, site)
        if not all_rows:
            break
    return made.schedule


def bare(graph, sizes):
    from blockbuster.emission import emit as emitted

    kernel = emitted(graph, sizes, "float32")
    return unscheduled(kernel.scheduled.start, sizes, target_of("sm_90"))
