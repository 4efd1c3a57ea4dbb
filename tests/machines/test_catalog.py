"""Machines by name, by file, and the present one."""

from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.machines import Launch, Tier, catalog
from blockbuster.machines.data_file import machine_text
from blockbuster.machines.machine import Choice
from blockbuster.machines.measured import measured_path


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A user's configuration folder with nothing in it, on a computer without a GPU."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(catalog, "gpu_name", lambda: "")
    monkeypatch.setattr(catalog, "cpu_name", lambda: "a processor")
    return tmp_path


def test_an_unknown_machine_names_the_nearest_and_all():
    with pytest.raises(ValueError, match=r"'h20'\n.*did you mean 'h200'\? known: auto, h200, h1"):
        bb.machine("h20")


def test_a_machine_stays_as_it_is():
    mine = replace(bb.machine("h200"), name="half", processors=66)

    assert bb.machine(mine) is mine
    assert bb.machine("h200").processors == 132


def test_a_machine_from_a_file_by_path_or_name(tmp_path):
    mine = replace(bb.machine("a100"), name="mine", processors=54)
    path = tmp_path / "mine.toml"
    path.write_text(machine_text(mine), encoding="utf-8")

    assert bb.machine(path) == bb.machine(str(path)) == mine


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        bb.machine(tmp_path / "none.toml")


def test_what_is_no_name_is_refused():
    with pytest.raises(TypeError, match="a name, a path or a Machine, not int"):
        bb.machine(3)


def test_a_missing_rate_names_those_that_there_are():
    with pytest.raises(
        ValueError, match=r"a100 has no rate of matrix units for float8\n  hint: kn"
    ):
        bb.machine("a100").rate("matrix", "float8")


def test_a_missing_tier_names_those_that_there_are():
    with pytest.raises(ValueError, match=r"cpu has no tier 'hbm'\n  hint: known: dram, l3, l2, l1"):
        bb.machine("cpu").tier("hbm")


def test_the_present_machine_without_a_gpu_is_the_cpu():
    assert bb.machine("auto") == bb.machine("cpu")


def test_the_present_machine_is_the_gpu_by_its_name(monkeypatch):
    monkeypatch.setattr(catalog, "gpu_name", lambda: "NVIDIA H200")

    assert bb.machine("auto") == bb.machine("h200")


def test_an_unknown_gpu_says_what_to_do(monkeypatch):
    monkeypatch.setattr(catalog, "gpu_name", lambda: "NVIDIA H300\n")

    with pytest.raises(
        ValueError, match=r"no data of this GPU.*H300\\\\n.*\n.*blockbuster calibrate"
    ):
        bb.machine("auto")


@pytest.mark.parametrize("device", ["NVIDIA H200", ""])
def test_what_was_measured_comes_first(monkeypatch, device):
    monkeypatch.setattr(catalog, "gpu_name", lambda: device)
    path = measured_path(device or "a processor")
    path.parent.mkdir(parents=True)
    mine = replace(bb.machine("h200"), name="measured", clock=1.5e9)
    path.write_text(machine_text(mine), encoding="utf-8")

    assert bb.machine("auto") == mine


def test_a_damaged_measurement_is_an_error(monkeypatch):
    path = measured_path("a processor")
    path.parent.mkdir(parents=True)
    path.write_text("name = 3", encoding="utf-8")

    with pytest.raises(ValueError, match=r"a-processor\.toml: "):
        bb.machine("auto")


def test_each_device_is_that_of_one_machine():
    devices = [d for name in catalog.GPUS for d in catalog.built_in(name).devices]

    assert len(set(devices)) == len(devices) >= len(catalog.GPUS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(processors=0), "h200: processors is greater than 0, not 0"),
        (dict(clock=float("nan")), "clock is greater than 0, not nan"),
        (dict(clock=float("inf")), "clock is between 1e-30 and 1e[+]30, not inf"),
        (dict(clock=5e-324), "clock is between 1e-30 and 1e[+]30, not 5e-324"),
        (dict(clock="fast"), "clock is a number, not 'fast'"),
        (dict(clock=True), "clock is a number, not True"),
        (dict(processors=10**5000), "processors is between 1e-30 and 1e[+]30, not more"),
        (dict(processors=1.5), "processors is a whole number, not 1.5"),
        (dict(issue=float("-inf")), "issue is greater than 0, not -inf"),
        (dict(launch=Launch(float("inf"), 0, 0)), "launch.plain is between"),
        (dict(choice=Choice(1, 1, 0, 1)), "choice.vector is greater than 0, not 0"),
        (dict(launch=Launch(1e-6, -1e-6, 1e-6)), "launch.graph is 0 or more, not -1e-06"),
        (dict(tiers=(Tier("hbm", 1, 0.0, 0.0),)), "tiers.hbm.bandwidth is greater than 0"),
        (dict(compute={"vector": {"float32": 0.0}}), "compute.vector.float32 is greater than 0"),
    ],
)
def test_numbers_of_a_machine_are_positive_and_finite(change, words):
    with pytest.raises(ValueError, match=words):
        replace(bb.machine("h200"), **change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(tiers=()), "a machine has at least one tier"),
        (dict(tiers=("hbm",)), "among the tiers is a str"),
        (dict(tiers=None), "tiers is None, expected a tuple of Tier"),
        (dict(compute={"matrix": 3.0}), "compute.matrix is a float, expected rates by dtype"),
        (dict(launch=1e-6), "launch is a float, expected a Launch"),
        (dict(name=3), "name is an int, expected a text"),
    ],
)
def test_parts_of_a_machine_are_what_they_should_be(change, words):
    with pytest.raises(TypeError, match=words):
        replace(bb.machine("h200"), **change)
