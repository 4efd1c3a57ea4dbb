"""Traced arrays share memory where NumPy's and torch's arrays do.

A function that the table does not know to give a view, or that returns its argument where the
library copies, would make changes in place silently wrong.
"""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.functions.table import numpy_function
from blockbuster.frontend.memory import is_held
from tests.frontend.function_examples import CASES

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from tests.frontend.torch_cases import CASES as TORCH_CASES  # noqa: E402

X = np.arange(1.0, 13.0).reshape(3, 4)
ROW = np.arange(4.0)
WHOLE = np.arange(12).reshape(3, 4)

OF_NUMPY = [
    lambda x: +x, lambda x: x.copy(), np.copy, np.ravel, lambda x: x[0].ravel(),
    lambda x: x.flatten(), lambda x: x[0].flatten(), lambda x: np.einsum("ij->ji", x),
    lambda x: np.einsum("ij->ij", x), np.flip, lambda x: np.flip(x, ()), np.fliplr, np.flipud,
    lambda x: np.broadcast_to(x, (3, 4)), lambda x: np.tile(x, (1, 1)), np.squeeze,
    lambda x: np.repeat(x, 1, 0), lambda x: np.roll(x, 0, 0), lambda x: np.roll(x, 0),
    lambda x: np.pad(x, 0), lambda x: x.astype(x.dtype),
    lambda x: x.astype(np.float64, copy=False), lambda x: x.astype(np.float32, copy=False),
    lambda x: np.sum(x, axis=()), lambda x: np.max(x, axis=()), lambda x: np.mean(x, axis=()),
    lambda x: np.split(x, 1)[0], lambda x: np.split(x, [1, 2])[1], lambda x: np.moveaxis(x, 0, 1),
    lambda x: np.reshape(x, (3, 4)), lambda x: x.reshape(2, 6), lambda x: x.reshape(3, 2, 2),
    lambda x: np.diff(x, n=0), lambda x: x[...], lambda x: x[:], lambda x: x[:, None],
    lambda x: x[0], lambda x: x[0, 0], lambda x: x[0, 0, ...], lambda x: x[::-1],
    lambda x: x[np.array([0, 1])], lambda x: x.T, lambda x: x.swapaxes(0, 1),
    lambda x: x[:3, :3].diagonal(), lambda x: np.concatenate([x]), lambda x: np.expand_dims(x, 0),
    lambda x: np.vstack([x]), lambda x: np.hstack([x]), lambda x: np.linalg.norm(x, axis=0),
]  # fmt: skip

OF_WHOLE_NUMBERS = [
    np.floor, np.ceil, np.trunc, np.round, lambda x: x.round(), lambda x: x**1, np.sign,
    lambda x: x.astype(np.int64), lambda x: x.astype(np.int64, copy=False),
]  # fmt: skip

OF_TORCH = [
    lambda x: +x, lambda x: F.dropout(x, 0.5, False), lambda x: F.dropout(x, 0.0), torch.clone,
    lambda x: x.to(torch.float64), lambda x: x.to(x), lambda x: x.to(torch.float64, copy=True),
    lambda x: x.to(torch.float32), lambda x: x.double(), lambda x: x.float(),
    lambda x: x.type_as(x), lambda x: x.contiguous(), lambda x: x.T.contiguous(),
    lambda x: x.detach(), lambda x: x.view(2, 6), lambda x: x.view(-1), lambda x: x.reshape(2, 6),
    lambda x: x.ravel(), lambda x: x.flatten(), lambda x: x.flatten(1), lambda x: x.expand(3, 4),
    lambda x: x[None].expand(2, -1, -1), lambda x: x.squeeze(), lambda x: F.pad(x, (0, 0)),
    lambda x: torch.einsum("ij->ji", x), lambda x: torch.einsum("ij->ij", x), torch.fliplr,
    lambda x: x.flip(0), lambda x: x[:3, :3].diagonal(), lambda x: torch.tile(x, (1, 1)),
    lambda x: x.repeat(1, 1), lambda x: x.repeat_interleave(1, 0), lambda x: x.roll(0, 0),
    lambda x: x.chunk(1)[0], lambda x: x.split(3)[0], lambda x: torch.cat([x]),
    lambda x: torch.nn.Identity()(x), lambda x: x[0], lambda x: x[0, 0], lambda x: x.mT,
    lambda x: x.t(), lambda x: x[0].t(), lambda x: torch.diff(x, n=0), lambda x: x.unbind()[0],
    lambda x: x.unflatten(1, (2, 2)), lambda x: x.unsqueeze(0), lambda x: x.permute(1, 0),
    lambda x: F.max_pool1d(x[None], 1), lambda x: F.avg_pool1d(x[None], 1), lambda x: x.sum(()),
    torch.floor, torch.round,
]  # fmt: skip


def parts(result):
    """The arrays of a result, out of tuples and lists."""
    if isinstance(result, list | tuple):
        return [part for each in result for part in parts(each)]
    return [result]


def storage(array):
    return array.untyped_storage().data_ptr() if isinstance(array, torch.Tensor) else 0


def shared(one, other):
    """Whether two arrays, or two tensors, share memory."""
    if isinstance(one, torch.Tensor):
        return storage(one) == storage(other)
    return isinstance(one, np.ndarray) and bool(np.shares_memory(one, other))


def relation(one, other):
    """True or False where a trace knows whether two arrays share memory, else None."""
    if one.memory is other.memory:
        return True
    return None if any(m is other.memory for m, _ in one.memory.all_kin()) else False


def assert_shares_alike(function, arrays):
    expected = [any(shared(one, x) for x in arrays) for one in parts(function(*arrays))]
    found = []

    def traced(**given):
        made = parts(function(*given.values()))
        found[:] = [{relation(one, x) for x in given.values()} for one in made if is_held(one)]
        return [one for one in made if is_held(one)]

    bb.trace(traced, **{f"x{n}": array for n, array in enumerate(arrays)})
    for known, wanted in zip(found, expected, strict=True):
        assert wanted in known or None in known
        assert wanted or True not in known


@pytest.mark.parametrize("case", CASES, ids=str)
def test_functions_of_the_table(case):
    arrays = case.arrays()
    for function in filter(None, map(numpy_function, case.row.numpy)):
        assert_shares_alike(lambda *given, f=function: case.call(f, list(given)), arrays)
    if case.row.public:
        ours = lambda *given: case.call(case.row.function, list(given))  # noqa: E731
        assert_shares_alike(ours, arrays)
        assert_shares_alike(ours, [torch.from_numpy(array) for array in arrays])


@pytest.mark.parametrize("name", TORCH_CASES)
def test_torchs_own_functions(name):
    for case in TORCH_CASES[name]:
        assert_shares_alike(case.function, case.tensors())


@pytest.mark.parametrize("function", OF_NUMPY, ids=range(len(OF_NUMPY)))
def test_arguments_for_which_numpy_does_nothing(function):
    assert_shares_alike(function, [X])


@pytest.mark.parametrize("function", OF_WHOLE_NUMBERS, ids=range(len(OF_WHOLE_NUMBERS)))
def test_whole_numbers_that_are_rounded(function):
    assert_shares_alike(function, [WHOLE])


@pytest.mark.parametrize("function", OF_TORCH, ids=range(len(OF_TORCH)))
def test_arguments_for_which_torch_does_nothing(function):
    assert_shares_alike(function, [torch.from_numpy(X)])
