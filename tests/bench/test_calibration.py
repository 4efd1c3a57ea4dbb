"""A calibration becomes the built-in file of its machine."""

from bench.calibration.built_in import measured_machine
from blockbuster.machines import built_in
from blockbuster.machines.data_file import machine_text, numbers_of, read_machine, sources_of

ROWS = [
    {"path": "clock", "what": "counting cycles", "rounds": [1.7e9, 1.75e9, 1.8e9]},
    {"path": "tiers.hbm.bandwidth", "what": "copying", "rounds": [4.2e12, 4.1e12, 4.35e12]},
    {"path": "tiers.l2.bandwidth", "what": "reading", "rounds": [1e13]},
    {"path": "record.l2.half", "what": "reading", "rounds": [1e12]},
]
FOUND = {
    "measured": ROWS,
    "about": {"date": "2026-11-22", "triton": "3.6.0"},
    "numbers": {"processors": 1, "tiers.dram.bytes": 2**30, "launch.graph": 5.0},
}


def test_what_was_measured_replaces_numbers_and_sources():
    base = built_in("h200")

    kept = ("tiers.l2.bandwidth", "launch.dependent")
    machine = measured_machine(base, FOUND, "bench/results/x.json", kept)

    changed = {p for p, n in numbers_of(machine).items() if n != numbers_of(base)[p]}
    assert changed == {
        "clock", "tiers.hbm.bandwidth", "tiers.shared.bandwidth", "tiers.shared.latency",
        "tiers.registers.bandwidth", "tiers.registers.latency",
    }  # fmt: skip
    assert machine.clock == 1.75e9
    assert machine.memory.bandwidth == 4.2e12
    assert machine.sources["tiers.hbm.bandwidth"] == (
        "measured, bench/results/x.json: copying; the median of 3 rounds, 4.1e+12 to 4.35e+12"
    )
    assert machine.sources["limits"] == base.sources["limits"]
    assert set(sources_of(machine)) == set(numbers_of(machine))
    assert read_machine(machine_text(machine), "h200.toml") == machine


def test_a_cpu_takes_what_its_system_reports():
    machine = measured_machine(built_in("cpu"), FOUND | {"measured": ROWS[:1]}, "x.json")

    assert machine.processors == 1
    assert machine.memory.bytes == 2**30
    assert machine.launch.graph == machine.launch.plain, "derived, and not reported"
