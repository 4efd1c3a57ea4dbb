"""Random tile programs: a random block program, lowered, after some of the passes."""

from blockbuster.emit.schedule.bind import bind
from blockbuster.emit.schedule.chunk_loops import chunk_loops
from blockbuster.emit.schedule.defer_lane_sums import defer_lane_sums
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops, not_alone
from blockbuster.emit.schedule.finish_rows import finish_rows
from blockbuster.emit.schedule.guard import guard
from blockbuster.emit.schedule.hoist import hoist
from blockbuster.emit.schedule.lead_first import lead_first
from blockbuster.emit.schedule.merge_repeats import merge_repeats
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.ir.types import size_class
from blockbuster.rules import fuse, safe
from blockbuster.testing.generators import GENERATORS
from tests.emit.cases import blocked_dims, tiling_of


KINDS = ("blocks", "matrices", "arrays", "norms")  # planted sites may have functions without tiles


def some_dims(program, random):
    """Classes of dims, at random, that can become one block together."""
    dims = [dim for dim in blocked_dims(program) if dim not in program.whole]
    classes = [c for c in dict.fromkeys(map(size_class, dims)) if random.random() < 0.5]
    chosen = tuple(dim for dim in dims if size_class(dim) in classes)
    return () if any(not_alone(program, dim, chosen) for dim in chosen) else chosen


def in_chunks(program, random):
    processors = random.choice((200, 1 << 20))
    return chunk_loops(program, tiling_of(program), processors=processors)[0]


# each pass, with what it needs drawn at random, in the order in which production applies them
PASSES = {
    "drop-unit-loops": lambda program, random: drop_unit_loops(program, some_dims(program, random)),
    "split-nests": lambda program, random: split_nests(program),
    "hoist": lambda program, random: hoist(program),
    "merge-repeats": lambda program, random: merge_repeats(program),
    "chunk-loops": in_chunks,
    "lead-first": lambda program, random: lead_first(program),
    "finish-rows": lambda program, random: finish_rows(program, tiling_of(program)),
    "defer-lane-sums": lambda program, random: defer_lane_sums(program, tiling_of(program)),
    "bind": lambda program, random: bind(program),
    "guard": lambda program, random: guard(program, blocked_dims(program)),
}


def before_pass(name, graph, random):
    """The tile program of ``graph`` after some of the passes that may come before one."""
    program = lower_to_tiles(graph)
    for earlier, change in PASSES.items():
        if earlier == name:
            break
        if earlier == "split-nests" or random.random() < 0.5:
            program = change(program, random)
    return program


def after_passes(graph, random):
    """A tile program of ``graph`` after some of the passes; at last the guards."""
    return PASSES["guard"](before_pass("guard", graph, random), random)


def random_graph(random):
    """A random block program of any kind, half of the time fused and made safe."""
    graph = GENERATORS[random.choice(KINDS)](random)
    return safe(fuse(graph).final) if random.random() < 0.5 else graph
