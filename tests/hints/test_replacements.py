"""What is refused by name gives the same as what its hint tells to write."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.functions.refused import BY_NAME, REFUSED
from tests.hints.replacements import NO_VALUES, REPLACED


@pytest.mark.parametrize(
    ("name", "plain", "written", "arguments"),
    [(name, plain, written, arguments) for name, plain, written, *arguments in REPLACED],
    ids=[case[0] for case in REPLACED],
)
def test_a_replacement_gives_the_same(name, plain, written, arguments):
    assert name in BY_NAME

    found, wanted = bb.jit(written)(*arguments), plain(*arguments)

    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9, atol=1e-12)


def test_each_refusal_is_tried():
    tried = {id(BY_NAME[name]) for name in (*NO_VALUES, *(case[0] for case in REPLACED))}

    assert [refusal.names[0] for refusal in REFUSED if id(refusal) not in tried] == []
