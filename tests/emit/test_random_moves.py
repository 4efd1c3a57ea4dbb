"""Every move at places of random tile programs, and pairs of moves in both orders."""

from random import Random

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.interpret.sides import Side, cut_by, cuts
from blockbuster.emit.schedule.script import MOVES
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.setting import SIZES
from tests.emit.counting import count_run, tile_traffic
from tests.emit.random_tiles import (
    all_cut,
    applications,
    is_cut,
    lowered,
    random_graph,
    random_whole_graph,
    start_of,
)

RANDOMS = st.integers(0, 2**32 - 1).map(Random)
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller seed is no smaller program


def told(scheduled, proof):
    return f"\n{scheduled.schedule}\n{proof}"


def holds(proof, scheduled):
    """Whether a proof is a yes, or, where quotients of positions are compared, no counterexample.

    What a quotient is beside another number, proofs cannot decide for all sizes.
    """
    if "floordiv" in str(scheduled.draft):
        return proof.equal is not False
    return proof.equal


@settings(max_examples=settings().max_examples // 12, phases=UNSHRUNK)
@given(RANDOMS)
def test_every_move_keeps_what_a_program_means(random):
    start = start_of(random_graph(random), random)
    for move in MOVES:
        for site, args in applications(move, start, random, most=1):
            after = move.apply(start, site, **args)
            proof = prove_tiles(start.draft, after.draft, trials=2, seed=random.randint(0, 99))
            assert holds(proof, after), told(after, proof)


@settings(max_examples=settings().max_examples * 3 // 10, phases=UNSHRUNK)
@given(RANDOMS)
def test_what_is_printed_means_what_the_block_program_does(random):
    graph = random_graph(random)
    end = start_of(graph, random)
    if not is_cut(end):
        end = all_cut(end, random)
    if not is_cut(end):
        return  # nests that share an array with an entry per block, and found no blocks in common
    proof = prove_tiles(graph, end.program, trials=4, seed=random.randint(0, 99), lanes=True)

    assert holds(proof, end), told(end, proof)


@settings(max_examples=settings().max_examples // 12, phases=UNSHRUNK)
@given(RANDOMS)
def test_two_moves_in_both_orders(random):
    start = start_of(random_graph(random), random, most=2)
    found = [(move, *at) for move in MOVES for at in applications(move, start, random, most=1)]
    chosen = random.sample(found, min(len(found), 3))
    for one in chosen:
        for other in chosen:
            both = start
            for move, site, args in (one, other):
                if move.why_not(both, site, **args):
                    break
                both = move.apply(both, site, **args)
            proof = prove_tiles(start.draft, both.draft, trials=2, seed=random.randint(0, 99))
            assert holds(proof, both), told(both, proof)


@settings(max_examples=30, phases=UNSHRUNK)
@given(RANDOMS)
def test_traffic_in_closed_form_is_what_a_run_counts(random):
    end = start_of(random_graph(random), random)
    for program in (end.draft, end.program) if is_cut(end) else (end.draft,):
        verify_tiles(program)
        (cut,) = cuts([Side(program)], 1, np.random.default_rng(random.randint(0, 99)), SIZES)
        small, sizes, blocks = cut_by(program, cut), cut.setting.sizes, cut.setting.block_sizes
        assert tile_traffic(small, sizes, blocks) == count_run(small, sizes, blocks).moved


def test_every_move_is_tried():
    """Of 120 seeds, each move has five programs with a place for it."""
    tried = dict.fromkeys((move.name for move in MOVES), 0)
    for seed in range(120):
        if min(tried.values()) >= 5:
            break
        random = Random(seed)
        start = all_cut(lowered(random_graph(random), random), random)
        uncut = lowered(random_graph(random), random)
        whole = lowered(random_whole_graph(random), random)
        for move in (move for move in MOVES if tried[move.name] < 5):
            for scheduled in (start, uncut, whole):
                tried[move.name] += any(applications(move, scheduled, random, most=1))
    assert min(tried.values()) >= 5, tried
