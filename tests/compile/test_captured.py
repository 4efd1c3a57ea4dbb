"""Arrays that a function reads without being given them: inputs, seen as they are."""

from functools import partial

import numpy as np
import pytest

import blockbuster as bb
from tests.compile.test_containers import arrays, same, traces

torch = pytest.importorskip("torch")
assert traces

WEIGHT = np.arange(12.0, dtype=np.float32).reshape(3, 4)


class Model:
    def __init__(self):
        self.w, self.layers = arrays((3, 4), 4)[0], [{"b": arrays(4)[0]}]

    def forward(self, x):
        return x @ self.w + self.layers[0]["b"]

    __call__ = bb.jit(forward)


def test_a_program_holds_what_its_function_reads():
    model = Model()
    table = arrays(4)[0]
    program = bb.trace(lambda x: model.forward(x) * table + WEIGHT[0], x="M K")
    names = [given.name for given in program.inputs]

    assert names == ["x", "model_w", "model_layers_0_b", "table", "WEIGHT"]
    assert program.held["table"] is table
    x = arrays((2, 3))[0]
    wanted = model.forward(x) * table + WEIGHT[0]
    same(program.numpy({"x": x})["out"], wanted)
    same(program.numpy({"x": x, "table": 0 * table})["out"], np.broadcast_to(WEIGHT[0], (2, 4)))
    free = program.without_held()
    assert (free, free.held) == (program, {})
    with pytest.raises(TypeError, match="takes the arrays"):
        free.numpy({"x": x})


def test_the_same_array_is_one_input_and_a_number_is_none():
    one, number = arrays(4)[0], np.float32(3.0)
    program = bb.trace(lambda x: (x + one) * one * number * np.full((1, 1), 2.0), x="M N")

    assert [given.name for given in program.inputs] == ["x", "one"]
    same(program.numpy({"x": np.ones((2, 4))})["out"], (1 + one) * one * 6.0 * np.ones((2, 1)))


@pytest.mark.parametrize("where", ["closure", "method", "partial", "function"])
def test_names_are_those_of_the_function(where):
    model, inner = Model(), {"w": arrays((3, 4))[0]}
    functions = {
        "closure": (lambda x: x @ inner["w"], "inner_w"),
        "method": (model.forward, "self_w"),
        "partial": (partial(lambda x, w: x @ w["w"], w=inner), "w_w"),
        "function": (lambda x: x @ np.exp(inner["w"]), "constant"),
    }
    function, name = functions[where]

    assert bb.trace(function, x="M K").inputs[1].name == name


def test_changes_in_place_and_new_arrays_are_seen():
    model = Model()
    x = arrays((2, 3))[0]
    for change in (
        lambda: None,
        lambda: model.w.fill(2.0),
        lambda: setattr(model, "w", model.w * 3.0),
        lambda: model.layers[0]["b"].fill(5.0),
        lambda: model.layers.__setitem__(0, {"b": arrays(4)[0]}),
    ):
        change()
        for _ in range(2):
            same(model(x), model.forward(x))


def test_what_is_computed_of_an_array_while_tracing_follows_its_changes():
    w = arrays((3, 4))[0]
    function = lambda x: (x @ w) * w.max() + np.exp(w)[0]  # noqa: E731
    jitted, x = bb.jit(function), arrays((2, 3))[0]
    for value in (1.0, 2.0, -1.0):
        w[1, 2] = value
        same(jitted(x), function(x))


def test_a_large_array_is_traced_again_unless_it_is_read_only(traces):
    w = np.ones((200, 200), np.float32)
    function = lambda x: x @ w * float(w[0, 0])  # noqa: E731
    jitted, x = bb.jit(function), arrays((2, 200))[0]
    for value in (1.0, 2.0):
        w[:] = value
        same(jitted(x), function(x))
    assert len(traces) == 2
    report = " ".join(str(jitted.report_for(x)).split())
    assert "0.16 MB that may change unseen: make it an input, or read-only" in report
    w.flags.writeable = False
    before = [jitted(x), len(traces)][1]
    same(jitted(x), function(x))
    assert len(traces) == before
    w.flags.writeable = True
    w[:] = 3.0
    same(jitted(x), function(x))


def test_tensors_are_passed_as_they_are_and_their_changes_counted(traces):
    w = torch.ones(200, 200)
    function = lambda x: x @ w + w.max()  # noqa: E731
    jitted, x = bb.jit(function), torch.ones(2, 200)
    for change in (lambda: None, lambda: w.mul_(2.0), lambda: None):
        change()
        torch.testing.assert_close(jitted(x), function(x))
    assert len(traces) == 2
    w.data = torch.full((200, 200), 3.0)
    torch.testing.assert_close(jitted(x), function(x))


def test_a_tensor_of_inference_mode_is_traced_again():
    with torch.inference_mode():
        w = torch.ones(200, 200)
        jitted = bb.jit(lambda x: x @ w)
        assert "tensor of inference mode" in str(jitted.report_for(torch.ones(2, 200)))
        torch.testing.assert_close(jitted(torch.ones(2, 200)), torch.full((2, 200), 200.0))


def test_a_parameter_needs_no_grad():
    layer = torch.nn.Linear(3, 4)
    jitted, x = bb.jit(lambda x: layer(x)), torch.ones(2, 3)

    for _ in range(2):
        with torch.no_grad():
            torch.testing.assert_close(jitted(x), layer(x))
        with pytest.raises(bb.LaunchError, match="layer_weight requires a gradient"):
            jitted(x)


def test_arrays_beside_tensors_and_tensors_beside_arrays():
    w, x = arrays((3, 4), (2, 3))
    jitted = bb.jit(lambda x: x @ w)

    torch.testing.assert_close(jitted(torch.tensor(x)), torch.tensor(x @ w))
    w.fill(2.0)
    torch.testing.assert_close(jitted(torch.tensor(x)), torch.tensor(x @ w))
    w.flags.writeable = False
    torch.testing.assert_close(jitted(torch.tensor(x)), torch.tensor(x @ w))
    tensor = torch.tensor(w)
    with pytest.raises(bb.LaunchError, match="tensor is a tensor on cpu, x is a NumPy array"):
        bb.jit(lambda x: x @ tensor)(x)


def test_new_sizes_are_not_traced_again(traces):
    w = arrays((3, 4))[0]
    function = lambda x: np.exp(x @ w)  # noqa: E731
    jitted = bb.jit(function)
    for rows in (2, 3, 5):
        x = arrays((rows, 3))[0]
        same(jitted(x), function(x))
    assert len(traces) == 1


def test_masks_and_positions():
    mask, labels = np.add.outer(range(4), range(4)) % 2 == 0, np.array([2, 0, 1, 5])
    function = lambda x: np.where(mask, x, 0.0) + labels  # noqa: E731
    x = arrays((4, 4))[0].astype(np.float64)

    same(bb.jit(function)(x), function(x))
    program = bb.trace(function, x="M N")
    assert [(given.name, given.dtype) for given in program.inputs[1:]] == [
        ("mask", "bool"), ("labels", "int64"),
    ]  # fmt: skip


def test_masked_arrays_are_refused():
    masked = np.ma.ones(3)

    with pytest.raises(bb.TraceError, match="a MaskedArray is read"):
        bb.jit(lambda x: bb.maximum(x, masked))(np.ones(3))


def test_compiled_programs_take_what_they_hold():
    w, x = arrays((3, 4), (2, 3))
    program = bb.trace(lambda x: bb.exp(x @ w), x="M K")
    sizes = {"M": 2, "K": 3, **dict.fromkeys(set(program.dims) - {"M", "K"}, 4)}
    compiled = bb.compile(program, sizes, dtype="float32", machine="cpu")

    same(compiled(x), np.exp(x @ w))
    same(compiled(x, 2 * w), np.exp(x @ w * 2))
    kernel = bb.emit(bb.fuse(bb.lower(program)).final, sizes, dtype="float32")
    assert "w: (K, " in kernel.source or "w" in kernel.inputs


def test_a_table_that_a_function_makes_itself():
    def function(x):
        angles = np.arange(4.0)[:, None] * np.arange(3.0)
        return x * np.cos(angles) + np.sin(angles)

    x = np.ones((4, 3))
    same(bb.jit(function)(x), function(x))


def test_rows_of_an_embedding_that_is_read():
    table = arrays((5, 4))[0]
    labels = np.array([3, 0, 3])

    same(bb.jit(lambda labels, x: bb.take(table, labels, 0) + x)(labels, np.float32([[1.0]])),
         table[labels] + 1.0)  # fmt: skip


def test_rows_of_a_captured_tensor_at_computed_positions():
    book = torch.randn(8, 4)

    def nearest(z):
        at = (z @ book.T).argmax(1)
        return book[at], book.T[:, at], book[None, at, :]

    z = torch.randn(5, 4)
    for found, wanted in zip(bb.jit(nearest)(z), nearest(z), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
