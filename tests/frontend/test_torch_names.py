"""torch's functions and methods on traced arrays give what torch gives."""

import itertools
import warnings

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.functions.spelling import NO_METHODS
from blockbuster.frontend.functions.table import TABLE, TORCH

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from tests.frontend.torch_cases import CASES, OPERATORS, Case  # noqa: E402
from tests.frontend.torch_image_cases import IMAGES  # noqa: E402
from tests.frontend.torch_network_cases import NETWORKS, ROWS_OF_ARRAYS  # noqa: E402

GROUPS = (CASES, IMAGES, NETWORKS)
ALL = {name: [case for group in GROUPS for case in group.get(name, [])]
       for group in GROUPS for name in group}  # fmt: skip
EVERY = [case for cases in ALL.values() for case in cases]


def torch_has(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


def wanted(case: Case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of a reduction that will change
        return case.function(*case.tensors())


def traced(case: Case):
    arrays = {f"x{at}": tensor for at, tensor in enumerate(case.tensors())}
    names = case.function.__code__.co_varnames if hasattr(case.function, "__code__") else ()
    call = lambda **given: case.function(*given.values())  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = bb.trace(call, **arrays)
    assert names is not None
    return program, {name: array.numpy() for name, array in arrays.items()}


@pytest.mark.parametrize(
    "case", [*EVERY, *OPERATORS, *ROWS_OF_ARRAYS],
    ids=lambda case: f"{case.function.__code__.co_firstlineno}"
    if hasattr(case.function, "__code__") else "torchs"
)  # fmt: skip
def test_a_traced_call_is_torchs(case):
    program, arrays = traced(case)

    found, expected = program.numpy(arrays)["out"], wanted(case)
    np.testing.assert_allclose(found, expected.double().numpy(), rtol=1e-6, atol=1e-9)


def test_each_row_of_torchs_has_a_case():
    assert {row.name for row in TORCH} == {*ALL}


def test_names_are_torchs():
    # as torch's C code says
    inner = {"softshrink", "log_sigmoid", "linalg_vector_norm", "functional.einsum"}
    names = {name for row in (*TABLE, *TORCH) for name in row.torch} - inner

    assert [name for name in sorted(names) if not torch_has(name)] == ["Tensor.rsub"]


def test_functions_that_are_no_methods():
    plain = {name for row in (*TABLE, *TORCH) for name in row.torch if "." not in name}
    own = {name.removeprefix("Tensor.") for r in (*TABLE, *TORCH) for name in r.torch}
    missing = {name for name in plain if not hasattr(torch.Tensor, name)}

    assert missing - {"log_sigmoid", "linalg_vector_norm", "rsub"} <= {*NO_METHODS}, own


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: F.dropout(x), r"p = 0.5 with training=True(.|\n)*pass training=False"),
    (lambda x: F.relu(x, inplace=True), "changes the argument x in place"),
    (lambda x: x.masked_fill_(x > 0, 1.0), r"changes the argument x in place"),
    (lambda x: x.to("cuda"), "has no device to go to"),
    (lambda x: F.interpolate(x, size=9, mode="fine"), r"interpolate\[fine\]: (.|\n)*bilinear"),
    (lambda x: torch.kthvalue(x, 9), "the 9-th of 8 elements"),
    (lambda x: x.narrow(1, 7, 2), "narrow of 2 elements from 7 on"),
    (lambda x: x.sum_to_size(2, 8, 4), "8 and 4 elements differ"),
    (lambda x: x[:1].sum_to_size(2, 8, 8), "no sum has more elements"),
    (lambda x: x.expand(4, 4, 8), "2 and 4 elements differ"),
    (lambda x: x.trace(), r"x.trace\(\) cannot be traced(.|\n)*torch.trace"),
    (lambda x: torch.lstm(x, (x, x), [x], False, 1, 0.0, False, False, True), "1 weights, not 2"),
    (lambda x: torch.gru(x, x, x, [x], False, 1, 0.0, False, False), "packed sequences"),
    (lambda x: x.scatter(1, x, x), "float positions"),
    (lambda x: F.embedding_bag(x[0], x[0], padding_idx=1), "bags of several lengths"),
    (lambda x: F.embedding_bag(x[0], x[0], mode="min"), "no mode 'min'"),
    (lambda x: x.scatter(1, torch.zeros(2, dtype=int), x), "3 axes at positions of 1"),
    (lambda x: x.scatter(1, x.argmax(1)[:, None], x, reduce="multiply"), "reduce='multiply'"),
    (lambda x: x.scatter_add(1, x.argmax(1)[:, None], x > 0), "mask elements among float"),
    (lambda x: x.index_add(0, x.argmax(0), x), "index_add at positions of 2 axes"),
    (lambda x: (x > 0) ^ x, r"\^ takes masks or integers, not floats"),
    (lambda x: F.instance_norm(x, x[0, 0], x[0, 0]), "changes its running statistics"),
    (lambda x: torch.topk(x, 0), "topk of 0 elements of "),
    (lambda x: F.one_hot(x), r"counts classes by values(.|\n)*one_hot\(x, 10\)"),
    (lambda x: F.gelu(x, approximate="erf"), "no approximation 'erf'"),
    (lambda x: F.mse_loss(x, x, reduction="max"), "no reduction 'max'"),
    (lambda x: F.layer_norm(x, (9,)), r"normalized_shape is \(9,\), and axis 2 has 8 elements"),
    (lambda x: torch.div(x, 2.0, rounding_mode="floor"), "rounding_mode='floor'"),
    (lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.1), "random numbers"),
    (lambda x: x.t(), "t takes matrices and vectors"),
    (lambda x: torch.norm(x, p="nuc"), "a norm of order 'nuc'"),
])  # fmt: skip
def test_refusals_name_the_users_line(function, message):
    with pytest.raises(bb.TraceError, match=message) as caught:
        bb.trace(function, x=torch.ones(2, 8, 8))
    assert "test_torch_names.py:" in str(caught.value)


def test_dtypes_that_no_example_decides_change_nothing():
    def norm(x, w):
        wide = x.to(torch.float32)
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

    described = bb.trace(norm, x="M N", w="N")
    assert [e.param("dtype") for e in described.equations if e.op == "cast"] == ["float32"]
    half = torch.ones(2, 3, dtype=torch.float16)
    casts = [e for e in bb.trace(norm, x=half, w=half[0]).equations if e.op == "cast"]
    assert [e.param("dtype") for e in casts] == ["float32", "float16"]


def test_dtypes_follow_the_inputs():
    found = []

    def look(x, y):
        found.extend([x.dtype, (x + y).dtype, x.to(y).dtype, (x > 0).dtype, (2 * x).dtype])
        return x

    bb.trace(look, x=torch.ones(2, dtype=torch.float16), y=torch.ones(2))
    bb.trace(look, x=np.ones(2, np.float16), y=np.ones(2))
    half, single, double = np.float16, torch.float32, np.float64
    assert found[:5] == [torch.float16, single, single, torch.bool, torch.float16]
    assert found[5:] == [half, double, double, np.bool_, half]


def test_a_method_of_both_libraries_means_that_of_the_inputs():
    array = np.arange(6.0).reshape(2, 3)
    for given, expected in ((array, 2 / 3), (torch.from_numpy(array), 1.0)):
        program = bb.trace(lambda x: x.var(-1), x=given)
        np.testing.assert_allclose(program.numpy({"x": array})["out"], expected)


@pytest.mark.parametrize(("order", "same"), [((0, 1), False), ((1, 0), False), ((-1, 0), False)])
def test_transpose_of_a_tensor_exchanges_two_axes(order, same):
    tensor = torch.arange(6.0).reshape(2, 3)
    program = bb.trace(lambda x: x.transpose(*order), x=tensor)

    found = program.numpy({"x": tensor.numpy()})["out"]
    np.testing.assert_array_equal(found, tensor.transpose(*order).numpy())
    assert (found.shape == tensor.shape) is same
    of_numpy = bb.trace(lambda x: x.transpose(0, 1) + 0.0, x=tensor.numpy())
    np.testing.assert_array_equal(of_numpy.numpy({"x": tensor.numpy()})["out"], tensor.numpy())


def test_three_axes_are_exchanged_whatever_is_given():
    array = np.arange(24.0).reshape(2, 3, 4)
    for pair in itertools.permutations(range(3), 2):
        program = bb.trace(lambda x, pair=pair: x.transpose(*pair), x="A B C")
        np.testing.assert_array_equal(program.numpy({"x": array})["out"], array.swapaxes(*pair))


def test_parts_that_are_not_all_of_an_axis_are_refused():
    """torch refuses them, too; a tail must not be lost or become part of the last."""
    for sizes in ([2, 3], [6, 6]):
        with pytest.raises(bb.TraceError, match="split of 10 elements"):
            bb.trace(lambda x, sizes=sizes: torch.split(x, sizes, dim=1), x="M 10")
    parts = bb.trace(lambda x: torch.split(x, [2, 8], dim=1), x="M 10")
    found = parts.numpy({"x": np.arange(20.0).reshape(2, 10)})
    assert [part.shape for part in found.values()] == [(2, 2), (2, 8)]
