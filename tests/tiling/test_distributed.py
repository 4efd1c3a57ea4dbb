"""Measuring on a cluster of dask.distributed, here with two processes of this host."""

import logging

import pytest

from blockbuster.tiling.measurement import Workers
from tests.tiling.workers import seconds

dask = pytest.importorskip("dask", reason="needs the extra 'distributed'")
distributed = pytest.importorskip("distributed", reason="needs the extra 'distributed'")


@pytest.mark.filterwarnings("ignore")  # dask's own
@pytest.mark.slow
def test_a_cluster_measures_and_loses_what_kills_a_worker():
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.admin.log-length": 0}
    cluster = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with (
        dask.config.set(settings),
        distributed.LocalCluster(**cluster, silence_logs=logging.CRITICAL) as local,
        distributed.Client(local) as client,
        Workers(lambda: client.get_executor(pure=False)) as workers,
    ):
        found = workers.measure(seconds, [1, 2, 7, 3, 4])

    assert [one.seconds for one in found] == [0.1, 0.2, None, None, 0.4]
    assert found[2].reason == "ValueError: seven is refused"
    assert found[3].reason == "a worker died"
