"""Random tile programs: a random block program, lowered, after some random moves."""

from dataclasses import replace
from itertools import islice

from blockbuster.emit.schedule.block import Cut, unlooped
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import MOVES
from blockbuster.emit.schedule.site import EVERYWHERE, Site, nests_at
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import sized, walked_in
from blockbuster.ir.fitting import fitted
from blockbuster.ir.types import size_class
from blockbuster.rules import WholeDim, fuse, safe
from blockbuster.testing.generators import GENERATORS
from tests.emit.random_groups import grouped_graph
from tests.emit.random_masks import masked_graph
from tests.emit.random_pieces import pieces_graph
from tests.emit.random_windows import windows_graph

KINDS = ("blocks", "matrices", "arrays", "norms")  # planted sites may have functions without tiles
OURS = {
    "masks": masked_graph,
    "groups": grouped_graph,
    "windows": windows_graph,
    "pieces": pieces_graph,
}
BY_NAME = {move.name: move for move in MOVES}
DTYPES = ("float16", "float32")
SIZES = (16, 32, 40, 100, 200)
AFTER_BLOCK = ("narrow", "skip", "fill", "part")
MOST_SITES = 3
MOST_ARGUMENTS = 2


def random_graph(random):
    """A random block program of any kind, half of the time fused and made safe; masks always."""
    kind = random.choice((*KINDS, *OURS))
    graph = (OURS.get(kind) or GENERATORS[kind])(random)
    if kind == "masks":
        return safe(fuse(graph).final)
    return safe(fuse(graph).final) if random.random() < 0.5 else graph


def random_whole_graph(random):
    """The same of an array program, one of its dims in one block if one can be."""
    graph = GENERATORS["arrays"](random)
    sites = [*WholeDim().matches(graph)]
    return safe(fuse(WholeDim().apply(random.choice(sites))).final) if sites else graph


def lowered(graph, random, constant=0.0):
    """The tile program of ``graph``, not scheduled yet, for random sizes; that part of its inputs
    is constant.
    """
    tiles = lower_to_tiles(graph)
    if constant:
        names = tuple(buffer.name for buffer in tiles.inputs if random.random() < constant)
        tiles = replace(tiles, constants=names)
    drawn = {dim: 3 if dim in tiles.units else random.choice(SIZES) for dim in sized(tiles)}
    sizes = fitted(drawn, tiles.rules)
    return unscheduled(typed_for_gpu(graph, tiles, given_by(random.choice(DTYPES))), sizes, TARGET)


TARGET = target_of("sm_90")


def random_cuts(scheduled, random):
    """Blocks for all dims of all nests, or nothing where some are cut already."""
    made = _cut(scheduled, EVERYWHERE, random)
    return made.moves[-1].args if made is not scheduled and is_cut(made) else {"cuts": ()}


def arguments(move, scheduled, site, random):
    """Some arguments with which a move can be applied at a place."""
    if move.name == "block":
        drawn = (random_cuts(scheduled, random) for _ in range(2))
        found = [args for args in drawn if args["cuts"] and site == EVERYWHERE]
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


def some_moves(scheduled, random, most=4, moves=MOVES):
    """``scheduled`` after some moves, each at a random place."""
    for _ in range(random.randint(0, most)):
        move = random.choice(moves)
        if move.name in AFTER_BLOCK and not is_cut(scheduled):
            continue  # what is narrowed is cut no more
        for site, args in applications(move, scheduled, random, most=1):
            scheduled = move.apply(scheduled, site, **args)
            break
    return scheduled


def all_cut(scheduled, random):
    """``scheduled`` with blocks for every dim: in all nests alike, or nest by nest."""
    at_once, nests = random.random() < 0.5, scheduled.draft.nests
    uncut = [nest for nest in nests if _uncut(nest, scheduled.draft.units)]
    sites = [Site(at) for at, nest in enumerate(nests, start=1) if nest in uncut]
    for site in [EVERYWHERE] if at_once and len(uncut) == len(nests) else sites:
        scheduled = _cut(scheduled, site, random)
    return scheduled


def _cut(scheduled, site, random):
    """Blocks for the dims of nests that have none: of ten draws the first that is legal, else 16
    lanes each.
    """
    draft, move = scheduled.draft, BY_NAME["block"]
    nests = [draft.nests[at] for at in nests_at(draft, site)]
    fixed = {dim for nest in nests for dim in unlooped(nest, draft.units)}
    dims = dict.fromkeys(dim for nest in nests for dim in _uncut(nest, draft.units))
    for share in (*[random.random()] * 10, 0.0):
        lanes = {size_class(dim): random.choice((16, 32, 64)) if share else 16 for dim in dims}
        cuts = []
        for dim in dims:
            fits = scheduled.sizes[size_class(dim)] <= lanes[size_class(dim)]
            whole = dim in fixed or (fits and random.random() < share)
            cuts.append(Cut(dim, 256 if dim in fixed else lanes[size_class(dim)], whole))
        if cuts and not move.why_not(scheduled, site, cuts=tuple(cuts)):
            return move.apply(scheduled, site, cuts=tuple(cuts))
    return scheduled


def is_cut(scheduled):
    """True if every dim has a block in every nest."""
    return not any(_uncut(nest, scheduled.draft.units) for nest in scheduled.draft.nests)


def _uncut(nest, units):
    """The dims that a nest walks and has no blocks for, each once, in order."""
    cut = [block.dim for block in nest.blocks]
    walked = (dim for dim in walked_in(nest) if dim not in cut and size_class(dim) not in units)
    return tuple(dict.fromkeys(walked))


def start_of(graph, random, most=4, constant=0.0):
    """A tile program of ``graph`` after some moves: with blocks for all dims, or for none."""
    if random.random() < 0.3:
        moves = tuple(move for move in MOVES if move.name != "block")
        return some_moves(lowered(graph, random, constant), random, most, moves)
    scheduled = all_cut(lowered(graph, random, constant), random)
    if not is_cut(scheduled):
        return lowered(graph, random, constant)
    return some_moves(scheduled, random, most)
