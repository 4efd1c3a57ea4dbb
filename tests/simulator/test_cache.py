"""The cache against a list of blocks in the order of their last use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.simulator.cache import Block, Cache

SIZE = 4  # bytes of a block
touches = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8), st.booleans()), max_size=40)


def block(number, array="x"):
    return Block(array, (0, number))


class Lists:
    """One list for each part, the block used last at its end."""

    def __init__(self, rooms, parts):
        self.rooms, self.parts = rooms, [[] for _ in range(parts)]

    def load(self, processor, number):
        own = self.parts[processor % len(self.parts)]
        missed = 0 if any(number in part for part in self.parts) else SIZE
        self.use(own, number)
        return missed

    def store(self, processor, number):
        own = self.parts[processor % len(self.parts)]
        for part in self.parts:
            if part is not own and number in part:
                part.remove(number)
        self.use(own, number)

    def use(self, part, number):
        if number in part:
            part.remove(number)
        part.append(number)
        del part[: -self.rooms]


@given(touches=touches, rooms=st.integers(1, 5), parts=st.integers(1, 2))
def test_what_comes_from_memory(touches, rooms, parts):
    cache, lists = Cache(SIZE * rooms * parts, parts), Lists(rooms, parts)
    for processor, number, stored in touches:
        if stored:
            cache.store(processor, block(number), SIZE)
            lists.store(processor, number)
        else:
            assert cache.load(processor, block(number), SIZE) == lists.load(processor, number)
    for part in cache.parts:
        assert part.held == sum(held.size for held in part.blocks.values()) <= part.room


def test_more_of_a_block_comes_from_memory():
    cache = Cache(100, 1)

    assert cache.load(0, block(1), 10) == 10
    assert cache.load(0, block(1), 30) == 20
    assert cache.load(0, block(1), 10) == 0


def test_data_that_all_read_takes_room_in_each_part():
    cache = Cache(2 * SIZE, 2)  # a block in each part
    for processor in (0, 1):
        cache.load(processor, block(1), SIZE)
    cache.load(0, block(2), SIZE)  # drives block 1 out of the first part

    assert cache.load(0, block(1), SIZE) == 0  # the other part has it
    assert cache.load(1, block(2), SIZE) == SIZE  # now nobody has


def test_another_kernel_cuts_arrays_otherwise():
    cache = Cache(100, 1)
    cache.store(0, block(1, "x"), 40)
    cache.store(0, block(1, "y"), 20)
    cache.settle({"x": 40, "y": 40})

    assert cache.load(0, Block("x", (7, 0)), 10) == 0
    assert cache.load(0, Block("y", (7, 0)), 10) == 5  # half of it is there
    assert cache.load(0, Block("z", (7, 0)), 10) == 10
    assert cache.parts[0].held == 60 + 10 + 5  # what is cut anew is counted once


def test_what_an_earlier_kernel_left_makes_room_first():
    cache = Cache(100, 1)
    cache.store(0, block(1, "x"), 60)
    cache.settle({"x": 60})
    cache.load(0, block(1, "y"), 80)

    assert cache.given_up() == 40  # of 60 bytes, 20 find room
    assert cache.load(0, Block("x", (3, 1)), 30) == 20


def test_a_warm_cache_holds_arrays():
    cache = Cache(100, 2)
    cache.warm({"z": 90, "x": 30, "y": 20}, frozenset("y"), frozenset("y"))

    assert [cache.load(processor, block(1), 20) for processor in (0, 1)] == [0, 0]
    assert [cache.load(processor, block(1, "y"), 20) for processor in (0, 1)] == [0, 0]
    assert cache.load(0, block(1, "z"), 20) == 20  # used first, and there was no room left
    assert cache.unwritten() == 0  # what was stored before is not ours


def test_what_was_stored_is_written_when_it_makes_room():
    cache = Cache(100, 1)
    cache.store(0, block(1), 60)
    assert (cache.given_up(), cache.unwritten()) == (0, 60)
    cache.load(0, block(2), 70)

    assert (cache.given_up(), cache.unwritten()) == (60, 0)
    assert cache.given_up() == 0  # told once


def test_a_flushed_cache_writes_before_it_holds():
    cache = Cache(100, 2)
    cache.flushed(1.0)
    cache.load(0, block(1), 30)

    assert cache.given_up() == 30
    assert cache.unwritten() == 0
    cache.load(0, block(2), 30)
    assert cache.given_up() == 20  # that part had 50


def test_a_block_that_is_stored_again_is_written_once():
    cache = Cache(100, 2)
    cache.store(0, block(1), 40)
    cache.store(1, block(1), 40)

    assert cache.unwritten() == 40


@pytest.mark.parametrize("parts", [1, 2])
def test_a_block_larger_than_a_part_is_not_kept(parts):
    cache = Cache(10 * parts, parts)

    assert [cache.load(0, block(1), 20) for _ in range(2)] == [20, 20]


def test_another_part_of_an_array_is_not_what_was_left_of_it():
    cache = Cache(100, 1)
    cache.store(0, block(1), 40)
    cache.settle({"x": 80})
    cache.lack({"x", "y"})
    cache.store(0, Block("x", (7, 0)), 20)

    assert cache.load(0, Block("x", (7, 1)), 10) == 10
    assert cache.unwritten() == 60
    cache.settle({"x": 80})
    assert cache.load(0, Block("x", (8, 0)), 8) == pytest.approx(1)  # 70 of 80 bytes are here
