"""`blockbuster cache export` and `import`: what comes back, and that a bad file changes nothing."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.emit.target import disk
from blockbuster.errors import LaunchError
from blockbuster.tuning.store import Store, read_file, write_file
from blockbuster.version import VERSION
from blockbuster.view.cli import main
from tests.tuning.benches import (
    Benches,
    family_of,
    known,
    product,
    tuned,
    tuner,
    warps_of,
)
from tests.tuning.test_store import ENTRY as ENTRY_OF_TEXTS
from tests.tuning.test_store import KEY as KEY_OF_TEXTS

KEY = replace(KEY_OF_TEXTS, version=VERSION)
ENTRY = replace(ENTRY_OF_TEXTS, key=KEY)
SIZES = dict(M=512, K=512, N=512)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Store()


def files_of(cache):
    """The names and contents of all files, also of what an interrupted writer would leave."""
    folder = cache.folder.path
    found = sorted(folder.iterdir()) if folder.exists() else []
    return {path.name: path.read_bytes() for path in found}


def exported(entries, path):
    return str(write_file(entries, path))


def test_what_is_exported_comes_back(cache, tmp_path, capsys):
    cache.write(ENTRY)
    cache.write(replace(ENTRY, key=replace(KEY, sizes=("64/64", "64/64"))))
    before, path = files_of(cache), str(tmp_path / "new" / "tuned.json")

    assert main(["cache", "export", path]) == 0
    assert main(["cache", "clear"]) == 0
    assert files_of(cache) == {}
    assert main(["cache", "import", path]) == 0

    assert files_of(cache) == before
    assert capsys.readouterr().err.split("\n") == [
        f"wrote the results of 2 kernels into {path}",
        f"imported the results of 2 kernels from {path}",
        "",
    ]


def test_an_empty_cache_comes_back(cache, tmp_path, capsys):
    path = str(tmp_path / "tuned.json")
    assert main(["cache", "export", path]) == 0
    assert main(["cache", "import", path]) == 0
    assert files_of(cache) == {}
    assert "imported the results of 0 kernels" in capsys.readouterr().err


def test_what_was_measured_elsewhere_is_chosen_here(cache, tmp_path):
    there = tuner(tmp_path / "there", Benches(times={"8": (5.0,)}))
    tuned(there, product(), SIZES)
    path = exported(there.known.store.entries(), tmp_path / "tuned.json")
    assert main(["cache", "import", path]) == 0

    here = replace(known(tmp_path), store=cache)
    (file,) = family_of(product(), here).like(SIZES).files
    assert warps_of(file.considered.best.scheduled.schedule) == "8"


def test_an_import_takes_the_place_of_an_earlier_result(cache, tmp_path):
    cache.write(replace(ENTRY, seconds=99.0))
    assert main(["cache", "import", exported([ENTRY], tmp_path / "tuned.json")]) == 0
    assert [*cache.entries()] == [ENTRY]


# files that are refused -------------------------------------------------------------------


def changed(change):
    """The text of an exported file, with a change in its data."""
    data = {"schema": "blockbuster.tuning.file/1", "entries": [ENTRY.to_json(), ENTRY.to_json()]}
    data = json.loads(json.dumps(data))
    change(data)
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is no JSON"),
        (b"{}", "its schema is None, expected 'blockbuster.tuning.file/1'"),
        (b"\xff\xfe{}", "it is no text in UTF-8"),
        (b"[" * 100_000, "it is nested deeper than any file of ours"),
        (
            changed(lambda data: data.update(schema="blockbuster.tuning.file/2")),
            "another version of Blockbuster wrote it: its schema is 'blockbuster.tuning.file/2'",
        ),
        (
            changed(lambda data: data.update(schema="blockbuster.tuning/1")),
            "cannot be read: its schema is 'blockbuster.tuning/1'",
        ),
        (changed(lambda data: data.update(more=1)), "more is nothing that a file of ours has"),
        (changed(lambda data: data["entries"][1].pop("key")), r"entries[1].key is missing"),
        (
            changed(lambda data: data["entries"][1]["found"][0].update(us="fast")),
            "entries[1].found[0].us is 'fast', expected a number",
        ),
        (
            changed(lambda data: [one["key"].update(version="9.9") for one in data["entries"]]),
            f"holds results of Blockbuster 9.9, and this is {VERSION}",
        ),
    ],
)
def test_a_bad_file_is_refused_in_words_and_changes_nothing(cache, tmp_path, capsys, content, said):
    cache.write(replace(ENTRY, seconds=99.0))
    before, path = files_of(cache), tmp_path / "tuned.json"
    path.write_bytes(content)
    assert main(["cache", "import", str(path)]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert str(path) in error
    assert "Traceback" not in error
    assert files_of(cache) == before


EXPORTED = changed(lambda data: None)


@given(st.integers(0, len(EXPORTED) - 3))
def test_a_file_that_was_cut_off_is_refused(length):
    with pytest.raises(LaunchError, match=r"tuned.json cannot be read: it is no JSON"):
        read_file(EXPORTED[:length], "tuned.json")


@given(st.integers(0, len(EXPORTED) - 1), st.integers(1, 255))
def test_a_file_with_a_wrong_byte_is_refused_or_holds_entries(at, change):
    """Numbers and texts have no checksum: schedules are replayed, and first results checked."""
    damaged = bytearray(EXPORTED)
    damaged[at] ^= change
    try:
        said = f"{len(read_file(bytes(damaged), 'tuned.json'))} entries"
    except LaunchError as error:
        said = str(error)
    assert said == f"{len(read_file(EXPORTED))} entries" or said.startswith(
        "tuned.json cannot be read: "
    )


def test_results_of_other_versions_are_left_out_and_told(cache, tmp_path, capsys):
    other = replace(ENTRY, key=replace(KEY, version="9.9"))
    path = exported([ENTRY, other], tmp_path / "tuned.json")
    assert main(["cache", "import", path]) == 0
    assert [*cache.entries()] == [ENTRY]
    assert capsys.readouterr().err.rstrip("\n") == (
        f"imported the results of 1 kernel from {path}; left out 1 kernel of other versions of"
        " Blockbuster"
    )


def test_a_file_that_is_not_there_is_named(cache, tmp_path, capsys):
    path = str(tmp_path / "none.json")
    assert main(["cache", "import", path]) == 1
    assert f"{path}: No such file" in capsys.readouterr().err


def test_an_import_that_would_not_last_is_an_error(cache, tmp_path, monkeypatch, capsys):
    """Elsewhere a temporary folder serves until the process ends, which would be at once."""
    monkeypatch.setattr(disk, "WARNED", [])
    monkeypatch.setattr(disk, "SPARE", [])
    path = exported([ENTRY], tmp_path / "tuned.json")
    (tmp_path / "cache").write_text("a file where the cache should be")
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert main(["cache", "import", path]) == 1
    error = capsys.readouterr().err
    assert "cannot be written: imported 0 of 1 kernels" in error
    assert "imported the results" not in error
