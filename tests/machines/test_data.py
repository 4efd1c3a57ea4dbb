"""The data of machines: every number has a source, and files say what is wrong with them."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.machines import NAMES, Launch, Tier, built_in
from blockbuster.machines.data_file import machine_text, numbers_of, read_machine
from blockbuster.machines.library import MEASURED

ROOT = Path(__file__).parents[2]
DATA = ROOT / "blockbuster" / "machines" / "data"
A100 = (DATA / "a100.toml").read_text(encoding="utf-8")


def source_of(path, sources):
    """The source of the number at a path, or of the smallest table around it that has one."""
    while path not in sources:
        path, dot, _ = path.rpartition(".")
        assert dot, "there is none"
    return path


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source_and_every_source_a_number(name):
    machine = built_in(name)

    used = {source_of(path, machine.sources) for path in numbers_of(machine)}

    assert used == set(machine.sources)
    assert all(len(text) > 10 for text in machine.sources.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_its_machine_name_and_no_more_numbers_than_are_read(name):
    table = tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))

    def count(value):
        return sum(map(count, value.values())) if isinstance(value, dict) else 1

    del table["sources"]
    texts = ("name", "kind", "target", "devices")
    assert table["name"] == name
    assert count(table) - len(texts) == len(numbers_of(built_in(name)))


def test_there_are_no_other_files():
    names = sorted(path.name for path in DATA.iterdir() if path.is_file())
    assert names == sorted(f"{n}.toml" for n in NAMES)
    tables = {path.name for path in (DATA / "library").iterdir()}
    assert tables == {f"{target}.toml" for target in MEASURED}


def test_the_files_are_in_the_wheel():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    files = project["tool"]["setuptools"]["package-data"]["blockbuster.machines"]
    assert files == ["data/*.toml", "data/library/*.toml"]


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_one_device(name):
    """What follows from the meaning of the fields, for any device."""
    machine = built_in(name)
    limits, tiers = machine.limits, machine.tiers

    assert [t.bandwidth for t in tiers] == sorted(t.bandwidth for t in tiers)
    assert [t.latency for t in tiers] == sorted((t.latency for t in tiers), reverse=True)
    assert limits.shared_per_program + limits.reserved <= limits.shared_per_processor
    assert limits.threads_per_processor % limits.warp == 0
    assert machine.launch.dependent <= machine.launch.graph <= machine.launch.plain
    if machine.kind == "gpu":
        assert [t.name for t in tiers] == ["hbm", "l2", "shared", "registers"]
        assert machine.tier("shared").bytes == limits.shared_per_processor
        assert machine.tier("registers").bytes == 4 * limits.registers_per_processor
    else:
        assert [t.name for t in tiers] == ["dram", "l3", "l2", "l1"]


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_reads_back_from_its_text(name):
    machine = built_in(name)
    again = read_machine(machine_text(machine), "again.toml")

    assert again == machine
    assert again.sources == machine.sources
    assert numbers_of(again) == numbers_of(machine)


positive = st.floats(min_value=1e-12, max_value=1e18)


@given(
    st.text(),
    st.lists(st.builds(Tier, st.just("hbm"), st.integers(1, 2**50), positive, positive)),
    st.builds(Launch, positive, positive, positive),
    st.dictionaries(st.sampled_from(["float16", "float32"]), positive),
)
def test_any_machine_reads_back(name, tiers, launch, rates):
    h200 = built_in("h200")
    machine = replace(
        h200,
        name=name,
        devices=(name, "x"),
        tiers=(*tiers[:1], *h200.tiers[1:]) if tiers else h200.tiers,
        launch=launch,
        compute={"matrix": rates} if rates else h200.compute,
        sources={"clock": name or "none"},
    )

    again = read_machine(machine_text(machine), "again.toml")

    assert (again, again.sources) == (machine, machine.sources)


BROKEN = [
    ("clock = 1.41e9\n", "", r"my\.toml: clock is missing\n  hint: the built-in files"),
    ("warp = 32\n", "", r"my\.toml: limits\.warp is missing"),
    ("[tiers.hbm]\n", "[tiers.hbm]\nsize = 1\n", r"tiers\.hbm\.size is unknown; known here: bytes"),
    ("clock = 1.41e9", "clock = 0", r"clock is greater than 0, not 0"),
    ("clock = 1.41e9", "clock = nan", r"clock is greater than 0, not nan"),
    ("clock = 1.41e9", "clock = inf", r"clock is between 1e-30 and 1e[+]30, not inf"),
    ("clock = 1.41e9", "clock = -inf", r"clock is greater than 0, not -inf"),
    ("processors = 108", f"processors = 1{'0' * 400}", r"processors is between .*, not more"),
    ("processors = 108", f"processors = 1{'0' * 5000}", r"my\.toml is not TOML: "),
    ("clock = 1.41e9", 'clock = "fast"', r"clock is a number, not 'fast'"),
    ("clock = 1.41e9", "clock = true", r"clock is a number, not True"),
    ("processors = 108", "processors = 1.5", r"processors is a whole number, not 1\.5"),
    ("dependent = 7e-7", "dependent = -1e-6", r"launch\.dependent is 0 or more, not -1e-06"),
    ('kind = "gpu"', 'kind = "tpu"', 'kind is "gpu" or "cpu", not \'tpu\''),
    ('name = "a100"', "name = 200", "name is a text in quotes, not 200"),
    (
        'devices = ["NVIDIA A100-SXM4-80GB"]',
        "devices = 3",
        "devices is a list of names in quotes, not 3",
    ),
    ("[tiers.hbm]", "[tiers.ram]", 'the first tier is global memory: "hbm" or "dram"'),
    (
        "[tiers.l2]",
        "[tiers.l3]",
        "first tiers of a gpu are hbm, l2, shared, .* not hbm, l3, shared",
    ),
    ("[tiers.hbm]", "[tiers.dram]", "in this order, not dram, l2, shared"),
    ("[launch]", "[launch]\nsoon = {a = 1}", r"launch\.soon is unknown"),
    ('clock = "NVIDIA', 'speed = "of light"\nclock = "NVIDIA', "a source of speed, but no such"),
    ("[sources]", "[sources", "my.toml is not TOML: "),
]


@pytest.mark.parametrize(("part", "instead", "said"), BROKEN)
def test_a_broken_file_says_what_is_wrong(part, instead, said):
    assert A100.count(part) == 1, f"{part!r} stands once in the file"

    with pytest.raises(ValueError, match=said):
        read_machine(A100.replace(part, instead), "my.toml")


def test_a_file_of_ones_own_needs_no_sources():
    text = A100.partition("[sources]")[0]

    assert read_machine(text, "my.toml") == built_in("a100")
