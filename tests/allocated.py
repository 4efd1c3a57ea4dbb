"""How much memory torch holds at most while something runs on the CPU."""

import weakref
from contextlib import contextmanager

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Allocated(TorchDispatchMode):
    """Counts the bytes of storages that operators make, as long as a tensor sees them."""

    def __init__(self):
        super().__init__()
        self.peak = self._now = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        before = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if _is(t)}
        for tensor in tree_leaves(result):
            if _is(tensor) and tensor.untyped_storage().data_ptr() not in before:
                self._follow(tensor)
        self.peak = max(self.peak, self._now)
        return result

    def _follow(self, tensor):
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        self._now += size
        weakref.finalize(storage, self._forget, size)

    def _forget(self, size):
        self._now -= size


def _is(value):
    return hasattr(value, "untyped_storage")


@contextmanager
def allocated():
    """What is allocated in this context: ``peak`` is the largest number of bytes at once."""
    with Allocated() as found:
        yield found
