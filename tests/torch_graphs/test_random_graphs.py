"""Random graphs, divided and put together again: eager torch's values, strides and memory.

The pieces run as torch's functions here, and give new contiguous tensors, as those of ``jit`` do.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.torch_graphs.in_place import out_of_place
from blockbuster.torch_graphs.values import is_plain

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.torch_graphs.test_backend import assert_same  # noqa: E402
from tests.torch_graphs.test_division import captured, increased  # noqa: E402

pytestmark = [pytest.mark.property, pytest.mark.filterwarnings("ignore")]

STEPS = {
    "exp": torch.exp,
    "double": lambda x: x * 2,
    "turn": lambda x: x.t(),
    "row": lambda x: x[:1].expand(4, 4),
    "sort": lambda x: x.sort(-1)[0],
    "halves": lambda x: torch.cat(x.split(2, 1)[::-1], 1),
    "half": lambda x: x.split(2, 1)[1].repeat(1, 2),
    "statistics": lambda x: torch.var_mean(x, 1)[1][:, None] - x,
    "contiguous": lambda x: x.contiguous(),
    "copy": lambda x: x.clone(),
}
OF_TWO = {"add": torch.add, "product": torch.matmul, "stack": lambda x, y: torch.stack((x, y))[0]}

IN_PLACE = {
    "relu_": lambda x: torch.nn.functional.relu(x, inplace=True),
    "add_": lambda x: x.add_(1),
    "increased": lambda x: increased(x, 2),
}


def apart(graph, dtypes, _options, _name):
    """A piece that gives new contiguous tensors."""
    module = torch.fx.GraphModule(torch.nn.Module(), graph)

    def piece(*given):
        made = [one.clone(memory_format=torch.contiguous_format) for one in module(*given)]
        return tuple(one.to(dtype) for one, dtype in zip(made, dtypes, strict=True))

    return piece


def drawn(data, known):
    """A function of ``known`` steps and those of two values."""
    steps = data.draw(st.lists(st.sampled_from([*known, *OF_TWO]), min_size=1, max_size=8))
    places = [data.draw(st.tuples(*[st.integers(0, at)] * 2)) for at in range(len(steps))]
    results = data.draw(st.lists(st.integers(0, len(steps)), min_size=1, max_size=4))

    def function(x):
        values = [x]
        for step, (one, other) in zip(steps, places, strict=True):
            if step in known:
                values.append(known[step](values[one]))
            else:
                values.append(OF_TWO[step](values[one], values[other]))
        return [values[place] for place in results]

    return function


X = torch.arange(16.0).reshape(4, 4) / 16


@given(st.data())
def test_graphs_keep_values_strides_and_memory(data):
    function, x = drawn(data, STEPS), X
    module = captured(function, x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("blockbuster.torch_graphs.backend.compiled_piece", apart)
        divided = bb.torch_backend(module, [x])
    assert_same((divided(x), x), (function(x), x))


@given(st.data())
def test_changes_in_place_are_those_of_eager_torch(data):
    writable = {name: step for name, step in STEPS.items() if name != "row"}
    function = drawn(data, {**writable, **IN_PLACE})
    x, other = X.clone(), X.clone()
    module = out_of_place(captured(function, X))
    assert_same((module(x), x), (function(other), other))
    if is_plain(module.graph):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("blockbuster.torch_graphs.backend.compiled_piece", apart)
            divided = bb.torch_backend(module, [x])
        x, other = X.clone(), X.clone()
        assert_same((divided(x), x), (function(other), other))
