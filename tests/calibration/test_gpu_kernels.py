"""Kernels that measure a GPU: they compile without one, and compute what their probes count."""

import re

import pytest

from blockbuster.calibration.kernel_texts import FORMS, TEXT, UNROLLED
from blockbuster.emit.target.compiler import compile_entry, compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import TARGETS
from blockbuster.machines import built_in
from tests.interpreted import printed_by

HOPPER_ONLY = ("product", "spin_dependent")


def entry(name):
    form = FORMS[name]
    pointers = [argument for argument, type in form.types.items() if type.startswith("*")]
    options = {"num_warps": form.warps, "num_stages": form.stages}
    return {
        "function": getattr(load_module(TEXT), name),
        "constants": dict(form.constants),
        "signature": dict(form.types),
        "equal_to_1": [],
        "divisible_by_16": [*pointers, *(["SIZE"] if "SIZE" in form.types else [])],
        "options": options | ({"launch_pdl": True} if form.pdl else {}),
    }


def test_the_kernels_repeat_as_often_as_the_probes_count():
    assert set(re.findall(r"static_range\((\w+)\)", TEXT)) == {str(UNROLLED)}


ALL = [(n, t) for t in ("sm_90", "sm_80") for n in FORMS if t == "sm_90" or n not in HOPPER_ONLY]


@pytest.mark.parametrize(("name", "target"), ALL)
def test_a_kernel_compiles_and_spills_nothing(name, target):
    report = compile_entry(entry(name), TARGETS[target])

    assert report.spills == 0
    assert report.registers <= 128 or name == "product"


LOOPS = {  # instructions in the body of the loop of a kernel, for each thread
    "multiply_add": {"fma.rn.f32": 16 * 16},
    "exponentials": {"ex2.approx": 16 * 16},
    "mixed": {"fma.rn.f32": 2 * 16 * 8, "xor.b32": 16 * 8, "add.s32": 16 * 8},
    "ticks": {"%clock64": 2, "%globaltimer": 2, "fma.rn.f32": 16 * 16},
    "read": {"ld.global.cg": 4},
    "chase": {"ld.global.cg": 1},
    "spin": {"%clock64": 2},
    "spin_dependent": {
        "%clock64": 2,
        "griddepcontrol.wait": 1,
        "griddepcontrol.launch_dependents": 1,
    },
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_has_the_instructions_that_its_probe_counts(name):
    compiled, _ = compiled_entry(entry(name), TARGETS["sm_90"])

    for instruction, count in LOOPS[name].items():
        found = len(re.findall(re.escape(instruction) + r"\b", compiled.asm["ptx"]))
        more = 8 if instruction == "add.s32" else 0  # addresses and the loop's own count
        assert count <= found <= count + more, instruction


@pytest.fixture(scope="module")
def stand_in():
    return printed_by("tests.calibration.gpu_stand_in")


@pytest.mark.interpreter
def test_kernels_compute_what_they_say(stand_in):
    assert stand_in["computed"] == dict.fromkeys(stand_in["computed"], True)


@pytest.mark.interpreter
def test_every_probe_of_a_gpu_counts_what_it_does(stand_in):
    values = {row["path"]: row["value"] for row in stand_in["calibration"]["measured"]}

    assert values["clock"] == 1.5e9, "3 cycles take 2 nanoseconds"
    assert values["tiers.hbm.bandwidth"] == 2 * 4 * (1 << 15), "bytes read and written"
    assert values["tiers.l2.bandwidth"] == 4 * 2 * 257 * 4096
    assert values["compute.matrix.float16"] == 2 * 8**3
    assert values["compute.matrix.float64"] == 2 * 4**3, "products of float64 are smaller"
    assert values["compute.matrix.float8"] == 2 * 8**3
    assert values["compute.vector.float32"] == 2 * 16 * 2 * 2048
    assert values["special"] == 16 * 2 * 2048
    assert values["issue"] == 4 * 16 * 2 * 1024 / 32, "by warps"
    assert values["tiers.l2.latency"] == values["tiers.hbm.latency"] == 1 / 16
    assert values["launch.graph"] == 1 / 3
    assert values["record.launch.graph"] == values["record.launch.dependent"] == (2 - 1) / 3


@pytest.mark.interpreter
def test_a_gpu_without_data_becomes_a_machine(stand_in):
    found = stand_in["calibration"]
    numbers, h200 = found["numbers"], built_in("h200")

    assert (found["device"], found["base"]) == ("a stand-in", "h200")
    assert numbers["processors"] == 1
    assert numbers["limits.shared_per_program"] == 1 << 16
    assert numbers["tiers.shared.bandwidth"] == 128 * 1.5e9, "of one processor, at its clock"
    assert numbers["limits.programs_per_processor"] == h200.limits.programs_per_processor
