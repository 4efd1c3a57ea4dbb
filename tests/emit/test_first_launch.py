"""New binaries: who may run, what is remembered of them, and what a wrong result becomes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from blockbuster.emit.target.compiler import Compilation
from blockbuster.emit.target.disk import Folder
from blockbuster.emit.target.inspection import Findings
from blockbuster.errors import LaunchError
from blockbuster.runtime import first_launch, trial
from blockbuster.runtime.first_launch import (
    BEGUN,
    PASSED,
    WRONG,
    Binary,
    Faulty,
    Finding,
    FirstChecks,
    Known,
    Memory,
    Refused,
    admit,
)
from blockbuster.runtime.room import NoRoom
from blockbuster.runtime.trial import fault_in_trial

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")


@pytest.fixture
def memory(tmp_path):
    return Memory(Folder("checked", tmp_path / "checked"))


def binary(name="k", code=b"code", device="a device"):
    return Binary.of(name, SimpleNamespace(kernel=code, asm={"cubin": code}), device)


def admitted(binaries, memory, *, probed=True, trial=lambda: ""):
    return admit(binaries, memory, probed=probed, trial=trial)


def no_trial():
    raise AssertionError("nothing needs a trial")


def test_binaries_are_told_apart_by_code_and_device():
    keys = {binary().key, binary(code=b"other").key, binary(device="another").key}
    assert len(keys) == 3
    assert binary(name="other").key == binary().key


def test_what_passed_is_not_new_again(memory):
    one, two = binary(code=b"1"), binary(code=b"2")
    memory.write([one], PASSED)
    assert admitted([one, two], memory, trial=no_trial) == [two]
    assert memory.read(two) == Known(BEGUN)
    memory.write([two], PASSED)
    assert admitted([one, two], memory, trial=no_trial) == []
    assert admitted([one, two], memory, trial=no_trial, probed=False) == []


def test_what_was_wrong_never_runs(memory):
    memory.write([binary()], WRONG, "it was off by 3")
    with pytest.raises(Faulty, match="k failed its check earlier: it was off by 3"):
        admitted([binary()], memory, trial=no_trial)


def test_first_calls_are_not_captured(checks):
    with pytest.raises(LaunchError, match=r"f is captured .* before its first result was checked"):
        checks(capturing=True).expect_no_capture("f")


def test_other_first_calls_are_taken(checks):
    checks().expect_no_capture("f")


def test_an_unknown_machine_tries_first(memory):
    with pytest.raises(Faulty, match="it faults"):
        admitted([binary()], memory, probed=False, trial=lambda: "it faults")
    assert memory.read(binary()) == Known(WRONG, "it faults")
    other = binary(code=b"other")
    assert admitted([other], memory, probed=False) == [other]


def test_a_launch_that_did_not_come_back_is_tried_elsewhere_next(memory):
    assert admitted([binary()], memory, trial=no_trial) == [binary()]  # and the process ended
    with pytest.raises(Faulty, match="signal 11"):
        admitted([binary()], memory, trial=lambda: "signal 11")


@pytest.mark.parametrize("entry", [b"", b"[1]", b"\xff", b"{", b"[" * 100_000, b'"passed"'])
def test_a_damaged_entry_is_no_entry(memory, entry):
    memory._folder.write(f"{binary().key}.json", entry)
    assert memory.read(binary()) == Known()
    assert admitted([binary()], memory) == [binary()]


# judging -------------------------------------------------------------------------------


class Runs:
    """A plan whose poisoned run gives ``again``."""

    def __init__(self, again):
        self.again = again

    def __call__(self, tensors):
        return self.again

    def poisoned(self, tensors):
        return self.again


FILE = SimpleNamespace(text="# a kernel\n", writes=("out",))
RESULT = torch.arange(4.0)


@pytest.fixture
def checks(memory, monkeypatch):
    """Checks of a device that is not there; what they compare is given by a test."""

    def compiled(code):
        return SimpleNamespace(kernel=code, asm={"ptx": "ptx"})

    def make(finding=None, *, fault="", binaries=(b"code",), found=Findings(), capturing=False):  # noqa: B008
        inspection = SimpleNamespace(finished=lambda: found)

        def compare(run, tensors, results):
            assert finding is not None, "runs differ: nothing is left to compare"
            if isinstance(finding, Exception):
                raise finding
            return finding

        gpu = SimpleNamespace(
            name="a device", versions="versions", is_probed=lambda assemblers: True,
            is_capturing=lambda: capturing,
            fault=lambda: fault if isinstance(fault, str) else next(fault),
        )  # fmt: skip
        made = FirstChecks(gpu, compare)
        monkeypatch.setattr(made, "_memory", memory)
        noted = [Compilation("k", compiled(c), "a", (), inspection) for c in binaries]
        made.admit(FILE, noted, [], {})
        return made

    return make


def test_a_right_result_is_remembered(checks, memory):
    made = checks(Finding())
    made.judge(Runs([RESULT]), [], [RESULT])
    assert memory.read(binary()) == Known(PASSED)
    assert not made.note


def test_a_binary_that_another_file_began_with_needs_no_trial(checks, memory, monkeypatch):
    made, other = checks(Finding()), SimpleNamespace(text="# another\n", writes=("more",))
    assert memory.read(binary()) == Known(BEGUN)
    again = made._compilations[:]
    monkeypatch.setattr(first_launch, "fault_in_trial", lambda *_: no_trial())
    made.admit(other, again, [], {})
    made.judge(Runs([RESULT]), [], [RESULT])
    assert memory.read(binary()) == Known(PASSED)


def test_a_wrong_result_of_a_binary_of_two_files_refuses_both(checks):
    made, other = checks(Finding("out is off")), SimpleNamespace(text="# more\n", writes=("more",))
    made.admit(other, made._compilations[:], [], {})
    with pytest.raises(Refused) as refused:
        made.judge(Runs([RESULT]), [], [RESULT])
    assert refused.value.files == (FILE, other)


@pytest.mark.parametrize("cannot", [Finding(note="too large"), RuntimeError("too large")])
def test_what_is_not_compared_is_noted_and_not_remembered(checks, memory, cannot):
    made = checks(cannot)
    made.judge(Runs([RESULT]), [], [RESULT])
    assert memory.read(binary()) == Known()
    assert made.note.endswith("too large")


def test_a_large_result_is_not_made_twice(checks, memory, monkeypatch):
    monkeypatch.setattr(first_launch, "room", lambda device: 15)
    made = checks(Finding(note="of rows alone"))
    made.judge(Runs(None), [], [RESULT])
    assert made.note.startswith("the first run was not repeated: that takes 1.6e-08 GB, and a ch")
    assert made.note.endswith("; of rows alone")
    assert memory.read(binary()) == Known()

    with pytest.raises(Refused, match="out is off"):
        checks(Finding("out is off")).judge(Runs(None), [], [RESULT])


def test_a_fault_while_comparing_is_no_note(checks):
    faults = iter(["", "CUDA error: an illegal memory access"])
    made = checks(RuntimeError("CUDA error"), fault=faults)
    with pytest.raises(LaunchError, match="illegal memory access"):
        made.judge(Runs([RESULT]), [], [RESULT])


def test_a_wrong_result_is_refused_remembered_and_kept(checks, memory, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(Refused, match="no kernel for out: out is off") as refused:
        checks(Finding("out is off")).judge(Runs([RESULT]), [], [RESULT])
    assert memory.read(binary()) == Known(WRONG, "out is off")
    assert refused.value.wrong
    assert Path(refused.value.evidence).read_text() == "# out is off\n# versions\n# a kernel\n"


def test_runs_that_differ_are_refused(checks, memory):
    with pytest.raises(Refused, match="differ from run to run"):
        checks().judge(Runs([RESULT + 1]), [], [RESULT])
    assert memory.read(binary()).state == WRONG


def test_of_several_binaries_none_is_blamed(checks, memory):
    with pytest.raises(Refused):
        checks(Finding("off"), binaries=(b"1", b"2")).judge(Runs([RESULT]), [], [RESULT])
    assert {memory.read(binary(code=code)).state for code in (b"1", b"2")} == {""}


def test_several_binaries_that_were_wrong_never_run_together(checks, memory):
    one, two, other = (binary(name, name.encode()) for name in ("one", "two", "other"))
    with pytest.raises(Refused):
        checks(Finding("off"), binaries=(b"one", b"two")).judge(Runs([RESULT]), [], [RESULT])

    for pair in ([one, two], [two, one]):
        with pytest.raises(Faulty, match=r"with .* failed its check earlier: off"):
            admitted(pair, memory, trial=no_trial)
    assert admitted([one, other], memory, trial=no_trial) == [one, other]
    memory.write([one], PASSED)  # so it is two, alone, that is compared
    assert admitted([one, two], memory, trial=no_trial) == [two]


def test_a_refusal_forgets_nothing_of_other_binaries(checks, memory):
    memory.write([binary(code=b"1")], PASSED)
    memory.write([binary(code=b"2")], WRONG, "off")
    with pytest.raises(Refused, match="failed its check earlier: off"):
        checks(binaries=(b"1", b"2"))

    assert memory.read(binary(code=b"1")) == Known(PASSED)
    assert memory.read(binary(code=b"2")) == Known(WRONG, "off")


def test_several_that_fail_their_trial_never_run_together(memory):
    both = [binary(code=b"1"), binary(code=b"2")]
    with pytest.raises(Faulty, match="it faults"):
        admitted(both, memory, probed=False, trial=lambda: "it faults")
    with pytest.raises(Faulty, match="failed its check earlier: it faults"):
        admitted(both, memory, trial=no_trial)


def test_a_failed_launch_says_what_to_do(checks, memory):
    with pytest.raises(LaunchError, match="illegal memory access"):
        checks(fault="CUDA error: an illegal memory access").judge(Runs([RESULT]), [], [RESULT])
    assert memory.read(binary()) == Known(BEGUN)


def test_a_lost_register_is_refused_though_results_are_right(checks, memory):
    made = checks(Finding(), found=Findings(("ptxas lost a register",)))
    with pytest.raises(Refused, match="ptxas lost a register"):
        made.judge(Runs([RESULT]), [], [RESULT])
    assert memory.read(binary()).state == WRONG


def test_nothing_is_compared_twice(checks):
    made = checks(Finding())
    made.judge(Runs([RESULT]), [], [RESULT])
    made.judge(Runs([RESULT + 1]), [], [RESULT])  # no new binaries: nothing is run


# trials --------------------------------------------------------------------------------

SERVE = "from blockbuster.runtime import worker; worker.serve(lambda folder: {work})"


@pytest.mark.parametrize(
    ("work", "fault"),
    [
        ("None", ""),
        ("__import__('os').kill(__import__('os').getpid(), 11)", "signal 11"),
        (
            "((folder / 'faulted').write_text('an illegal access'), 1 / 0)",
            "failed: an illegal access",
        ),
    ],
)
def test_a_trial_tells_how_a_launch_failed(work, fault):
    found = fault_in_trial("pass\n", [RESULT], {}, server=SERVE.format(work=work))
    assert found.endswith(fault)
    assert bool(found) == bool(fault)


def test_a_trial_without_room_is_no_fault():
    work = "(folder / 'untried').write_text('that takes 9 GB') and None"
    with pytest.raises(NoRoom, match="that takes 9 GB"):
        fault_in_trial("", [RESULT], {}, server=SERVE.format(work=work))


@pytest.mark.parametrize(("allowed", "runs"), [(10**6, 8), (31, 0), (70, 0), (96, 8)])
def test_a_trial_holds_two_runs_at_most(monkeypatch, allowed, runs):
    made = []

    def launch(x):
        made.append(module.empty(x.shape, "float32", x))
        return made[-1].copy_(x * 2)

    module = SimpleNamespace(launch=launch, empty=lambda shape, dtype, _: torch.empty(shape))
    module.FREE = ()
    monkeypatch.setattr(trial, "room", lambda device: allowed)
    layout = {"shape": [8], "steps": [1], "dtype": "float32", "offset": 0, "device": "cpu"}
    if runs:
        assert trial._repeats(module, [layout], {})
    else:
        with pytest.raises(NoRoom, match="and a check may take"):
            trial._repeats(module, [layout], {})
    assert len(made) == runs


def test_a_trial_that_cannot_be_made_is_no_verdict():
    with pytest.raises(LaunchError, match=r"(?s)a process to try kernels in ended .*no such thing"):
        fault_in_trial("", [RESULT], {}, server=SERVE.format(work="__import__('no such thing')"))
