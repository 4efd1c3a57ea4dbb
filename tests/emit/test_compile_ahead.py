"""Kernels of one file are compiled at once, and what fails is left to who compiles it next."""

import threading
from contextlib import contextmanager

import pytest

from blockbuster.emit.target import compiler
from blockbuster.emit.target.compiler import compile_ahead


class Kernel:
    """A kernel whose compilation is ``work``."""

    def __init__(self, name, work):
        self.__name__, self.work, self.given = name, work, []

    def warmup(self, *arguments, grid, **options):
        self.given.append((arguments, grid, options))
        self.work()


@pytest.fixture(autouse=True)
def two_processors(monkeypatch):
    monkeypatch.setattr(compiler.os, "cpu_count", lambda: 2)


class Gpu:
    """A device, and the threads in which it is the current one."""

    def __init__(self, capturing=False):
        self.threads, self.capturing = set(), capturing

    @contextmanager
    def current(self):
        self.threads.add(threading.get_ident())
        try:
            yield
        finally:
            self.threads.remove(threading.get_ident())

    def is_capturing(self):
        return self.capturing


def test_kernels_are_compiled_at_once_each_where_the_device_is_the_current_one():
    gpu, both, inside = Gpu(), threading.Barrier(2, timeout=60.0), []

    def work():
        both.wait()  # passes once both are here
        inside.append(threading.get_ident() in gpu.threads)

    kernels = [Kernel(name, work) for name in "ab"]
    compile_ahead([(one, (1, 2), {"BLOCK_M": 16}) for one in kernels], gpu)

    assert [one.given for one in kernels] == [[((1, 2), (1,), {"BLOCK_M": 16})]] * 2
    assert inside == [True, True]
    assert not gpu.threads


def test_a_kernel_that_fails_is_left_to_who_compiles_it_next():
    def fail():
        raise RuntimeError("PassManager::run failed")

    good, bad = Kernel("good", lambda: None), Kernel("bad", fail)
    compile_ahead([(bad, (), {}), (good, (), {})], Gpu())

    assert len(good.given) == len(bad.given) == 1


def test_one_function_is_compiled_by_one_thread():
    one, other = Kernel("one", lambda: None), Kernel("other", lambda: None)
    compile_ahead([(one, (1,), {}), (one, (2,), {}), (other, (), {})], Gpu())

    assert [arguments for arguments, _, _ in one.given] == [(1,)]
    assert len(other.given) == 1


def test_a_single_kernel_is_compiled_where_it_is_launched():
    one = Kernel("one", lambda: None)
    compile_ahead([(one, (), {})] * 2, Gpu())

    assert not one.given


def test_nothing_is_compiled_in_threads_while_launches_are_captured():
    kernels = [Kernel(name, lambda: None) for name in "ab"]
    compile_ahead([(one, (), {}) for one in kernels], Gpu(capturing=True))

    assert not any(one.given for one in kernels)
