"""Measurements on disk: what is written is read, whatever else happens to the files."""

import json
import os
import threading
import warnings
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.errors import LaunchError
from blockbuster.ir.reading import Wrong
from blockbuster.tuning.entry import Config, Entry, Key, read_entry, size_class_of
from blockbuster.tuning.store import read_file, write_file
from tests.tuning.benches import DEVICE, VERSIONS, store

KEY = Key("p" * 24, ("512/256", "64/64"), DEVICE, *VERSIONS, "0.1")
ENTRY = Entry(
    KEY,
    "matmul: out",
    (
        Config("s" * 24, "block d0 64\nwarps 4\n", 9.5, "", (9.0, 9.5, 10.0), default=True),
        Config("s" * 24, "block d0 64\nwarps 8\n", 7.25, "", (7.25,)),
        Config("s" * 24, "block d0 64\nwarps 2\n", None, "its results are wrong"),
    ),
    3.5,
    skipped=1,
)
WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
TIMES = st.floats(0.001, 1e9)
CONFIGS = st.builds(
    Config, WORDS, WORDS, st.none() | TIMES, st.just(""), st.lists(TIMES).map(tuple), st.booleans()
)
KEYS = st.builds(Key, WORDS, st.lists(WORDS).map(tuple), WORDS, WORDS, WORDS, WORDS)
ENTRIES = st.builds(
    Entry, KEYS, WORDS, st.lists(CONFIGS).map(tuple), st.floats(0, 1e6), st.integers(0, 9)
)


def versions():
    return VERSIONS


def test_the_fastest_comes_first():
    assert [one.us for one in ENTRY.ranked] == [7.25, 9.5]
    assert ENTRY.usual is ENTRY.found[0]


@given(ENTRIES)
def test_an_entry_comes_back_from_its_text(entry):
    assert read_entry(json.loads(json.dumps(entry.to_json()))) == entry


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.pop("found"), "found is missing"),
        (lambda data: data.update(more=1), "more is nothing that a file of ours has"),
        (lambda data: data["found"][0].update(us=-1.0), r"found\[0\].us is -1.0"),
        (lambda data: data["found"][0].update(us=0), r"found\[0\].us is 0, which is no time"),
        (lambda data: data["found"][0].update(default=1), "expected true or false"),
        (lambda data: data["key"].update(sizes="512"), "key.sizes is '512', expected a list"),
        (lambda data: data.update(skipped=-1), "skipped is -1"),
        (lambda data: data.update(seconds=float("inf")), "seconds is inf"),
        (lambda data: data.update(seconds=10**400), "seconds is 10000000"),
    ],
)
def test_what_is_no_entry_is_refused_with_the_place(change, reason):
    data = ENTRY.to_json() | {"found": [*map(dict, ENTRY.to_json()["found"])]}
    change(data)
    with pytest.raises(Wrong, match=reason):
        read_entry(json.loads(json.dumps(data)))


@given(st.integers(1, 1 << 20))
def test_blocks_divide_all_sizes_of_a_class_or_none(size):
    """For blocks of 16 to 256 lanes: what schedules take for granted of sizes."""
    _, grain = map(int, size_class_of(size, 1 << 20).split("/"))
    for lanes in (16, 32, 64, 128, 256):
        assert (size % lanes == 0) is (grain % lanes == 0)


def test_an_entry_is_found_again(tmp_path):
    ours = store(tmp_path)
    assert ours.found(KEY, versions) is None
    ours.write(ENTRY)

    assert ours.found(replace(KEY, triton="", assembler=""), versions) == ENTRY
    assert [*ours.entries()] == [ENTRY]


@pytest.mark.parametrize(
    "other",
    [
        replace(KEY, program="q" * 24),
        replace(KEY, sizes=("512/256", "32/32")),
        replace(KEY, device="NVIDIA H100"),
        replace(KEY, version="0.2"),
    ],
)
def test_another_key_is_not_known(tmp_path, other):
    ours = store(tmp_path)
    ours.write(ENTRY)
    assert ours.found(other, versions) is None


def test_other_compilers_are_not_known(tmp_path):
    ours = store(tmp_path)
    ours.write(ENTRY)
    assert ours.found(KEY, lambda: ("3.7.0", VERSIONS[1])) is None
    assert ours.found(KEY, lambda: (VERSIONS[0], "13.3.1")) is None


def test_versions_are_asked_only_of_programs_that_are_known(tmp_path):
    def unasked():
        raise AssertionError("it loads Triton")

    ours = store(tmp_path)
    ours.write(ENTRY)
    assert ours.found(replace(KEY, program="q" * 24), unasked) is None


# damage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"\xff" + data,
        lambda data: data.replace(b"7.25", b"0.25"),
        lambda data: data.replace(b'"skipped": 1', b'"skipped": 2'),
    ],
)
def test_a_damaged_entry_is_left_out_with_one_warning_and_made_anew(tmp_path, damage):
    ours = store(tmp_path)
    ours.write(ENTRY)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))

    with pytest.warns(RuntimeWarning, match="are damaged and left out") as said:
        assert ours.found(KEY, versions) is None
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ours.found(KEY, versions) is None
        ours.write(ENTRY)
        assert ours.found(KEY, versions) == ENTRY


def test_entries_of_another_version_of_ours_stay(tmp_path):
    ours = store(tmp_path)
    ours.write(ENTRY)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace(b"blockbuster.tuning/2", b"blockbuster.tuning/9"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ours.found(KEY, versions) is None
    assert path.exists()


def test_writers_do_not_disturb_a_reader(tmp_path):
    ours, others = store(tmp_path), store(tmp_path)
    both = [replace(ENTRY, kernel=name * 1000) for name in "ab"]
    ours.write(both[0])

    def write():
        for at in range(100):
            others.write(both[at % 2])

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while any(writer.is_alive() for writer in writers):
            assert ours.found(KEY, versions) in both
    assert len([*tmp_path.iterdir()]) == 1


def test_the_oldest_go_where_there_is_too_much(tmp_path):
    folder = store(tmp_path).folder
    for at, name in enumerate("abc"):
        folder.write(name, b"x" * 100)
        os.utime(tmp_path / name, ns=(at, at))
    folder.trim(250)
    assert folder.names() == ("b", "c")
    folder.trim(0)
    assert folder.names() == ()


# one file for all -----------------------------------------------------------------------


def test_one_file_carries_all(tmp_path):
    there, here = store(tmp_path / "there"), store(tmp_path / "here")
    there.write(ENTRY)
    there.write(replace(ENTRY, key=replace(KEY, sizes=("64/64", "64/64"))))
    path = write_file(there.entries(), tmp_path / "tuned.json")

    for entry in read_file(path.read_bytes()):
        here.write(entry)
    assert [*here.entries()] == [*there.entries()]
    assert len([*here.entries()]) == 2


def test_a_file_of_something_else_is_refused():
    with pytest.raises(LaunchError, match=r"mine.json cannot be read: its schema is None"):
        read_file(b"{}", "mine.json")
    with pytest.raises(LaunchError, match="no JSON"):
        read_file(b"{", "mine.json")
    data = {"schema": "blockbuster.tuning.file/1", "entries": [{}]}
    with pytest.raises(LaunchError, match=r"entries\[0\].key is missing"):
        read_file(json.dumps(data).encode(), "mine.json")
