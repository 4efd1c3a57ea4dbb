"""GPUs that nobody has measured: their own limits, the rates of a related machine."""

import pytest

from blockbuster.machines import built_in, likely
from blockbuster.machines.data_file import numbers_of, sources_of
from blockbuster.machines.likely import BUS, REACHED

REPORTED = {
    "processors": 58, "tiers.hbm.bytes": 24 << 30, "tiers.l2.bytes": 48 << 20,
    "limits.shared_per_program": 101_376, "limits.threads_per_processor": 1536,
}  # fmt: skip


def test_a_known_gpu_has_its_built_in_numbers():
    assert likely("NVIDIA H100 80GB HBM3", 90, REPORTED) is built_in("h100")


def test_what_the_driver_reports_is_its_own():
    made = likely("NVIDIA L4", 89, REPORTED)

    numbers = numbers_of(made)
    assert {path: numbers[path] for path in REPORTED} == REPORTED
    assert (made.name, made.devices, made.target) == ("NVIDIA L4", ("NVIDIA L4",), "sm_80")
    assert made.choice is None


@pytest.mark.parametrize("unit", ["matrix", "vector"])
def test_each_processor_is_as_fast_as_one_of_the_related_machine(unit):
    made, base = likely("NVIDIA L4", 89, REPORTED), built_in("rtx6000ada")

    for dtype in base.compute[unit]:
        each = made.rate(unit, dtype) / made.processors
        assert each == pytest.approx(base.rate(unit, dtype) / base.processors)
    for tier in ("shared", "registers"):
        whole = made.tier(tier).bandwidth / base.tier(tier).bandwidth
        assert whole == pytest.approx(58 / base.processors)
    assert made.special / made.processors == pytest.approx(base.special / base.processors)


def test_memory_is_as_fast_as_its_pins_where_they_are_reported():
    made = likely("NVIDIA L4", 89, {**REPORTED, BUS: 3e11})

    assert made.memory.bandwidth == pytest.approx(REACHED * 3e11)
    assert likely("NVIDIA L4", 89, {**REPORTED, BUS: 0}).memory.bandwidth == (
        built_in("rtx6000ada").memory.bandwidth
    )


def test_every_number_has_a_source():
    made = likely("NVIDIA L4", 89, {**REPORTED, BUS: 3e11})

    sources = sources_of(made)
    assert set(sources) == set(numbers_of(made))
    assert sources["processors"] == "reported by the driver"
    assert "reports of its memory" in sources["tiers.hbm.bandwidth"]
    assert "as of rtx6000ada" in sources["compute.matrix.float16"]


def test_a_number_that_a_driver_does_not_know_is_the_related_ones():
    made = likely("NVIDIA H20", 90, {"processors": 78, "tiers.l2.bytes": 0})

    assert made.processors == 78
    assert made.tier("l2").bytes == built_in("h200").tier("l2").bytes
