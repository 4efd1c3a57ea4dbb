"""Hints about graphs that torch.compile captures: options, and operators that run eagerly."""

import blockbuster as bb
from blockbuster.torch_graphs.options import options_of
from tests.hints.tried import Tried
from tests.torch_graphs.test_division import X, captured


def compiled(function):
    """A graph of which nothing may run eagerly."""
    return lambda: bb.torch_backend(captured(function, X), [X], options={"strict": True})


CASES = (
    Tried("did you mean 'strict'", lambda: options_of({"strickt": True}),
          lambda: options_of({"strict": True})),
    Tried("leave out strict=True", compiled(lambda x: x.exp().sort(-1)[0] * 2),
          compiled(lambda x: x.exp() * 2)),
)  # fmt: skip
