"""Caches that are broken in every way: one warning, a temporary folder, right results."""

import errno
import os
import pwd
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import platformdirs
import pytest

import blockbuster as bb
from blockbuster.emit.target import disk
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.disk import Folder, cache_folder, write_whole
from blockbuster.emit.target.load import load_module
from tests.emit.conftest import forget_modules

TEXT = "VALUE = 7\n\ndef f():\n    return VALUE\n"


def modules(home):
    return home / ".cache" / "blockbuster" / "modules"


def name_of(text):
    return f"{load_module(text).__name__}.py"


def breaks_nothing(warned, text=TEXT):
    """Modules are loaded, folders work, and there is one warning, or none."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert load_module(text).f() == 7
        assert load_module(text + "# again\n").f() == 7
        folder = cache_folder("modules")
        place = folder.write("a.json", b"{}")
        assert folder.read("a.json") == b"{}"
        assert "a.json" in folder.names()
        folder.remove("a.json")
        assert folder.read("a.json") is None
        folder.clear()
        assert folder.names() == ()
    assert [w.category for w in said] == [RuntimeWarning] * warned, [str(w.message) for w in said]
    assert place is not None
    return [str(w.message) for w in said]


def test_a_cache_that_works(home):
    breaks_nothing(0)

    assert stat.S_IMODE(modules(home).stat().st_mode) == 0o700
    assert disk.SPARE == []


def a_file_in_the_place_of(*words):
    def arrange(home, monkeypatch):
        place = home.joinpath(*words)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("a file")

    return arrange


def home_is_a_file(home, monkeypatch):
    home.rmdir()
    home.write_text("a file")


def home_is_missing(home, monkeypatch):
    monkeypatch.setenv("HOME", "/dev/null/nobody")


def nobody_knows_home(home, monkeypatch):
    def unknown(user):
        raise KeyError(user)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(home)


def the_cache_is_relative(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: Path("~", name))


def a_dangling_link(*words):
    def arrange(home, monkeypatch):
        place = home.joinpath(*words)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(home / "gone" / "away")

    return arrange


def a_link_to_itself(home, monkeypatch):
    (home / ".cache").symlink_to(home / ".cache")


def somebody_elses(home, monkeypatch):
    """A folder whose owner is not us, whoever runs the tests."""
    modules(home).mkdir(parents=True)
    real = disk._is_mine
    theirs = os.stat(modules(home)).st_ino
    monkeypatch.setattr(disk, "_is_mine", lambda about: about.st_ino != theirs and real(about))


def cannot_be_closed(home, monkeypatch):
    """A folder that everybody can write to, on a file system that keeps no modes."""
    modules(home).mkdir(parents=True)
    modules(home).chmod(0o777)
    monkeypatch.setattr(os, "chmod", lambda *_: None)


def in_cache(home, path):
    return str(path).startswith(str(home))


def failing(name, code):
    """``os.name`` raises ``code`` for files in the home folder."""

    def arrange(home, monkeypatch):
        real = getattr(os, name)

        def broken(first, *rest, **named):
            if isinstance(first, int) or in_cache(home, first):
                raise OSError(code, os.strerror(code), str(first))
            return real(first, *rest, **named)

        monkeypatch.setattr(os, name, broken)

    return arrange


BROKEN = {
    "home is a file": home_is_a_file,
    "home is missing": home_is_missing,
    "nobody knows home": nobody_knows_home,
    "the cache is relative": the_cache_is_relative,
    "the cache is a file": a_file_in_the_place_of(".cache"),
    "our folder is a file": a_file_in_the_place_of(".cache", "blockbuster"),
    "our modules are a file": a_file_in_the_place_of(".cache", "blockbuster", "modules"),
    "the cache is a dangling link": a_dangling_link(".cache"),
    "our modules are a dangling link": a_dangling_link(".cache", "blockbuster", "modules"),
    "the cache is a link to itself": a_link_to_itself,
    "it belongs to somebody else": somebody_elses,
    "everybody can write to it": cannot_be_closed,
    "no file can be made (read-only)": failing("open", errno.EROFS),
    "no file can be made (full)": failing("open", errno.ENOSPC),
    "no file can be made (quota)": failing("open", errno.EDQUOT),
    "no folder can be made": failing("mkdir", errno.EACCES),
    "a file cannot be put in place": failing("replace", errno.EXDEV),
    "the folder cannot be looked at": failing("stat", errno.EIO),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_cache_is_one_warning_and_a_temporary_folder(case, home, monkeypatch):
    BROKEN[case](home, monkeypatch)
    before = sorted(Path.cwd().iterdir())
    (said,) = breaks_nothing(1)

    assert "cannot be used: " in said
    assert said.isascii()
    assert len(disk.SPARE) == 1
    assert sorted(Path.cwd().iterdir()) == before  # no folder "~"


FULL = """
import resource, signal, sys, warnings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
from blockbuster.emit.target.disk import cache_folder
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.compiler import compile_kernel
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    module = load_module("def f():\\n    return 7\\n" + "# long\\n" * 100_000)
    assert module.f() == 7
    folder = cache_folder("records")
    assert folder.write("a", bytes(1 << 20)) is None
    assert folder.read("a") is None
    assert folder.write("b", bytes(1 << 10)).parent == folder.path
print(len(said), said[0].message)
"""


def test_a_disk_that_takes_only_the_first_part_of_a_file(home):
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 ")
    assert "File too large" in done.stdout
    assert [path.name for path in (home / ".cache").rglob("*") if path.is_file()] == ["b"]


SPOILED = {
    "no UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00VALUE"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:9]),
    "other code": lambda path: path.write_text("raise SystemExit"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a folder with a file": lambda path: (path.unlink(), path.mkdir(), (path / "a").touch()),
    "a dangling link": lambda path: (path.unlink(), path.symlink_to("gone")),
    "a link to an endless file": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("case", SPOILED)
def test_what_stands_in_a_file_does_not_matter(case, home, monkeypatch):
    path = modules(home) / name_of(TEXT)
    SPOILED[case](path)
    forget_modules(monkeypatch)
    breaks_nothing(case.startswith("a folder"))


def test_folders_of_ours_that_others_may_write_to_are_closed(home):
    modules(home).mkdir(parents=True)
    modules(home).chmod(0o777)
    breaks_nothing(0)

    assert stat.S_IMODE(modules(home).stat().st_mode) == 0o755


def test_files_of_others_are_not_read(home):
    folder = cache_folder("modules")
    path = folder.write("a", b"ours")
    path.chmod(0o666)

    assert folder.read("a") is None
    assert folder.write("a", b"ours") == path
    assert folder.read("a") == b"ours"


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a\0", "a\nb", "\u2028", "a" * 201])
def test_names_are_plain(name, home):
    for call in (Folder.read, Folder.remove, lambda folder, name: folder.write(name, b"")):
        with pytest.raises(ValueError, match="is no name for a file in a cache"):
            call(cache_folder("modules"), name)


def test_results_are_right_where_nothing_can_be_kept(home, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "_write", full)
    x = np.arange(6.0).reshape(2, 3)
    with pytest.warns(RuntimeWarning, match="No space left on device") as said:
        found = bb.jit(lambda x: bb.softmax(x, axis=-1) + 0.5)(x)

    assert len(said) == 1
    np.testing.assert_allclose(found.sum(axis=-1), 2.5)


@pytest.mark.parametrize("point", ["open", "fsync", "replace"])
def test_a_file_that_was_asked_for_is_whole_or_as_before(point, tmp_path, monkeypatch):
    path = write_whole(tmp_path / "new" / "a.json", b"old")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, point, full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    monkeypatch.undo()

    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_triton_compiles_without_a_home(home, monkeypatch):
    from triton import knobs

    with knobs.cache.scope():
        monkeypatch.setattr(disk, "SPARE", [])
        knobs.cache.dir = str(home / "a file" / "cache")
        (home / "a file").write_text("in the way")
        graph = bb.parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } return Y }")
        kernel = bb.emit(graph, {"M": 64}, "float32")
        with pytest.warns(RuntimeWarning, match="cannot be used: Not a directory") as said:
            (report,) = compile_kernel(kernel)

        assert len(said) == 1
        assert report.registers > 0
        assert Path(knobs.cache.dir).parent == disk.SPARE[0]
        assert compile_kernel(kernel) == (report,)
        assert os.listdir(knobs.cache.dir)


def test_an_interpreter_without_room_for_its_arrays_says_so(monkeypatch):
    graph = bb.parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } return Y }")
    kernel = bb.emit(graph, {"M": 64}, "float32")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(bb.LaunchError, match=r"No space left on device[\s\S]*TMPDIR"):
        kernel(np.ones(64, np.float32))


def test_without_platformdirs_it_is_where_linux_has_it(home, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert disk.cache_folder("modules").path == home / ".cache" / "blockbuster" / "modules"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert disk.cache_folder("modules").path == tmp_path / "elsewhere" / "blockbuster" / "modules"
