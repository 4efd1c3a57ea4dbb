"""Programs with masks, labels, lengths and documents in their own dtypes: as fast, and exact."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.runtime.run_plan import run_in_interpreter
from tests.parameters import rest_slow

NEVER = -np.inf


def smoothed_cross_entropy(z, labels):
    """Of logits and classes, with a tenth of the weight on all classes."""
    hit = labels[:, None] == bb.arange(z.shape[1])
    p = bb.log_softmax(z)
    return -(0.9 * bb.where(hit, p, 0.0).sum(-1) + 0.1 * p.mean(-1))


def scores(q, k):
    return (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5


def masked_attention(q, k, v, mask):
    return bb.softmax(bb.where(mask, scores(q, k), NEVER)) @ v


def attention_of_lengths(q, k, v, lengths):
    live = bb.arange(k.shape[-2]) < lengths[:, None, None]
    return bb.softmax(bb.where(live, scores(q, k), NEVER)) @ v


def attention_in_documents(q, k, v, a, b):
    return bb.softmax(bb.where(a[:, None] == b[None], scores(q, k), NEVER)) @ v


def alibi(q, k, v, lengths):
    i, j = bb.arange(q.shape[0])[:, None], bb.arange(k.shape[0])
    return bb.softmax(bb.where(j < lengths, scores(q, k) - 0.5 * abs(i - j), NEVER)) @ v


LISTS = {"q": "B S D", "k": "B T D", "v": "B T D"}
PLAIN = {"q": "S D", "k": "T D", "v": "T D"}
CASES = {
    "cross-entropy": (smoothed_cross_entropy, {"z": "M V"}, {"labels": "int64: M"}),
    "mask": (masked_attention, LISTS, {"mask": "bool: B S T"}),
    "lengths": (attention_of_lengths, LISTS, {"lengths": "int32: B"}),
    "documents": (attention_in_documents, PLAIN, {"a": "int64: S", "b": "int64: T"}),
    "alibi": (alibi, PLAIN, {"lengths": "int32: 1"}),
}
SIZES = {"M": 40, "V": 70, "B": 2, "S": 40, "T": 72, "D": 16}


def arrays(name, seed=0):
    """Arguments of a case: at least one element of each row is let through by the masks."""
    rng = np.random.default_rng(seed)
    _, floats, own = CASES[name]
    made = {n: rng.standard_normal([SIZES[d] for d in dims.split()]) for n, dims in floats.items()}
    for n, text in own.items():
        dtype, dims = text.split(": ")
        shape = [SIZES.get(d, 1) for d in dims.split()]
        if dtype == "bool":
            made[n] = rng.random(shape) < 0.5
            made[n][..., 0] = True
        elif n in "ab":  # documents one behind the other, with names that float32 does not tell
            made[n] = 2**40 + np.sort(rng.integers(0, 3, shape))
        else:
            made[n] = rng.integers(1, SIZES["V"], shape).astype(dtype)
    return made


def as_floats(text):
    return text.split(": ")[-1]


def traced(name, own=str):
    fn, floats, others = CASES[name]
    return bb.trace(fn, **floats, **{n: own(text) for n, text in others.items()})


UNMASKED = [name for name in CASES if name != "mask"]


@pytest.mark.parametrize("name", rest_slow(UNMASKED, ["cross-entropy", "documents"]))
def test_own_dtypes_fuse_as_floats_do(name):
    """The same kernels, in number and in loops: those that masks empty are left out, too."""
    sizes = {**SIZES, "S": 1024, "T": 1024}
    plans = []
    for own in (str, as_floats):
        program = traced(name, own)
        used = {dim: sizes[dim] for dim in program.dims}
        plans.append(bb.compile(program, used, "float16", "h200").plan)
    own, floats = plans
    assert own.kernels == floats.kernels
    moves = [[f.considered.best.scheduled.schedule for f in plan.files] for plan in plans]
    assert moves[0] == moves[1]


def test_a_mask_is_read_byte_by_byte():
    program = traced("mask")
    used = {dim: SIZES[dim] for dim in program.dims}
    plan = bb.compile(program, used, "float16", "h200").plan
    assert plan.kernels == 1
    assert '"mask_ptr": "*u8"' in plan.source
    derivation = bb.fuse(bb.lower(program))
    assert bb.prove_equal(derivation.start, derivation.final, trials=2).equal


@pytest.mark.parametrize("name", UNMASKED)
def test_fusion_is_proved_as_for_floats(name):
    """Two trials show some of it; what they leave open, they do for floats, too."""
    derivations = [bb.fuse(bb.lower(traced(name, own))) for own in (str, as_floats)]
    own, floats = (bb.prove_equal(d.start, d.final, trials=2) for d in derivations)
    assert (own.equal, own.scope) == (floats.equal, floats.scope)
    assert own.equal or name in ("lengths", "alibi")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_on_the_cpu(name, dtype):
    given = {n: a.astype(dtype) if a.dtype.kind == "f" else a for n, a in arrays(name).items()}
    (right,) = traced(name).numpy(given).values()
    found = bb.jit(CASES[name][0])(**given)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, right, rtol=1e-4 if dtype == "float32" else 1e-10, atol=1e-6)


@pytest.mark.parametrize("name", ["cross-entropy", "lengths", "documents"])
def test_results_of_kernels(name):
    program, given = traced(name), arrays(name)
    (right,) = program.numpy(given).values()
    given = {n: a.astype("float32") if a.dtype.kind == "f" else a for n, a in given.items()}
    used = {dim: SIZES[dim] for dim in program.dims}
    (found,) = run_in_interpreter(bb.compile(program, used, "float32", "h200").plan, given)
    np.testing.assert_allclose(found, right, rtol=2e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_results_on_a_gpu(torch, cuda, name):
    """The first result is compared with torch's there, too; a mask is passed twice."""
    (right,) = traced(name).numpy(arrays(name)).values()
    given = {
        n: torch.from_numpy(a.astype("float32") if a.dtype.kind == "f" else a).to(cuda)
        for n, a in arrays(name).items()
    }
    jitted = bb.jit(CASES[name][0])
    for _ in range(3):
        found = jitted(**given)
        assert found.dtype == torch.float32
        np.testing.assert_allclose(found.cpu().numpy(), right, rtol=2e-3, atol=1e-3)


@pytest.mark.gpu
def test_masks_of_one_array_are_told_apart_on_a_gpu(torch, cuda):
    """Truth values enter kernels as bytes: views of them begin where the masks do."""
    both = torch.arange(128, device=cuda).reshape(2, 64) % 3 == 0
    jitted = bb.jit(lambda a, b: ((a & ~b).sum(), a.sum() * 2 + b.sum()))
    for a, b in ((both[0], both[0]), (both[0], both[1]), (both[1], both[0])):
        only, total = jitted(a, b)
        assert (only.dtype, total.dtype) == (torch.int64, torch.int64)
        assert int(only) == int((a & ~b).sum())
        assert int(total) == 2 * int(a.sum()) + int(b.sum())
