"""Operators that are written in others compute what they did, and draw the same numbers."""

import pytest

from blockbuster.torch_graphs.decompositions import _of_lists, decompositions

torch = pytest.importorskip("torch", reason="torch is not installed")

X = torch.arange(24.0).reshape(2, 3, 4) / 7 - 1
MANY = [X + 2, X[0].t() + 3]
LESS = [one * 0.3 for one in MANY]
aten = torch.ops.aten


def test_dropout_draws_what_eager_torch_does_on_the_cpu():
    dropped = decompositions()[aten.native_dropout.default]
    for x in (X, X.permute(2, 0, 1)):
        for probability in (0.0, 0.3, 1.0):
            for train in (True, False, None):
                torch.manual_seed(5)
                wanted = torch.native_dropout(x, probability, train)
                torch.manual_seed(5)
                found = dropped(x, probability, train)
                torch.testing.assert_close(found, wanted)


EXAMPLES = {
    "List": (MANY, LESS), "Scalar": (MANY, 2.0), "ScalarList": (MANY, [2.0, 3.0]),
    "Tensor": (MANY, torch.tensor(2.0)), "ScalarAndTensor": (2.0, MANY), "default": (MANY,),
}  # fmt: skip
OTHERS = {
    "addcdiv": (MANY, MANY, LESS), "addcmul": (MANY, MANY, LESS), "lerp": (MANY, LESS),
    "copy": (MANY, LESS), "norm": (MANY, 1),
}  # fmt: skip


def test_operators_of_lists_are_those_of_tensors():
    tried = 0
    for operator, one_by_one in _of_lists():
        name, overload = operator._schema.name.partition("_foreach_")[2], operator._overloadname
        args = OTHERS.get(name) or EXAMPLES[overload]
        if name in OTHERS and overload not in ("default", "List"):
            args += () if name == "norm" else EXAMPLES[overload][1:]
        elif name == "lerp":
            args += (LESS,)
        torch.testing.assert_close(one_by_one(*args), list(operator(*args)))
        tried += 1
    assert tried > 40
