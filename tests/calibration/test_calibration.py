"""Probes take turns; what they measure becomes a machine; the command writes its file."""

import json
from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.calibration import Calibration, cpu_probes
from blockbuster.calibration.probe import Measured, Probe, measure
from blockbuster.calibration.procedure import calibrate, gpu_derived, related
from blockbuster.calibration.result import calibrated
from blockbuster.errors import LaunchError
from blockbuster.machines.data_file import numbers_of, read_machine, sources_of
from blockbuster.view.cli import main
from blockbuster.view.commands.calibrate import as_table, quantity

H200 = bb.machine("h200")


def test_probes_take_turns_and_the_first_round_does_not_count():
    ran, told = [], []

    def probe(name, seconds, rate):
        def run():
            ran.append(name)
            return seconds * len(ran)

        return Probe(name, f"doing {name}", 24.0, run, rate)

    found = measure([probe("a", 1.0, True), probe("b", 1.0, False)], rounds=3, tell=told.append)

    assert ran == ["a", "b"] * 4
    assert told[0] == "warming up: doing a"
    assert told[-1] == "round 3 of 3: doing b"
    assert found[0].rounds == (24 / 3, 24 / 5, 24 / 7)
    assert found[1].rounds == (4 / 24, 6 / 24, 8 / 24)
    assert (found[0].value, found[1].value) == (24 / 5, 6 / 24)


MEASURED = (
    Measured("tiers.hbm.bandwidth", "copying", (1e12, 3e12, 2.00001e12)),
    Measured("clock", "counting cycles", (H200.clock / 2,)),
    Measured("compute.matrix.int8", "products", (5e12,)),
    Measured("record.l2.half", "reading", (1e12,)),
    Measured("launch.graph", "empty kernels", (5e-7,)),
)


def test_a_machine_holds_what_was_reported_measured_and_derived():
    derived = gpu_derived(H200, MEASURED)

    machine = calibrated(H200, {"processors": 66}, MEASURED, derived)
    sources = sources_of(machine)

    assert machine.memory.bandwidth == 2e12, "the median, to four digits"
    assert machine.rate("matrix", "int8") == 5e12
    assert machine.tier("shared").bandwidth == pytest.approx(
        H200.tier("shared").bandwidth / 4, 1e-3
    )
    assert machine.tier("shared").latency == pytest.approx(2 * H200.tier("shared").latency, 1e-3)
    assert machine.launch.dependent == 5e-7
    assert machine.tier("l2") == H200.tier("l2")
    assert sources["processors"] == "reported by the driver or the operating system"
    assert sources["clock"].endswith("counting cycles; the median of 1 rounds")
    assert sources["tiers.l2.bytes"] == "as of h200, not measured"
    assert sources["launch.dependent"].startswith("as in a graph")
    assert set(sources) == set(numbers_of(machine)), "each number has its source"


@pytest.mark.parametrize(("between", "left"), [(1.8e-6, 3e-7), (1.2e-6, 0.0)])
def test_a_dependent_launch_saves_what_it_saves_between_busy_kernels(between, left):
    gaps = (
        Measured("record.launch.graph", "busy kernels", (2e-6,)),
        Measured("record.launch.dependent", "busy kernels", (between,)),
    )
    found = (*MEASURED, *gaps)

    assert calibrated(H200, {}, found, gpu_derived(H200, found)).launch.dependent == left


def test_a_path_that_no_machine_has_is_refused():
    wrong = Measured("tiers.l9.speed", "guessing", (1.0,))

    with pytest.raises(ValueError, match=r"h200: tiers\.l9\.bytes, .* is missing"):
        calibrated(H200, {}, (wrong,), {})


@pytest.mark.parametrize(
    ("device", "architecture", "name"),
    [("NVIDIA H200", 90, "h200"), ("NVIDIA L40S", 89, "rtx6000ada"), ("NVIDIA A30", 80, "a100"),
     ("NVIDIA A10", 86, "rtx3080"), ("NVIDIA GeForce RTX 5090", 120, "b200"),
     ("Tesla T4", 75, "a100"), ("NVIDIA H100 80GB HBM3", 90, "h100")],
)  # fmt: skip
def test_a_gpu_is_compared_with_itself_or_the_one_it_is_most_like(device, architecture, name):
    assert related(device, architecture).name == name


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Small arrays and single calls, and a configuration folder of its own."""
    for name, value in {"LARGE": 1 << 16, "SIZE": 8, "BEST_OF": 1, "LEAST_SECONDS": 0}.items():
        monkeypatch.setattr(cpu_probes, name, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_a_cpu_is_measured(quick):
    told = []

    found = calibrate("cpu", rounds=2, tell=told.append)

    machine = found.machine
    paths = [one.path for one in found.measured]
    assert len(told) == 3 * len(paths)
    assert [f"tiers.{t.name}.bandwidth" for t in machine.tiers] == paths[:4]
    assert all(one.rounds and min(one.rounds) > 0 for one in found.measured)
    assert machine.rate("matrix", "float16") == machine.rate("matrix", "float32")
    assert machine.name == "cpu-measured"
    assert read_machine(found.to_toml(), "again") == machine
    assert set(sources_of(machine)) == set(numbers_of(machine))


def test_a_cache_that_no_model_knows_is_left_out(quick, monkeypatch):
    monkeypatch.setattr(cpu_probes, "cache_sizes", lambda: {"l1": 1 << 14, "l4": 1 << 27})

    machine = calibrate("cpu", rounds=1, tell=print).machine

    assert [tier.name for tier in machine.tiers] == ["dram", "l3", "l2", "l1"]
    assert machine.tier("l1").bytes == 1 << 14
    assert machine.tier("l3").bytes == bb.machine("cpu").tier("l3").bytes


def test_the_command_prints_a_table_and_auto_uses_what_it_wrote(quick, capsys):
    assert main(["calibrate", "--device", "cpu", "--rounds", "1"]) == 0

    shown = capsys.readouterr()
    assert "beside the built-in machine cpu" in shown.out
    assert "compute.matrix.float32" in shown.out
    assert "machine 'auto' uses it from now on" in shown.err
    (written,) = quick.glob("config/**/machines/*.toml")
    assert read_machine(written.read_text(encoding="utf-8"), "x").name == "cpu-measured"


def test_the_command_writes_a_named_file_and_prints_json(quick, capsys):
    out = quick / "mine.toml"

    assert main(["calibrate", "--device", "cpu", "--rounds", "2", "--out", str(out), "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    machine = bb.machine(out)
    assert numbers_of(machine) == data["numbers"]
    assert {len(row["rounds"]) for row in data["measured"]} == {2}
    assert not (quick / "config").exists()


def test_a_dry_run_measures_and_writes_nothing(quick, capsys):
    assert main(["calibrate", "--device", "cpu", "--dry-run"]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("would measure ")
    assert not (quick / "config").exists()


def test_no_gpu_says_what_to_do(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(LaunchError, match=r"no NVIDIA GPU here\n  hint: .*--device cpu"):
        calibrate("gpu", rounds=1, tell=print)


def test_no_rounds_is_refused():
    with pytest.raises(ValueError, match="1 round or more, not 0"):
        calibrate("cpu", rounds=0, tell=print)


def test_quantities_have_the_unit_of_their_path():
    assert quantity("tiers.l2.latency", 2.63e-7) == "263 ns"
    assert quantity("compute.matrix.float16", 6.9e14) == "690 Top/s"
    assert quantity("clock", 1.98e9) == "1.98 GHz"
    assert quantity("record.hbm.read", 4.2e12) == "4.20 TB/s"
    assert quantity("record.matrix.float32", 5.25e13) == "52.5 Top/s"
    assert quantity("launch.plain", 0.0) == "0.00 ns"


def test_a_table_shows_what_no_machine_has_without_a_ratio():
    found = Calibration("a GPU", replace(H200, name="x"), H200, MEASURED, {})

    lines = as_table(found).split("\n")

    built_in = quantity("tiers.hbm.bandwidth", H200.memory.bandwidth)
    assert lines[3].split() == ["tiers.hbm.bandwidth", "2.00", "TB/s", *built_in.split(), "0.47",
                                "1.00", "TB/s", "3.00", "TB/s"]  # fmt: skip
    assert lines[6].split() == ["record.l2.half", "1.00", "TB/s", "-", "-", "1.00", "TB/s", "1.00",
                                "TB/s"]  # fmt: skip


@pytest.mark.parametrize("command", [["--dry-run"], []])
def test_a_dry_run_refuses_what_the_real_one_refuses(command, quick, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    assert main(["calibrate", "--device", "gpu", *command]) != 0
    assert "torch sees no NVIDIA GPU here" in capsys.readouterr().err
    assert main(["calibrate", "--device", "cpu", "--rounds", "0", *command]) != 0
    assert "1 round or more, not 0" in capsys.readouterr().err
    assert not (quick / "config").exists()
