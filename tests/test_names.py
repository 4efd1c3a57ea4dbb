"""The public names: each is loaded when it is first used, and stays what it is."""

import subprocess
import sys
from types import ModuleType

import pytest

import blockbuster as bb


def test_each_public_name_is_in_the_stub_and_loads():
    assert sorted(bb.__all__) == sorted(bb._MODULE)
    assert not [name for name in bb.__all__ if isinstance(getattr(bb, name), ModuleType)]
    assert set(bb.__all__) <= set(dir(bb))


def test_an_unknown_name_is_named():
    with pytest.raises(AttributeError, match="'blockbuster' has no attribute 'fues'"):
        _ = bb.fues


@pytest.mark.parametrize("name", ["emit", "compile"])
def test_functions_named_like_a_part_stay_functions(name):
    """In either order: the part is imported before the name is used, or after."""
    told = f"print(type(blockbuster.{name}).__name__)"
    part = f"importlib.import_module('blockbuster.{name}')"
    for order in (f"{part}; {told}", f"{told}; {part}; {told}"):
        code = f"import blockbuster, importlib; {order}"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert set(ran.stdout.split()) == {"function"}, ran.stderr


def test_importing_the_package_loads_nothing_but_its_version():
    code = "import sys, blockbuster; print(*(m for m in sys.modules if 'blockbuster.' in m))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["blockbuster.version"]
