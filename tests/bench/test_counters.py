"""Counters of a GPU: the profiler's table is read, and compared with the models."""

import pytest

import blockbuster as bb
from bench.costs.counters import (
    READ,
    WRITTEN,
    by_launch,
    compared,
    counted,
    evicting_kernels,
    of_schedules,
    said,
)
from bench.costs.pairs import read_pairs
from bench.costs.workloads import BY_NAME

COLUMNS = ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
HEAD = "==PROF== Connected to process 7\n" + ",".join(f'"{name}"' for name in COLUMNS) + "\n"


def table(*launches: tuple[str, str, str, str]) -> str:
    """The profiler's text for launches of (unit, read, unit, written)."""
    lines = []
    for number, (unit, read, other, written) in enumerate(launches):
        lines.append(f'"{number}","k","{READ}","{unit}","{read}"\n')
        lines.append(f'"{number}","k","{WRITTEN}","{other}","{written}"\n')
    return HEAD + "".join(lines)


def test_bytes_of_each_launch_are_read_in_their_units() -> None:
    text = table(("Mbyte", "1,234.5", "byte", "96"), ("Kbyte", "7.04", "Gbyte", "0.5"))
    assert by_launch(text) == [
        {READ: 1_234_500_000, WRITTEN: 96},
        {READ: 7_040, WRITTEN: 500_000_000},
    ]


def test_what_memory_takes_late_is_the_schedules_less_that_behind_as_many_idle_kernels() -> None:
    idle, evicting = ("byte", "0", "byte", "0"), ("byte", "256", "byte", "8")
    twice = ("byte", "256", "byte", "20")
    one, other = ("byte", "100", "byte", "10"), ("byte", "50", "byte", "5")
    text = table(
        *(idle, evicting, idle, evicting),
        *(one, ("byte", "256", "byte", "38")),
        *(idle, idle, twice),
        *(one, other, ("byte", "256", "byte", "19")),
    )
    done = [{"key": "", "kernels": 1}] * 2 + [{"key": "a", "kernels": 1}]
    done += [{"key": "", "kernels": 2}, {"key": "b", "kernels": 2}]
    assert of_schedules(by_launch(text), done) == [
        {"key": "a", "read": 100, "written": 40, "late": 30},
        {"key": "b", "read": 150, "written": 15, "late": 0},
    ]


def test_launches_that_read_the_large_array_are_the_rest() -> None:
    launches = by_launch(table(*[("byte", "1", "byte", "1")] * 7))
    done = [{"key": "a", "kernels": 2}, {"key": "b", "kernels": 1}]
    assert evicting_kernels(launches, done) == 2
    with pytest.raises(RuntimeError, match="5 kernels read the large array in 2 runs"):
        evicting_kernels(launches, [{"key": "a", "kernels": 1}, {"key": "b", "kernels": 1}])


def test_a_machine_without_the_profiler_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="`ncu` is not on the path"):
        next(counted(read_pairs(("softmax-16384",))[:1], tmp_path))


def test_a_softmax_moves_its_rows_once_in_and_once_out() -> None:
    pair = read_pairs(("softmax-16384",))[0]
    sizes = BY_NAME["softmax-16384"].sizes
    rows = 2 * sizes["M"] * sizes["N"]
    row = compared(pair, {"read": rows, "written": rows, "late": 0}, bb.machine("h200"))
    assert row.counted == 2 * rows
    assert max(map(abs, row.errors)) < 0.01
    assert "simulated: 1 of 1 within 10%" in said([row])
    twice = compared(pair, {"read": 3 * rows, "written": rows, "late": 0}, bb.machine("h200"))
    assert "simulated: 0 of 1 within 10%" in said([twice])
