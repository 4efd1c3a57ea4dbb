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
ONCE = AT[:, :1]  # a scatter that writes once in each line
OF_TWO = (
    "add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "ge", "gt", "le", "lt", "hypot",
    "atan2",
)  # fmt: skip

EXAMPLES = {
    **dict.fromkeys(SAME, (X,)),
    **dict.fromkeys(OF_TWO, (X, P)),
    **dict.fromkeys(("log", "log2", "log10", "rsqrt", "sqrt"), (P,)),
    **{name: (MASK, X < 0.5) for name in SAME if name.endswith(("_and", "_or", "_xor"))},
    **dict.fromkeys(("addcdiv", "addcmul"), (X, X, P)),
    **dict.fromkeys(("argmax", "argmin", "cumprod", "max", "min", "prod", "sort"), (X, 1)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), (AT, 1)),
    "addmm": (X[0], X, X.T @ X), "baddbmm": (BATCH, BATCH, (X.T @ X)[None]),
    "all": (MASK, 1), "copy": (X, X[0]), "diagonal": (X[:, 1:],), "empty": ([2, 0],),
    "diagonal_backward": (X[0], [4, 5], 0, 0, 1), "empty_permuted": ([2, 0], [0, 1]),
    "empty_strided": ([2, 0], [1, 1]), "flip": (X, [0, 1]), "index_select": (X, 1, AT[0]),
    "lerp": (X, P, 0.3), "new_empty": (X, [2, 0]), "new_empty_strided": (X, [2, 0], [1, 1]),
    "remainder": (AT, 2), "repeat": (X, [2, 1, 3]), "roll": (X, [1, 2], [0, 1]),
    "scatter": (X, 1, ONCE, -1.0), "scatter_add": (X, -1, ONCE, P[:, :1]),
    "select_backward": (X, [3, 5, 4], 1, -2), "select_scatter": (X, P[:, 0], 1, -1),
    "slice_backward": (X, [3, 9], 1, 2, 9, 2), "slice_scatter": (X, P[:, :2], 1, 0, 2**63 - 1, 2),
    "topk": (X, 2, 1), "var": (X, [1]),
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
    "constant_pad_nd": (X, [1, 2], 0.5), "index": (X, [None, AT[0]]),
    "avg_pool2d": (BATCH, [2, 2], [1, 2]),
    "convolution": (X.reshape(1, 1, 3, 4), P[:2, :2].reshape(1, 1, 2, 2), None,
                    [1, 2], [1, 0], [1, 1], False, [0, 0], 1),
    "max_pool2d_with_indices": (torch.arange(12.0).reshape(1, 3, 4), [2, 2], [1, 2]),  # x[i] is i
}  # fmt: skip
KEYWORDS = {
    "var": {"correction": 0, "keepdim": True}, "prod": {"keepdim": True},
    "var_mean": {"correction": 0, "keepdim": True}, "_to_copy": {"dtype": torch.float64},
}


def test_every_translated_operator_has_an_example():
    assert sorted(EXAMPLES) == sorted({*SAME, *RENAMED, *OTHERS} - {"attention"})


def test_operators_are_what_torch_computes():
    for name, args in EXAMPLES.items():
        operator, named = getattr(torch.ops.aten, name), KEYWORDS.get(name, {})
        function, kwargs = translated(node_of(name, **named))
        wanted = operator(*args, **named)

        found = traced(function, args, kwargs)
        wanted = wanted if isinstance(wanted, list | tuple) else [wanted]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-6, atol=1e-6, err_msg=name)


def node_of(name, **kwargs):
    operator = getattr(torch.ops.aten, name)
    target = getattr(operator, operator.overloads()[0])
    return SimpleNamespace(target=target, kwargs=kwargs, all_input_nodes=[X], users=())


def test_gradients_of_slices_and_items():
    """Each slice, item and diagonal of an array of 5 x 3: its gradient is what torch scatters."""
    for name, dim, place in (
        *(("slice_backward", dim, at) for dim in (0, -1) for at in
          ((0, 3, 1), (1, 2**63 - 1, 2), (-2, 9, 1), (0, -1, 3), (2, 2, 1))),
        *(("select_backward", dim, (at,)) for dim in (0, 1) for at in (0, 2, -1)),
    ):  # fmt: skip
        given = torch.zeros(5, 3, requires_grad=True)
        part = (torch.ops.aten.slice if len(place) == 3 else torch.select)(given, dim, *place)
        grad = torch.arange(1.0, 1 + part.numel()).reshape(part.shape)
        part.backward(grad)
        found = OTHERS[name](grad, [5, 3], dim, *place)
        torch.testing.assert_close(found, given.grad)


def test_scatters_of_several_elements_are_refused():
    for index in (AT, AT[:2, :1], AT[0, 0]):
        for args in (("scatter", index, -1.0), ("scatter_add", ONCE, X)):
            with pytest.raises(bb.TraceError, match="several elements"):
                OTHERS[args[0]](X, 1, *args[1:])


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
    for name in ("convolution_backward", "bernoulli"):
        with pytest.raises(ValueError, match="is not translated"):
            translated(node_of(name))

    pool = torch.ops.aten.max_pool2d_with_indices.default
    users = [SimpleNamespace(args=("the pool", at)) for at in (0, 1)]
    with pytest.raises(ValueError, match="its indices are read"):
        translated(SimpleNamespace(target=pool, kwargs={}, all_input_nodes=[X], users=users))
