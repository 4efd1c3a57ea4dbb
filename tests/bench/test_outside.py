"""The programs of bench/outside: the same each time, right in eager torch and by ``bb.jit``."""

import argparse
from collections import Counter

import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")

from dataclasses import replace  # noqa: E402

from bench.outside import predict  # noqa: E402
from bench.outside.linear import SEEDS, drawn  # noqa: E402
from bench.outside.making import SMALL, OfModule, below, case, shrunk  # noqa: E402
from bench.peers.case import error_of  # noqa: E402
from bench.peers.cases import BY_KEY, CASES, OUTSIDE  # noqa: E402
from bench.peers.pool import LOST, Setting, taking_part  # noqa: E402
from bench.peers.run import chosen  # noqa: E402
from bench.peers.trial import checked, prepared  # noqa: E402
from tests.parameters import one_in  # noqa: E402

FAMILIES = tuple(dict.fromkeys(case.family for case in OUTSIDE))
TRIED = (
    "no-bias-max-pool-2-sum-scale-1024x8192x8192", "matmul-avg-pool-4-tanh-128x1024x512",
    "linear-group-norm-16-hardtanh-1024x8192x8192", "sum-two-16x33x64x129",
    "cross-entropy-of-pixels-16x21x127x129", "argmin-last-16x512x1023",
    "normed-queries-2x1024x2048x2048x64", "squeeze-excite-32x256x56x56x16",
    "gru-cell-16x256x512x1536", "vlad-64x100x512x32", "top-two-gate-4096x1024x16",
    "rotated-pairs-4x8x512x64x32", "normed-layer-1024x2048", "basic-block-32x64x56x56",
    "sound-up-16x128x2048-float32",
)  # fmt: skip


def test_there_are_many_programs_of_many_kinds():
    assert len(OUTSIDE) >= 150
    assert len(FAMILIES) >= 15
    assert min(Counter(one.family for one in OUTSIDE).values()) >= 3
    assert sum(one.dtype == "float32" for one in OUTSIDE) >= 20
    assert len({one.key for one in OUTSIDE}) == len(OUTSIDE)
    assert {one.suite for one in OUTSIDE} == {"outside"}
    assert not {one.key for one in OUTSIDE} & {one.key for one in CASES}


def test_a_seed_draws_the_same_programs_each_time():
    for seed in (*SEEDS, "any word"):
        first, second = drawn(seed), drawn(seed)
        assert [(one.key, one.inputs, one.sizes, one.dtype) for one in first] == [
            (one.key, one.inputs, one.sizes, one.dtype) for one in second
        ]
    (apple, *_), (birch, *_) = drawn("apple"), drawn("birch")
    assert apple.key == (
        "outside/apple0-linear-silu-subtract-multiply-max-pool-2-4096x64x256-float32"
    )
    assert birch.key == "outside/birch0-matmul-rms-norm-16x4096x4096"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_program_runs_in_eager_float64_at_a_small_size(family):
    for one in OUTSIDE:
        if one.family == family:
            inputs = one.drawn(one.few, "cpu", seed=1)
            assert sum(x.numel() for x in inputs.values()) < 2e5, one.key
            for y in one.reference(inputs):
                assert torch.isfinite(y).all(), one.key
                assert y.dtype in (torch.float64, torch.int64), one.key
                assert y.count_nonzero(), one.key


@pytest.mark.parametrize("name", one_in(3, TRIED))
def test_programs_are_right_by_jit_on_the_cpu(name):
    one = replace(BY_KEY[f"outside/{name}"], dtype="float32")
    with torch.no_grad():
        made = prepared(
            one, taking_part(one, Setting(ours_only=True)), one.drawn(one.few, "cpu", 1)
        )
        errors = checked(made)
    assert made.failed == {}
    assert errors["ours"] <= one.largest


def test_a_module_runs_without_calls_of_the_library():
    one = replace(BY_KEY["outside/grouped-layer-1024x2048"], dtype="float32")
    with torch.no_grad():
        alone = taking_part(one, Setting(ours_only=True, library=False))
        assert [each.alone for each in alone] != [None]
        made = prepared(one, alone, one.drawn(one.few, "cpu", 1))
        errors = checked(made)
    assert made.failed == {}
    assert errors["ours"] <= one.largest


def test_inputs_are_drawn_by_the_names_of_parameters():
    def program(x, w, var, sign, share, labels):
        return x

    dims = "M K, N K, N, M, M N, M"
    one = case("f", program, dims, dict(M=64, K=400, N=50), own=dict(labels="int64"),
               special=dict(labels=below(3)))  # fmt: skip
    made = one.drawn(one.sizes, "cpu", seed=1)
    assert one.key == "outside/program-64x400x50"
    assert one.few == dict(M=32, K=25, N=25)
    assert float(made["w"].float().std()) == pytest.approx(400**-0.5, rel=0.05)
    assert 0.5 <= float(made["var"].min()) <= float(made["var"].max()) <= 1.5
    assert made["sign"].abs().unique().tolist() == [1.0]
    assert made["labels"].unique().tolist() == [0, 1, 2]
    assert made["share"].float().sum(-1).allclose(torch.ones(64), atol=1e-2)
    assert all(shrunk(n) < SMALL for n in (1, 39, 40, 8192))


def test_a_module_is_made_of_the_same_weights_for_each_dtype_and_size():
    one = OfModule(lambda x: torch.nn.Linear(x.shape[-1], 3))
    x = torch.randn(5, 7)
    state = torch.random.get_rng_state()
    wide, half = one.made_for(x.double()), one.made_for(x.half())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert (wide.weight.dtype, half.weight.dtype) == (torch.float64, torch.float16)
    assert torch.equal(wide.weight, half.weight.double())
    assert not wide.weight.requires_grad
    assert one(x.double()).shape == (5, 3)
    assert case("f", one, "M K", dict(M=5, K=7), name="layer").key == "outside/layer-5x7"


def test_positions_are_compared_one_by_one():
    right = torch.tensor([3, 1, 4, 1])
    assert error_of((right.int(),), (right,)) == 0.0
    assert error_of((torch.tensor([3, 1, 4, 2]),), (right,)) == 0.25


# the choice of cases ----------------------------------------------------------------


def keys(only="outside", families="", every=1):
    options = argparse.Namespace(only=only, families=families, every=every, quick=False)
    return [one.key for one in chosen(options)]


def test_a_run_takes_programs_from_outside_only_if_it_is_asked():
    assert keys("") == [one.key for one in CASES]
    assert keys() == [one.key for one in OUTSIDE]
    assert keys(every=10) == keys()[::10]
    found = keys(families="mixers,vision", every=2)
    assert {BY_KEY[key].family for key in found} == {"mixers", "vision"}
    with pytest.raises(ValueError, match="no family here is named mixer; families: product"):
        keys(families="mixer")
    with pytest.raises(ValueError, match="--every is 0; 1 takes all cases"):
        keys(every=0)


# predictions ------------------------------------------------------------------------


def small(fn, dims, dtype="float16", **sizes):
    return case("made up", fn, dims, sizes, dtype=dtype)


def test_a_prediction_tells_kernels_price_and_floor():
    sizes = dict(M=4096, K=4096, N=4096)
    found = predict.predicted(small(lambda x, u: bb.relu(x @ u), "M K, K N", **sizes), "h100")
    assert (found["state"], found["kernels"], found["library"]) == ("accepted", 1, 0)
    called = predict.predicted(small(lambda x, u: x @ u, "M K, K N", **sizes), "h100")
    assert (called["state"], called["kernels"], called["library"]) == ("accepted", 0, 1)
    assert called["limited_by"] == "library"
    assert found["floor_us"] == pytest.approx(1e6 * (2 * 4096**3 / 7.087e14 + 9.19e-7), abs=0.01)
    assert 1.0 <= found["ratio"] < 2.0
    assert found["predicted_us"] == pytest.approx(found["ratio"] * found["floor_us"], rel=0.01)


def test_the_floor_of_a_program_without_products_is_its_bytes():
    one = small(lambda x: x.exp(), "M N", M=1000, N=3023)
    x = torch.empty((1000, 3023), dtype=torch.float16)
    assert predict.floor(one, [x], "h100") == pytest.approx(4.0 + 0.919)


def test_a_refusal_is_told():
    refused = predict.predicted(small(lambda x: torch.linalg.inv(x), "M M", "float32", M=8), "h100")
    assert refused["state"] == "refused"
    assert "linalg.inv" in refused["reason"]
    assert "kernels" not in refused


def test_an_error_that_is_not_ours_is_told_and_ends_nothing(monkeypatch):
    def jit(*_, **__):
        raise KeyError("tile")

    monkeypatch.setattr(predict.bb, "jit", jit)
    found = predict.predicted(small(lambda x: x + 1, "M", M=8), "h100")
    assert (found["state"], found["reason"]) == ("broken", "KeyError: 'tile'")


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--machine", "cpu"], "cpu is no GPU"), (["--families", "none"], "no family here is named")],
)
def test_a_wrong_option_is_told(words, said, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["predict", *words])
    with pytest.raises(SystemExit):
        predict.main()
    assert said in capsys.readouterr().err


class Slow:
    """A process that never answers for ``slow``."""

    begun = 0

    def __init__(self, setting, work):
        assert setting.patience == 2.0
        Slow.begun += 1
        self.pipe = None

    def ask(self, job):
        self.key = job[1]

    def heard(self, *, is_speaking):
        if "gelu" in self.key:
            return {"key": self.key, "state": LOST, "at": "", "reason": "it took more than 2 s"}
        return {"key": self.key, "state": "accepted"}

    def end(self):
        return ""


def test_a_case_that_takes_too_long_is_given_up_and_the_next_has_another_process(monkeypatch):
    monkeypatch.setattr(predict, "Worker", Slow)
    monkeypatch.setattr(predict, "wait", lambda pipes, timeout: [])
    asked = keys(families="product + pointwise")[:3]
    found = list(predict.records(asked, 2.0, "h100"))
    assert [record["state"] for record in found] == ["accepted", "lost", "accepted"]
    assert found[1]["family"] == "product + pointwise"
    assert Slow.begun == 2


def test_tables_count_what_is_accepted_and_show_what_is_far_from_its_floor():
    near = dict(
        family="a", dtype="float16", state="accepted", kernels=1, seconds=0.5, limited_by="hbm"
    )
    found = [
        {**near, "key": "one", "predicted_us": 4.0, "floor_us": 2.0, "ratio": 2.0},
        {**near, "key": "two", "predicted_us": 8.0, "floor_us": 1.0, "ratio": 8.0},
        dict(key="three", family="b", dtype="float16", state="refused", reason="no\nway"),
    ]
    text = predict.table(found)
    assert "| a | 2 | 2 | 4.00 | 8.0 | 0.5 | 0.5 |" in text
    assert "| all | 3 | 2 | 4.00 | 8.0 | 0.5 | 0.5 |" in text
    assert text.index("| two | 1 | 8.0 | 1.0 | 8.0 | hbm | 0.5 |") < text.index("| one | 1 |")
    assert "| three | refused | no way |" in text
