"""Copies move tensors where they are, as they move NumPy arrays: through the host a call waits."""

import numpy as np
import pytest

from blockbuster.frontend.copies import CopyJoin, CopyMerge, CopySlice, CopySplit
from blockbuster.ir.lengths import ONE, share_of, size

torch = pytest.importorskip("torch", reason="torch is not installed")

COPIES = {
    "slice": (CopySlice(1, "N'", ONE, size("N") - ONE - ONE), [(3, 6, 2)]),
    "half": (CopySlice(0, "N", size("N") * share_of(2), size("N") * share_of(2)), [(6, 2)]),
    "split": (CopySplit(1, 3), [(4, 6)]),
    "split in front": (CopySplit(0, 2), [(4, 6)]),
    "join": (CopyJoin(1), [(2, 3), (2, 1)]),
    "merge": (CopyMerge(1), [(3, 2, 4)]),
    "merge in front": (CopyMerge(0), [(3, 2, 4)]),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16", "bool"])
@pytest.mark.parametrize("name", COPIES)
def test_tensors_are_moved_as_arrays_are(name, dtype):
    copy, shapes = COPIES[name]
    kind = getattr(torch, dtype)
    arrays = [np.arange(np.prod(shape)).reshape(shape) % 7 for shape in shapes]
    expected = torch.from_numpy(copy(*arrays)).to(kind)

    found = copy(*(torch.from_numpy(array).to(kind) for array in arrays))

    assert torch.is_tensor(found)
    assert found.dtype is kind
    assert found.shape == expected.shape
    assert torch.equal(found, expected)
