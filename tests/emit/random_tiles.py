"""Random tile programs: a random block program, lowered, after some random moves."""

from itertools import islice

from blockbuster.emit.schedule.block import Cut, unlooped
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import MOVES
from blockbuster.emit.schedule.site import EVERYWHERE, nests_at
from blockbuster.emit.target.compiler import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import dims_in, sized
from blockbuster.ir.lengths import fitted
from blockbuster.ir.types import size_class
from blockbuster.rules import fuse, safe
from blockbuster.testing.generators import GENERATORS

KINDS = ("blocks", "matrices", "arrays", "norms")  # planted sites may have functions without tiles
BY_NAME = {move.name: move for move in MOVES}
SIZES = (16, 32, 40, 100, 200)
MOST_SITES = 3
MOST_ARGUMENTS = 2


def random_graph(random):
    """A random block program of any kind, half of the time fused and made safe."""
    graph = GENERATORS[random.choice(KINDS)](random)
    return safe(fuse(graph).final) if random.random() < 0.5 else graph


def lowered(graph, random):
    """The tile program of ``graph``, not scheduled yet, for random sizes."""
    tiles = lower_to_tiles(graph)
    drawn = {dim: 3 if dim in tiles.units else random.choice(SIZES) for dim in sized(tiles)}
    sizes = fitted(drawn, tiles.rules)
    return unscheduled(typed_for_gpu(graph, tiles, given_by("float32")), sizes, TARGET)


TARGET = target_of("sm_90")


def random_cuts(scheduled, site, random):
    """Blocks for some of the dims that nests do not cut yet, some of them one block."""
    units = scheduled.draft.units
    nests = [scheduled.draft.nests[at] for at in nests_at(scheduled.draft, site)]
    cut = {block.dim for nest in nests for block in nest.blocks}
    dims = dict.fromkeys(d for nest in nests for d in dims_in(nest) if d not in cut)
    chosen = [d for d in dims if size_class(d) not in units and random.random() < 0.7]
    cuts = []
    for dim in chosen:
        lanes = random.choice((16, 32, 64, 128))
        cuts.append(Cut(dim, lanes, random.random() < 0.5))
    return {"cuts": tuple(cuts)}


def arguments(move, scheduled, site, random):
    """Some arguments with which a move can be applied at a place."""
    if move.name == "block":
        drawn = (random_cuts(scheduled, site, random) for _ in range(4))
        found = [args for args in drawn if args["cuts"]]
    else:
        found = list(islice(move.arguments(scheduled, site), 2 * MOST_ARGUMENTS))
    legal = [args for args in found if not move.why_not(scheduled, site, **args)]
    return random.sample(legal, min(len(legal), MOST_ARGUMENTS))


def applications(move, scheduled, random, most=MOST_SITES):
    """Places and arguments for a move: those that are legal, as many as may be tried."""
    sites = list(islice(move.sites(scheduled), 40))
    for site in random.sample(sites, min(len(sites), most)):
        for args in arguments(move, scheduled, site, random):
            yield site, args


def some_moves(scheduled, random, most=4):
    """``scheduled`` after some moves, each at a random place."""
    for _ in range(random.randint(0, most)):
        move = random.choice(MOVES)
        for site, args in applications(move, scheduled, random, most=1):
            scheduled = move.apply(scheduled, site, **args)
            break
    return scheduled


def all_cut(scheduled, random):
    """``scheduled`` with blocks for every dim, the same in all nests; one block where they fit."""
    draft = scheduled.draft
    lanes = {dim: random.choice((16, 32, 64)) for dim in sized(draft)}
    fixed = {dim for nest in draft.nests for dim in unlooped(nest, draft.units)}
    cuts = []
    for dim in dict.fromkeys(d for nest in draft.nests for d in dims_in(nest)):
        size = scheduled.sizes[size_class(dim)]
        if size_class(dim) not in draft.units:
            whole = dim in fixed or (size <= lanes[size_class(dim)] and random.random() < 0.7)
            cuts.append(Cut(dim, 128 if whole else lanes[size_class(dim)], whole))
    if not cuts:
        return scheduled
    return BY_NAME["block"].apply(scheduled, EVERYWHERE, cuts=tuple(cuts))
