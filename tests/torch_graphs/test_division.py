"""What of a captured graph is compiled, and which graphs only compute: without dynamo."""

import importlib
import operator
import tomllib
from pathlib import Path

import pytest

import blockbuster as bb
from blockbuster.torch_graphs.in_place import out_of_place
from blockbuster.torch_graphs.pieces import divided
from blockbuster.torch_graphs.values import is_plain, is_view, layout_of

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

X = torch.arange(12.0).reshape(3, 4)


def captured(function, *args):
    """The graph of a function as dynamo leaves it: a fake tensor at each node."""
    module = torch.fx.symbolic_trace(function)
    mode = FakeTensorMode()

    class Noting(torch.fx.Interpreter):
        def run_node(self, node):
            value = super().run_node(node)
            node.meta["example_value"] = value
            return value

    with mode, torch.no_grad():
        Noting(module).run(*(mode.from_tensor(arg) for arg in args))
    return module


def pieces_of(function, *args):
    """The names of nodes in each piece, and the reason of those that run eagerly."""
    found = divided(captured(function, *args).graph)
    return [(" ".join(node.name for node in piece.nodes), piece.reason) for piece in found]


RANDOM = "torch.rand_like cannot be traced: it draws random numbers"
OPAQUE = "it runs on whole arrays, and is not fused"


PIECES = [
    (lambda x: x.exp() * 2, [("exp mul", None)]),
    (lambda x: x.exp().sort(-1)[0] * 2,
     [("exp", None), ("sort", OPAQUE), ("getitem", ""), ("mul", None)]),
    (lambda x: x.t()[:2].t(), [("t", ""), ("getitem", ""), ("t_1", "")]),  # no kernel runs for them
    (lambda x: (x * torch.rand_like(x)).exp(), [("rand_like", RANDOM), ("mul exp", None)]),
    (lambda x: x.exp()[:0] + 1, [("exp", None), ("getitem", ""), ("add", "")]),
]  # fmt: skip


def test_pieces_are_runs_that_are_traced():
    for function, wanted in PIECES:
        assert pieces_of(function, X) == wanted


def internal_pieces(function, mode):
    graph = make_fx(function, tracing_mode=mode)(X).graph
    return [[node.name for node in piece.nodes] for piece in divided(graph)]


def test_random_numbers_of_no_tensor_part_no_piece():
    def drawn(x):
        return torch.bernoulli(torch.empty(3, 4), 0.5) * x

    assert internal_pieces(lambda x: drawn(x.exp()) * 2, "fake") == [
        ["bernoulli"], ["exp", "empty", "mul", "mul_1"],
    ]  # fmt: skip
    assert internal_pieces(lambda x: drawn(torch.rand_like(x)), "fake") == [
        ["rand_like"], ["bernoulli"], ["empty", "mul"],
    ]  # fmt: skip


def test_sizes_follow_from_those_of_inputs():
    def of_a_part(x):
        rest = x[1:] * 2
        return rest.reshape(rest.shape[0] * rest.shape[1]).exp()

    (found,) = internal_pieces(of_a_part, "symbolic")
    assert found[-1] == "exp"


def test_items_follow_their_tuple():
    def late(x):
        y = x.exp()
        parts = y.split(2, 1)
        return parts[1] + y.sort(-1)[0][:, :2]

    names = [name for name, _ in pieces_of(late, X)]
    assert names[0] == "exp split getitem"


def test_windows_of_windows_begin_a_piece():
    functional = torch.nn.functional
    image, weight = torch.ones(1, 2, 8, 8), torch.ones(2, 2, 3, 3)

    def branches(x, w):
        y = functional.conv2d(x, w) + functional.conv2d(x * 2, w)
        return functional.conv2d(y.relu(), w)

    side_by_side = lambda x, w: functional.max_pool2d(functional.conv2d(x, w), 2)  # noqa: E731
    both = [("conv2d mul conv2d_1 add relu", None), ("conv2d_2", None)]
    assert pieces_of(branches, image, weight) == both
    assert pieces_of(side_by_side, image, weight) == [("conv2d max_pool2d", None)]


def test_equal_pieces_are_compiled_once(monkeypatch):
    def blocks(x):
        for _ in range(2):
            x = x.sin().sort(-1)[0]
        return x.cos()

    made = []

    def noted(graph, _dtypes, _options, name):
        made.append(name)
        module = torch.fx.GraphModule(torch.nn.Module(), graph)
        return lambda *given: module(*given)

    monkeypatch.setattr("blockbuster.torch_graphs.backend.compiled_piece", noted)
    with pytest.warns(UserWarning, match="sort"):
        found = bb.torch_backend(captured(blocks, X), [X])(X)
    torch.testing.assert_close(found, blocks(X))
    assert made == ["piece0", "piece6"]


COMPUTE = (lambda x: x.exp() * 2, lambda x: x.t()[0].view(3, 1))
CHANGE = (
    lambda x: x.add_(1),
    lambda x: torch.relu_(x * 2),
    lambda x: torch.nn.functional.relu(x[0], inplace=True),
    lambda x: torch.add(x, 1, out=x.clone()),
    lambda x: x.requires_grad_() * 2,
    lambda x: x.to_sparse(),
)


def test_graphs_that_only_compute():
    assert all(is_plain(captured(function, X).graph) for function in COMPUTE)
    assert not any(is_plain(captured(function, X).graph) for function in CHANGE)
    weight = torch.ones(4, requires_grad=True)  # under no_grad, its views ask for gradients too
    assert is_plain(captured(lambda x, w: x + w.expand(3, 4), X, weight).graph)


def increased(y, x):
    """``y += x``, which symbolic values have not."""
    if isinstance(y, torch.fx.Proxy):
        return y.tracer.create_proxy("call_function", operator.iadd, (y, x), {})
    return operator.iadd(y, x)


def images(x):
    y = torch.nn.functional.relu(x * 2, inplace=True)
    y = increased(y, x)
    return torch.nn.functional.leaky_relu(y.view(2, 6).mul_(y.exp().view(2, 6)), 0.1, True)


def seen_in_a_view(x):
    y = x * 2
    return y[0], y.add_(1)


def changed_through_a_view(x):
    y = x * 2
    y[0].add_(1)
    return y


OF_ITS_OWN = (images, lambda x: torch.relu_(x * 2), lambda x: x.exp().t().clamp_(0, 1) + 1)
OF_OTHERS = (
    CHANGE[0], CHANGE[2], CHANGE[5], seen_in_a_view, changed_through_a_view,
    lambda x: x.exp().bernoulli_(), lambda x: x.exp().unsqueeze_(0),
    lambda x: x.exp().split(2, 1)[0].add_(1),
)  # fmt: skip


def test_changes_of_values_that_a_graph_makes_are_none():
    for function in OF_ITS_OWN:
        module = captured(function, X)
        found = out_of_place(module)
        assert not is_plain(module.graph)
        assert is_plain(found.graph)
        torch.testing.assert_close(found(X), function(X))
    own = out_of_place(captured(OF_ITS_OWN[1], X)).graph
    assert not any(map(is_view, own.nodes))  # a kernel computes it
    assert not any(is_plain(out_of_place(captured(one, X)).graph) for one in OF_OTHERS)


def test_views_and_layouts_are_told_by_their_memory():
    graph = captured(lambda x: (x.t(), x.split(2, 1)[0], x.t().contiguous(), x.t() * 2), X).graph
    views = {node.name: is_view(node) for node in graph.nodes if node.op.startswith("call")}
    names = ["t", "split", "getitem", "t_1", "contiguous", "t_2", "mul"]
    assert views == dict(zip(names, [True] * 4 + [False, True, False], strict=True))
    fakes = {node.name: node.meta["example_value"] for node in graph.nodes}
    assert [layout_of(fakes[name]) for name in ("x", "t", "contiguous", "mul")] == [
        (), (1, 0), (), (1, 0),
    ]  # fmt: skip


def test_a_graph_runs_with_its_views_and_layouts():
    def function(x):
        y = (x * 2).t()
        return y, y.exp(), x[0]

    module = captured(function, X)
    told = []
    found = bb.torch_backend(module, [X], options={"report": told.append})(X)
    for one, other in zip(found, function(X), strict=True):
        torch.testing.assert_close(one, other)
        assert one.stride() == other.stride()
    assert found[2].data_ptr() == X.data_ptr()
    assert told[0].startswith("captured graph: 4 of 4 operators in 1 compiled piece\n")


def test_the_installed_name():
    """``backend="blockbuster"`` is looked up among the entry points of installed packages."""
    project = Path(bb.__file__).parents[1] / "pyproject.toml"
    points = tomllib.loads(project.read_text())["project"]["entry-points"]
    module, _, name = points["torch_dynamo_backends"]["blockbuster"].partition(":")
    assert getattr(importlib.import_module(module), name) is bb.torch_backend
