"""A piece that jit refuses for some calls: these run eagerly, the others stay compiled."""

import warnings

import pytest

import blockbuster as bb
from blockbuster.torch_graphs import compiled_piece as module
from blockbuster.torch_graphs.options import options_of

torch = pytest.importorskip("torch", reason="torch is not installed")

X = torch.arange(6.0).reshape(3, 2)


def piece_of(**options):
    graph = torch.fx.symbolic_trace(lambda x: (x.exp() * 2,)).graph
    return module.compiled_piece(graph, [torch.float32], options_of(options), "piece0")


@pytest.fixture
def tried(monkeypatch):
    """What a jit is called with that refuses float64 and fewer than three rows."""
    calls = []

    def refusing(function, **_):
        def call(x):
            calls.append((x.dtype, len(x)))
            if x.dtype == torch.float64 or len(x) < 3:
                raise bb.EmitError("not this one")
            return function(x)

        return call

    monkeypatch.setattr(module, "jit", refusing)
    return calls


def test_a_refused_call_leaves_the_piece_compiled_for_others(tried):
    piece = piece_of()
    for x in (X.double(), X[:2], X, X.double(), X[:2], X[:1], X):  # by dtype, by size, and again
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.testing.assert_close(piece(x), (x.exp() * 2,), check_dtype=False)
    single, double = torch.float32, torch.float64
    assert tried == [(double, 3), (single, 2), (single, 3), (single, 1), (single, 3)]


def test_a_piece_that_takes_no_call_is_not_tried_for_ever(tried):
    piece = piece_of()
    for rows in range(2 * module.MOST):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            piece(torch.ones(3 + rows, 2, dtype=torch.float64))
    assert len(tried) == module.MOST


def test_every_refusal_is_told_or_an_error(tried):
    piece = piece_of()
    for x in (X[:2], X[:1]):
        with pytest.warns(UserWarning, match="piece0 runs eagerly: not this one"):
            piece(x)
    with pytest.raises(bb.EmitError, match="not this one"):
        piece_of(strict=True)(X[:2])


def test_a_piece_takes_arrays_that_need_gradients():
    told = []
    (found,) = piece_of(strict=True, report=told.append)(X.clone().requires_grad_())
    assert len(told) == 1
    torch.testing.assert_close(found, X.exp() * 2)
