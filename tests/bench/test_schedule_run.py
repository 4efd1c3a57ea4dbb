"""How schedules are measured: what counts as right, and what the table and comparison say."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench.compare_targets import differences  # noqa: E402
from bench.schedules.measure import CPU, checked, contestants, drawn, judged  # noqa: E402
from bench.schedules.programs import BY_NAME  # noqa: E402
from bench.schedules.run import table  # noqa: E402

CASE = BY_NAME["chain-one-kernel"]


def exact(inputs):
    """A call that computes the reference in float32."""
    (result,) = CASE.oracle()(**{name: x.float() for name, x in inputs.items()})
    y = torch.empty_like(result, dtype=torch.float16)

    def run():
        y.copy_(result)
        return (y,)

    return run


def changed(change):
    def make(inputs):
        run, calls = exact(inputs), []

        def changing():
            calls.append(0)
            (y,) = run()
            change(y, len(calls))
            return (y,)

        return changing

    return make


def test_what_is_right_passes():
    assert 0 < checked(CASE, CPU, exact) < 1e-3


def test_an_element_that_is_not_written_fails():
    def make(inputs):
        (y,), calls = exact(inputs)(), []

        def run():
            calls.append(0)
            if len(calls) == 1:
                return (y,)
            y[1:] = exact(inputs)()[0][1:]
            return (y,)

        return run

    with pytest.raises(ValueError, match="the error is nan"):
        checked(CASE, CPU, make)


def test_a_wrong_block_fails():
    def change(y, _):
        y[:16, :16] += 1

    with pytest.raises(ValueError, match="of the result, above"):
        checked(CASE, CPU, changed(change))


def test_a_moving_result_fails():
    def change(y, call):
        y[0, 0] += 0.001 * call

    with pytest.raises(ValueError, match="two runs on the same inputs differ"):
        checked(CASE, CPU, changed(change))


def test_inputs_differ_by_draw_only():
    first, again, other = (drawn(CASE, CPU, seed)["x"] for seed in (1, 1, 2))

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_contestants_on_the_cpu_are_those_that_an_interpreter_has():
    names = [name for name, _ in contestants(CASE, CPU, default=True)]

    assert names == ["ours", "default", "hand one kernel", "hand two kernels"]


def test_one_that_fails_does_not_hide_the_others(monkeypatch):
    def contestants(case, place, *, default):
        yield "ours", lambda inputs: 1 / 0
        yield "hand form", exact

    monkeypatch.setattr("bench.schedules.measure.contestants", contestants)
    record = judged(CASE, CPU, default=False)

    assert record["failed"] == {"ours": "ZeroDivisionError: division by zero"}
    assert [*record["errors"]] == ["hand form"]


def test_the_table_compares_with_the_best_hand_form():
    times = {"ours": 30.0, "hand a": 25.0, "hand b": 20.0, "library": 10.0, "ours wide": 28.0}
    first = {"program": "p", "times": times, "errors": {"ours": 2e-4}}
    records = [first, {"program": "q", "error": "code 1"}]

    lines = table(records).splitlines()

    assert lines[1].split() == ["p", "30.0", "20.0", "1.50", "10.0", "-", "2.0e-04|-", "b"]
    assert lines[2] == "  ours wide: 28.0"
    assert lines[-1] == "  FAILED: code 1"


BEFORE = {("p", "sm_90"): {"functions": [["k", 100, 64, 0]]}}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"functions": [["k", 100, 64, 0]]}, []),
        ({"functions": [["renamed", 100, 64, 0]]}, []),
        ({"functions": [["k", 90, 64, 0]]}, ["better p sm_90: k: shared 100 -> 90"]),
        (
            {"functions": [["k", 90, 65, 8]]},
            ["WORSE  p sm_90: k: shared 100 -> 90, registers 64 -> 65, spills 0 -> 8"],
        ),
        (
            {"functions": [["k", 100, 64, 0]] * 2},
            ["WORSE  p sm_90: 1 kernels before, 2 now: k 100 64 0 -> k 100 64 0; k 100 64 0"],
        ),
        ({"error": "no room"}, ["WORSE  p sm_90: no longer compiles: no room"]),
    ],
)
def test_what_takes_more_is_worse(after, said):
    assert [str(d) for d in differences(BEFORE, {("p", "sm_90"): after})] == said


def test_programs_of_one_version_only_are_not_compared():
    assert list(differences(BEFORE, {("q", "sm_90"): {"error": "new"}})) == []
