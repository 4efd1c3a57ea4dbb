"""Plans whose schedules make dims of their own come back from a file."""

import numpy as np

import blockbuster as bb


def patches(x, w):
    """Pieces of images, each through one linear layer: rows along three axes, some joined."""
    cut = x.reshape(x.shape[0], 3, 4, 16, 4, 16)
    return np.transpose(cut, (0, 2, 4, 1, 3, 5)).reshape(x.shape[0], 16, 768) @ w


def test_a_plan_whose_schedule_joins_dims_comes_back(tmp_path):
    program = bb.trace(patches, x="M C=3 H=64 W=64", w="K=768 N=64")
    compiled = bb.compile(program, dict(M=4), "float16", machine="sm_90", library=False)
    schedules = [file.considered.best.scheduled.schedule for file in compiled.plan.files]

    assert any("join nest 1" in schedule for schedule in schedules)
    assert bb.load(compiled.save(tmp_path / "plan.json")).plan == compiled.plan
