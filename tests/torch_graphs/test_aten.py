"""Each translated operator of torch's computes what the function in its place computes."""

from types import SimpleNamespace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.torch_graphs.aten import OTHERS, RENAMED, SAME, translated

torch = pytest.importorskip("torch", reason="torch is not installed")

X = torch.arange(12.0).reshape(3, 4) / 5 - 1
P = X.abs() + 0.5
MASK = X > 0
AT = torch.tensor([[0, 3, 1], [1, 1, 2], [2, 0, 0]])
BATCH = X.reshape(1, 3, 4)
OF_TWO = ("add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "ge", "gt", "le", "lt")

EXAMPLES = {
    **dict.fromkeys(SAME, (X,)),
    **dict.fromkeys(OF_TWO, (X, P)),
    **dict.fromkeys(("log", "rsqrt", "sqrt"), (P,)),
    **{name: (MASK, X < 0.5) for name in SAME if name[-3:] == "and" or name[-3:] == "_or"},
    "addmm": (X[0], X, X.T @ X), "baddbmm": (BATCH, BATCH, (X.T @ X)[None]),
    "amax": (X, [-1], True), "amin": (X, [0]), "any": (MASK, 1), "arange": (5,),
    "bitwise_not": (MASK,), "bmm": (BATCH, BATCH.mT), "cat": ([X, P], 1), "clamp": (X, -0.5, 0.5),
    "clamp_max": (X, 0.5), "clamp_min": (X, 0.5), "cumsum": (X, 1), "full": ([2, 3], 2.0),
    "full_like": (X, 3.0), "gather": (X, 1, AT), "mean": (X, [0, 1]), "mm": (X, X.T),
    "permute": (X, [1, 0]), "pow": (X, 2), "select": (X, 1, 2), "split": (X, 2, 1),
    "split_with_sizes": (X, [1, 3], 1), "squeeze": (BATCH, [0]), "stack": ([X, P], 1),
    "sum": (X, [], True), "transpose": (BATCH, 1, 2), "tril": (X, 1), "unsqueeze": (X, 1),
    "var_mean": (X, [1]), "where": (MASK, X, P),
    "view": (X, [2, 6]), "_unsafe_view": (X, [2, 6]), "alias": (X,), "lift_fresh_copy": (X,),
    "_to_copy": (X,), "expand": (X[:, None], [3, 5, 4]), "_softmax": (X, 1, False),
    "_log_softmax": (X, -1, False), "scalar_tensor": (2.0,), "embedding": (X, AT[:1] % 3),
    "slice": (X, 1, 1, 2**63 - 1, 2), "linalg_vector_norm": (X, 2, [1], True),
    "constant_pad_nd": (X, [1, 2], 0.5), "avg_pool2d": (BATCH, [2, 2], [1, 2]),
    "convolution": (X.reshape(1, 1, 3, 4), P[:2, :2].reshape(1, 1, 2, 2), None,
                    [1, 2], [1, 0], [1, 1], False, [0, 0], 1),
    "max_pool2d_with_indices": (torch.arange(12.0).reshape(1, 3, 4), [2, 2], [1, 2]),  # x[i] is i
}  # fmt: skip
KEYWORDS = {"var_mean": {"correction": 0, "keepdim": True}, "_to_copy": {"dtype": torch.float64}}


def test_every_translated_operator_has_an_example():
    assert sorted(EXAMPLES) == sorted({*SAME, *RENAMED, *OTHERS})


def test_operators_are_what_torch_computes():
    for name, args in EXAMPLES.items():
        operator, named = getattr(torch.ops.aten, name), KEYWORDS.get(name, {})
        node = SimpleNamespace(
            target=getattr(operator, operator.overloads()[0]), kwargs=named, all_input_nodes=[X],
            users=(),
        )  # fmt: skip
        function, kwargs = translated(node)
        wanted = operator(*args, **named)

        found = traced(function, args, kwargs)
        wanted = wanted if isinstance(wanted, list | tuple) else [wanted]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-6, atol=1e-6, err_msg=name)


def traced(function, args, kwargs):
    """The values of a trace that takes all tensors among the arguments as inputs."""
    lists = [[*a] if isinstance(a, list) else [a] for a in args]
    inputs = [a for part in lists for a in part if isinstance(a, torch.Tensor)]

    def called(**arrays):
        left = iter(arrays.values())
        parts = [[next(left) if isinstance(a, torch.Tensor) else a for a in one] for one in lists]
        given = [p if isinstance(a, list) else p[0] for p, a in zip(parts, args, strict=True)]
        made = function(*given, **kwargs)
        made = made if isinstance(made, list | tuple) else [made]
        return tuple(one + 0 * next(iter(arrays.values())).sum() for one in made)

    given = {f"x{i}": one for i, one in enumerate(inputs or [X])}
    program = bb.trace(called, **given)
    return program.numpy({name: one.numpy() for name, one in given.items()}).values()


def test_others_are_refused():
    for name in ("sort", "convolution_backward", "bernoulli"):
        target = getattr(torch.ops.aten, name).default
        node = SimpleNamespace(target=target, kwargs={}, all_input_nodes=[X])
        with pytest.raises(ValueError, match="is not translated"):
            translated(node)

    pool = torch.ops.aten.max_pool2d_with_indices.default
    users = [SimpleNamespace(args=("the pool", at)) for at in (0, 1)]
    with pytest.raises(ValueError, match="its indices are read"):
        translated(SimpleNamespace(target=pool, kwargs={}, all_input_nodes=[X], users=users))
