"""Room for the next kernel: a kernel before a dependent one asks for shared memory, once."""

import ctypes
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

from blockbuster.emit.target.load import load_module
from tests.emit.test_overlap import DIMS, SIZES, graph, noted_sizes, scheduled  # noqa: F401

ATTRIBUTE, ALL = 9, 100  # of cuda.h: preferred carve-out, in percent


class Cuda:
    """A driver's library that notes what it is asked, and answers ``error``."""

    def __init__(self, error=0):
        self.error, self.asked = error, []

    def cuFuncSetAttribute(self, function, attribute, value):
        self.asked.append((function.value, attribute, value))
        return self.error


def started(module, monkeypatch, *, overlaps=True, cuda=None, calls=1, **sizes):
    """What ``launch`` does on stand-ins: kernels started, and what the driver was asked."""
    found, cuda = [], cuda or Cuda()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: cuda)

    class Kernel(SimpleNamespace):
        def __getitem__(self, _):
            def start(*_, **options):
                found.append(self.name)
                return self.compiled

            return start

    stubs = {"check_array": noted_sizes, "can_overlap": lambda _: overlaps}
    for handle, entry in enumerate(module.KERNELS, start=1):
        name = entry["function"].__name__
        compiled = Compiled(handle, name)
        stubs[name] = Kernel(name=name, compiled=compiled)
    launch = FunctionType(module.launch.__code__, {**vars(module), **stubs}, argdefs=(None,))
    arrays = [np.zeros([sizes[d] for d in dims.split()], "float32") for dims in DIMS.values()]
    for _ in range(calls):
        launch(*arrays)
    return found, cuda.asked


class Compiled:
    """A kernel that Triton compiled, with the driver's handle of it."""

    def __init__(self, function, name):
        self.function, self.name = function, name


@pytest.fixture
def module(graph):  # noqa: F811
    return load_module(scheduled(graph, "stage nest 2 N 2; overlap").source)


def test_the_kernel_before_a_dependent_one_leaves_room_once(module, monkeypatch):
    found, asked = started(module, monkeypatch, calls=3, **SIZES)
    assert found == ["I1_kernel", "out_kernel"] * 3
    assert asked == [(1, ATTRIBUTE, ALL)]


def test_nothing_is_asked_where_kernels_do_not_overlap(module, monkeypatch):
    _, asked = started(module, monkeypatch, overlaps=False, **SIZES)
    assert asked == []


def test_nothing_is_asked_for_a_kernel_that_is_not_started(module, monkeypatch):
    found, asked = started(module, monkeypatch, **{**SIZES, "N": 0})
    assert (found, asked) == (["out_kernel"], [])


def test_a_driver_that_refuses_is_an_error(module, monkeypatch):
    with pytest.raises(RuntimeError, match="I1_kernel: error 1 of cuFuncSetAttribute"):
        started(module, monkeypatch, cuda=Cuda(error=1), **SIZES)


def test_without_a_driver_it_is_an_error(module, monkeypatch):
    with pytest.raises(AttributeError, match="cuFuncSetAttribute"):
        started(module, monkeypatch, cuda=SimpleNamespace(asked=[]), **SIZES)


@pytest.mark.parametrize("moves", ["", "overlap", "stage nest 2 N 2; overlap nest 1"])
def test_a_file_without_such_kernels_has_nothing_of_it(graph, moves):  # noqa: F811
    source = scheduled(graph, moves).source
    assert "leave_room" not in source
    assert "import ctypes" not in source
