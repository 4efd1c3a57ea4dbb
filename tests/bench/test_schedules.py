"""The schedules of bench/schedules: replayed, run at a few blocks, compiled; and their hand forms.

Hand forms run in Triton's interpreter at sizes that no block divides, so that every mask counts.
"""

import numpy as np
import pytest

import blockbuster as bb
from bench.schedules.programs import BY_NAME, CASES
from blockbuster.errors import LaunchError
from blockbuster.runtime.launch import run_batch
from tests.interpreted import printed_by
from tests.parameters import one_in, rest_slow

CLOSE = 6e-4  # of the result, as a root mean square: half precision gives 2e-4 to 4e-4
NAMES = [case.name for case in CASES]
COMPILED = ["attention", "few-rows-matmul"]


def emitted(case, sizes):
    return bb.emit(case.graph(), sizes, schedule=case.text)


def drawn(case, sizes):
    rng = np.random.default_rng(len(case.name))
    made = {}
    for name, shape in case.shapes(sizes).items():
        scale = shape[-2] ** -0.5 if name in case.weights else 1.0
        made[name] = (scale * rng.standard_normal(shape)).astype(np.float16)
    return made


@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_a_schedule_is_what_its_kernel_shows(name):
    case = BY_NAME[name]
    kernel = emitted(case, case.sizes)

    again = bb.emit(case.graph(), case.sizes, schedule=kernel.schedule)

    assert again.source == kernel.source
    default = bb.emit(case.graph(), case.sizes).schedule.replace("overlap nest 1\n", "")
    assert kernel.schedule != default, "else nobody has to ask for it"


@pytest.mark.interpreter
@pytest.mark.parametrize("cases", rest_slow([CASES[::3], CASES[1::3], CASES[2::3]], [CASES[::3]]))
def test_schedules_keep_values(cases):
    jobs = [(emitted(case, case.few), drawn(case, case.few)) for case in cases]
    wrong = {}
    for case, (_, arrays), results in zip(cases, jobs, run_batch(jobs), strict=True):
        assert not isinstance(results, LaunchError), f"{case.name}: {results}"
        right = case.fn(**{name: x.astype(np.float64) for name, x in arrays.items()})
        (found,) = results.values()
        error = np.linalg.norm(found.astype(np.float64) - right) / np.linalg.norm(right)
        if not error < CLOSE:
            wrong[case.name] = error

    assert wrong == {}


@pytest.mark.interpreter
def test_hand_forms_are_right_at_sizes_that_no_block_divides():
    errors = printed_by("tests.bench.hand_forms")

    by_hand = {case.name for case in CASES if case.forms()}
    assert len(by_hand) >= len(CASES) / 2
    assert {name.partition(": ")[0] for name in errors} == by_hand
    assert {name: error for name, error in errors.items() if not error < CLOSE} == {}


# alternatives may; where an operand goes through registers, 256 columns do, and are faster
SPILLS = ("layer-norm-matmul",)


@pytest.mark.parametrize("name", COMPILED)
def test_schedules_and_hand_forms_compile(name, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    from bench.schedules.run import compiled

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernels = compiled(BY_NAME[name])["kernels"]

    assert len(kernels) == 1 + len(BY_NAME[name].forms()) + len(BY_NAME[name].alternatives())
    for form, reports in kernels.items():
        spilled = any(report["spills"] for report in reports)
        assert not spilled or form.startswith("ours ") or name in SPILLS, form


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in COMPILED][::4])
def test_others_compile(name, tmp_path, monkeypatch):
    test_schedules_and_hand_forms_compile(name, tmp_path, monkeypatch)
