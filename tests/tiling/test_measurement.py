"""Workers that die, hang and raise lose one measurement each; searches go on."""

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import active_children, get_context
from threading import Event

import pytest

from blockbuster.tiling.measurement import Measurement, Workers, gpu_workers
from tests.tiling.workers import seconds, visible

PROCESSES = partial(ProcessPoolExecutor, 2, get_context("spawn"))


def test_a_worker_that_dies_loses_one_measurement():
    heard = []
    with Workers(PROCESSES) as workers:
        found = workers.measure(seconds, [1, 3, 4, 7, 9], heard.append)

    assert [one.seconds for one in found] == [0.1, None, 0.4, None, 0.9]
    assert found[1].reason.startswith("a worker died")
    assert found[3].reason == "ValueError: seven is refused"
    assert sorted(heard, key=lambda one: one.candidate) == list(found)


def test_a_process_that_hangs_is_ended():
    before = set(active_children())
    with Workers(PROCESSES, patience=1) as workers:
        (found,) = workers.measure(seconds, [5])

    assert found == Measurement(5, None, "a worker hung: no answer in 1 s")
    end = time.monotonic() + 20
    while set(active_children()) - before and time.monotonic() < end:
        time.sleep(0.02)
    assert not set(active_children()) - before


def test_a_worker_that_hangs_loses_one_measurement():
    answer = Event()

    def measure(number):
        return float(number) if number != 5 else float(answer.wait(60))

    with Workers(partial(ThreadPoolExecutor, 2), patience=0.3) as workers:
        found = workers.measure(measure, [1, 5, 6, 7])
    answer.set()  # ends the threads, which nobody can kill

    assert [one.seconds for one in found] == [1.0, None, 6.0, 7.0]
    assert found[1].reason == "a worker hung: no answer in 0.3 s"


def test_threads_measure_in_order():
    with Workers(partial(ThreadPoolExecutor, 4)) as workers:
        assert [m.seconds for m in workers.measure(seconds, range(3))] == [0.0, 0.1, 0.2]
        assert workers.measure(seconds, []) == ()


def test_each_worker_sees_a_gpu_of_its_own():
    with Workers(partial(gpu_workers, ("4", "6"))) as workers:
        found = workers.measure(visible, [0, 0, 0, 0])

    assert {one.seconds for one in found} == {4.0, 6.0}


def test_no_gpu_is_an_error():
    with pytest.raises(ValueError, match="needs a GPU"):
        gpu_workers(())
