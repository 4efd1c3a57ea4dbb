"""What is chosen without a GPU beside default schedules: compiled, and the table of times."""

from bench.costs.without_gpu import CHOSEN, DEFAULT, made, table


def record(workload, choice, cold, warm):
    return {"workload": workload, "choice": choice, "cold": cold, "warm": warm}


def test_both_schedules_of_a_workload_compile(tmp_path):
    both = [made("S7", choice, str(tmp_path)) for choice in (DEFAULT, CHOSEN)]

    assert both[0].schedule != both[1].schedule
    assert all((tmp_path / f"S7-{choice}.py").exists() for choice in (DEFAULT, CHOSEN))
    assert all(one.said["warm"] < one.said["cold"] for one in both)
    assert both[1].said["cold"] < both[0].said["cold"]


def test_the_table_counts_what_is_faster():
    found = table(
        [
            record("G1", DEFAULT, [8.0, 9.0, 8.5], [4.0]),
            record("G1", CHOSEN, [4.0, 4.5, 4.25], [5.0]),
        ]
    )

    assert "| G1 | 8.50 | 4.00 | 4.25 | 5.00 |" in found
    assert "cold: 1 of 1 faster, 0.50 of the time" in found
    assert "warm: 0 of 1 faster, 1.25 of the time" in found
