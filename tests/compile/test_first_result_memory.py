"""The check of first results takes no more memory than it may, and says what it leaves out."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.check import first_result, sample
from blockbuster.check.first_result import compare_first
from blockbuster.frontend import on_tensors
from blockbuster.runtime import room
from blockbuster.runtime.first_launch import Finding

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
allocated = pytest.importorskip("tests.allocated").allocated

MB = 10**6
MN = dict(x="M N")
PROGRAMS = {
    "L1 norm": (lambda x: x / np.sum(np.abs(x), axis=1, keepdims=True), MN, (512, 4095)),
    "L2 norm": (lambda x: x / np.sqrt(np.sum(x * x, axis=1, keepdims=True)), MN, (512, 4095)),
    "softmax": (lambda x: bb.softmax(x, axis=-1), MN, (64, 32768)),
    "softmax of columns": (lambda x: bb.softmax(x, axis=0), MN, (32768, 64)),
    "RMSNorm": (
        lambda x: x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-5),
        dict(x="B C H W"), (7, 32, 96, 96),
    ),
    "group norm": (
        lambda x: bb.layer_norm(x.reshape(x.shape[0], 8, -1)), dict(x="B C W"), (640, 32, 100),
    ),
    "Frobenius norm": (lambda x: x / np.linalg.norm(x), MN, (1024, 2047)),
    "variance": (lambda x: np.var(x), MN, (1024, 2047)),
    "one softmax": (lambda x: bb.softmax(x, axis=-1), dict(x="M"), (2_000_000,)),
    "mean squared error": (lambda x: np.mean((x - 1.0) ** 2), MN, (1024, 2047)),
}  # fmt: skip


def right_plan(program, sizes):
    """A plan of the program: what is exact, rounded."""

    def run(given):
        found = on_tensors.run(program, given, sizes, way=on_tensors.Way(exact=True), rows={})
        return [result.to(given[0].dtype) for result in found]

    return run


def case(name):
    function, inputs, shape = PROGRAMS[name]
    generator = torch.Generator().manual_seed(0)
    tensors = [(torch.randn(shape, generator=generator) / 10).half()]
    program = bb.trace(function, **inputs)
    sizes = program.bind({"x": tensors[0]})
    (right,) = program.numpy({"x": tensors[0].double().numpy()}).values()
    result = torch.from_numpy(np.array(right)).half()
    return program, sizes, tensors, result


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("allowed", [3 * MB, 2 * MB])
def test_a_check_stays_in_its_room(name, allowed, monkeypatch):
    program, sizes, tensors, result = case(name)
    monkeypatch.setattr(first_result, "room", lambda device: allowed)
    plan = right_plan(program, sizes)
    with allocated() as found:
        finding = compare_first(program, plan, tensors, [result])

    assert not finding.wrong
    assert finding.note.startswith("first results were not compared (on drawn arrays): that takes")
    assert 0 < found.peak <= allowed


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "one softmax"])
def test_a_wrong_result_is_found_in_little_room(name, monkeypatch):
    program, sizes, tensors, result = case(name)
    monkeypatch.setattr(first_result, "room", lambda device: 3 * MB)
    wrong = [result * 1.1]
    finding = compare_first(program, right_plan(program, sizes), tensors, wrong)

    if result.dim():
        assert finding.wrong
    else:  # one number may be off by luck, and no others can be drawn
        assert finding.note.startswith("first results were not compared: that takes")


@pytest.mark.parametrize("name", ["L1 norm", "Frobenius norm", "variance"])
def test_drawn_arrays_are_compared_where_there_is_room(name, monkeypatch):
    program, sizes, tensors, result = case(name)
    plan, allowed = right_plan(program, sizes), 40 * MB
    monkeypatch.setattr(first_result, "room", lambda device: allowed)
    assert compare_first(program, plan, tensors, [result]) == Finding()
    with allocated() as found:  # the plan below allocates no more than its result
        assert not compare_first(program, lambda given: [result + 0], tensors, [result]).note
    assert found.peak <= allowed

    wrong = compare_first(program, lambda g: [1.1 * r for r in plan(g)], tensors, [result]).wrong
    assert wrong.endswith("(on drawn arrays)")


def test_nothing_is_compared_where_nothing_has_room(monkeypatch):
    program, _, tensors, result = case("Frobenius norm")
    monkeypatch.setattr(first_result, "room", lambda device: 1000)
    wrong = [result * 2]
    with allocated() as found:
        finding = compare_first(program, lambda given: wrong, tensors, wrong)

    assert finding.wrong == ""
    assert finding.note.startswith("first results were not compared: that takes 0.")
    assert found.peak < MB


def test_a_check_may_take_a_tenth_of_what_is_free(monkeypatch):
    class Cuda:
        mem_get_info = staticmethod(lambda device: (60 * 10**9, 80 * 10**9))
        memory_reserved = staticmethod(lambda device: 9 * 10**9)
        memory_allocated = staticmethod(lambda device: 5 * 10**9)

    monkeypatch.setattr(torch, "cuda", Cuda)
    assert room.room(torch.device("cuda")) == 6_400_000_000
    assert 0 < room.room(torch.device("cpu")) < 10**13


@pytest.mark.parametrize(
    ("name", "sizes", "free"),
    [
        ("L1 norm", {"M": 32768, "N": 65535}, 60),
        ("softmax", {"M": 4096, "N": 393216}, 20),
        ("RMSNorm", {"B": 112, "C": 64, "H": 512, "W": 512}, 20),
        ("L2 norm", {"M": 32768, "N": 65535}, 20),
        ("Frobenius norm", {"M": 32768, "N": 65535}, 20),
        ("Frobenius norm", {"M": 32768, "N": 65535}, 4),
    ],
)
def test_large_arrays_are_sampled_in_a_tenth_of_a_gpu(name, sizes, free):
    function, inputs, _ = PROGRAMS[name]
    program = bb.trace(function, **inputs)
    found = sample.sample(program, sizes, torch.zeros(1), free * 10**8)

    assert found.needed <= free * 10**8
    assert all(len(indices) >= 8 for indices in found.rows.values())
