"""Workers that die, hang and raise lose one measurement each; searches go on."""

import math
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import active_children, get_context
from queue import SimpleQueue
from threading import Event

import pytest

from blockbuster.tiling.measurement import Measurement, Workers, bind_gpu, gpu_workers
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


def test_an_executor_that_broke_while_it_waited_is_made_again():
    made = []

    def pool():
        made.append(PROCESSES())
        return made[-1]

    with Workers(pool) as workers:
        workers.measure(seconds, [1])
        with suppress(BrokenProcessPool):
            made[0].submit(seconds, 3).result()
        assert workers.measure(seconds, [2]) == (Measurement(2, 0.2),)
    assert len(made) == 2


def test_threads_measure_in_order():
    with Workers(partial(ThreadPoolExecutor, 4)) as workers:
        assert [m.seconds for m in workers.measure(seconds, (1, 2, 4))] == [0.1, 0.2, 0.4]
        assert workers.measure(seconds, []) == ()


def test_a_worker_sees_a_gpu_of_its_own():
    with Workers(partial(gpu_workers, ("4",))) as workers:
        assert workers.measure(visible, [0, 1]) == (Measurement(0, 4.0), Measurement(1, 14.0))


def test_workers_take_the_gpus_in_turn(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    free = SimpleQueue()
    for name in ("2", "GPU-1f"):
        free.put(name)
    for name in ("2", "GPU-1f"):
        bind_gpu(free)
        assert os.environ["CUDA_VISIBLE_DEVICES"] == name


def test_no_gpu_is_an_error():
    with pytest.raises(ValueError, match="needs a GPU"):
        gpu_workers(())


@pytest.mark.parametrize("given", [math.nan, math.inf, 0.0, -1e-6, None, "3 us"])
def test_what_is_no_time_is_lost(given):
    with Workers() as workers:
        (lost, right) = workers.measure(lambda one: given if one == 1 else 2e-6, [1, 2])
    assert lost == Measurement(1, None, f"it gave {given!r}, and no time in seconds")
    assert right == Measurement(2, 2e-6)
