"""What comes from global memory, and what from the cache: closed forms beside brute force."""

from dataclasses import replace
from itertools import islice, product

from hypothesis import given
from hypothesis import strategies as st

from blockbuster.costs.cached import fits, from_memory, parts_of_wave, read_once, room_of
from blockbuster.costs.cost import used
from blockbuster.costs.footprint import Footprint
from blockbuster.costs.phases import Phase
from blockbuster.costs.work import Work
from blockbuster.machines import Tier, machine

H200 = machine("h200")


def loads(grid, varying, each, unique, stored=None):
    """Work that loads from arrays, so many bytes a program; nothing is computed."""
    programs = 1
    for blocks in grid.values():
        programs *= blocks
    loaded = {name: count * programs for name, count in each.items()}
    phase = Phase((), programs, loaded, stored or {}, {})
    footprint = Footprint(shared=0, registers=32, warps=4)
    walked = tuple(grid.items())
    return Work(programs, 4, (phase,), unique, footprint, walked, varying, "sm_90")


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_what_a_wave_reads_is_no_less_than_its_different_parts(blocks, data):
    dims = "ABCD"[: len(blocks)]
    grid = dict(zip(dims, blocks, strict=True))
    among = tuple(dim for dim in dims if data.draw(st.booleans(), label=dim))
    cells = list(product(*map(range, blocks)))
    wave = data.draw(st.integers(1, len(cells)), label="wave")
    parts = {tuple(cell[dims.index(d)] for d in among) for cell in islice(cells, wave)}

    one = loads(grid, {"x": among}, {"x": 8}, {"x": 8 * len(cells)})
    assert parts_of_wave(one, "x", wave) >= len(parts)
    assert parts_of_wave(one, "x", len(cells)) == len(
        {tuple(c[dims.index(d)] for d in among) for c in cells}
    )


def test_waves_that_end_with_a_row_of_the_grid_are_counted_exactly():
    one = loads({"M": 6, "N": 4}, {"x": ("M",), "w": ("N",)}, {"x": 1, "w": 1}, {"x": 1, "w": 1})

    assert [parts_of_wave(one, "x", wave) for wave in (1, 4, 8, 12, 24)] == [1, 1, 2, 3, 6]
    assert [parts_of_wave(one, "w", wave) for wave in (1, 3, 4, 8)] == [1, 3, 4, 4]


def test_what_the_cache_holds_is_read_once():
    small = loads({"M": 1000}, {"w": ()}, {"w": 1 << 20}, {"w": 1 << 20})
    assert from_memory(small, H200, 264) == {"w": 1 << 20}
    assert from_memory(small, H200, 264, held=("w",)) == {"w": 0}


def test_what_it_does_not_hold_is_read_once_a_wave():
    large = loads({"M": 1000}, {"w": ()}, {"w": 1 << 28}, {"w": 1 << 28})
    assert from_memory(large, H200, 250) == {"w": 4 << 28}
    assert from_memory(large, H200, 250, held=("w",)) == {"w": 4 << 28}, "it was pushed out"


def test_what_is_read_again_takes_its_room_in_each_part_of_the_cache():
    cache = H200.tier("l2")
    again = loads({"M": 2}, {"w": ()}, {"w": cache.bytes // 2}, {"w": cache.bytes // 2})
    once = loads({"M": 2}, {"x": ("M",)}, {"x": cache.bytes // 2}, {"x": cache.bytes})
    assert room_of(again, cache) == {"w": cache.bytes}
    assert room_of(once, cache) == {"x": cache.bytes}
    assert fits(again, cache)
    assert fits(once, cache)
    whole = loads({"M": 2}, {"w": ()}, {"w": cache.bytes}, {"w": cache.bytes // 2 + 1})
    assert not fits(whole, cache)


def test_the_cache_keeps_what_was_used_last():
    cache = Tier("l2", bytes=50, bandwidth=1.0, latency=1.0)
    held = used({}, {"a": 20, "b": 20}, cache)
    assert list(held) == ["a", "b"]
    assert list(used(held, {"c": 20}, cache)) == ["b", "c"]
    assert list(used(held, {"a": 20, "c": 10}, cache)) == ["b", "a", "c"]
    assert list(used(held, {"d": 60}, cache)) == []


def walks(trips, *, fixed, each, along):
    """One program for each M that reads ``fixed`` bytes of x in each iteration of a loop over N,
    and ``each`` bytes of w, which are others each time where ``along`` says so.
    """
    grid, programs = {"M": 8}, 8
    outside = Phase((), programs, {}, {}, {})
    loaded = {"x": fixed * trips * programs, "w": each * trips * programs}
    inside = Phase(("N",), trips * programs, loaded, {}, {})
    unique = {"x": fixed * programs, "w": each * trips}
    footprint = Footprint(shared=0, registers=32, warps=4)
    return Work(
        programs, 4, (outside, inside), unique, footprint, tuple(grid.items()),
        {"x": ("M",), "w": ()}, "sm_90",
        along={"x": frozenset(along["x"]), "w": frozenset(along["w"])},
    )  # fmt: skip


def test_what_a_program_reads_again_comes_from_memory_once_if_a_round_fits():
    along = {"x": {"M"}, "w": {"N"}}
    few = walks(64, fixed=1 << 20, each=1 << 20, along=along)
    assert not fits(few, H200.tier("l2"))
    assert from_memory(few, H200, 8) == {"x": 8 << 20, "w": 64 << 20}

    many = walks(64, fixed=1 << 23, each=1 << 20, along=along)
    assert from_memory(many, H200, 8)["x"] == 64 * (8 << 23), "the cache has lost it by then"

    other = walks(64, fixed=1 << 20, each=1 << 20, along={"x": {"M", "N"}, "w": {"N"}})
    assert from_memory(other, H200, 8)["x"] == 64 * (8 << 20), "it is another part each time"


def test_what_the_kernel_before_has_left_is_found_as_far_as_there_is_room():
    cache = H200.tier("l2").bytes
    read = loads({"M": 2}, {"x": ("M",), "w": ("M",)}, {"x": cache // 8, "w": cache // 2},
                 {"x": cache // 4, "w": cache})  # fmt: skip
    assert not fits(read, H200.tier("l2"))
    assert from_memory(read, H200, 2)["x"] == cache // 4
    assert from_memory(read, H200, 2, held=("x",))["x"] == cache // 4 - cache * 3 // 4 // 4
    assert from_memory(read, H200, 2, held=("x",))["w"] == cache


def rows(wave, each=256 << 10, times=3):
    """What comes from memory of 256 rows of so many bytes, each read so many times in turn."""
    work = loads({"M": 256}, {"x": ("M",)}, {"x": times * each}, {"x": 256 * each})
    return from_memory(work, H200, wave)["x"]


def test_rows_are_read_once_where_those_of_a_wave_fit():
    assert rows(132) < 1.05 * (64 << 20)
    assert rows(256) == 3 * (64 << 20), "all of them at once do not fit"
    assert rows(132, each=512 << 10) == 3 * (128 << 20), "half as many of twice the size neither"


def test_programs_that_take_several_blocks_count_as_before():
    walked = loads({"M": 256}, {"x": ("M",)}, {"x": 3 << 18}, {"x": 256 << 18})
    fewer = replace(walked, programs=132)
    assert read_once(walked, {"x": 132}) == {"x": 132 << 18}
    assert read_once(fewer, {"x": 132}) == {}
