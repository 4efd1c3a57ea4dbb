"""Tuning on a GPU: real processes check and time real kernels."""

import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import blockbuster as bb
from blockbuster.frontend.arguments import shape_from_names
from blockbuster.tuning import bench
from blockbuster.tuning.setting import saved_with
from blockbuster.tuning.store import Store
from tests.tuning.benches import family_of, product

pytestmark = pytest.mark.gpu

SIZES = dict(M=512, K=512, N=512)


@pytest.fixture
def torch(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return torch


def saved(path: Path, change=lambda text: text):
    """A matrix product's plan in a file; its emitted text may be changed."""
    program = product()
    plan = family_of(program).at(SIZES)
    (file,) = plan.files
    plan = replace(plan, steps=(replace(file, text=change(file.text)),))
    return saved_with(shape_from_names(["out"]), program)(plan, path)


def test_a_wrong_kernel_is_found_and_a_right_one_is_timed(torch, tmp_path):
    right = saved(tmp_path / "right.json")
    wrong = saved(tmp_path / "wrong.json", lambda text: text.replace("tl.dot(", "2 * tl.dot("))
    until = time.monotonic() + 120

    said = [bench.checked(path, until, device=0) for path in (right, wrong)]
    (times,) = bench.timed([right], until, device=0)

    assert said[0] == ""
    assert said[1]
    assert all(1 < us < 1000 for us in times)


def test_a_kernel_is_measured_once_and_right(torch):
    x, w = (torch.randn(512, 512, device="cuda", dtype=torch.float16) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = bb.jit(tune="measure")(lambda x, w: x @ w)(x, w)
    torch.testing.assert_close(result, x @ w, rtol=2e-3, atol=0.1)

    (entry,) = Store().entries()
    assert entry.ranked
    assert entry.usual is not None
    began = time.monotonic()
    again = bb.jit(tune="measure")(lambda a, b: a @ b)
    assert "measured on" in again.plan_for(x, w).files[0].considered.reason
    assert time.monotonic() - began < 5
