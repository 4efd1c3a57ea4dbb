"""A home folder of its own for tests of what is kept there; what is no test here."""

import re
import sys

import pytest

from blockbuster.emit.target import disk

collect_ignore = ["triton_kernels.py"]  # a script that needs torch and Triton: a test runs it


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder of its own, and a process that has warned of nothing."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(disk, "SPARE", [])
    monkeypatch.setattr(disk, "WARNED", [])
    forget_modules(monkeypatch)
    yield place
    for spare in disk.SPARE:
        assert spare.is_dir()


def forget_modules(monkeypatch):
    """As in a new process."""
    for name in [name for name in sys.modules if re.fullmatch(r"blockbuster_[0-9a-f]{24}", name)]:
        monkeypatch.delitem(sys.modules, name)
