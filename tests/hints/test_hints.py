"""Every hint is tried: following it leads to success, or to the next error, which is named."""

import pytest

from tests.hints import arrays, sizes, tensors
from blockbuster.errors import BlockbusterError

CASES = (*sizes.CASES, *arrays.CASES, *tensors.CASES)


def hint_of(work):
    with pytest.raises((BlockbusterError, TypeError, ValueError)) as caught:
        work()
    return str(caught.value)


@pytest.mark.parametrize("tried", CASES, ids=lambda tried: tried.hint)
def test_hint(tried):
    said = hint_of(tried.wrong)
    _, found, hint = said.rpartition("  hint: ")

    assert found, said
    assert tried.hint in hint, said
    if tried.then:
        assert tried.then in hint_of(tried.right)
    else:
        tried.right()
