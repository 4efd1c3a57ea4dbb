"""Modules and functions by ``torch.compile`` are those of eager torch, also where they change."""

import copy
from contextlib import nullcontext

import pytest

import blockbuster as bb

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils._pytree import tree_leaves  # noqa: E402

from tests.torch_graphs.models import FUNCTIONS, MODULES, Sorted, X, mlp  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _nothing_captured():
    torch._dynamo.reset()


def compiled(function, **options):
    told = []
    options["report"] = told.append
    return torch.compile(function, backend=bb.torch_backend, options=options), told


def assert_same(found, wanted):
    """The same leaves: values, dtypes, strides, gradients; and which of them share memory."""
    found, wanted = tree_leaves(found), tree_leaves(wanted)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one.stride(), one.requires_grad) == (other.stride(), other.requires_grad)
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert shared(found) == shared(wanted)


def shared(tensors):
    places = [t.untyped_storage().data_ptr() or id(t) for t in tensors]
    return [places.index(place) for place in places]


def product(x):
    return x @ x.t(), x.t()


def run(function, x, context=torch.no_grad):
    x = x.clone()
    torch.manual_seed(3)
    with context():
        return function(x), x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_eager_torchs(name):
    function = FUNCTIONS[name]
    ours, _ = compiled(function)
    for _ in range(2):
        assert_same(run(ours, X), run(function, X))


def test_in_modes_around_the_call():
    for context in (torch.inference_mode, lambda: torch.autocast("cpu")):
        ours, _ = compiled(product)
        assert_same(run(ours, X, context), run(product, X, context))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_modules_are_eager_torchs(name, training):
    make, x = MODULES[name]
    torch.manual_seed(0)
    theirs = make().train(training)
    module = copy.deepcopy(theirs)
    ours, _ = compiled(module)
    for batch in (x, torch.cat([x, x[:1]]), x[:2]):  # from the second on, of any size
        found, wanted = (run(m, batch, nullcontext)[0] for m in (ours, theirs))
        assert_same(found, wanted)
        for results in (found, wanted):
            sum(t.square().sum() for t in tree_leaves(results)).backward()
    pairs = zip(module.state_dict().values(), theirs.state_dict().values(), strict=True)
    assert_same(*zip(*pairs, strict=True))
    grads = ([p.grad for p in m.parameters()] for m in (module, theirs))
    assert_same(*grads)


def test_one_operator_that_is_refused_is_told_and_the_rest_compiled():
    module = Sorted().eval()
    ours, told = compiled(module)
    with pytest.warns(UserWarning, match=r"sort \(models\.py:\d+\): it runs on whole arrays"):
        assert_same(run(ours, X), run(module, X))
    assert told[0].startswith("captured graph: 4 of 6 operators in 2 compiled pieces")
    assert [text.split(":")[0] for text in told[1:]] == ["piece0", "piece3"]


def test_constants_that_gradients_need_are_made_outside_of_pieces():
    def attend(x):
        hidden = torch.ones(4, 4).tril() == 0
        return (x @ x.t()).masked_fill(hidden, -torch.inf).softmax(-1) @ x

    x = torch.arange(16.0).reshape(4, 4) / 16
    given, eagers = (x.clone().requires_grad_() for _ in range(2))
    compiled(attend, strict=True)[0](given).sum().backward()
    attend(eagers).sum().backward()
    torch.testing.assert_close(given.grad, eagers.grad)


def test_strict_raises_instead():
    ours, _ = compiled(Sorted(), strict=True)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"TraceError.*\n.*sort"):
        run(ours, X)


def test_options_are_those_of_jit():
    ours, told = compiled(mlp().eval(), library=False, machine="cpu", effort="exhaustive")
    run(ours, X)
    assert "for cpu" in told[1]
    with pytest.raises(Exception, match=r"unknown option 'libary'.*\n.*did you mean 'library'"):
        run(compiled(torch.exp, libary=False)[0], X)


def test_pieces_are_refused_when_they_run_too(monkeypatch):
    def refusing(*_, **__):
        def call(*_):
            raise bb.EmitError("too large")

        return call

    monkeypatch.setattr("blockbuster.torch_graphs.compiled_piece.jit", refusing)
    ours, _ = compiled(torch.exp)
    with pytest.warns(UserWarning, match="piece0 runs eagerly: too large"):
        assert_same(run(ours, X), run(torch.exp, X))
    with pytest.raises(bb.EmitError, match="too large"):
        run(compiled(torch.sin, strict=True)[0], X)


def test_sizes_that_depend_on_elements_are_made_eagerly():
    y = torch.ones(3)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for function in (
            lambda x: (x > 0).nonzero() * 2,
            lambda x: torch.cat([x[x > 0].reshape(-1), y]) * 2,
        ):
            assert_same(compiled(function)[0](X), function(X))


def test_numbers_that_change_compile_no_kernel_each():
    ours, told = compiled(lambda x, by: (x.exp() * by).sin())
    with torch.no_grad():
        for by in (2, 3, 5, 7):
            torch.testing.assert_close(ours(X, by), (X.exp() * by).sin())
    assert "mul (test_backend.py" in told[-3]
    assert "a number that it takes would be fixed" in told[-3]
    assert [text.split(":")[0] for text in told[-2:]] == ["piece0", "piece2"]


def test_one_trace_serves_all_sizes():
    ours, told = compiled(FUNCTIONS["vmap"])
    torch._dynamo.mark_dynamic(first := X.clone(), 0)
    for x in (first, X[:3], X[:2]):
        with torch.no_grad():
            torch.testing.assert_close(ours(x), x.exp() * 2)
    assert [text.split(":")[0] for text in told] == ["captured graph", "piece0"]
