"""The harness of random programs: what it draws, what it calls wrong, what it forces."""

import contextlib
import io
import re
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import blockbuster as bb  # noqa: E402
import blockbuster.runtime.compiled as compiled  # noqa: E402
from bench.gpu.fuzz import trial, without  # noqa: E402
from bench.gpu.fuzz.draw import FAMILIES, Draw, Forced, draw  # noqa: E402
from bench.gpu.fuzz.force import forced_by  # noqa: E402
from bench.gpu.fuzz.pen import Given  # noqa: E402
from bench.gpu.fuzz.trial import tried  # noqa: E402
from blockbuster.selection.choice import Fused  # noqa: E402

CHAIN = Draw(
    seed=1,
    family="dots",
    body="(x @ a) @ w",
    inputs={"x": Given((64, 64)), "a": Given((64, 33), 0.125), "w": Given((33, 8), 0.17)},
    dtype="float16",
    forced=None,
)


# what is drawn -------------------------------------------------------------------


def test_a_seed_is_a_program():
    assert [draw(seed) for seed in range(50)] == [draw(seed) for seed in range(50)]
    assert len({draw(seed).source for seed in range(50)}) > 45


def test_all_that_is_asked_for_is_drawn():
    draws = [draw(seed) for seed in range(600)]
    forced = [d.forced for d in draws if d.forced]

    assert {d.family for d in draws} == set(FAMILIES)
    assert {d.dtype for d in draws} == {"float16", "bfloat16", "float32"}
    assert {f.warps for f in forced} == {4, 8}
    assert 200 < len(forced) < 400
    assert any(f.retiled for f in forced)
    assert {g.layout for d in draws for g in d.inputs.values()} >= {"turned", "gapped", "offset"}


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_lower(family):
    """They are within what the front end takes: few of a family may be refused."""
    draws = [d for d in map(draw, range(150)) if d.family == family]
    refused = []
    for drawn in draws:
        arrays = {n: torch.zeros(g.shape) for n, g in drawn.inputs.items()}
        try:
            bb.lower(bb.trace(drawn.function(), **arrays))
        except bb.TraceError as error:
            refused.append((drawn.source, str(error)))
    assert draws
    assert len(refused) <= len(draws) // 20, refused


@pytest.mark.parametrize(
    ("layout", "strides"),
    [("plain", (3, 1)), ("turned", (1, 2)), ("gapped", (6, 1)), ("offset", (3, 1))],
)
def test_inputs_have_their_layout(layout, strides):
    random = torch.Generator().manual_seed(0)
    made = Given((2, 3), layout=layout, shift=4.0).tensor(random, "float32")

    assert made.shape == (2, 3)
    assert made.stride() == strides
    assert (made.storage_offset() > 0) == (layout == "offset")
    assert 2 < float(made.mean()) < 6


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_printed_program_runs(seed):
    drawn = replace(draw(seed), dtype="float32")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(str(drawn).replace('"cuda"', '"cpu"'), {})

    errors = [float(n) for n in re.findall(r"tensor\(([\d.e+-]+)", said.getvalue())]
    assert errors
    assert max(errors) < 1e-4


# what is called wrong ------------------------------------------------------------


def test_the_cpu_is_right():
    """Programs that came out right when this was written."""
    records = [tried(draw(seed), "cpu") for seed in range(12)]

    assert [r for r in records if r["verdict"] != "right"] == []


@pytest.mark.interpreter
def test_kernels_for_a_gpu_are_right_in_the_interpreter():
    drawn = (draw(seed) for seed in range(60))
    small = [d for d in drawn if d.elements < 2000 and d.family != "attention"][:6]
    records = [tried(d, trial.INTERPRETER) for d in small]

    assert {r["verdict"] for r in records} == {"right"}, records
    assert all(r["judged"] for r in records)
    assert "bfloat16" not in {r["dtype"] for r in records}


def test_kernels_for_a_gpu_are_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    drawn = replace(CHAIN, body="bb.exp(x @ a) @ w", forced=Forced(0, 8, 0))
    record = tried(drawn, "sm_90")

    assert record["verdict"] == "right"
    assert record["kernels"] >= 1


def spoiled(monkeypatch, change):
    """From now on plans give results that were changed."""
    made, calls = compiled.OnHost, []

    def wrong(*args):
        run = made(*args)

        def changed(arrays):
            calls.append(1)
            return [change(y.copy(), len(calls)) for y in run(arrays)]

        return changed

    monkeypatch.setattr(compiled, "OnHost", wrong)


def one_element(y, _):
    y[3, 5] += 0.05
    return y


def one_nan(y, _):
    y[3, 5] = float("nan")
    return y


def the_second_run(y, call):
    y[0, 0] += 0.001 * (call > 1)
    return y


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda y, _: y, "right"),
        (one_element, "WRONG"),
        (one_nan, "WRONG"),
        (the_second_run, "differs between runs"),
        (lambda y, _: y[:, :-1], "other dtype or shape"),
    ],
)
def test_a_wrong_result_is_seen(monkeypatch, change, verdict):
    spoiled(monkeypatch, change)

    assert tried(CHAIN, "cpu")["verdict"] == verdict


def test_another_dtype_is_seen():
    ones = [torch.ones(3, 4)]
    half = [torch.ones(3, 4, dtype=torch.float16)]

    found = trial._judged(half, half, ones, ones)
    assert found == {
        "verdict": "other dtype or shape",
        "reason": "torch.float16 (3, 4), not torch.float32 (3, 4)",
    }


def test_small_errors_are_not_wrong(monkeypatch):
    spoiled(monkeypatch, lambda y, _: y * (1 + 2**-10))

    record = tried(CHAIN, "cpu")
    assert record["verdict"] == "right"
    assert record["error"] > 2**-12


def test_an_input_that_changes_is_seen(monkeypatch):
    prepared = compiled.Compiled.prepared

    def careless(self, key, arrays):
        found = prepared(self, key, arrays)
        arrays[0][0, 0] += 1
        return found

    monkeypatch.setattr(compiled.Compiled, "prepared", careless)

    assert tried(CHAIN, "cpu")["verdict"] == "input changed"


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (bb.EmitError("no such kernel"), "refused"),
        (bb.FusionError("two kernels"), "refused"),
        (bb.LaunchError("M is 96"), "raised"),
        (bb.VerifyError("a dim"), "raised"),
        (AttributeError("'bool' object has no attribute 'astype'"), "raised"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "device error"),
        (RuntimeError("Triton Error [CUDA]: misaligned address"), "device error"),
    ],
)
def test_what_is_raised_is_no_right_answer(monkeypatch, error, verdict):
    def fails(*_):
        raise error

    monkeypatch.setattr(compiled, "OnHost", fails)
    record = tried(CHAIN, "cpu")

    assert record["verdict"] == verdict
    assert str(error) in record["reason"]
    assert record["source"] == CHAIN.source
    assert (verdict in trial.BAD) == (verdict != "refused")


def test_a_program_that_torch_cannot_run_is_no_verdict():
    assert tried(replace(CHAIN, body="x @ w"), "cpu")["verdict"] == "no oracle"


# what is forced ------------------------------------------------------------------


def plan_with(forced):
    """The plan of ``softmax(x @ a) @ w`` for a GPU."""
    drawn = replace(CHAIN, body="bb.softmax(x @ a, axis=-1) @ w")
    with forced_by(forced):
        return bb.jit(drawn.function(), machine="sm_90").plan_for(*drawn.tensors("cpu"))


def test_snapshots_are_forced():
    counts = {plan_with(Forced(n, 4, 0)).files[0].considered.best.snapshot for n in range(4)}

    assert len(counts) > 1


def test_warps_are_forced():
    for warps in (4, 8):
        source = plan_with(Forced(0, warps, 0)).source
        assert set(re.findall(r"num_warps=(\d+)", source)) == {str(warps)}


def test_forced_warps_that_are_refused_give_way():
    fused = Fused(bb.lower(bb.trace(lambda x, a, w: (x @ a) @ w, x="M K", a="K N", w="N L")))
    sizes = {"M": 64, "K": 64, "N": 33, "L": 8}
    with forced_by(Forced(1, 4, 0)):
        forced = fused.consider(sizes, "float16", "sm_90").best
        fused.refuse(forced, "the assembler loses a register")
        found = fused.consider(sizes, "float16", "sm_90")

    again = [c for c in (found.best, *found.others) if c.snapshot == forced.snapshot]
    assert {nest.warps for nest in forced.scheduled.draft.nests} == {4}
    assert {
        n.warps for c in again if c.blocks == forced.blocks for n in c.scheduled.draft.nests
    } == {8}


def test_tiles_are_forced():
    usual = plan_with(Forced(0, 4, 0)).source

    assert any(plan_with(Forced(0, 4, seed)).source != usual for seed in range(1, 6))


def test_nothing_stays_forced():
    before = plan_with(None).source
    plan_with(Forced(0, 8, 7))

    assert plan_with(None).source == before


def test_a_refused_snapshot_is_not_called_right(monkeypatch):
    """Another takes its place and is judged; the record says that the forced one was refused."""
    from blockbuster.runtime.first_launch import Refused

    made, seen = compiled.OnHost, []

    def refuses(plan, sizes):
        def run(arrays):
            seen.append(plan)
            if len(seen) == 1:
                raise Refused(plan.files[:1], "the assembler loses a register")
            return made(plan, sizes)(arrays)

        return run

    monkeypatch.setattr(compiled, "OnHost", refuses)
    record = tried(replace(CHAIN, forced=Forced(0, 4, 0)), "cpu")

    assert seen[0] is not seen[1]
    assert record["verdict"] == "refused"
    assert record["reason"] == "the assembler loses a register"
    assert record["excess"] < 1


def faults(text):
    return ("a fault",) if text else ()


def test_a_protection_is_taken_out(monkeypatch):
    """Its function finds nothing any more, in every module that holds it."""
    monkeypatch.setattr(trial, "held", faults, raising=False)
    monkeypatch.setitem(globals(), "faults", faults)  # put back afterwards

    assert without.take_out([f"{__name__}:faults"]) is None
    assert trial.held("x") == faults("x") == ()
    assert without.take_out(["first-check"]) is False


@pytest.mark.parametrize("name", without.names())
def test_protections_are_there(name):
    """What the command offers exists; a predicate gives a tuple, () where nothing is wrong."""
    found = without.protection(name)

    assert found == "first-check" or found("") == ()


@pytest.mark.parametrize("name", ["nothing", "blockbuster.emit:nothing", "nowhere:at_all"])
def test_an_unknown_protection_is_an_error(name):
    with pytest.raises(ValueError, match=f"no protection '{name}'.*first-check"):
        without.take_out([name])
